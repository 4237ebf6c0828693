"""Work on batches in processes of their own: they go out and come back as Arrow streams, in order.

A worker is `python -m crosslign.corpora.worker`: it reads one line of JSON (what to do, and how), then batch after batch from its
standard input. Nothing is pickled, and nothing of the calling process is forked.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any

import pyarrow as pa

from crosslign.errors import ResourceError
from crosslign.threads import VARIABLES

NOTE = b"crosslign"
WORKER = "crosslign.corpora.worker"


def send(stream: IO[bytes], table: pa.Table, note: Any) -> None:
    """Write one table and a note that JSON can hold."""
    table = table.replace_schema_metadata({NOTE: json.dumps(note).encode()})
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[pa.Table, Any]:
    """Read one table and its note.

    Raises:
        pyarrow.ArrowInvalid, OSError: the stream has ended.
    """
    with pa.ipc.open_stream(stream) as reader:
        table = reader.read_all()
    return table.replace_schema_metadata(None), json.loads(table.schema.metadata[NOTE])


class Workers:
    """A few worker processes that live as long as the `with` block.

    Args:
        count: how many.
        task: what each is told at its start: `work`, one of those in `crosslign.corpora.worker`, `name` of the corpus, and what that needs.
    """

    def __init__(self, count: int, task: Mapping[str, Any]) -> None:
        single = dict.fromkeys(VARIABLES, "1")
        environment = {**os.environ, **single, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self._where = str(task["name"])
        self._processes = [
            subprocess.Popen([sys.executable, "-m", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
            for _ in range(count)
        ]
        self._idle: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(json.dumps(task).encode() + b"\n")
            self._idle.put(process)
        self._threads = ThreadPoolExecutor(count)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
        self._threads.shutdown(cancel_futures=True)
        for process in self._processes:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close() if pipe is process.stdout else _close_broken(pipe)

    def _ask(self, table: pa.Table, note: Any) -> tuple[pa.Table, Any]:
        process = self._idle.get()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            send(process.stdin, table, note)
            answer = receive(process.stdout)
        except (pa.ArrowInvalid, OSError, ValueError) as error:
            raise ResourceError(
                "a worker process ended before its work did",
                where=self._where,
                why=f"exit status {process.poll()}",
                do="Its own message stands above, if it left one; a process that was killed often ran out of memory",
            ) from error
        finally:
            self._idle.put(process)
        return answer

    def map(self, tables: Iterable[pa.Table], note: Any) -> Iterator[tuple[pa.Table, Any]]:
        """Yield the answer to each table, in order; few are under way at once."""
        waiting: deque[Future[tuple[pa.Table, Any]]] = deque()
        for table in tables:
            waiting.append(self._threads.submit(self._ask, table, note))
            if len(waiting) > len(self._processes):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _close_broken(pipe: Any) -> None:
    try:
        pipe.close()
    except BrokenPipeError:
        return
