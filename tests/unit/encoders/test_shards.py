"""What processes that encode side by side say, and what a matrix on disk can hold."""

from __future__ import annotations

import json

import numpy as np
import pytest

from crosslign import errors
from crosslign.encoders.shards import Task, _fitting

PROGRAM = """
import json, sys
from crosslign import errors
from crosslign.encoders import shards

asked, error = sys.argv[1:]
kind, words = json.loads(error)

class Encoder:
    facts = {"dimension": 1}

    def __init__(self, task, device):
        print("a library's greeting", flush=True)

    def prepare(self, starts):
        raise getattr(errors, kind)(**words)

shards.ShardEncoder = Encoder
sys.stdin = open(asked)
shards.main()
"""


@pytest.mark.parametrize("kind", ["InputError", "ResourceError"])
def test_a_process_answers_with_every_word_of_an_error_and_with_nothing_that_a_library_prints(forks, tmp_path, kind):
    words = {name: f"{name} it is" for name in ("what", "where", "why", "do")}
    task = {"members": {}, "texts": "", "readout": {}, "matrix": ""}
    first = json.dumps({"task": task, "device": "cpu", "threads": 1})
    (tmp_path / "asked").write_text(f"{first}\n[0]\n")
    done = forks.run(PROGRAM, tmp_path / "asked", json.dumps([kind, words]))
    assert done.returncode == 0, done.stderr
    facts, said = map(json.loads, done.stdout.splitlines())
    assert facts == {"value": {"dimension": 1}}
    assert said == {"error": {"kind": kind, **words}}
    assert vars(getattr(errors, kind)(**words)) == words  # which the one who asked raises
    assert "a library's greeting" in done.stderr


def test_one_coordinate_that_a_type_cannot_hold_is_too_much_and_one_that_becomes_zero_is_not():
    task, names = Task({}, "texts.parquet", {}, "", "float16"), [f"line {number}" for number in range(6)]
    vectors = np.full((6, 4), 1.0, np.float32)
    vectors[0, 3] = 1e-9
    assert _fitting(vectors, task, names)[0].tolist() == [1.0, 1.0, 1.0, 0.0]
    vectors[2, 1], vectors[4, 0] = -7e4, 9e4
    with pytest.raises(errors.InputError, match=r"texts\.parquet, line 2: a vector does not fit float16; its largest coordinate is 7e\+04"):
        _fitting(vectors, task, names)
