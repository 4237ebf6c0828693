"""Synthetic data for MLQE-PE: sentences with translations and their scores; a table, or three files for the test of 2021."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import graded_of, text_in

HEADER = "index\toriginal\ttranslation\tscores\tmean\tz_scores\tz_mean\tmodel_scores"
MIDDLE = 2.5
SPLITS = {"train": "train", "dev": "dev", "test": "test20"}
ROWS = 80
"""Translations of a file at most."""


def _table(rows: Sequence[tuple[str, str, float]]) -> bytes:
    table = [HEADER]
    for at, (source, translation, score) in enumerate(rows):
        mean = 50 + 20 * score
        table.append(f"{at}\t{source}\t{translation}\t[{mean:g}, {mean:g}, {mean:g}]\t{mean:g}\t[{score:g}]\t{score:g}\t-0.5")
    return lines(table)


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> dict[str, bytes]:
    """Return `<xx>-<yy>-<part>.tar.gz` of the parts train, dev, test or test21; a pair's grade stands for the score."""
    stem = name.removesuffix(".tar.gz")
    source, target, split = stem.split("-")
    pairs = graded_of(sentences)[:ROWS]
    rows = [(text_in(pair.first, source), text_in(pair.second, target), round(pair.grade - MIDDLE, 3)) for pair in pairs]
    if split in SPLITS:
        folder = "-train" if split == "train" else ""
        members = {f"{source}-{target}{folder}/{SPLITS[split]}.{source}{target}.df.short.tsv": _table(rows)}
    else:
        members = {
            f"{stem}/{split}.src": lines([row[0] for row in rows]),
            f"{stem}/{split}.mt": lines([row[1] for row in rows]),
            f"{stem}/goldlabels/{split}.da": lines([f"{row[2]:g}" for row in rows]),
        }
    return members
