"""Translation memories (TMX), read as a stream; entities of the file's own are refused, nothing outside it is opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.readers._left_out import INCOMPLETE, leave_out
from crosslign.corpora.readers._parts import Members, TextFile, all_parts, bare_name, parts_of
from crosslign.corpora.readers._tables import tables
from crosslign.corpora.readers._xml import Handler, items
from crosslign.errors import InputError
from crosslign.languages import normalise

CODES = frozenset({"bpt", "ept", "it", "ph", "ut"})
"""Elements that hold codes of the format that a segment was taken from, no text (TMX 1.4b)."""


@READERS.register(version=1, languages=2)
def read(
    files: Mapping[str, Path],
    corpus: str,
    langs: Sequence[str],
    *,
    kind: Literal["bitext", "multiway"] = "bitext",
    member: Members | None = None,
) -> Iterator[pa.Table]:
    """Yield `bitext` rows, or `multiway` rows whose group is the unit's id (`tuid`), else its first language's text.

    White space is collapsed. Inline elements go: codes of the original format (`bpt`, `ept`, `it`, `ph`, `ut`) with what is in
    them, others (`hi`) leave their text. A unit that lacks a language is left out of a bitext, and counted; of several segments of
    one language the first is taken. `pt-BR` is read as `pt` unless `langs` has it. A multiway corpus takes each group's text of a
    language from the first file that has it.

    Args:
        files: path by catalog name, read in that order; `.tmx`, packed or in an archive.
        corpus: id of the corpus; row ids are `<corpus>:<file>:<number of the unit>`, with `.<language>` behind in a multiway one.
        langs: the two languages, or all that are wanted.
        kind: `bitext` or `multiway`.
        member: member of each file that is an archive; all that end in `.tmx` where none is named.

    Raises:
        InputError: not TMX, an entity declaration, bytes that are not text (`file:line`).
    """
    if member is None:
        parts = [part for part in all_parts(files) if not part.member or bare_name(part.member).endswith(".tmx")]
    else:
        parts = parts_of(files, langs, member, None, corpus)
    if not parts:
        raise InputError("no member is a TMX file", where=corpus, why=f"found {sorted(files)}")
    if kind == "bitext":
        yield from tables(_pairs(parts, corpus, langs), "bitext", ("id", "a_lang", "a_text", "b_lang", "b_text"))
    else:
        yield from tables(_groups(parts, corpus, langs), "multiway", ("id", "group", "lang", "text"))


def _pairs(parts: Sequence[TextFile], corpus: str, langs: Sequence[str]) -> Iterator[tuple[str, ...]]:
    first, second = langs
    for part in parts:
        for number, (_, texts) in enumerate(items(part, _Units(langs)), start=1):
            if texts.get(first) and texts.get(second):
                yield f"{corpus}:{part.name}:{number}", first, texts[first], second, texts[second]
            else:
                leave_out(INCOMPLETE)


def _groups(parts: Sequence[TextFile], corpus: str, langs: Sequence[str]) -> Iterator[tuple[str, ...]]:
    met: set[tuple[str, str]] = set()
    for part in parts:
        for number, (name, texts) in enumerate(items(part, _Units(langs)), start=1):
            group = name or next(iter(texts.values()), "")
            for lang in langs:
                if texts.get(lang) and (group, lang) not in met:
                    met.add((group, lang))
                    yield f"{corpus}:{part.name}:{number}.{lang}", group, lang, texts[lang]


class _Units(Handler[tuple[str, dict[str, str]]]):
    """Gathers (its id or nothing, text by language) of each unit.

    Args:
        langs: languages that are wanted; those with a region or script (`zh-TW`) are told from those without.
    """

    root_tag = "tmx"
    item_tag = "tu"

    def __init__(self, langs: Sequence[str]) -> None:
        super().__init__()
        self._wanted = {lang.lower(): lang for lang in langs}
        self._name, self._lang = "", ""
        self._texts: dict[str, str] = {}
        self._pieces: list[str] | None = None
        self._codes = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        super().start(tag, attributes)
        if tag == "tu":
            self._name, self._texts = attributes.get("tuid", ""), {}
        elif tag == "tuv":
            code = attributes.get("xml:lang") or attributes.get("lang", "")
            self._lang = self._wanted.get(code.replace("_", "-").lower()) or normalise(code)
        elif tag == "seg":
            self._pieces = []
        self._codes += tag in CODES

    def text(self, data: str) -> None:
        if self._pieces is not None and not self._codes:
            self._pieces.append(data)

    def end(self, tag: str) -> None:
        super().end(tag)
        self._codes -= tag in CODES
        if tag == "seg" and self._pieces is not None:
            self._texts.setdefault(self._lang, " ".join("".join(self._pieces).split()))
            self._pieces = None
        elif tag == "tu":
            self.done.append((self._name, self._texts))
