"""Logits of a classification part, one row an item."""

from __future__ import annotations

import numpy as np

from crosslign.console import number_of
from crosslign.errors import InputError
from crosslign.tasks.data import EncodedCorpus, Items


def logits_of(data: EncodedCorpus, items: Items, where: str) -> np.ndarray:
    """Return the logits of each item: float64 [n, classes].

    Raises:
        InputError: a logit is NaN or infinite; names the item.
    """
    logits = np.asarray(data.matrix[items.rows], dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(logits).all(1))
    if len(bad):
        raise InputError(f"a logit of item {items.ids[bad[0]][1]!r} is NaN or infinite", where=where, why=number_of(len(bad), "such item"))
    return logits


def check_classes(labels: np.ndarray, logits: np.ndarray, where: str) -> None:
    """Refuse class numbers that no column of the logits stands for."""
    if len(labels) and not 0 <= labels.min() <= labels.max() < logits.shape[1]:
        wrong = labels[(labels < 0) | (labels >= logits.shape[1])][0]
        raise InputError(f"there is no class {wrong}", where=where, why=f"the logits have {number_of(logits.shape[1], 'column')}, from 0")
