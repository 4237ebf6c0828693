"""FLORES-200: `<split>/<lang>_<Script>.<split>`, the same sentences in 204 languages, line by line (docs/protocols.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from crosslign.console import number_of
from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.evaluations._aligned import evenly
from crosslign.corpora.readers._lines import check_text, read_lines
from crosslign.corpora.readers._parts import TextFile, all_parts, named_parts
from crosslign.errors import InputError
from crosslign.options import MinLen
from crosslign.registry import nearest

METADATA = re.compile(r"(?:^|/)metadata_(dev|devtest)\.tsv$")
"""A line a sentence behind a head: the article's address first."""
NAME = re.compile(r"(?:^|/)([a-z]{3}_[A-Z][a-z]{3})\.(dev|devtest)$")


@EVALUATIONS.register(version=2, subsets="languages")
def read(
    given: Given, *, parts: Annotated[Sequence[Literal["dev", "devtest"]], MinLen(1)] = ("dev", "devtest"), pivot: str = "eng_Latn"
) -> Evaluation:
    """Return one subset a language, called as FLORES calls it: its sentences (source) against those of the pivot (target).

    Sentences of one article are resampled as one, where the files hold the metadata that tell it. Languages keep FLORES's codes in texts
    too, since two of them may share a language and differ in script. Sentences of one line share a group; its part of FLORES is the split
    of its items.

    Args:
        given.corpora: sentences that stand among the pivot's in every subset and are not translations, such as xSIM++'s altered copies.
        given.langs: languages to read, as FLORES calls them (`deu_Latn` or `deu-Latn`); all, when empty.
        parts: dev, devtest, or both, one after another.
        pivot: the language with which all others are paired.

    Raises:
        InputError: a language or a part without its file, an empty line, files of unequal length.
    """
    files = all_parts(given.files)
    found = _found(files, parts, given.name)
    chosen = [lang.replace("-", "_") for lang in given.langs] or sorted(found)
    for lang in [pivot, *chosen]:
        lacking = [part for part in parts if part not in found.get(lang, {})]
        if lacking:
            raise InputError(f"no file {lang}.{lacking[0]}", where=given.name, why=nearest(lang, sorted(found)))
    builder = EvaluationBuilder(given.name)
    target = _sentences(found[pivot], parts)
    kept = [list(target)[index] for index in evenly(len(target), given.limit)]
    articles = _articles(files, parts, given.name)
    for lang in chosen:
        if lang == pivot:
            continue
        source = _sentences(found[lang], parts)
        if len(source) != len(target):
            raise _unequal((lang, source), (pivot, target), found)
        for role, side, code in (("source", source, lang), ("target", target, pivot)):
            for group in kept:
                builder.item(f"{code}-{group}", lang, role, code, side[group], split=_part(group), group=group, cluster=articles.get(group))
        for rows in given.corpora.values():
            for row in rows.to_pylist():
                builder.item(row["id"], lang, "target", pivot, row["text"], split=parts[-1])
        for group in kept:
            builder.link(lang, f"{lang}-{group}", f"{pivot}-{group}", split=_part(group))
    return builder.build()


def _found(files: Sequence[TextFile], parts: Sequence[str], where: str) -> dict[str, dict[str, TextFile]]:
    """Return the file of each language and part."""
    found: dict[str, dict[str, TextFile]] = {}
    for (lang, part), file in named_parts(files, NAME, where).items():
        if part in parts:
            found.setdefault(lang, {})[part] = file
    return found


def _unequal(
    one: tuple[str, Mapping[str, str]], other: tuple[str, Mapping[str, str]], found: Mapping[str, Mapping[str, TextFile]]
) -> InputError:
    """Return the error that names the first line that the shorter of two languages lacks."""
    (short, cut), (_, whole) = sorted((one, other), key=lambda side: len(side[1]))
    part, _, line = next(group for group in whole if group not in cut).partition(":")
    why = f"{one[0]} has {number_of(len(one[1]), 'sentence')}, {other[0]} {len(other[1]):,}"
    return InputError("languages have unequal numbers of lines", where=found[short][part].at(int(line)), why=why)


def _articles(files: Sequence[TextFile], parts: Sequence[str], where: str) -> dict[str, str]:
    """Return the address of the article of each sentence, by `<part>:<line>`, from `metadata_<part>.tsv`; none where that is not there."""
    found = {part: file for (part,), file in named_parts(files, METADATA, where).items() if part in parts}
    rows = ((part, number, line) for part, file in found.items() for number, line in read_lines(file))
    return {f"{part}:{number - 1}": line.partition("\t")[0] for part, number, line in rows if number > 1}


def _part(group: str) -> str:
    return group.partition(":")[0]


def _sentences(found: Mapping[str, TextFile], parts: Sequence[str]) -> dict[str, str]:
    """Return sentence by `<part>:<line>`."""
    lines = ((part, number, text) for part in parts for number, text in read_lines(found[part]))
    return {f"{part}:{number}": check_text(text, found[part], number, "sentence") for part, number, text in lines}
