"""One of several processes that train a run together: `python -m crosslign.training.rank FOLDER`, started by `launch`."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from crosslign.collector import collect_rarely
from crosslign.errors import CrosslignError
from crosslign.files.text import read_json, write_json
from crosslign.training.launch import LAUNCHER_VARIABLE
from crosslign.training.memory import HalvedError
from crosslign.training.run import train_run
from crosslign.workers import end_with


def end_with_launcher() -> None:
    """Have this process end with the one that started it.

    A rank that went on alone would keep its device, whose lease is free again, and write into the working folder of the run beside
    those that the next start makes. Where the kernel has no such call a rank ends when the others do.
    """
    launcher = os.environ.get(LAUNCHER_VARIABLE)
    if launcher is not None:
        end_with(int(launcher))


def main(folder: Path) -> int:
    """Train, as the folder's `arguments.json` says; leave `counts.json` (rank 0) or `error-<rank>.json` there."""
    collect_rarely()
    end_with_launcher()
    rank = int(os.environ["RANK"])
    level = logging.INFO if rank == 0 else logging.WARNING
    logging.basicConfig(level=level, format=f"[rank {rank}] %(message)s", stream=sys.stderr)
    given = read_json(folder / "arguments.json")
    try:
        counts = train_run(
            given["recipe"],
            {name: Path(path) for name, path in given["examples"].items()},
            {name: Path(path) for name, path in given["base"].items()},
            {corpus: {part: Path(path) for part, path in parts.items()} for corpus, parts in given["sets"].items()},
            given["tasks"],
            Path(given["out"]),
            Path(given["checkpoints"]),
            given["context"],
        )
    except CrosslignError as error:
        write_json(folder / f"error-{rank}.json", {"error": str(error), "again": isinstance(error, HalvedError)})
        return error.exit_code
    if rank == 0:
        write_json(folder / "counts.json", counts)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
