"""Synthetic data for BUCC 2018: two sides with ids and, but for the test part, the pairs that translate each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import pair_in

SPLITS = ("sample", "training", "test")
WITHOUT_GOLD = "test"
PARTS = 3
"""Of three sentences, one is on both sides, one on the source side alone, and one on the English side alone."""


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> dict[str, bytes]:
    """Return `bucc2018/<xx>-en/<xx>-en.<split>.{<xx>,en,gold}`; English is in another order, and no two splits share a sentence.

    Args:
        name: `bucc2018-<xx>-en.<split>-gold.tar.bz2` or `bucc2018-<xx>-en.test.tar.bz2`.
        sentences: aligned sentences by language.
    """
    pair, split = name.split(".")[:2]
    pair, split = pair.removeprefix("bucc2018-"), split.removesuffix("-gold")
    lang = pair.removesuffix("-en")
    source, target, gold = [], [], []
    for at, sentence in enumerate(sentences[SPLITS.index(split) :: len(SPLITS)], start=1):
        ids, texts = (f"{lang}-{at:09d}", f"en-{at:09d}"), pair_in(sentence, lang, "en")
        if at % PARTS != 0:
            source.append(f"{ids[0]}\t{texts[0]}")
        if at % PARTS != 1:
            target.append(f"{ids[1]}\t{texts[1]}")
        if at % PARTS == 2:
            gold.append("\t".join(ids))
    parts = {lang: source, "en": target[::-1]} | ({} if split == WITHOUT_GOLD else {"gold": gold})
    return {f"bucc2018/{pair}/{pair}.{split}.{part}": lines(rows) for part, rows in parts.items()}
