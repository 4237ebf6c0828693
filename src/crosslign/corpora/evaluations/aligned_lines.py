"""Line-aligned files as retrieval: line i of one language translates line i of the other, as most test sets of translation come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.evaluations._aligned import evenly
from crosslign.corpora.readers._lines import check_text, lines_of
from crosslign.corpora.readers._parts import TextFile, all_parts
from crosslign.corpora.readers.moses import part_of
from crosslign.errors import InputError
from crosslign.options import MinLen, Schema

LANG, PAIR = "{lang}", "{pair}"


@EVALUATIONS.register(version=1)
def read(
    given: Given,
    *,
    pivot: str = "en",
    pairs: Annotated[Sequence[str], MinLen(1), Schema(uniqueItems=True)] = (),
    sides: Annotated[str, MinLen(1)] | Mapping[str, str] = "",
    codes: Mapping[str, str] | None = None,
    documents: Annotated[str, MinLen(1)] = "",
    split: str = "test",
) -> Evaluation:
    """Return one subset a pair of languages: its lines (source) against those of the pivot (target), each line a sentence of its own.

    Every line is kept, also where a sentence stands twice, so that scores are those of the published test; blank lines at a file's end are
    none.

    Args:
        given.files: the files, or archives that hold them.
        given.langs: languages; the pivot among them or not. With `pairs`, those of the pairs that are wanted; all, when empty.
        pivot: the language with which all others are paired; for a named pair without it, the second language of the pair.
        pairs: pairs such as `de-en`, where each has files of its own; subsets have these names. Without it, subsets have the language's
            name.
        sides: name of the file or member of each language, or one name for all, in which `{lang}` and `{pair}` stand for these; without, a
            file's name must end in the language.
        codes: a language's name in file names, if it is not its code (`{zh: zh_CN}`).
        documents: file whose line i names the document of line i (`{pair}` as in `sides`): lines of a document are resampled together.
        split: name of the split.

    Raises:
        InputError: no file, or several, of a language; unequal numbers of lines (both counts); an empty line (`file:line`).
    """
    parts, builder = all_parts(given.files), EvaluationBuilder(given.name)
    wanted = _pairs(given.langs, pivot, pairs, given.name)
    for subset, source, target in wanted:
        chosen = [_part(parts, lang, subset, sides, codes or {}, given.name) for lang in (source, target)]
        columns = [lines_of(part) for part in chosen]
        if documents:
            chosen.append(part_of(parts, "", documents.replace(PAIR, subset), "", given.name))
            columns.append(lines_of(chosen[-1]))
        if len({len(column) for column in columns}) > 1:
            why = ", ".join(f"{part.name} has {len(column):,}" for part, column in zip(chosen, columns, strict=True))
            raise InputError("aligned files have unequal numbers of lines", where=given.name, why=why)
        for at in evenly(len(columns[0]), given.limit):
            document = f"{columns[2][at]}" if documents else None
            for role, lang, part, lines in zip(("source", "target"), (source, target), chosen, columns, strict=False):
                text = check_text(lines[at], part, at + 1)
                builder.item(f"{lang}-{at}", subset, role, lang, text, split=split, group=str(at), cluster=document)
            builder.link(subset, f"{source}-{at}", f"{target}-{at}", split=split)
    return builder.build()


def _pairs(langs: Sequence[str], pivot: str, pairs: Sequence[str], where: str) -> list[tuple[str, str, str]]:
    """Return (subset, source, target) of every pair that is wanted."""
    if not pairs:
        found = [(lang, lang, pivot) for lang in langs if lang != pivot]
    else:
        split = [(pair, *pair.split("-")) for pair in pairs]
        if wrong := [named[0] for named in split if len(named) != 3]:
            raise InputError(f"{wrong[0]!r} is not a pair of languages", where=where, do="Write it as de-en")
        turned = [(pair, b, a) if a == pivot else (pair, a, b) for pair, a, b in split]
        found = [pair for pair in turned if not langs or set(pair[1:]) - {pivot} <= set(langs)]
    if not found:
        raise InputError("no pair of languages to align", where=where, why=f"languages {list(langs)}, pivot {pivot!r}, pairs {list(pairs)}")
    return found


def _part(
    parts: Sequence[TextFile], lang: str, pair: str, sides: str | Mapping[str, str], codes: Mapping[str, str], where: str
) -> TextFile:
    """Return the file, or the member of an archive, of one side of a pair."""
    code = codes.get(lang, lang)
    named = sides if isinstance(sides, str) else sides.get(lang, "")
    return part_of(parts, lang, named.replace(LANG, code).replace(PAIR, pair), code, where)
