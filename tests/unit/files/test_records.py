"""JSON documents that are believed only as they were written."""

from __future__ import annotations

import json
import random
from contextlib import suppress

import pytest

from crosslign.errors import InputError
from crosslign.files.records import read_sealed, write_sealed

CONTENT = {"step": 120, "seconds": 7.25, "seen": {"a": [1, 2, None]}, "text": "é", "skipped": 0}


@pytest.mark.parametrize("place", range(0, 220, 3))
def test_a_flipped_bit_changes_nothing_or_is_refused(tmp_path, place):
    path = tmp_path / "state.json"
    write_sealed(path, CONTENT)
    assert read_sealed(path) == CONTENT
    written = bytearray(path.read_bytes())
    place %= len(written)
    written[place] ^= 1 << random.Random(place).randrange(7)
    path.write_bytes(written)
    found = dict(CONTENT)
    with suppress(InputError):
        found = read_sealed(path)
    for key in found.keys() - CONTENT.keys():  # the bit was in the name of the checksum's key, and all else is whole
        assert len(str(found.pop(key))) == 64
    assert found == CONTENT


def test_another_number_is_refused_with_the_file(tmp_path):
    path = tmp_path / "state.json"
    write_sealed(path, CONTENT)
    path.write_text(path.read_text(encoding="utf-8").replace("120", "121"), encoding="utf-8")
    with pytest.raises(InputError, match="the file is damaged or was changed") as caught:
        read_sealed(path)
    assert caught.value.where == str(path)


def test_a_document_of_before_there_were_checksums_is_read(tmp_path):
    (tmp_path / "state.json").write_text(json.dumps(CONTENT), encoding="utf-8")
    assert read_sealed(tmp_path / "state.json") == CONTENT
