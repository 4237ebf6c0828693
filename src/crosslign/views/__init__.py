"""Views: augmented copies of corpora, made once and shared by every method (PROTOCOLS A.4.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from crosslign.registry import Registry


@dataclass(frozen=True)
class Setting:
    """What a view builder is given beside its options.

    Attributes:
        view: id of the view.
        corpora: rows of the corpora that its options name, by id.
        seed: seed of every draw.
    """

    view: str
    corpora: Mapping[str, Path]
    seed: int


class ViewBuilder(Protocol):
    """Makes augmented copies of rows; constructed with a `Setting` and the options of the view's entry."""

    def augment(self, batch: pa.Table, sides: Sequence[tuple[str, str]]) -> pa.Table:
        """Return the copies of a batch's rows: its columns with new texts, and of, kind, n, replaced.

        Args:
            batch: rows of a corpus.
            sides: names of its columns of languages and of texts.
        """
        ...

    def counts(self) -> dict[str, Any]:
        """Return what is worth knowing about the copies made so far."""
        ...


VIEWS: Registry[type[ViewBuilder]] = Registry("view builder", "crosslign.views.builders")
