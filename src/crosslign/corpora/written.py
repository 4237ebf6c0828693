"""The project's own mini-sets (`resources/written`): natural sentences, aligned over languages, one TSV a language.

`nli_<lang>.tsv` has the columns id, premise, entailed, contradicting; `sts_<lang>.tsv` has id, score (0 to 5), first,
second. Equal ids are the same item in every language. They were written for the project and are no
human-annotated benchmark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from crosslign.corpora.readers._lines import check_text, read_lines
from crosslign.errors import InputError

NLI_COLUMNS = ("id", "premise", "entailed", "contradicting")
STS_COLUMNS = ("id", "score", "first", "second")
FILE_NAME = re.compile(r"(nli|sts)_([a-z]{2,3})\.tsv")

Items = dict[str, tuple[int, dict[str, str]]]
"""(line number, value by column) of each item, by id, in file order."""


def read_items(path: Path, columns: tuple[str, ...]) -> Items:
    """Read one file.

    Raises:
        InputError: another header, a wrong number of columns, an empty field, an id that occurs twice (`file:line`).
    """
    items: Items = {}
    for number, text in read_lines(path):
        fields = text.split("\t")
        if number == 1:
            if tuple(fields) != columns:
                raise InputError("wrong header", where=f"{path}:1", why=f"found {fields}, expected {list(columns)}")
            continue
        if len(fields) != len(columns):
            raise InputError("wrong number of columns", where=f"{path}:{number}", why=f"found {len(fields)}, expected {len(columns)}")
        row = {column: check_text(field, path, number, f"column {column}") for column, field in zip(columns, fields, strict=True)}
        if row["id"] in items:
            raise InputError(f"id {row['id']!r} occurs twice", where=f"{path}:{number}", why=f"first on line {items[row['id']][0]}")
        items[row["id"]] = (number, row)
    return items


def read_aligned(paths: Mapping[str, Path], columns: tuple[str, ...]) -> dict[str, Items]:
    """Read the files of several languages and check that they hold the same items, and the same scores.

    Args:
        paths: path by language.
        columns: their header.

    Returns:
        Items by language; iterate over the first one for the common order.

    Raises:
        InputError: as `read_items`, or an item is missing in a language, or is graded otherwise there.
    """
    files = {lang: read_items(path, columns) for lang, path in paths.items()}
    reference_lang = next(iter(files))
    reference = files[reference_lang]
    for lang, items in files.items():
        for item in sorted(reference.keys() ^ items.keys()):
            lacking, having = (lang, reference_lang) if item in reference else (reference_lang, lang)
            raise InputError(
                f"item {item!r} is missing", where=str(paths[lacking]), why=f"{paths[having].name} has it on line {files[having][item][0]}"
            )
        for item, (number, row) in items.items():
            if row.get("score") != reference[item][1].get("score"):
                raise InputError(
                    f"the grade of item {item!r} differs from that in {paths[reference_lang].name}", where=f"{paths[lang]}:{number}"
                )
    return files


def files_by_lang(files: Mapping[str, Path], kind: str, langs: list[str], where: str) -> dict[str, Path]:
    """Return the path of each language's `<kind>_<lang>.tsv`; all languages there are, when `langs` is empty.

    Raises:
        InputError: a language has no file, or two.
    """
    found: dict[str, Path] = {}
    for name, path in files.items():
        match = FILE_NAME.fullmatch(name.rsplit("/", 1)[-1])
        if match and match[1] == kind and found.setdefault(match[2], path) is not path:
            raise InputError(f"two files have the name {match[0]}", where=where, why=f"{found[match[2]]} and {path}")
    wanted = langs or sorted(found)
    for lang in wanted:
        if lang not in found:
            raise InputError(f"no file {kind}_{lang}.tsv", where=where, why=f"found {sorted(found)}")
    if not wanted:
        raise InputError(f"no file {kind}_<lang>.tsv", where=where, why=f"found {sorted(files)}")
    return {lang: found[lang] for lang in wanted}
