"""The learning curve as TensorBoard's event files, when a recipe asks for them; `curve.jsonl` is always written.

The files are records of one protocol-buffer message each, framed as TFRecord: the length, its checksum, the message, its checksum.
A scalar needs four fields of it, which are written here, so that training needs no further package.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

CASTAGNOLI = 0x82F63B78


def _table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (CASTAGNOLI if value & 1 else 0)
        table.append(value)
    return table


TABLE = _table()


def crc32c(data: bytes) -> int:
    """Return the CRC-32C (Castagnoli) checksum."""
    value = 0xFFFFFFFF
    for byte in data:
        value = TABLE[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    """Return the checksum as TFRecord stores it."""
    value = crc32c(data)
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _bytes_field(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


class Board:
    """One event file.

    Event files carry wall times, so they lie beside the run's working folder, never in the run's own; a run that goes on adds a
    file, whose steps replace those behind its checkpoint.

    Args:
        folder: where the file goes.
        done: steps done; with the time it names the file.
    """

    def __init__(self, folder: Path, done: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = open(folder / f"events.out.tfevents.{int(time.time()):010d}.{done}", "ab")  # noqa: SIM115
        self._record(_bytes_field(3, b"brain.Event:2"))

    def _record(self, event: bytes) -> None:
        message = b"\x09" + struct.pack("<d", time.time()) + event
        length = struct.pack("<Q", len(message))
        self._file.write(length + _masked(length) + message + _masked(message))
        self._file.flush()

    def write(self, line: Mapping[str, Any]) -> None:
        """Write the numbers of one line of the curve, nested ones by `a/b`."""
        values = b""
        for name, value in flat(line):
            if name != "step":
                values += _bytes_field(1, _bytes_field(1, name.encode()) + b"\x15" + struct.pack("<f", value))
        self._record(b"\x10" + _varint(int(line["step"])) + _bytes_field(5, values))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def flat(line: Mapping[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    """Return the numbers of a nested mapping, by `a/b`."""
    found: list[tuple[str, float]] = []
    for name, value in line.items():
        if isinstance(value, Mapping):
            found += flat(value, f"{prefix}{name}/")
        elif value is not None:
            found.append((prefix + name, float(value)))
    return found
