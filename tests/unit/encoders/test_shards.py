"""What a matrix on disk can hold."""

from __future__ import annotations

import numpy as np
import pytest

from crosslign import errors
from crosslign.encoders.shards import Task, as_stored


def test_one_coordinate_that_a_type_cannot_hold_is_too_much_and_one_that_becomes_zero_is_not():
    task, names = Task({}, "texts.parquet", {}, "", "float16"), [f"line {number}" for number in range(6)]
    vectors = np.full((6, 4), 1.0, np.float32)
    vectors[0, 3] = 1e-9
    assert as_stored(vectors, task, names)[0].tolist() == [1.0, 1.0, 1.0, 0.0]
    vectors[2, 1], vectors[4, 0] = -7e4, 9e4
    with pytest.raises(errors.InputError, match=r"texts\.parquet, line 2: .*float16; .* 7e\+04"):
        as_stored(vectors, task, names)
