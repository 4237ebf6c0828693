"""Bitext as Moses has it: two files, aligned line by line; OPUS packs both into one zip."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.readers._left_out import BROKEN, EMPTY, leave_out
from crosslign.corpora.readers._lines import blank, left_after, read_columns, without_blank_end
from crosslign.corpora.readers._parts import TextFile, all_parts, bare_name
from crosslign.corpora.readers._tables import ROWS, line_ids, table_of
from crosslign.errors import InputError


@READERS.register(version=1, gives="bitext", languages=2)
def read(
    files: Mapping[str, Path],
    corpus: str,
    langs: Sequence[str],
    *,
    sides: Mapping[str, str] | None = None,
    codes: Mapping[str, str] | None = None,
    skip_empty: bool = False,
    skip_broken: bool = False,
) -> Iterator[pa.Table]:
    """Yield `bitext` rows of two files, or members of one archive, whose names end in their language.

    `news.de-en.de`, `news.de-en.en.gz` and the member `ParaCrawl.en-fr.fr` are such names.

    Args:
        files: path by catalog name; members of zip and tar archives count as files.
        corpus: id of the corpus; row ids are `<corpus>:<first file>:<line>`.
        langs: the two languages, first and second side.
        sides: file or member of each language, for names without a language.
        codes: a language's name in file names, if it is not its code (`{zh: zh_CN}`).
        skip_empty: leave out lines with an empty side, instead of refusing them.
        skip_broken: leave out lines with a side that is not UTF-8 or has a NUL, instead of refusing them.

    Raises:
        InputError: a side is empty (`file:line`), or the files have unequal numbers of lines (both counts).
    """
    parts = all_parts(files)
    first, second = (part_of(parts, lang, (sides or {}).get(lang, ""), (codes or {}).get(lang, lang), corpus) for lang in langs)
    number = 1
    for own, other in without_blank_end(_in_step(first, second, corpus, skip_broken)):
        whole = np.asarray(own.is_valid()) & np.asarray(other.is_valid())
        left = left_after(own, skip_empty, first, number) & left_after(other, skip_empty, second, number)
        leave_out(BROKEN, int((~whole).sum()))
        leave_out(EMPTY, int((whole & ~left).sum()))
        a_lang, b_lang = (pa.repeat(lang, len(own)) for lang in langs)
        ids = line_ids(f"{corpus}:{first.name}", number, len(own))
        columns = {"id": ids, "a_lang": a_lang, "a_text": own, "b_lang": b_lang, "b_text": other}
        number += len(own)
        if left.any():
            table = table_of(columns, "bitext")
            yield table if left.all() else table.filter(pa.array(left))


def part_of(parts: Sequence[TextFile], lang: str, name: str, code: str, corpus: str) -> TextFile:
    """Return the one part that is called `name`, or whose name ends in `.code` where no name is given.

    Raises:
        InputError: there is none, or several.
    """
    found = [part for part in parts if (name in (part.name, part.member) if name else bare_name(part.name).endswith(f".{code}"))]
    if len(found) != 1:
        wanted = f"exactly one file must have the name {name}" if name else f"exactly one file name must end in .{code}"
        why = f"found {[part.name for part in found]} among {[part.name for part in parts]}"
        raise InputError(
            wanted,
            where=corpus,
            why=why,
            do="Name the file of each language in `sides`, or the code that file names have for it in `codes`",
        )
    return found[0]


def _in_step(first: TextFile, second: TextFile, corpus: str, skip_broken: bool) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield as many lines of each file at a time."""
    columns = (read_columns(part, ROWS, skip_broken=skip_broken) for part in (first, second))
    for own, other in zip_longest(*columns, fillvalue=pa.array([], pa.string())):
        least = min(len(own), len(other))
        if not blank(max(own, other, key=len)[least:].fill_null("-")).all():  # blank ones behind the last pair are none
            counts = [sum(map(len, read_columns(part, ROWS, skip_broken=True))) for part in (first, second)]
            raise InputError(
                "the two sides have unequal numbers of lines",
                where=corpus,
                why=f"{first.name} has {counts[0]:,}, {second.name} has {counts[1]:,}",
            )
        yield own[:least], other[:least]
