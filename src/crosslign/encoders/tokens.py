"""Token ids of sentences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosslign.files import sha256_text

Ids = NDArray[np.int32]


@dataclass(frozen=True)
class Tokens:
    """Token ids of n sentences, special tokens included.

    Attributes:
        ids: n int32 arrays.
        segments: n int32 arrays of segment numbers (0, 1) for sentence pairs, or None.
        cut: for each sentence whether it was cut; empty where none was.
    """

    ids: list[Ids]
    segments: list[Ids] | None = None
    cut: Sequence[bool] = ()

    @property
    def truncated(self) -> int:
        """How many sentences were cut."""
        return sum(self.cut)


def tokenise(tokenizer: Any, texts: Sequence[str], pair_texts: Sequence[str] | None, max_length: int) -> Tokens:
    """Tokenise sentences, or sentence pairs, to at most `max_length` tokens each (the longer of a pair is cut first).

    Args:
        tokenizer: one of transformers; fast ones take all sentences at once.
        texts: n sentences.
        pair_texts: n second sentences, or None.
        max_length: bound on the tokens, special ones included.
    """
    if not texts:
        return Tokens([])
    pairs = list(pair_texts) if pair_texts is not None else None
    if not tokenizer.is_fast:
        return _tokenise_slowly(tokenizer, texts, pairs, max_length)
    # Without these two, half the work: both lie in the encodings anyhow, and lists of them are made on one core.
    unasked = {"return_attention_mask": False, "return_token_type_ids": False}
    encodings = tokenizer(list(texts), pairs, truncation=True, max_length=max_length, **unasked).encodings
    ids = [np.asarray(e.ids, dtype=np.int32) for e in encodings]
    segments = [np.asarray(e.type_ids, dtype=np.int32) for e in encodings] if pairs is not None else None
    return Tokens(ids, segments, [bool(e.overflowing) for e in encodings])


def _tokenise_slowly(tokenizer: Any, texts: Sequence[str], pairs: Sequence[str] | None, max_length: int) -> Tokens:
    """Tokenise by a tokenizer in Python, without segment numbers: XLM adds the embedding of the word of that number."""
    found = [
        tokenizer(*asked).input_ids for asked in (zip(texts, pairs, strict=True) if pairs is not None else ((text,) for text in texts))
    ]
    cut = [len(ids) > max_length for ids in found]
    for at in np.flatnonzero(cut).tolist():
        found[at] = tokenizer(texts[at], None if pairs is None else pairs[at], truncation=True, max_length=max_length).input_ids
    return Tokens([np.asarray(ids, dtype=np.int32) for ids in found], None, cut)


def tokenizer_key(tokenizer: Any) -> str:
    """Return a checksum of a tokenizer, its momentary truncation and padding left out; of one in Python of its pieces and their merges."""
    if not tokenizer.is_fast:
        merges = sorted(getattr(tokenizer, "bpe_ranks", {}).items())
        return sha256_text(json.dumps([type(tokenizer).__name__, sorted(tokenizer.get_vocab().items()), merges]))
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    return sha256_text(backend.to_str())
