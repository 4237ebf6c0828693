"""Standard output and error of a command: nothing that a terminal would obey goes there, and what cannot be written is not a traceback."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from crosslign.console import printable
from crosslign.errors import ResourceError


class PrintableStream:
    """A text stream that leaves out control and direction codes of all that is written to it; for the rest it is the stream it wraps.

    What the stream's encoding does not know becomes `?`: a terminal without UTF-8 shows a table, too.

    Args:
        stream: where texts go.
        needed: whether the command has failed where they cannot be written; else they are lost in silence, as messages are.
    """

    def __init__(self, stream: TextIO, needed: bool) -> None:
        self._stream, self._needed = stream, needed

    def write(self, text: str) -> int:
        """Write a text, as it may be shown.

        Raises:
            BrokenPipeError: it is needed, and its reader has gone.
            ResourceError: it is needed, and cannot be written.
        """
        encoding = self._stream.encoding or "utf-8"
        self._try(lambda: self._stream.write(printable(text).encode(encoding, "replace").decode(encoding)))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts, as they may be shown."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Write what waits. Raises as `write` does."""
        self._try(self._stream.flush)

    def _try(self, action: Callable[[], object]) -> None:
        try:
            action()
        except OSError as error:
            # The interpreter tries again at its end, and complains: let it find a stream that takes all.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            if not self._needed:
                return
            if isinstance(error, BrokenPipeError):
                raise
            raise ResourceError("the output of the command cannot be written", where=self._stream.name, why=str(error.strerror)) from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
