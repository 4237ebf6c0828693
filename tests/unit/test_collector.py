"""The collector of unreachable objects: rare in our processes, as it was in a program that imports the library."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "workflow" / "scripts" / "run_stage.py"
BEGINNING = SCRIPT.read_text(encoding="utf-8").split("\nexecute(")[0]

CYCLE = "class Cycle:\n    def __del__(self): print('looked at', flush=True)\n\nring = Cycle()\nring.me = ring\n"


def printed(program):
    """What a program of its own prints."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split("\n")[:-1]


def test_the_end_of_a_process_looks_at_no_cycle():
    assert printed(f"import gc\ngc.disable()\n{CYCLE}del ring") == ["looked at"]
    assert printed(f"from crosslign.collector import collect_rarely\ncollect_rarely()\n{CYCLE}del ring") == []


@pytest.mark.parametrize(("imported", "first"), [(BEGINNING, "50000"), ("import crosslign.stages.count_rows", "as it was")])
def test_jobs_collect_rarely_and_the_library_leaves_the_setting_alone(imported, first):
    program = f"import gc\nbefore = gc.get_threshold()[0]\n{imported}\nnow = gc.get_threshold()[0]"
    assert printed(f"{program}\nprint('as it was' if now == before else now)") == [first]


def test_a_second_call_does_nothing():
    counted = "import atexit\nfrom crosslign.collector import collect_rarely\n" + "collect_rarely()\nprint(atexit._ncallbacks())\n" * 2
    first, second = printed(counted)
    assert first == second


def test_unreachable_objects_still_go():
    made = f"from crosslign.collector import collect_rarely\ncollect_rarely()\n{CYCLE}del ring\nkept = [[] for _ in range(60_000)]"
    assert printed(made) == ["looked at"]
