"""Errors that people read: what happened, where, why, and what to do now.

Exit codes (documented in docs/internals.md): 2 wrong input, 3 network, 4 resources, 75 stopped and to be requeued.
"""

from __future__ import annotations

from crosslign.console import printable


class CrosslignError(Exception):
    """An error whose message is meant for the user; it ends a job without a traceback.

    Args:
        what: what is wrong, in one clause.
        where: file:line, config key, URL or step where it was seen.
        why: the value found, the value expected, or the cause.
        do: what the reader can do now.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", why: str = "", do: str = "") -> None:
        self.what, self.where, self.why, self.do = what, where, why, do
        text = f"{where}: {what}" if where else what
        if why:
            text += f"; {why}"
        if do:
            text += f". {do}"
        super().__init__(printable(text))

    def call(self, place: str, name: str) -> None:
        """Call a place by another name: a folder of half-written work is gone when the message is read."""
        self.what, self.where, self.why, self.do = (text.replace(place, name) for text in (self.what, self.where, self.why, self.do))
        self.args = tuple(str(text).replace(place, name) for text in self.args)


class InputError(CrosslignError):
    """Configuration or data that cannot be used as it is."""

    exit_code = 2


class NetworkError(CrosslignError):
    """Bytes that could not be fetched."""

    exit_code = 3


class ResourceError(CrosslignError):
    """Disk, memory or a device that is missing or exhausted."""

    exit_code = 4


class StoppedError(CrosslignError):
    """A job that was told to stop, saved its state, and wants to be started again."""

    exit_code = 75
