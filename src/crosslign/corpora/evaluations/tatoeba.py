"""The Tatoeba test set of LASER: `tatoeba.<xxx>-eng.<xxx>` and `tatoeba.<xxx>-eng.eng`, aligned by line (docs/protocols.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.readers._lines import check_text, first_missing, read_lines
from crosslign.corpora.readers._parts import TextFile, all_parts, named_parts
from crosslign.errors import InputError
from crosslign.languages import normalise
from crosslign.options import Positive

NAME = re.compile(r"(?:^|/)tatoeba\.([a-z]{3})-eng\.([a-z]{3})$")


@EVALUATIONS.register(version=1, subsets="languages")
def read(given: Given, *, first: Positive | None = None) -> Evaluation:
    """Return one subset a language, called by the three letters of its files; English is the target.

    Args:
        given.files: official files by name, or archives of them.
        given.langs: languages to read, in two letters or in the files' three; all, when empty.
        given.limit: upper bound on the lines of a subset, from the first.
        first: lines of a subset to keep, from the first.

    Raises:
        InputError: a file without its other half, unequal numbers of lines, an empty line, a language that is not there.
    """
    paths: dict[str, dict[str, TextFile]] = {}
    for (code, side), part in named_parts(all_parts(given.files), NAME, given.name).items():
        paths.setdefault(code, {})[side] = part
    wanted = [code for code in given.langs if normalise(code) != "en"]
    chosen = [code for code in sorted(paths) if not given.langs or code in wanted or normalise(code) in wanted]
    lacking = [code for code in wanted if code not in chosen and normalise(code) not in map(normalise, chosen)]
    if lacking or not chosen:
        raise InputError(
            f"no Tatoeba files for {', '.join(lacking) or 'any language'}",
            where=given.name,
            why=f"languages with files: {', '.join(sorted(paths)) or 'none'}",
        )
    builder = EvaluationBuilder(given.name)
    bounds = [bound for bound in (first, given.limit) if bound is not None]
    for code in chosen:
        _add(builder, code, paths[code], min(bounds, default=None), given.name)
    return builder.build()


def _add(builder: EvaluationBuilder, code: str, paths: Mapping[str, TextFile], keep: int | None, name: str) -> None:
    sides = {}
    for lang in (code, "eng"):
        if lang not in paths:
            raise InputError(f"file tatoeba.{code}-eng.{lang} is missing", where=name)
        sides[lang] = [check_text(text, paths[lang], number) for number, text in read_lines(paths[lang])]
    counts = {paths[lang].name: len(texts) for lang, texts in sides.items()}
    if len(set(counts.values())) != 1:
        raise InputError(
            "the two sides have unequal numbers of lines",
            where=first_missing({paths[lang]: len(texts) for lang, texts in sides.items()}),
            why=", ".join(f"{file} has {count:,}" for file, count in counts.items()),
        )
    for role, lang in (("source", code), ("target", "eng")):
        for number, text in enumerate(sides[lang][:keep], start=1):
            builder.item(f"{lang}-{number}", code, role, lang, text, group=str(number))
    for number in range(1, len(sides[code][:keep]) + 1):
        builder.link(code, f"{code}-{number}", f"eng-{number}")
