"""Paths as users write them."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

from crosslign.errors import InputError
from crosslign.paths import own_or_catalog


def with_home(text: str) -> Path:
    """Return a path that a user wrote, with the home folder for `~`.

    Raises:
        InputError: nobody knows that home folder.
    """
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise InputError("the home folder is unknown", where=text, do="Write the full path") from error


def own_folder(text: str) -> Path:
    """Return a folder that a user or the catalog named, with the home folder for `~`: the catalog's where there is no other of that name.

    Raises:
        InputError: nobody knows that home folder.
    """
    own = with_home(text)
    found = own_or_catalog(own, text)
    return own if found == own else Path(os.path.relpath(found))


def cache_folder() -> Path:
    """Return where lies what all projects of a user share: `$XDG_CACHE_HOME/crosslign`, or `~/.cache/crosslign`.

    Raises:
        InputError: nobody knows the home folder.
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or with_home("~/.cache")) / "crosslign"


def name_user() -> None:
    """Call a user of whom this machine knows no name, as in containers, by the number: Snakemake asks for a name and ends without one."""
    try:
        getpass.getuser()
    except (KeyError, OSError):  # OSError from Python 3.13 on
        os.environ["USER"] = str(os.getuid())


UNQUOTABLE = set('$`"\\{}\n')
"""Characters of a path that the shells and templates between Snakemake and a job's process read as something else."""


def require_plain_path(*paths: Path) -> None:
    """Refuse paths that no job could be started from; spaces, umlauts and brackets are none of these.

    Raises:
        InputError: names the path and the characters.
    """
    for path in paths:
        if found := sorted(UNQUOTABLE & set(str(path.absolute()))):
            do = "Move or rename the folder, and run `make` again: an environment cannot be moved"
            raise InputError(
                "jobs cannot be started in this folder", where=str(path), why=f"its path contains {' '.join(map(repr, found))}", do=do
            )
