"""Tokens that an encoder does not know: its vectors say nothing of them, and its scores are numbers all the same."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crosslign.console import number_of

if TYPE_CHECKING:  # the stage that scores, and says what is unknown, loads no torch
    from crosslign.encoders.tokens import Tokens

LIMIT = 0.03
"""Share of unknown tokens from which texts, or one language of it, is warned of."""
NAMED = 5
"""Languages that a warning names."""

RARE = "\U00012000\U00016800"
"""Letters of cuneiform and of Bamum's old stages: a tokenizer knows them by their bytes, as its unknown token, or drops them."""

Known = dict[str, list[int]]
"""By language: tokens, special ones left out, and how many of them are unknown."""


def _unknown_id(tokenizer: Any) -> int:
    """Return the id of the unknown token; none of any text's where a tokenizer has none, or one that ends texts too (GPT-2)."""
    others = {getattr(tokenizer, f"{name}_token_id", None) for name in ("cls", "sep", "bos", "eos", "pad", "mask")}
    found = tokenizer.unk_token_id
    return -1 if found is None or found in others else int(found)


def _lost(encoding: Any, text: str) -> int:
    """Return how many words of a text have characters that no token covers; accents, controls and spaces may go, as normalisers do."""
    covered = np.zeros(len(text) + 1, dtype=bool)
    for start, end in encoding.offsets:
        covered[start:end] = True
    words = re.finditer(r"\S+", text)
    return sum(any(not covered[at] and unicodedata.category(text[at])[0] not in "MCZ" for at in range(*word.span())) for word in words)


def _encoded(tokenizer: Any, texts: Sequence[str]) -> list[Any]:
    given = {"add_special_tokens": False, "return_attention_mask": False, "return_token_type_ids": False}
    found: list[Any] = tokenizer(list(texts), **given).encodings
    return found


def _drops(tokenizer: Any) -> bool:
    """Tell whether a tokenizer leaves out what it does not know, having no unknown token: two letters of rare scripts show it."""
    return bool(tokenizer.is_fast and _lost(_encoded(tokenizer, [RARE])[0], RARE))


def count_unknown(tokenizer: Any, tokens: Tokens, langs: Sequence[str], texts: Sequence[str], into: Known) -> None:
    """Count the tokens of n texts by language.

    Of a tokenizer that drops what it does not know, each word of which characters are lost counts as one unknown token beside those
    that are left; only its texts are cut again, whole. So does a text of which nothing but special tokens is left.

    Args:
        tokenizer: one of transformers.
        tokens: their token ids.
        langs, texts: n languages and texts.
        into: counts so far, added to.
    """
    special, unknown = int(tokenizer.num_special_tokens_to_add(pair=tokens.segments is not None)), _unknown_id(tokenizer)
    lost = [_lost(*each) for each in zip(_encoded(tokenizer, texts), texts, strict=True)] if _drops(tokenizer) else [0] * len(texts)
    for ids, lang, text, words in zip(tokens.ids, langs, texts, lost, strict=True):
        counts = into.setdefault(lang, [0, 0])
        own = max(len(ids) - special, 0)
        gone = max(words, int(not own and bool(text.strip())))
        counts[0] += own + gone
        counts[1] += gone or int(np.count_nonzero(ids == unknown))


def joined(parts: Iterable[Known]) -> Known:
    """Return the sums of several counts."""
    total: Known = {}
    for part in parts:
        for lang, counts in part.items():
            total[lang] = [before + more for before, more in zip(total.get(lang, [0, 0]), counts, strict=True)]
    return {lang: total[lang] for lang in sorted(total)}


def shares(known: Known) -> dict[str, float]:
    """Return what of texts is unknown where that is more than `LIMIT`: `all`, and languages, the worst first; else nothing."""
    tokens, unknown = (sum(counts[at] for counts in known.values()) for at in (0, 1))
    by_lang = {lang: counts[1] / counts[0] for lang, counts in known.items() if counts[0] and counts[1] > LIMIT * counts[0]}
    if not by_lang:
        return {}
    worst = sorted(by_lang, key=lambda lang: (-by_lang[lang], lang))
    return {"all": round(unknown / tokens, 4), **{lang: round(by_lang[lang], 4) for lang in worst}}


def in_words(found: Mapping[str, float]) -> str:
    """Return what `shares` found as one clause, such as `4.1 % of all tokens are unknown to the encoder (am 99.0 %)`; empty for nothing."""
    if not found:
        return ""
    langs = [f"{lang} {100 * share:.1f} %" for lang, share in found.items() if lang != "all"]
    more = f", and {number_of(len(langs) - NAMED, 'more language')}" if len(langs) > NAMED else ""
    return f"{100 * found['all']:.1f} % of all tokens are unknown to the encoder ({', '.join(langs[:NAMED])}{more})"
