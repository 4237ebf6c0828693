"""Streams read ahead by a thread: the same bytes, errors where they belong, and no thread left."""

from __future__ import annotations

import io
import threading

import pytest

from crosslign.corpora.unpacked_ahead import Ahead


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("unpacking")]


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (7 << 20) + 5])
@pytest.mark.parametrize("at_once", [1 << 10, 1 << 18, 3 << 20])
def test_what_comes_is_the_stream(size, at_once):
    body = (bytes(range(251)) * (size // 251 + 1))[:size]
    with io.BufferedReader(Ahead(io.BytesIO(body)), 1 << 20) as stream:
        found = b"".join(iter(lambda: stream.read(at_once), b""))
    assert found == body
    assert not threads()


class Breaks(io.BytesIO):
    def read(self, size=-1):
        if self.tell() >= 3 << 20:
            raise OSError("damaged here")
        return super().read(size)


def test_an_error_comes_behind_the_bytes_before_it():
    with io.BufferedReader(Ahead(Breaks(bytes(9 << 20))), 1 << 20) as stream:
        assert len(stream.read(3 << 20)) == 3 << 20
        with pytest.raises(OSError, match="damaged here"):
            stream.read(1)
    assert not threads()


@pytest.mark.parametrize("read", [0, 1, 1 << 20])
def test_who_stops_early_leaves_no_thread_and_reads_no_further_than_it_must(read):
    source = io.BytesIO(bytes(64 << 20))
    with io.BufferedReader(Ahead(source), 1 << 20) as stream:
        stream.read(read)
    assert not threads()
    assert source.tell() <= 12 << 20
