"""A fast tokenizer from unigram pieces with scores, as XLM-R has it."""

from __future__ import annotations

from typing import Any

from crosslign.encoders.formats._charsmap import compile_charsmap
from crosslign.encoders.formats._e5s1 import Vocabulary

SPACE = "▁"
MASK = "<mask>"


def _normaliser(replacements: dict[str, str]) -> Any:
    from tokenizers import Regex, normalizers

    spaces = normalizers.Replace(Regex(" {2,}"), " ")
    return normalizers.Sequence([normalizers.Precompiled(compile_charsmap(replacements)), spaces]) if replacements else spaces


def fast_tokenizer(vocabulary: Vocabulary, positions: int) -> Any:
    """Return a tokenizer of transformers that cuts text as SentencePiece does with these pieces.

    Characters are replaced, runs of spaces made one, a space put in front; then the pieces with the highest sum of scores are
    taken. A run of characters that no piece holds is one unknown piece.

    Args:
        vocabulary: pieces, scores, special ids and replacements.
        positions: most tokens that the model reads at once.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    pieces = vocabulary.pieces
    bos, eos, pad, unk = (pieces[i] for i in (vocabulary.bos, vocabulary.eos, vocabulary.pad, vocabulary.unk))
    tokenizer = Tokenizer(models.Unigram(list(zip(pieces, vocabulary.scores.tolist(), strict=True)), vocabulary.unk))
    tokenizer.normalizer = _normaliser(vocabulary.replacements)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme="always")
    ids = [(bos, vocabulary.bos), (eos, vocabulary.eos)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=[bos, "$A", eos], pair=[bos, "$A", eos, eos, "$B", eos], special_tokens=ids
    )
    named = {"bos_token": bos, "eos_token": eos, "cls_token": bos, "sep_token": eos, "pad_token": pad, "unk_token": unk}
    named |= {"mask_token": MASK} if MASK in pieces else {}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=positions, **named)  # type: ignore[no-untyped-call]
