"""The learning curve as TensorBoard's event files, when a recipe asks for them; `curve.jsonl` is always written."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.proto.summary_pb2 import Summary


class Board:
    """One event file.

    Event files carry wall times, so they lie beside the run's working folder, never in the run's own; a run that goes on adds a
    file, whose steps replace those behind its checkpoint.

    Args:
        folder: where the file goes.
        done: steps done; with the time it names the file.
    """

    def __init__(self, folder: Path, done: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # Not `SummaryWriter`, which hands events to a thread: what a killed run has not written by then is lost.
        self._writer = EventsWriter(str(folder / "events"), f".{done}")

    def write(self, line: Mapping[str, Any]) -> None:
        """Write the numbers of one line of the curve, nested ones by `a/b`."""
        values = [Summary.Value(tag=name, simple_value=value) for name, value in flat(line) if name != "step"]
        self._writer.write_event(Event(wall_time=time.time(), step=int(line["step"]), summary=Summary(value=values)))
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()


def flat(line: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a nested mapping, by `a/b`."""
    for name, value in line.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}/")
        elif value is not None:
            yield prefix + name, float(value)
