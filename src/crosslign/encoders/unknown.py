"""Tokens that an encoder does not know: its vectors say nothing of them, and its scores are numbers all the same."""

from __future__ import annotations

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

Known = dict[str, list[int]]
"""By language: tokens, special ones left out, and how many of them are unknown."""


def _unknown_id(tokenizer: Any) -> int:
    """Return the id of the unknown token; none of any text's where a tokenizer has none, or one that ends texts too (GPT-2)."""
    others = {getattr(tokenizer, f"{name}_token_id", None) for name in ("cls", "sep", "bos", "eos", "pad", "mask")}
    found = tokenizer.unk_token_id
    return -1 if found is None or found in others else int(found)


def count_unknown(tokenizer: Any, tokens: Tokens, langs: Sequence[str], texts: Sequence[str], into: Known) -> None:
    """Count the tokens of n texts by language.

    A text of which nothing but special tokens is left counts as one unknown token: a tokenizer without an unknown token drops what it
    does not know.

    Args:
        tokenizer: a fast tokenizer.
        tokens: their token ids.
        langs, texts: n languages and texts.
        into: counts so far, added to.
    """
    special, unknown = int(tokenizer.num_special_tokens_to_add(pair=tokens.segments is not None)), _unknown_id(tokenizer)
    for ids, lang, text in zip(tokens.ids, langs, texts, strict=True):
        counts = into.setdefault(lang, [0, 0])
        own = len(ids) - special
        lost = own <= 0 and bool(text.strip())
        counts[0] += 1 if lost else max(own, 0)
        counts[1] += 1 if lost else int(np.count_nonzero(ids == unknown))


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
