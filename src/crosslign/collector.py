"""Settings of Python's garbage collector for short processes, whose objects nearly all live to the end."""

from __future__ import annotations

import atexit
import gc
from functools import cache

YOUNG = 50_000
"""New objects after which the collector looks at the youngest ones; Python's own number is 700."""


@cache
def collect_rarely() -> None:
    """Look for unreachable objects seldom, and not at all when the process ends.

    torch, transformers and a graph of thousands of jobs are millions of objects that stay: walking over them time and again while they
    come, and once more at the end, took about a third of what a job on little data costs. For processes of our own, called first: a
    program that imports the library keeps its own setting. A second call does nothing: Snakemake's process calls it, and imports a stage.
    """
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)
