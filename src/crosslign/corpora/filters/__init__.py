"""Filters: predicates over rows, and maps of their texts, applied in the order of a corpus' `filters:`.

A filter is a class in a module of its own, constructed with the corpus' `Setting` and its YAML options.
Names and defaults are OpusFilter's where it has the rule. Rules that compare two sides let rows of one side pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crosslign.corpora.filters._columns import Column, Mask
from crosslign.registry import Registry

__all__ = ["FILTERS", "Column", "Filter", "Mask", "PairRule", "Setting", "SideRule", "Sides", "TextMap"]


@dataclass(frozen=True)
class Sides:
    """The one or two sentences of each row of a batch.

    A row of an aligned group is judged alone: its right side is the pivot's sentence of the same group, which
    two-sided rules compare it with (None for rows in the pivot's language), and which is not part of the row.

    Attributes:
        left_texts, left_langs: a sentence and its language, for each row.
        right_texts, right_langs: the other sentence and its language, None where a row has none.
        right_is_pivot: whether the right side is only there to be compared with.
        groups: id of the group of equal meaning that each row is in; empty where the corpus has no groups.
    """

    left_texts: Sequence[str]
    left_langs: Sequence[str]
    right_texts: Sequence[str | None]
    right_langs: Sequence[str | None]
    right_is_pivot: bool = False
    groups: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.left_texts)

    @cached_property
    def left(self) -> Column:
        """The left side."""
        return Column(self.left_texts, self.left_langs)

    @cached_property
    def right(self) -> Column:
        """The right side."""
        return Column(self.right_texts, self.right_langs)

    @property
    def own_columns(self) -> list[Column]:
        """The sides that belong to the rows."""
        return [self.left] if self.right_is_pivot else [self.left, self.right]

    def select(self, mask: Mask) -> Sides:
        """Return the marked rows."""
        if mask.all():
            return self
        chosen = mask.tolist()
        columns = (self.left_texts, self.left_langs, self.right_texts, self.right_langs)
        left, left_langs, right, right_langs = (list(compress(column, chosen)) for column in columns)
        return Sides(left, left_langs, right, right_langs, self.right_is_pivot, list(compress(self.groups, chosen)))  # type: ignore[arg-type]

    @property
    def own(self) -> list[tuple[Sequence[str | None], Sequence[str | None]]]:
        """(texts, languages) of the sides that belong to the rows."""
        left = (self.left_texts, self.left_langs)
        return [left] if self.right_is_pivot else [left, (self.right_texts, self.right_langs)]


@dataclass(frozen=True)
class Setting:
    """What a filter may know of its corpus.

    Attributes:
        langs: languages of the corpus.
        references: rows of other corpora that a filter names, by id.
        where: id of the corpus, for messages.
    """

    langs: Sequence[str] = ()
    references: Mapping[str, Path] = field(default_factory=dict)
    where: str = ""


class Filter:
    """A predicate over rows; one that looks back at earlier rows sees them in source order."""

    needs_survey = False
    """Whether `survey` must see all rows, as read, before the first `keep`."""

    remembers = False
    """Whether its answer for a row depends on other rows: such a filter sees all rows in order, in one process."""

    draws_first = False
    """Whether it drops rows for others that count as equal, so that a sample by what they have in common needs no other row."""

    vectorised = False
    """Whether it costs next to nothing a row, so that rows which are dropped already need not be taken out first."""

    drawn = False
    """Of one that draws first: whether sampling already removes the duplicates that it would drop; it then looks at named corpora alone."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    def survey(self, batch: Sides) -> None:
        """Look at a batch of the unfiltered corpus."""

    def keep(self, batch: Sides) -> Mask:
        """Return which rows stay, shape [rows]."""
        raise NotImplementedError

    def learned(self) -> list[dict[str, Any]]:
        """Return what it learned from other corpora, for the lineage; nothing where it learns nothing."""
        return []

    def keep_of_all(self, tables: Iterable[pa.Table], sides: Callable[[pa.Table], Sides]) -> Iterator[tuple[pa.Table, Mask]]:
        """Yield each table with which of its rows stay; a filter that must see later tables first overrides this.

        Args:
            tables: all batches of the corpus, in order.
            sides: the sentences of a batch.
        """
        for table in tables:
            yield table, self.keep(sides(table)) if table.num_rows else np.ones(0, bool)


class SideRule(Filter):
    """A filter whose rows stay when every side of their own is accepted."""

    vectorised = True

    def accept(self, side: Column) -> Mask:
        """Return which sentences of a side pass; what is said of one that is not there does not count."""
        raise NotImplementedError

    def keep(self, batch: Sides) -> Mask:
        """Return which rows have only accepted sentences."""
        mask = np.ones(len(batch), bool)
        for side in batch.own_columns:
            if side.there.any():
                mask &= self.accept(side) | ~side.there
        return mask


class PairRule(Filter):
    """A filter whose rows stay when their two sides agree; rows of one side stay."""

    def accept(self, left: Column, right: Column) -> Mask:
        """Return which pairs of sentences pass; what is said of a row without a right side does not count."""
        raise NotImplementedError

    def keep(self, batch: Sides) -> Mask:
        """Return which rows have one side, or two that agree."""
        if not batch.right.there.any():
            return np.ones(len(batch), bool)
        return self.accept(batch.left, batch.right) | ~batch.right.there


class TextMap:
    """A change of texts; a row whose text becomes empty is dropped."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    def change(self, text: str, lang: str) -> str:
        """Return the new text."""
        raise NotImplementedError


FILTERS: Registry[type[Filter] | type[TextMap]] = Registry("filter", "crosslign.corpora.filters")
