"""Text files that are read whole: within the memory of a machine."""

import os

import pytest

from crosslign.errors import InputError
from crosslign.files.text import LARGEST, read_text


def test_a_text_of_a_terabyte_of_holes_is_refused_and_not_read(tmp_path):
    (tmp_path / "scores.json").write_text("{}")
    os.truncate(tmp_path / "scores.json", LARGEST + 1)
    with pytest.raises(InputError, match=r"the file is too large; 1,073,741,825 bytes, the limit is 1,073,741,824") as caught:
        read_text(tmp_path / "scores.json")
    assert caught.value.where == str(tmp_path / "scores.json")
