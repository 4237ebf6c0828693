"""Helpers of the reader tests."""

from __future__ import annotations

import pyarrow as pa
import pytest

from crosslign.corpora import READERS


@pytest.fixture
def rows():
    """Call a reader and return all its rows."""

    def call(reader, files, langs, **options):
        return pa.concat_tables(READERS.get(reader)(files, "demo", langs, **options)).to_pylist()

    return call
