"""Event files for TensorBoard, read back by a reader of the published format."""

from __future__ import annotations

import struct

import pytest
import trial

from crosslign.training.board import crc32c


def _records(data):
    """Split a TFRecord file, checking both checksums of every record."""
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        content = data[12 : 12 + length]
        for checked, at in ((data[:8], 8), (content, 12 + length)):
            (found,) = struct.unpack("<I", data[at : at + 4])
            rotated = (found - 0xA282EAD8) & 0xFFFFFFFF
            assert (rotated << 15 | rotated >> 17) & 0xFFFFFFFF == crc32c(checked)
        yield content
        data = data[16 + length :]


def _varint(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return number, at


def _fields(data):
    """Return (field, value) pairs of a protocol-buffer message."""
    at, found = 0, []
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 2:
            size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            size, code = (8, "<d") if kind == 1 else (4, "<f")
            (value,), at = struct.unpack(code, data[at : at + size]), at + size
        found.append((key >> 3, value))
    return found


def test_checksum_is_that_of_the_standard():
    assert crc32c(b"123456789") == 0xE3069283  # RFC 3720's check value
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4


def test_the_curve_is_written_when_asked_for(train, tmp_path):
    _, folder = train(trial.recipe(train={"steps": 130, "tensorboard": True}))
    (events,) = (tmp_path / "run-work-tensorboard").iterdir()
    first, *others = _records(events.read_bytes())
    assert dict(_fields(first))[3] == b"brain.Event:2"
    steps = [dict(_fields(record)) for record in others]
    assert [step[2] for step in steps] == list(range(1, 131))
    values = [dict(_fields(value)) for field, value in _fields(steps[-1][5]) if field == 1]
    scalars = {value[1].decode(): value[2] for value in values}
    assert scalars["terms/trial_paired/loss"] == scalars["loss"] > 0
    assert scalars["epoch"] == pytest.approx(130 / 3, abs=1e-5)
    assert folder.exists()
