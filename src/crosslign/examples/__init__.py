"""Examples: training sets in one of the four shapes, made from corpora and views."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from crosslign.examples.rows import Rows
from crosslign.registry import Registry

Teach = Callable[[Sequence[str], Sequence[str]], list[list[float]]]


@dataclass(frozen=True)
class Material:
    """What an example builder is given beside its options.

    Attributes:
        name: id of the training set, for messages.
        corpora: rows of the corpora and views in `from`, by id, in that order.
        others: training sets in `of`, by id, in that order.
        langs: languages to use; all where empty.
        seed: seed of every draw.
        teach: gives the vectors of a teacher, one a sentence, of sentences and their languages; None where the entry names none.
        told: what a builder has to say of what it built, for the training set's lineage.
        clean: leaves out the examples (columns of one of the shapes, and any others) that hold an evaluation sentence.
    """

    name: str
    corpora: Mapping[str, Rows]
    others: Mapping[str, Rows]
    langs: Sequence[str]
    seed: int
    clean: Callable[[Iterable[pa.Table]], Iterator[pa.Table]] = iter
    teach: Teach | None = None
    told: dict[str, Any] = field(default_factory=dict)


class Builder(Protocol):
    """Makes a training set; options of its entry are keyword arguments beside `material`."""

    def __call__(self, material: Material) -> Iterator[pa.Table]:
        """Yield the columns of one of the shapes (`pairs`, `triplets`, `groups`, `labelled_examples`), ids null.

        Tables have some ten thousand rows, so that no set need be in memory whole. A builder that draws a sample passes all that may
        be drawn through `material.clean` first, so that the sample has the size that is asked for; others leave this to the stage.
        """
        ...


BUILDERS: Registry[Builder] = Registry("example builder", "crosslign.examples.builders")
