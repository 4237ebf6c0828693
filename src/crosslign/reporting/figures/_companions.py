"""Numbers that stand beside a picture of vectors, and say what points and colours alone do not (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crosslign.entries.papers import Figure

Measure = Callable[[np.ndarray, Sequence[str], Sequence[str]], float]
"""From vectors, float64 [n, d], with the language and the group of each, to a number."""


@dataclass(frozen=True)
class Companion:
    """A number beside a picture.

    Attributes:
        measure: gives it.
        name: what it is, in words.
        form: how it is printed; the CSV has it as it is.
        scale_by: factor to the number that is printed.
    """

    measure: Measure
    name: str
    form: str
    scale_by: float = 1

    def printed(self, value: float) -> str:
        """Return a value as it is printed."""
        return self.form.format(self.scale_by * value)


def _cosines(vectors: np.ndarray) -> np.ndarray:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(unit @ unit.T)


def neighbour_rate(vectors: np.ndarray, langs: Sequence[str], groups: Sequence[str]) -> float:
    """Return how often the nearest sentence of another language is the translation, over all language pairs (a fraction)."""
    similarity, names, ids = _cosines(vectors), np.array(langs), np.array(groups)
    hits = [
        ids[other][similarity[np.ix_(here, other)].argmax(axis=1)] == ids[here]
        for a in sorted(set(langs))
        for b in sorted(set(langs))
        if a != b
        for here, other in [(np.flatnonzero(names == a), np.flatnonzero(names == b))]
    ]
    return float(np.concatenate(hits).mean())


def mean_cosine(vectors: np.ndarray, langs: Sequence[str], groups: Sequence[str]) -> float:
    """Return the mean cosine of a sentence and its translations, over all language pairs."""
    names, ids = np.array(langs), np.array(groups)
    translations = (ids[:, None] == ids) & (names[:, None] != names)
    return float(_cosines(vectors)[translations].mean())


COMPANIONS: Mapping[str, Companion] = {
    "neighbour_rate": Companion(neighbour_rate, "nearest in another language is the translation", "{:.1f} %", 100),
    "mean_cosine": Companion(mean_cosine, "mean cosine of translations", "{:.3f}"),
}
"""By the name that a figure's `companion` has."""


def companion_of(entry: Figure, vectors: np.ndarray, langs: Sequence[str], groups: Sequence[str]) -> tuple[dict[str, float], str]:
    """Return the number that a figure asks for, by its name, and the line of a panel's title that says it; nothing where none is asked.

    Args:
        entry: the figure's entry.
        vectors: of the sentences that a panel shows, float64 [n, d].
        langs, groups: of each sentence.
    """
    if "companion" not in entry:
        return {}, ""
    companion = COMPANIONS[entry["companion"]]
    value = companion.measure(vectors, langs, groups)
    return {entry["companion"]: value}, f"\n{companion.name}: {companion.printed(value)}"
