"""An encoder without the pieces that a text collection never uses: the same vectors, a fraction of the word embeddings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from crosslign.encoders.model import Member
from crosslign.encoders.soundness import ROBERTA_POSITIONS
from crosslign.encoders.weights import open_to_readers
from crosslign.errors import InputError
from crosslign.files import iter_rows

SPECIAL_NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
CONFIG_IDS = ("bos_token_id", "eos_token_id", "pad_token_id")
BATCH = 4096
"""Sentences that are tokenised at a time."""


def texts_of(paths: Iterable[Path]) -> Iterator[str]:
    """Yield every text of corpora of any kind, evaluation corpora among them."""
    for path in paths:
        for table in iter_rows(path):
            for column in table.column_names:
                if column == "text" or column.endswith("_text"):
                    yield from (text for text in table[column].to_pylist() if text is not None)


def used_ids(tokenizer: Any, texts: Iterable[str], prefixes: Sequence[str] = ()) -> set[int]:
    """Return the ids of all pieces that texts are cut into, with each prefix in front and without; nothing is truncated."""
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    used: set[int] = set()
    waiting: list[str] = []

    def count() -> None:
        for encoding in backend.encode_batch_fast(waiting):
            used.update(encoding.ids)
        waiting.clear()

    for text in texts:
        waiting += [text, *(prefix + text for prefix in prefixes)]
        if len(waiting) >= BATCH:
            count()
    count()
    return used


def _kept(state: Mapping[str, Any], used: set[int], unigram: Mapping[str, Any]) -> list[int]:
    """Return the ids that stay, rising: those used, the special ones, and a piece of the lowest score.

    An unknown character costs ten less than the lowest score of all pieces, so that piece keeps every comparison as it was.
    """
    scores = [score for _, score in unigram["vocab"]]
    special = {token["id"] for token in state["added_tokens"]} | {unigram["unk_id"], int(np.argmin(scores))}
    return sorted(used | special)


def _renumbered(value: Any, number: Mapping[int, int]) -> Any:
    """Return a post-processor's settings with new ids: lists under `ids`, and pairs of a token and its id."""
    if isinstance(value, Mapping):
        return {key: [number[i] for i in inner] if key == "ids" else _renumbered(inner, number) for key, inner in value.items()}
    if isinstance(value, list):
        pair = len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], int)
        return [value[0], number[value[1]]] if pair else [_renumbered(inner, number) for inner in value]
    return value


def _smaller_tokenizer(tokenizer: Any, state: dict[str, Any], kept: Sequence[int]) -> Any:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    number = {old: new for new, old in enumerate(kept)}
    unigram = state["model"]
    unigram["vocab"] = [unigram["vocab"][old] for old in kept if old < len(unigram["vocab"])]
    unigram["unk_id"] = number[unigram["unk_id"]]
    for token in state["added_tokens"]:
        token["id"] = number[token["id"]]
    state["post_processor"] = _renumbered(state["post_processor"], number)
    state["truncation"] = state["padding"] = None
    named = {name: getattr(tokenizer, name) for name in SPECIAL_NAMES if getattr(tokenizer, name, None) is not None}
    smaller = Tokenizer.from_str(json.dumps(state, ensure_ascii=False))
    return PreTrainedTokenizerFast(tokenizer_object=smaller, model_max_length=tokenizer.model_max_length, **named)  # type: ignore[no-untyped-call]


def _smaller_embeddings(member: Member, kept: Sequence[int]) -> None:
    """Keep the rows of the word embeddings that stand for kept pieces, and renumber the ids in the model's own settings."""
    backbone: Any = member.backbone
    number = {old: new for new, old in enumerate(kept)}
    for name in CONFIG_IDS:
        old = getattr(backbone.config, name, None)
        if old is not None:
            setattr(backbone.config, name, number.get(old))
    embedding = backbone.get_input_embeddings()
    embedding.weight = torch.nn.Parameter(embedding.weight.detach()[torch.tensor(kept)].clone())
    embedding.num_embeddings = backbone.config.vocab_size = len(kept)
    embedding.padding_idx = number.get(embedding.padding_idx)


def prune(member: Member, texts: Iterable[str], prefixes: Sequence[str] = ()) -> Member:
    """Return the encoder with only those pieces that the given texts are cut into.

    A text that the full encoder cuts into kept pieces alone is cut the same way (fewer candidates cannot make another one the
    best) and gets the same vector. Other text is cut into the pieces that are left.

    Args:
        member: an encoder whose tokenizer is a unigram model (XLM-R, E5, …); its embeddings are changed in place.
        texts: what must stay exact.
        prefixes: put in front of each text, as readouts do.

    Raises:
        InputError: the tokenizer is of another kind, or the padding id would move where positions are counted from it.
    """
    state = json.loads(member.tokenizer.backend_tokenizer.to_str())
    if state["model"]["type"] != "Unigram":
        raise InputError(
            "only unigram vocabularies can be pruned", where="config/encoders.yaml: prune", why=f"found {state['model']['type']}"
        )
    kept = _kept(state, used_ids(member.tokenizer, texts, prefixes), state["model"])
    backbone: Any = member.backbone
    pad = backbone.config.pad_token_id
    if backbone.config.model_type in ROBERTA_POSITIONS and kept.index(pad) != pad:
        raise InputError("the padding id would move", where="config/encoders.yaml: prune", why=f"from {pad} to {kept.index(pad)}")
    tokenizer = _smaller_tokenizer(member.tokenizer, state, kept)
    _smaller_embeddings(member, kept)
    return Member(member.backbone, tokenizer, member.dense)


def replace_saved(member: Member, folder: Path) -> None:
    """Save a pruned encoder over the files of the full one; what SentenceTransformer reads stays where it is there."""
    for pattern in (
        "*.safetensors",
        "*.safetensors.index.json",
        "*.model",
        "*.bpe",
        "vocab.*",
        "added_tokens.json",
        "special_tokens_map.json",
    ):
        for path in folder.glob(pattern):
            path.unlink()
    backbone: Any = member.backbone
    backbone.save_pretrained(folder)
    member.tokenizer.save_pretrained(folder)
    open_to_readers(folder)
