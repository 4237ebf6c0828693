"""One time stamp for what is whole by its hashes: after a clock was set back, or a copy that lost its times."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from crosslign.files.lineage import lineage_path, read_lineage
from crosslign.files.walk import files_below
from crosslign.provenance.artefact_states import WHOLE, artefacts


def settle(results: Path) -> int:
    """Give every file that is whole by its hashes one time stamp, that of the last job; return how many got it.

    Snakemake makes again what is older than its inputs: after a clock was set back, or a copy that lost its times, that is needless, and
    inputs from the future stop it. What is not whole keeps its time.
    """
    whole = [finding.path for finding in artefacts(results) if finding.state == WHOLE]
    started = []
    for path in whole:
        with suppress(KeyError, TypeError, ValueError):  # of a lineage without its `run` only the stamp is not known
            started.append(datetime.fromisoformat(read_lineage(results / path)["run"]["started"]).timestamp())
    stamp = min(max(started, default=time.time()), time.time())
    files = {results / path for path in whole} | {lineage_path(results / path) for path in whole}
    files |= {inner for file in files if file.is_dir() for inner in files_below(file)}
    # The engine counts a job's benchmark among its outputs.
    files |= set(files_below(results / "benchmarks"))
    # Downloads, which other scales share, have their own hashes; theirs only has to lie in the past.
    for file in files_below(results.parent / "downloads"):
        with suppress(FileNotFoundError):
            if file.stat().st_mtime > stamp:
                files.add(file)
    for file in files:
        with suppress(FileNotFoundError):
            os.utime(file, (stamp, stamp))
    return len(whole)
