"""What a job's libraries may take."""

import subprocess
import sys

import pytest

from crosslign.threads import CACHES, KEPT

PROGRAM = """
import sys
from pathlib import Path
from crosslign.jobs.frame import execute
def stage(job):
    import pyarrow
    pyarrow.Table.from_pylist([{"text": "Ja."}])
    if job.params["asked"]:
        import pandas
execute(stage, inputs=[], outputs=[], params=[("root", "."), ("asked", bool(sys.argv[1]))], threads=1, log=sys.argv[2])
sys.exit("pandas" in sys.modules)
"""


@pytest.mark.parametrize("asked", [False, True])
def test_a_job_loads_pandas_only_where_it_is_asked_for(tmp_path, asked):
    """pyarrow loads it with the first array that it makes, wherever it is installed."""
    command = [sys.executable, "-c", PROGRAM, "yes" if asked else "", str(tmp_path / "job.log")]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == int(asked)


def test_what_a_job_keeps_of_prepared_products_is_bounded_unless_the_user_says_otherwise(monkeypatch):
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", raising=False)
    program = "import os; from crosslign.threads import limit_threads; limit_threads(1); print(*(os.environ[name] for name in %r))"
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "512")
    said = subprocess.run([sys.executable, "-c", program % (CACHES,)], capture_output=True, text=True, check=True).stdout
    assert said.split() == [KEPT, "512"]
