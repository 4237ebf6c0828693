"""Paths as users write them."""

from __future__ import annotations

from pathlib import Path

from crosslign.errors import InputError


def with_home(text: str) -> Path:
    """Return a path that a user wrote, with the home folder for `~`.

    Raises:
        InputError: nobody knows that home folder.
    """
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise InputError("no home folder is known", where=text, do="Write the path out") from error
