"""Equal sentences of one side: collapsed to one (`text`) or kept as separate items (`id`) (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Dedup = Literal["text", "id"]


@dataclass(frozen=True)
class Unified:
    """Items of one side as mining sees them.

    Attributes:
        items: int64 [u], for each mined sentence the first item that has it; in the order of items.
        reachable: bool [u], whether a mined sentence leads back to one item only.
    """

    items: np.ndarray
    reachable: np.ndarray

    def __len__(self) -> int:
        return len(self.items)

    @property
    def identity(self) -> bool:
        """Whether every item is a sentence of its own that can be reached."""
        return bool(self.reachable.all())


def unify(sentences: Sequence[Hashable], dedup: Dedup) -> Unified:
    """Collapse equal sentences.

    Args:
        sentences: the sentence of each item, or anything that is equal exactly where sentences are.
        dedup: `text`: equal sentences are mined once, and one that occurs more than once leads back to no item, as LASER's mapping from
            text to id deletes it; `id`: nothing is collapsed or lost.
    """
    if dedup == "id":
        return Unified(np.arange(len(sentences)), np.ones(len(sentences), dtype=bool))
    first: dict[Hashable, int] = {}
    count: dict[Hashable, int] = {}
    for position, sentence in enumerate(sentences):
        first.setdefault(sentence, position)
        count[sentence] = count.get(sentence, 0) + 1
    return Unified(np.fromiter(first.values(), np.int64, len(first)), np.fromiter(count.values(), np.int64, len(count)) == 1)
