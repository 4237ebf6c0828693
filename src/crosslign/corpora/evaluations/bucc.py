"""BUCC 2018: `bucc2018-<xx>-en.<split>-gold.tar.bz2`, or the files inside: id-tab-sentence sides and gold (docs/protocols.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.evaluations._aligned import evenly
from crosslign.corpora.readers._lines import check_text, read_lines
from crosslign.corpora.readers._parts import TextFile, all_parts, is_archive, named_parts
from crosslign.errors import InputError

NAME = re.compile(r"(?:^|/)([^/]+-en\.[^/]+)$")
SPLITS = ("sample", "training", "test")
Side = dict[str, str]
"""Sentence by id, in file order."""


XTREME = {"sample": "dev", "training": "test"}
"""What XTREME's scripts/download_data.sh calls the official splits."""


@EVALUATIONS.register(version=1, subsets="pairs")
def read(given: Given, *, split: str) -> Evaluation:
    """Return one subset a pair, such as `de-en`, with the ids of the official files.

    Args:
        given.files: official archives or their files (`zh-en.training.zh`), or files as XTREME's script names them (`zh-en.test.zh` of the
            training set, `zh-en.dev.zh` of the sample), where none has the official name.
        given.langs: source languages to read; English is always the target.
        given.limit: upper bound on the gold pairs of a subset; the sentences without a partner shrink by the same share.
        split: sample, training or test; test has no gold.

    Raises:
        InputError: a pair without files, a line that is not id-tab-sentence, an id twice, gold that names no sentence.
    """
    if split not in SPLITS:
        raise InputError(f"unknown split {split!r}", where=given.name, why=f"allowed: {', '.join(SPLITS)}")
    builder = EvaluationBuilder(given.name)
    found = _parts(given.files, split, given.name)
    for lang in given.langs:
        if lang != "en":
            _add(builder, f"{lang}-en", found, split, given.limit, given.name)
    return builder.build()


def _parts(files: Mapping[str, Path], split: str, where: str) -> dict[str, TextFile]:
    """Return files, and members of archives that name no other split, by the last part of their names."""
    others = [f".{other}" for other in SPLITS if other != split]
    chosen = {name: path for name, path in files.items() if not (is_archive(name) and any(other in name for other in others))}
    return {name: part for (name,), part in named_parts(all_parts(chosen), NAME, where).items()}


def _side(part: TextFile) -> Side:
    side: Side = {}
    for number, line in read_lines(part):
        identity, tab, text = line.partition("\t")
        if not tab or not identity:
            raise InputError("a line must be: id, tab, sentence", where=part.at(number))
        if identity in side:
            raise InputError(f"id {identity!r} occurs twice", where=part.at(number))
        side[identity] = check_text(text, part, number, "sentence")
    return side


def _gold(part: TextFile, source: Side, target: Side) -> list[tuple[str, str]]:
    gold: dict[tuple[str, str], None] = {}
    for number, line in read_lines(part):
        ids = line.split("\t")
        if len(ids) != 2 or ids[0] not in source or ids[1] not in target:
            raise InputError(
                "a gold line must be: id of a source sentence, tab, id of a target sentence",
                where=part.at(number),
                why=f"found {line!r}",
            )
        if (ids[0], ids[1]) in gold:
            raise InputError(f"the gold pair {ids[0]} {ids[1]} occurs twice", where=part.at(number))
        gold[ids[0], ids[1]] = None
    return list(gold)


def _cut(side: Side, partners: set[str], kept: set[str], limit: int | None, whole: int) -> Side:
    """Return a side with the kept partners and an equal share of the sentences without one, in file order."""
    if limit is None or whole <= limit:
        return side
    alone = [identity for identity in side if identity not in partners]
    keep = kept | {alone[index] for index in evenly(len(alone), len(alone) * limit // whole)}
    return {identity: text for identity, text in side.items() if identity in keep}


def _add(builder: EvaluationBuilder, pair: str, found: Mapping[str, TextFile], split: str, limit: int | None, name: str) -> None:
    lang = pair.split("-", maxsplit=1)[0]
    names = {part: f"{pair}.{split}.{part}" for part in (lang, "en", "gold")}
    if split in XTREME and names[lang] not in found:
        theirs = {part: f"{pair}.{XTREME[split]}.{part}" for part in names}
        # `zh-en.test.zh` without gold is the official test, which nobody has the gold of.
        names = theirs if all(file in found for file in theirs.values()) else names
    lacking = [file for part, file in names.items() if file not in found and not (split == "test" and part == "gold")]
    if lacking:
        raise InputError(f"file {lacking[0]} is missing", where=name, why=f"found {sorted(found)}")
    source, target = _side(found[names[lang]]), _side(found[names["en"]])
    gold = _gold(found[names["gold"]], source, target) if names["gold"] in found else []
    kept = [gold[index] for index in evenly(len(gold), limit)]
    source = _cut(source, {left for left, _ in gold}, {left for left, _ in kept}, limit, len(gold))
    target = _cut(target, {right for _, right in gold}, {right for _, right in kept}, limit, len(gold))
    for role, code, side in (("source", lang, source), ("target", "en", target)):
        for identity, text in side.items():
            builder.item(identity, pair, role, code, text, split=split)
    for left, right in kept:
        builder.link(pair, left, right, split=split)
