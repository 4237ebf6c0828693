"""A finished run that is damaged, or in which others write, ends no command in a traceback, holds none up, and loses nothing.

The long forms are `make test-fuzz` (1,000 damages a command) and tests/faults/test_beside.py (200 times each).
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))

from beside import TAIL, beside
from damages import PLACES, TEXT, Finished
from fuzz import fuzz, wrong

CHEAP = (
    "verify", "verify --discard", "verify --settle", "diff, damaged before", "diff, damaged after", "status", "card", "explain", "crate",
    "mteb",
)  # fmt: skip


@pytest.fixture
def silent():
    """What a long form prints as it goes."""
    return lambda text: None


def test_no_damage_ends_a_command_otherwise_than_in_words(finished, tmp_path, silent):
    found = fuzz(finished.folder, CHEAP, 1, 7, tmp_path, silent)
    assert not found, "\n".join(found)


def test_commands_and_the_last_jobs_stand_what_is_written_beside_them(finished, tmp_path, silent):
    found = beside(finished.folder, 1, tmp_path, silent, [*TAIL, "verify", "card"])
    assert not found, "\n".join(found)


def test_every_damage_is_put_right_again(finished, tmp_path):
    import random

    copy = Finished(finished.folder, tmp_path / "project")
    for number, damage in enumerate((*TEXT, *PLACES)):
        damage(random.Random(number), copy.place / copy.kinds["sidecar"][number])
    copy.mend()


@pytest.mark.parametrize(
    ("code", "said", "problem"),
    [
        (None, "", "it hangs"),
        (-11, "", "it died (-11)"),
        (1, 'Traceback (most recent call last):\n  File "/x/crosslign/cli/main.py", line 1\nKeyError: 1\n', "KeyError"),
        (1, "KeyError in file common.smk, line 7", "KeyError"),
        (2, "", "not a word"),
        (2, "error: no results here", ""),
        (0, "", ""),
    ],
)
def test_what_a_command_may_not_do_is_seen(code, said, problem):
    found = wrong(code, said)
    assert problem in found
    assert bool(found) == bool(problem)
