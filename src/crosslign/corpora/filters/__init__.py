"""Filters: predicates over rows, and maps of their texts, applied in the order of a corpus' `filters:`.

A filter is a class in a module of its own, constructed with the corpus' `Setting` and its YAML options.
Names and defaults are OpusFilter's where it has the rule. Rules that compare two sides let rows of one side pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crosslign.registry import Registry

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Sides:
    """The one or two sentences of each row of a batch.

    A row of an aligned group is judged alone: its right side is the pivot's sentence of the same group, which
    two-sided rules compare it with (None for rows in the pivot's language), and which is no part of the row.

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

    @property
    def pairs(self) -> Iterable[tuple[str, str, str | None, str | None]]:
        """(left text, left language, right text, right language) of each row."""
        return zip(self.left_texts, self.left_langs, self.right_texts, self.right_langs, strict=True)

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

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    def survey(self, batch: Sides) -> None:
        """Look at a batch of the unfiltered corpus."""

    def keep(self, batch: Sides) -> Mask:
        """Return which rows stay, shape [rows]."""
        raise NotImplementedError


class SideRule(Filter):
    """A filter whose rows stay when every side of their own is accepted."""

    def accept(self, text: str, lang: str) -> bool:
        """Tell whether one sentence passes."""
        raise NotImplementedError

    def keep(self, batch: Sides) -> Mask:
        """Return which rows have only accepted sentences."""
        mask = np.ones(len(batch), bool)
        for texts, langs in batch.own:
            accepted = (text is None or lang is None or self.accept(text, lang) for text, lang in zip(texts, langs, strict=True))
            mask &= np.fromiter(accepted, bool, len(batch))
        return mask


class PairRule(Filter):
    """A filter whose rows stay when their two sides agree; rows of one side stay."""

    def accept(self, left: str, left_lang: str, right: str, right_lang: str) -> bool:
        """Tell whether the two sentences pass."""
        raise NotImplementedError

    def keep(self, batch: Sides) -> Mask:
        """Return which rows have one side, or two that agree."""
        accepted = (b is None or b_lang is None or self.accept(a, a_lang, b, b_lang) for a, a_lang, b, b_lang in batch.pairs)
        return np.fromiter(accepted, bool, len(batch))


class TextMap:
    """A change of texts; a row whose text becomes empty is dropped."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    def change(self, text: str, lang: str) -> str:
        """Return the new text."""
        raise NotImplementedError


FILTERS: Registry[type[Filter] | type[TextMap]] = Registry("filter", "crosslign.corpora.filters")
