"""What a scorer sees: items of each subset, their vectors, and gold links, by position."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crosslign.console import number_of
from crosslign.corpora.evaluation import Evaluation
from crosslign.errors import InputError
from crosslign.options import Schema
from crosslign.registry import nearest
from crosslign.vectors import name_of

LEFT = frozenset({"source", "query", "first"})
RIGHT = frozenset({"target", "candidate", "second"})

Averages = Mapping[str, Annotated[Sequence[str] | str | Mapping[str, Sequence[str]], Schema(ref="subsets")]]
"""Subsets of each named average: a list, `all`, or `{all_but: [other names, or subsets]}`."""

ALIKE = 1e-6
"""Vectors whose cosine to the first one exceeds 1 - ALIKE are alike: float32 does not tell them apart."""


@dataclass(frozen=True)
class Items:
    """Items of one subset, in file order.

    Attributes:
        ids: (split, item_id) of each.
        rows: int64, row of each item's text in texts and in the matrix.
        labels: class numbers or graded scores of each, or None.
        groups: what items of equal meaning share, or None.
        langs: language of each item's text.
        clusters: what items share that were sampled together, or None.
    """

    ids: Sequence[tuple[str, str]]
    rows: np.ndarray
    labels: Sequence[list[float] | None]
    groups: Sequence[str | None]
    langs: Sequence[str]
    clusters: Sequence[str | None]

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def position(self) -> Mapping[tuple[str, str], int]:
        """Position of each id."""
        return {item: at for at, item in enumerate(self.ids)}


class EncodedCorpus:
    """One evaluation corpus, and its embeddings.

    Args:
        role: what it is to its task, for messages.
        evaluation: texts, items and gold.
        matrix: the embeddings, [rows of texts, d]; may be a memory map.

    Raises:
        InputError: the matrix has more or fewer rows than the texts.
    """

    def __init__(self, role: str, evaluation: Evaluation, matrix: np.ndarray) -> None:
        rows, texts = len(matrix), evaluation.texts.num_rows
        if rows != texts:
            raise InputError(
                "embeddings do not belong to their texts",
                where=name_of(matrix, f"evaluation corpus {role!r}"),
                why=f"{number_of(rows, 'row')}, but the evaluation corpus {role!r} has {number_of(texts, 'text')}",
                do="Encode the texts again (the next run does so once the file is deleted)",
            )
        self.role, self.matrix = role, matrix
        self._evaluation = evaluation

    @cached_property
    def subsets(self) -> list[str]:
        """Subsets in the order of the items."""
        return list(dict.fromkeys(self._evaluation.items["subset"].to_pylist()))

    @cached_property
    def _row_of(self) -> Mapping[str, int]:
        return {text: row for row, text in enumerate(self._evaluation.texts["text_id"].to_pylist())}

    @cached_property
    def _langs(self) -> list[str]:
        langs: list[str] = self._evaluation.texts["lang"].to_pylist()
        return langs

    def items(self, subset: str | None = None, roles: Collection[str] | None = None, split: str | None = None) -> Items:
        """Return items, of one subset, of some roles, of one split; of all where one of these is None.

        Raises:
            InputError: two of them have the same id.
        """
        table = self._evaluation.items
        mask = np.ones(table.num_rows, dtype=bool)
        for column, allowed in (
            ("subset", None if subset is None else {subset}),
            ("role", roles),
            ("split", None if split is None else {split}),
        ):
            if allowed is not None:
                mask &= np.array(pc.is_in(table[column], value_set=pa.array(sorted(allowed))))
        chosen = table.filter(pa.array(mask)).to_pydict()
        rows = np.fromiter((self._row_of[text] for text in chosen["text_id"]), np.int64, int(mask.sum()))
        ids = list(zip(chosen["split"], chosen["item_id"], strict=True))
        clusters = chosen.get("cluster") or [None] * len(ids)
        items = Items(ids, rows, chosen["label"], chosen["group"], [self._langs[row] for row in rows], clusters)
        if roles is not None and len(items.position) < len(ids):
            twice = next(item for at, item in enumerate(ids) if items.position[item] != at)
            raise InputError(f"two items have the id {twice[1]!r}", where=f"evaluation corpus {self.role!r}, subset {subset!r}")
        return items

    def links(self, subset: str, left: Items, right: Items) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the gold links of a subset: positions in `left` and in `right` (int64) and their scores (float64).

        Raises:
            InputError: a link names an item that does not exist; names the link.
        """
        gold = self._evaluation.gold
        rows = gold.filter(pc.equal(gold["subset"], subset)).to_pydict()
        positions: tuple[list[int], list[int]] = ([], [])
        for number, split in enumerate(rows["split"]):
            for at, items, column in zip(positions, (left, right), ("left", "right"), strict=True):
                item = (split, rows[column][number])
                if item not in items.position:
                    where = f"evaluation corpus {self.role!r}, subset {subset!r}, gold line {number + 1}"
                    raise InputError(f"gold names an item that does not exist: {item[1]!r}", where=where)
                at.append(items.position[item])
        scores = np.array([np.nan if score is None else score for score in rows["score"]], dtype=np.float64)
        return np.array(positions[0], dtype=np.int64), np.array(positions[1], dtype=np.int64), scores

    def linked(self, subset: str) -> tuple[Items, Items, np.ndarray, np.ndarray, np.ndarray]:
        """Return the items of both sides of a subset, and its gold links as `links` gives them."""
        left, right = self.items(subset, LEFT), self.items(subset, RIGHT)
        return left, right, *self.links(subset, left, right)

    def sentences(self, items: Items) -> list[tuple[str, str | None]]:
        """Return text and second segment of each item."""
        texts = self._evaluation.texts.take(pa.array(items.rows))
        return list(zip(texts["text"].to_pylist(), texts["pair_text"].to_pylist(), strict=True))

    @cached_property
    def collapsed(self) -> bool:
        """Whether all vectors are alike; looks at 4,096 rows, evenly spaced."""
        n = len(self.matrix)
        rows = np.unique(np.linspace(0, n - 1, min(n, 4096)).astype(np.int64)) if n else np.empty(0, np.int64)
        sample = np.asarray(self.matrix[rows], dtype=np.float64)
        if len(sample) < 2 or not np.isfinite(sample).all():
            return False
        lengths = np.linalg.norm(sample, axis=1)
        if not lengths.all():
            return False
        return bool(((sample @ sample[0]) / (lengths * lengths[0]) > 1 - ALIKE).all())


@dataclass(frozen=True)
class Machine:
    """What a search may use; no result depends on it.

    Attributes:
        devices: torch devices that share a search.
        threads: threads of a search on a CPU.
        work: folder where a search keeps what it has found, to go on after it was killed; None to keep nothing.
    """

    devices: Sequence[str] = ("cpu",)
    threads: int = 1
    work: Path | None = None


ONE_THREAD = Machine()


@dataclass(frozen=True)
class TaskData:
    """A task as its scorer sees it.

    Attributes:
        name: task id.
        corpora: evaluation corpus of each role that is there.
        averages: subsets of each named average.
        machine: what its searches may use.
    """

    name: str
    corpora: Mapping[str, EncodedCorpus]
    averages: Averages
    machine: Machine = ONE_THREAD

    def corpus(self, *roles: str) -> EncodedCorpus | None:
        """Return the evaluation corpus of the first of these roles that the task has, or None."""
        return next((self.corpora[role] for role in roles if role in self.corpora), None)

    def only_corpus(self) -> EncodedCorpus:
        """Return the one evaluation corpus of a task that has one.

        Raises:
            InputError: the task has more or fewer.
        """
        if len(self.corpora) != 1:
            raise InputError(f"this scorer needs one evaluation corpus, not {len(self.corpora)}", where=f"task {self.name!r}")
        return next(iter(self.corpora.values()))


def members(averages: Averages, name: str, subsets: Sequence[str]) -> list[str]:
    """Return the subsets of a named average, of those that there are where it takes all or all but some.

    Raises:
        InputError: what it leaves out is neither a named average nor a subset.
    """
    value = averages[name]
    if isinstance(value, Mapping):
        for other in value["all_but"]:
            if other not in averages and other not in subsets:
                why = nearest(other, [*(one for one in averages if one != name), *subsets])
                raise InputError(
                    f"{name!r} leaves out {other!r}, which is neither a subset nor another name", where="`all_but` of a task", why=why
                )
        others = (members(averages, other, subsets) if other in averages else [other] for other in value["all_but"])
        left_out = {subset for other in others for subset in other}
        return [subset for subset in subsets if subset not in left_out]
    return list(subsets) if isinstance(value, str) else list(value)
