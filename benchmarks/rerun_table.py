"""One table made again from cached stages, beside the whole workflow from nothing (scale quick, two cores).

The peer is what a pipeline without cached stages does: everything again. Both end in the same table, checked byte for byte.
Run: python benchmarks/rerun_table.py [--repeats 3]
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = "results/quick/tables/quickstart.md"


def run(folder: Path) -> float:
    """Make the table; return wall time in seconds."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "snakemake", "--cores", "2", TABLE, "--config", "scale=quick"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env={**os.environ, "CROSSLIGN_OFFLINE": "1"})
    return time.perf_counter() - started


def main() -> None:
    """Time both in turn and print the ratio of medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    whole, single = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("config", "workflow", "resources", "profiles", "envs"):
            shutil.copytree(ROOT / part, folder / part)
        shutil.copy(ROOT / "Snakefile", folder)
        for _ in range(repeats):
            shutil.rmtree(folder / "results", ignore_errors=True)
            whole.append(run(folder))
            before = (folder / TABLE).read_bytes()
            (folder / TABLE).unlink()
            single.append(run(folder))
            if (folder / TABLE).read_bytes() != before:
                raise SystemExit("the table that was made again differs")
    print(f"python {platform.python_version()}, {os.cpu_count()} cores, {platform.processor() or platform.machine()}")
    print(f"whole workflow: {statistics.median(whole):.1f} s; one table: {statistics.median(single):.1f} s (aim: 15 s); {repeats} repeats")
    print(f"ratio: {statistics.median(whole) / statistics.median(single):.2f}")


if __name__ == "__main__":
    main()
