"""A tiny encoder in one `E5S1` file."""

from __future__ import annotations

import pytest
from e5s1_file import build_file


@pytest.fixture(scope="session")
def e5s1_bytes():
    """The tiny file's bytes and the weights that it holds."""
    return build_file()


@pytest.fixture(scope="session")
def e5s1_folder(tmp_path_factory, e5s1_bytes):
    """The tiny file as an ordinary folder."""
    from crosslign.encoders.prepare import prepare_encoder

    folder = tmp_path_factory.mktemp("e5s1")
    (folder / "tiny.bin").write_bytes(e5s1_bytes[0])
    prepare_encoder("tiny", {"path": str(folder / "tiny.bin"), "format": "e5s1"}, {}, folder / "out")
    return folder / "out" / "main"
