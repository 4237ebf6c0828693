"""One table made again from cached stages, beside the whole workflow from nothing (scale quick, two cores).

The peer is what a pipeline without cached stages does: everything again. Both end in the same table, checked byte for byte.
Run: python benchmarks/rerun_table.py [--repeats 3]
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from _common import ROOT, machine, measured, parser, versions

TABLE = "results/quick/tables/quickstart.md"


def run(folder: Path) -> float:
    """Make the table; return wall time in seconds."""
    command = [sys.executable, "-m", "snakemake", "--cores", "2", TABLE, "--config", "scale=quick"]
    return measured(command, folder, CROSSLIGN_OFFLINE="1").wall


def main() -> None:
    """Time both in turn and print the ratio of medians."""
    command = parser(__doc__)
    command.add_argument("--repeats", type=int, default=3)
    repeats = command.parse_args().repeats
    whole, single = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("config", "workflow", "profiles", "envs"):
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
    print(f"{machine()}; {versions('snakemake')}")
    print(f"whole workflow: {statistics.median(whole):.1f} s; one table: {statistics.median(single):.1f} s (aim: 15 s); {repeats} repeats")
    print(f"ratio: {statistics.median(whole) / statistics.median(single):.2f}")


if __name__ == "__main__":
    main()
