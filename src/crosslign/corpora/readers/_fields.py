"""Records of named fields (columns of a table, keys of JSON lines) as rows of a corpus."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from crosslign.corpora.readers._left_out import BROKEN, EMPTY, SKIPPED, leave_out
from crosslign.corpora.readers._lines import check_text
from crosslign.corpora.readers._parts import TextFile
from crosslign.corpora.readers._tables import tables
from crosslign.errors import InputError
from crosslign.registry import nearest

Field = Literal["text", "a_text", "b_text", "score", "label", "group", "lang"]
Kind = Literal["mono", "bitext", "labelled"]
KINDS = {
    "mono": ("text", "lang"),
    "bitext": ("a_text", "b_text", "score", "lang"),
    "labelled": ("a_text", "b_text", "label", "group", "lang"),
}
"""What a field may become, by kind of corpus; `lang` is the language of the row's texts."""
NUMBERS = {"score", "label"}

Records = Callable[[TextFile, Sequence[str]], Iterator[tuple[int, list[str]]]]
"""(part, names of the wanted fields) -> (line on which a record begins, its values in that order)"""


@dataclass(frozen=True)
class Form:
    """How fields become rows.

    Attributes:
        kind: `mono`, `bitext` or `labelled`.
        columns: column of the corpus by field name.
        labels: number of each label by name; without it, labels are read as numbers.
        skip: values by field name; a record that has one of them is left out.
        skip_empty: leave records out whose text is empty, in place of refusing them.
        group_lines: rows of equal line number in the files are the same item.
        skip_broken: leave records out whose label or score cannot be read, in place of refusing them.
    """

    kind: str
    columns: Mapping[str, str]
    labels: Mapping[str, float] | None = None
    skip: Mapping[str, Sequence[str]] = field(default_factory=dict)
    skip_empty: bool = False
    group_lines: bool = False
    skip_broken: bool = False

    @property
    def lang_columns(self) -> list[str]:
        """The columns of the languages of the texts."""
        if self.kind == "mono":
            return ["lang"]
        return ["a_lang", "b_lang"] if "b_text" in self.columns.values() else ["a_lang"]

    def check(self, corpus: str) -> None:
        """Check the columns.

        Raises:
            InputError: a column that the kind has not, or none of text, or one that two fields would fill.
        """
        found = [*self.columns.values()]
        if twice := sorted({column for column in found if found.count(column) > 1}):
            raise InputError(f"two fields fill the column {twice[0]!r}", where=corpus, why=f"found {found}")
        text = "text" if self.kind == "mono" else "a_text"
        if set(found) - set(KINDS.get(self.kind, ())) or text not in found:
            known = KINDS.get(self.kind, "not known")
            raise InputError(
                f"columns of a {self.kind} corpus must be among {known}, and {text} is required", where=corpus, why=f"found {sorted(found)}"
            )


@dataclass(frozen=True)
class _Row:
    """Where the values of a record go."""

    form: Form
    corpus: str
    langs: Sequence[str]
    kept: tuple[tuple[int, str], ...]
    lang_at: int | None
    skips: tuple[tuple[int, frozenset[str]], ...]

    def unwanted(self, values: Sequence[str]) -> bool:
        """Tell whether a record is left out, and count it, unless it is of a language that nobody asked for."""
        if self.lang_at is not None and values[self.lang_at] not in self.langs:
            return True
        reason = self._reason(values)
        if reason:
            leave_out(reason)
        return bool(reason)

    def _reason(self, values: Sequence[str]) -> str:
        if any(values[at] in bad for at, bad in self.skips):
            return SKIPPED
        if self.form.skip_empty and any(column not in NUMBERS and not values[at].strip() for at, column in self.kept):
            return EMPTY
        unreadable = self.form.skip_broken and not all(self._readable(values[at], column) for at, column in self.kept if column in NUMBERS)
        return BROKEN if unreadable else ""

    def _readable(self, text: str, column: str) -> bool:
        if column == "label" and self.form.labels is not None:
            return text in self.form.labels
        return finite(text) is not None

    def value(self, text: str, column: str, part: TextFile, number: int) -> Any:
        if column not in NUMBERS:
            return check_text(text, part, number, f"column {column}")
        if column == "label" and self.form.labels is not None:
            if text not in self.form.labels:
                raise InputError(f"unknown label {text!r}", where=part.at(number), why=nearest(text, list(self.form.labels)))
            return [float(self.form.labels[text])]
        value = finite(text)
        if value is None:
            raise InputError(f"{column} is not a number", where=part.at(number), why=f"found {text!r}")
        return [value] if column == "label" else value


def finite(text: str) -> float | None:
    """Return the finite number that a text writes out, None where it is another; `1_5` is one in Python alone."""
    if "_" in text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _sides(part: TextFile, langs: Sequence[str], corpus: str) -> tuple[str, str]:
    chosen = part.langs or langs
    if isinstance(chosen, str) or len(chosen) not in (1, 2):
        raise InputError(
            f"{part.name} must have one or two languages", where=corpus, why=f"found {chosen!r}", do="Name them in `file_langs`"
        )
    return chosen[0], chosen[-1]


def _rows(parts: Sequence[TextFile], records: Records, row: _Row, wanted: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    form, corpus = row.form, row.corpus
    count = len(form.lang_columns)
    for part in parts:
        sides: tuple[str, ...] = _sides(part, row.langs, corpus)[:count] if row.lang_at is None else ()
        for number, values in records(part, wanted):
            if row.unwanted(values):
                continue
            langs = sides if row.lang_at is None else (values[row.lang_at],) * count
            group = (str(number),) if form.group_lines else ()
            columns = (row.value(values[at], column, part, number) for at, column in row.kept)
            yield f"{corpus}:{part.name}:{number}", *langs, *group, *columns


def read_fields(parts: Sequence[TextFile], records: Records, form: Form, corpus: str, langs: Sequence[str]) -> Iterator[pa.Table]:
    """Yield rows of the form's kind.

    Args:
        parts: files to read, in that order.
        records: yields the wanted values of each record of a file.
        form: how they become rows.
        corpus: id of the corpus; row ids are `<corpus>:<file>:<line>`, the line on which a record begins.
        langs: languages of the corpus; one, or first and second side, where no file and no field says otherwise.

    Raises:
        InputError: the records' own; an empty text, an unknown label, a number that is none (`file:line`).
    """
    form.check(corpus)
    wanted = [*form.columns, *(name for name in form.skip if name not in form.columns)]
    kept = tuple((at, column) for at, column in enumerate(form.columns.values()) if column != "lang")
    lang_at = next((at for at, column in enumerate(form.columns.values()) if column == "lang"), None)
    skips = tuple((wanted.index(name), frozenset(values)) for name, values in form.skip.items())
    order = ["id", *form.lang_columns, *(["group"] if form.group_lines else []), *(column for _, column in kept)]
    yield from tables(_rows(parts, records, _Row(form, corpus, langs, kept, lang_at, skips), wanted), form.kind, order)
