"""Packed streams: what the standard library packs comes back, and damage anywhere is named with its place."""

from __future__ import annotations

import bz2
import gzip
import lzma

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosslign.corpora.archives import open_stream
from crosslign.errors import InputError

PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def unpacked(folder, suffix, data):
    path = folder / f"a{suffix}"
    path.write_bytes(data)
    with open_stream(path) as stream:
        return stream.read()


@pytest.mark.parametrize("suffix", PACK)
@settings(max_examples=25)
@given(parts=st.lists(st.binary(max_size=400), min_size=1, max_size=4), zeros=st.sampled_from([0, 4, 512]))
def test_streams_that_follow_each_other_are_one_file(tmp_path_factory, suffix, parts, zeros):
    folder = tmp_path_factory.mktemp("streams")
    packed = (bytes(zeros)).join(PACK[suffix](part) for part in parts) + bytes(zeros)
    assert unpacked(folder, suffix, packed) == b"".join(parts)


@pytest.mark.parametrize("suffix", PACK)
def test_more_than_a_buffer_comes_whole(tmp_path, suffix):
    body = bytes(range(256)) * 20_000 + b"end"
    assert unpacked(tmp_path, suffix, PACK[suffix](body) + PACK[suffix](body)) == body + body
    assert unpacked(tmp_path, suffix, b"") == b""


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("behind", [b"garbage", b"g", bytes(8) + b"garbage"])
def test_what_is_no_stream_behind_one_is_named_with_its_byte(tmp_path, suffix, behind):
    first = PACK[suffix](b"whole\n")
    begun = len(first) + len(behind) - len(behind.lstrip(b"\0"))
    with pytest.raises(InputError, match=rf"a\{suffix}: damaged.*at byte {begun} "):
        unpacked(tmp_path, suffix, first + behind)


@pytest.mark.parametrize("suffix", PACK)
def test_a_second_stream_that_is_cut_or_changed_is_no_end(tmp_path, suffix):
    first, second = PACK[suffix](b"whole\n"), PACK[suffix](b"lost\n" * 100)
    changed = bytearray(second)
    changed[1] ^= 0xFF
    for broken in (second[:-3], second[:9], bytes(changed)):
        with pytest.raises(InputError, match=rf"a\{suffix}: damaged.*at byte {len(first)} "):
            unpacked(tmp_path, suffix, first + broken)


def zst(data):
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


def test_damage_of_zstd_is_named_with_the_byte_before_which_it_lies(tmp_path):
    body = bytes(range(256)) * 20_000
    packed = zst(body)
    assert unpacked(tmp_path, ".zst", packed + packed) == body + body
    for broken in (packed[:-3], packed + b"garbage", b"no packing at all"):
        with pytest.raises(InputError, match=rf"a\.zst: damaged.*byte {len(broken):,}\b"):
            unpacked(tmp_path, ".zst", broken)
