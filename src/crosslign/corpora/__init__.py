"""Corpora: bytes from their sources, rows from their formats, evaluation corpora, and synthetic data for real data.

Each registry is one extension point; an implementation is found by the name that `config/corpora.yaml` uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from crosslign.entries.catalog import Source
from crosslign.entries.resolved import AskedFile
from crosslign.registry import Registry

if TYPE_CHECKING:
    from crosslign.corpora.evaluation import Evaluation


class Fetch(Protocol):
    """What brings the bytes of a kind of source."""

    def __call__(self, source: Source, file: AskedFile, dest: Path) -> str:
        """Bring one file of a catalog entry to `dest`, where a broken download may have left its start; return its SHA-256."""


class Reader(Protocol):
    """An official file format, read into rows."""

    def __call__(self, files: Mapping[str, Path], corpus: str, langs: Sequence[str], **options: Any) -> Iterator[pa.Table]:
        """Yield the rows of a corpus in source order, at most 8,192 a table; one that takes `threads` may use as many processes."""


@dataclass(frozen=True)
class Given:
    """What the reader of an evaluation corpus is given beside its options.

    Attributes:
        files: official files by name, or archives of them; a reader passes over others.
        corpora: rows of the corpora in `from`, by id, for readers that cut sets from them.
        name: id of the evaluation corpus, for messages.
        langs: languages to keep; all where empty.
        limit: upper bound on the items of a subset, which are then evenly spread over the file; None for all.
        seed: of every draw.
        parts: the sets in `of`, by id, for the reader that joins or cuts them.
    """

    files: Mapping[str, Path]
    corpora: Mapping[str, pa.Table]
    name: str
    langs: Sequence[str] = ()
    limit: int | None = None
    seed: int = 42
    parts: Mapping[str, Evaluation] = field(default_factory=dict)


class EvaluationReader(Protocol):
    """An evaluation corpus, read from its official files or cut from corpora of our own."""

    def __call__(self, given: Given, **options: Any) -> Evaluation:
        """Return the set, at most `limit` items a subset."""


class StandIn(Protocol):
    """A catalog file in its official format, of the project's own aligned sentences (one or more, by language)."""

    def __call__(self, name: str, sentences: Sequence[Mapping[str, str]]) -> bytes | Mapping[str, bytes]:
        """Return what the file of this name holds before it is packed, or the members of an archive; equal sentences give equal bytes."""


SOURCES: Registry[Fetch] = Registry("source", "crosslign.corpora.sources")
READERS: Registry[Reader] = Registry("reader", "crosslign.corpora.readers")
EVALUATIONS: Registry[EvaluationReader] = Registry("evaluation", "crosslign.corpora.evaluations")
STAND_INS: Registry[StandIn] = Registry("stand-in", "crosslign.corpora.stand_ins")
