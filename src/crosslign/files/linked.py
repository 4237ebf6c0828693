"""Copies of folders that are never changed: their files are the same files, where the file system can."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def copy_linked(folder: Path, copy: Path) -> None:
    """Make a copy of a folder whose files are hard links to the first one's; real copies where there can be no links.

    Only for what is not changed in place: a change would be one of both.

    Args:
        folder: to copy.
        copy: the new folder; it may be there, and lacks what it is given.
    """
    shutil.copytree(folder, copy, copy_function=_link, dirs_exist_ok=True)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=True)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target)
