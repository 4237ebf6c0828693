"""One worker process (`workers`): batches come on standard input, and what becomes of them goes back on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from crosslign.corpora.pipeline import Pipeline
from crosslign.corpora.readers.wikipedia_dump import article_rows
from crosslign.corpora.workers import receive, send

Work = Callable[[pa.Table, Any], tuple[pa.Table, Any]]
"""(batch, note) -> (batch, note)"""


def _filters(**task: Any) -> Work:
    """Run filters; the note is the span of steps, the answer's their counts."""
    pipeline = Pipeline(**task, references={}, forgetful=True)

    def run(table: pa.Table, span: Sequence[int]) -> tuple[pa.Table, Any]:
        return pipeline.run(table, range(*span))

    return run


def _articles(**task: Any) -> Work:
    """Parse articles of Wikipedia; the notes say nothing."""
    return lambda table, _: (article_rows(table, task["lang"], task["min_words"]), None)


WORK: dict[str, Callable[..., Work]] = {"filters": _filters, "articles": _articles}


def main() -> None:
    """Work on batches from standard input until it ends."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    task = json.loads(source.readline())
    work = WORK[task.pop("work")](**task)
    while True:
        try:
            table, note = receive(source)
        except (pa.ArrowInvalid, OSError):
            return
        send(sink, *work(table, note))


if __name__ == "__main__":
    main()
