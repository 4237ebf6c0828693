"""One worker process of the filters (`workers`): batches come on standard input and go back on standard output."""

from __future__ import annotations

import json
import sys

import pyarrow as pa

from crosslign.corpora.pipeline import Pipeline
from crosslign.corpora.workers import receive, send


def main() -> None:
    """Filter batches from standard input until it ends."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    pipeline = Pipeline(**json.loads(source.readline()), references={}, forgetful=True)
    while True:
        try:
            table, span = receive(source)
        except (pa.ArrowInvalid, OSError):
            return
        found, counts = pipeline.run(table, range(*span))
        send(sink, found, counts)


if __name__ == "__main__":
    main()
