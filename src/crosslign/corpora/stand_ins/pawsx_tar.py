"""Synthetic data for PAWS-X: training, development and test pairs of seven languages in one tar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import text_in, triplets_of

LANGS = ("de", "en", "es", "fr", "ja", "ko", "zh")
HEADER = "id\tsentence1\tsentence2\tlabel"
PLACEHOLDER = "NS"
"""What stands in a row whose translation failed; the second training row of each language but English has it."""


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> dict[str, bytes]:
    """Return `x-final/<language>/{translated_train,dev_2k,test_2k}.tsv`; English has `train.tsv`."""
    triplets = triplets_of(sentences)
    members: dict[str, bytes] = {}
    for lang in LANGS:
        parts: dict[str, list[str]] = {"train" if lang == "en" else "translated_train": [], "dev_2k": [], "test_2k": []}
        names = list(parts)
        for at, triplet in enumerate(triplets):
            rows = parts[names[0] if at % 4 else names[1 + at // 4 % 2]]
            for label, other in (("1", triplet.entailed), ("0", triplet.contradicting)):
                first = PLACEHOLDER if len(rows) == 1 and lang != "en" and at % 4 else text_in(triplet.premise, lang)
                rows.append(f"{len(rows) + 1}\t{first}\t{text_in(other, lang)}\t{label}")
        members |= {f"x-final/{lang}/{name}.tsv": lines([HEADER, *rows]) for name, rows in parts.items()}
    return members
