"""What lineage says of the surroundings of a job: versions, commit and machine."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import re
import subprocess
from pathlib import Path

PACKAGES = ("torch", "transformers", "tokenizers", "accelerate", "safetensors", "pyarrow", "numpy", "scipy", "scikit-learn")


def versions() -> dict[str, str]:
    """Return the versions of Python and of every package that can change a number."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """Return the commit of the working directory; empty where it is not a clone."""
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


@functools.cache
def machine(processors: Path = Path("/proc/cpuinfo")) -> str:
    """Return the kind of processor of this machine, and the number of its cores.

    Args:
        processors: the kernel's list of them; without one, or without a model in it, the architecture stands in its place.
    """
    try:
        listed = processors.read_text(encoding="utf-8", errors="replace")
    except OSError:
        listed = ""
    model = re.search(r"^model name\s*: *(.+)$", listed, flags=re.MULTILINE)
    return f"{model[1].strip() if model else platform.machine()}, {os.cpu_count() or 1} cores"
