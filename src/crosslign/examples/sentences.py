"""Corpora of any kind seen as single sentences, aligned rows, or groups of translations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crosslign.corpora.columns import SIDES, kind_of
from crosslign.corpora.sampling import priorities
from crosslign.errors import InputError
from crosslign.examples.rows import Numbers, Rows, gathered
from crosslign.examples.shapes import checked, parts_of

SENTENCE = ("id", "lang", "text")
LABELLED = ("id", "a_lang", "a_text", "b_lang", "b_text", "label", "group")


def sentences(corpora: Sequence[Rows], langs: Sequence[str], name: str) -> Iterator[pa.Table]:
    """Yield id, lang, text of every sentence of corpora of any kind, side after side of each; of `langs` only, where these are given.

    Args:
        corpora: the corpora.
        langs: languages to keep.
        name: id of the training set, for messages.
    """
    for rows in checked(corpora, ("id",), name):
        for lang, text in SIDES[kind_of(rows.columns)]:
            for part in rows.parts(["id", lang, text]):
                found = part.rename_columns(SENTENCE)
                yield found.filter(usable(found["text"], found["lang"], langs))


def usable(texts: pa.ChunkedArray, in_langs: pa.ChunkedArray, langs: Sequence[str]) -> pa.ChunkedArray:
    """Return which rows have a text, in one of `langs` where these are given."""
    keep = pc.is_valid(texts)
    return pc.and_(keep, pc.is_in(in_langs, value_set=pa.array(langs, pa.string()))) if langs else keep


@dataclass(frozen=True)
class Groups:
    """Sentences of equal meaning, some 50 bytes of memory each; their texts stay in the files.

    Attributes:
        corpora: multiway corpora by id, whose rows are numbered one after another.
        langs: languages by their number.
        rows: row numbers, group after group in the order of their first rows, in source order within a group; int64, shape [sentences].
        codes: number of each one's language, int16, shape [sentences].
        starts: where in `rows` each group starts, and the end; int64, shape [groups + 1].
    """

    corpora: Mapping[str, Rows]
    langs: Sequence[str]
    rows: NDArray[np.int64]
    codes: NDArray[np.int16]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def versions(self, group: int) -> dict[str, list[int]]:
        """Return the row numbers of a group by language; several where there are versions."""
        own = slice(self.starts[group], self.starts[group + 1])
        found: dict[str, list[int]] = {}
        for row, code in zip(self.rows[own].tolist(), self.codes[own].tolist(), strict=True):
            found.setdefault(self.langs[code], []).append(row)
        return found

    def items(self) -> Iterator[tuple[str, dict[str, list[int]]]]:
        """Yield a name for each group, which no other corpus' group has, and its versions."""
        first, corpora = self.rows[self.starts[:-1]], list(self.corpora)
        origins = np.searchsorted(np.cumsum([rows.size for rows in self.corpora.values()]), first, side="right")
        names = (name for part in self.gathered(["group"], first) for name in part["group"].to_pylist())
        for group, name in enumerate(names):
            yield _name(corpora[origins[group]], name), self.versions(group)

    def gathered(self, columns: Sequence[str], order: NDArray[np.int64]) -> Iterator[pa.Table]:
        """Yield columns of rows by number, in that order."""
        return gathered(parts_of(list(self.corpora.values()), columns), order)


def _name(corpus: str, group: str) -> str:
    return f"{corpus}\x1f{group}"


def groups_of(corpora: Mapping[str, Rows], langs: Sequence[str], name: str) -> Groups:
    """Return the groups of multiway corpora; groups of different corpora never mix.

    Groups are compared by 64 bits of hash of their corpus and name.

    Args:
        corpora: multiway corpora by id.
        langs: languages to keep; all where empty.
        name: id of the training set, for messages.
    """
    checked(list(corpora.values()), (*SENTENCE, "group"), name)
    keys, codes, rows = [np.empty(0, np.uint64)], [np.empty(0, np.int16)], [np.empty(0, np.int64)]
    numbers: dict[str, int] = {}
    row = 0
    for corpus, part in ((corpus, part) for corpus, own in corpora.items() for part in own.parts(["lang", "group"])):
        keep = np.asarray(pc.is_in(part["lang"], value_set=pa.array(langs, pa.string()))) if langs else np.ones(part.num_rows, bool)
        wanted = part.filter(pa.array(keep))
        keys.append(priorities([_name(corpus, group) for group in wanted["group"].to_pylist()], 0))
        codes.append(np.array([numbers.setdefault(lang, len(numbers)) for lang in wanted["lang"].to_pylist()], np.int16))
        rows.append(row + np.flatnonzero(keep))
        row += part.num_rows
    first, inverse = np.unique(np.concatenate(keys), return_index=True, return_inverse=True)[1:]
    leaders = first[inverse]
    order = np.argsort(leaders, kind="stable")
    starts = np.flatnonzero(np.diff(leaders[order], prepend=-1, append=len(order)))
    return Groups(corpora, list(numbers), np.concatenate(rows)[order], np.concatenate(codes)[order], starts)


@dataclass(frozen=True)
class Aligned:
    """Labelled pairs, the same pair in several languages.

    Attributes:
        corpora: labelled corpora, whose rows are numbered one after another, two-sided and of one language each.
        ids: of all rows.
        langs: languages, in the order asked for.
        rows: row numbers, int64 of shape [pairs, languages], -1 where a language lacks the pair; in order of the pairs' first rows.
        labels: class number of each pair, shape [pairs].
    """

    corpora: Sequence[Rows]
    ids: pa.ChunkedArray
    langs: Sequence[str]
    rows: NDArray[np.int64]
    labels: NDArray[np.int64]

    def gathered(self, columns: Sequence[str], order: NDArray[np.int64]) -> Iterator[pa.Table]:
        """Yield columns of rows by number, in that order."""
        return gathered(parts_of(self.corpora, columns), order)

    def premises(self) -> list[str]:
        """Return what makes two pairs have the same premise: its text in English, else in the pair's first language."""
        return self.texts("a")

    def texts(self, side: Literal["a", "b"]) -> list[str]:
        """Return one side's text of each pair in English, else in the pair's first language."""
        parts = self.gathered([f"{side}_text"], _first(self.rows, self.langs))
        return [text for part in parts for text in part[f"{side}_text"].to_pylist()]


def aligned_pairs(corpora: Sequence[Rows], langs: Sequence[str], name: str) -> Aligned:
    """Return the labelled pairs of corpora, aligned over languages.

    Rows are the same pair when corpus, group, label and place among the rows of equal group, label and language are
    equal; a row without a group stands alone. Rows whose sides are of two languages are left out.

    Args:
        corpora: labelled corpora.
        langs: languages to keep, in this order; all, sorted, where empty.
        name: id of the training set, for messages.

    Raises:
        InputError: a row has not exactly one class number, or no row is of `langs`.
    """
    tables = [rows.table(["id", "a_lang", "b_lang", "label", "group"]) for rows in checked(corpora, LABELLED, name)]
    table = pa.concat_tables(tables)
    labels = class_numbers(table, name)
    used = list(langs) or sorted(table["a_lang"].unique().to_pylist())
    column = _codes(table["a_lang"], used)
    numbers = np.flatnonzero((column >= 0) & (_codes(table["b_lang"], used) == column))
    if not len(numbers):
        raise InputError(f"no labelled pair is in {', '.join(used)}", where=name)
    origin = np.repeat(np.arange(len(tables)), [part.num_rows for part in tables])
    group = pc.coalesce(table["group"], table["id"])
    item = _joint(origin[numbers], _codes(group, group.unique())[numbers], labels[numbers])
    pair = _joint(item, _nth(_joint(item, column[numbers])))
    rows = np.full((pair.max() + 1, len(used)), -1, np.int64)
    rows[pair, column[numbers]] = numbers
    rows = rows[np.argsort(np.where(rows < 0, table.num_rows, rows).min(axis=1))]
    return Aligned(corpora, table["id"], used, rows, labels[_first(rows, used)])


def _codes(column: pa.ChunkedArray, values: Sequence[str] | pa.Array) -> NDArray[np.int64]:
    """Return the place of each value among `values`, -1 where it is not there."""
    return np.asarray(pc.fill_null(pc.index_in(column, value_set=pa.array(values, pa.string())), -1), np.int64)


def _joint(*columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one number for each distinct row of the columns, counted from 0."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        numbers = np.unique(numbers * (column.max() - column.min() + 1) + column - column.min(), return_inverse=True)[1]
    return numbers


def _nth(items: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many equal items stand before each."""
    order = np.argsort(items, kind="stable")
    ordered = items[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    counts = np.diff(np.r_[starts, len(items)])
    nth = np.empty(len(items), np.int64)
    nth[order] = np.arange(len(items)) - np.repeat(starts, counts)
    return nth


def _first(rows: NDArray[np.int64], langs: Sequence[str]) -> NDArray[np.int64]:
    """Return, for each pair, its row in English, else in the first language that has it."""
    columns = [langs.index("en")] if "en" in langs else []
    order = columns + [column for column in range(len(langs)) if column not in columns]
    ordered = rows[:, order]
    found: NDArray[np.int64] = ordered[np.arange(len(rows)), (ordered >= 0).argmax(axis=1)]
    return found


def class_numbers(table: pa.Table, name: str) -> NDArray[np.int64]:
    """Return the one class number of each labelled row, int64.

    Raises:
        InputError: a row has no label, or several.
    """
    if table.num_rows and not pc.all(pc.equal(pc.fill_null(pc.list_value_length(table["label"]), 0), 1)).as_py():
        raise InputError("a row does not have exactly one class number", where=name, do="Name a corpus with one class per row")
    return np.asarray(pc.list_flatten(table["label"]).to_numpy(), np.int64)


def originals_of(views: Sequence[Rows], originals: Sequence[Rows], name: str) -> NDArray[np.int64]:
    """Return the number, among the originals, of the row that each row of the views copies.

    Raises:
        InputError: the original is in none of the corpora; `name` is the training set's.
    """
    numbers = Numbers(parts_of(originals, ["id"]))
    found = [np.empty(0, np.int64)]
    for part in parts_of(views, ["of"]):
        found.append(numbers.find(part["of"]))
        if (found[-1] < 0).any():
            lost = part["of"][int(np.argmin(found[-1]))].as_py()
            what = f"the original {lost!r} is in none of the corpora"
            raise InputError(what, where=name, do="Add the view's original corpus to `from`")
    return np.concatenate(found)
