"""A map from characters to replacements in the form that SentencePiece compiles it to: what a fast tokenizer's normaliser reads.

The form is a length, a double array and the replacements, each ended by NUL. A double array is a trie in one table of 32-bit
units. A walk starts at unit 0 and keeps a base; the child for byte c is the unit at `base ^ c` if the label there is c, and the
unit's own index, xored with its offset, is the next base. Where a key ends, a flag says so and the unit at the base holds
its value: here, where the replacement begins.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence

LEAF = 1 << 31
HAS_LEAF = 1 << 8
ROW = 256
"""The table's length is a multiple of this, so that no byte leads a walk beyond its end."""

Entry = tuple[bytes, int]
"""A key and its value."""


class _DoubleArray:
    """Units of a double array, filled node by node."""

    def __init__(self) -> None:
        self.units: list[int] = [0] * ROW
        self.taken = {0}
        self.bases: set[int] = set()
        self.first_free = 1

    def _base(self, bytes_below: Sequence[int]) -> int:
        """Return the lowest unused base whose places for these bytes are free."""
        while self.first_free in self.taken:
            self.first_free += 1
        base = self.first_free ^ bytes_below[0]
        for candidate in self._candidates(bytes_below[0]):
            if candidate not in self.bases and all(candidate ^ byte not in self.taken for byte in bytes_below):
                base = candidate
                break
        self.bases.add(base)
        self.taken.update(base ^ byte for byte in bytes_below)
        longest = max(base ^ byte for byte in bytes_below)
        self.units += [0] * max(0, (longest // ROW + 1) * ROW - len(self.units))
        return base

    def _candidates(self, byte: int) -> Iterator[int]:
        """Yield bases whose place for `byte` is free, without end."""
        place = self.first_free
        while True:
            if place not in self.taken:
                yield place ^ byte
            place += 1

    def add(self, node: int, entries: Sequence[Entry], depth: int) -> None:
        """Place everything below a node: entries, sorted, that share their first `depth` bytes."""
        below: dict[int, list[Entry]] = {}
        ending = [value for key, value in entries if len(key) == depth]
        for key, value in entries:
            if len(key) > depth:
                below.setdefault(key[depth], []).append((key, value))
        base = self._base([*([0] if ending else []), *below])
        offset = node ^ base
        self.units[node] |= offset << 10 if offset < 1 << 21 else (offset << 2) | (1 << 9)
        if ending:
            self.units[node] |= HAS_LEAF
            self.units[base] = LEAF | ending[0]
        for byte in below:
            self.units[base ^ byte] |= byte
        for byte, inner in below.items():
            self.add(base ^ byte, inner, depth + 1)


def compile_charsmap(replacements: Mapping[str, str]) -> bytes:
    """Return the compiled map.

    Args:
        replacements: at least one; keys are not empty, and neither side holds NUL.
    """
    texts, starts = bytearray(), {}
    for text in sorted(set(replacements.values())):
        starts[text] = len(texts)
        texts += text.encode("utf-8") + b"\0"
    array = _DoubleArray()
    array.add(0, sorted((key.encode("utf-8"), starts[text]) for key, text in replacements.items()), 0)
    return struct.pack("<I", 4 * len(array.units)) + struct.pack(f"<{len(array.units)}I", *array.units) + bytes(texts)
