"""Work in processes of their own: workers that are started for it, and forks of the calling process.

A worker is `python -m crosslign.workers`. It reads one line of JSON: which function makes its work, what that is given, its threads. Then
messages go out and come back as Arrow streams: a table, which may be empty, and a note that JSON can hold. Nothing is pickled.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import logging
import multiprocessing
import os
import queue
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import IO, Any

import pyarrow as pa

from crosslign.errors import CrosslignError, ResourceError
from crosslign.threads import VARIABLES, limit_threads

NOTE = b"crosslign"
NOTHING = pa.table({})
STOPPING = (signal.SIGTERM, signal.SIGUSR1)
"""Signals that ask a job to stop."""
PR_SET_PDEATHSIG = 1
"""Of Linux's prctl: the signal that a process gets when its parent ends."""

Work = Callable[[pa.Table, Any], tuple[pa.Table, Any]]
"""(table, note) -> (table, note)"""


def _send(stream: IO[bytes], table: pa.Table, note: Any) -> None:
    table = table.replace_schema_metadata({NOTE: json.dumps(note).encode()})
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    stream.flush()


def _receive(stream: IO[bytes]) -> tuple[pa.Table, Any]:
    """Read one table and its note; where the stream has ended, that is a `pyarrow.ArrowInvalid` or an `OSError`."""
    with pa.ipc.open_stream(stream) as reader:
        table = reader.read_all()
    return table.replace_schema_metadata(None), json.loads(table.schema.metadata[NOTE])


class Worker:
    """One process, until it is closed.

    Args:
        work: a function of a module, which returns what answers messages.
        given: its arguments, as JSON holds them.
        where: what messages call its work.
        threads: of its libraries.
    """

    def __init__(self, work: Callable[..., Work], given: Mapping[str, Any], where: str, threads: int = 1) -> None:
        path = os.pathsep.join(path for path in sys.path if path)
        environment = {**os.environ, **dict.fromkeys(VARIABLES, str(threads)), "PYTHONPATH": path}
        command = [sys.executable, "-m", __spec__.name]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self._where = where
        told = {"module": work.__module__, "name": work.__name__, "given": given, "threads": threads}
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # the first question will say so
            self.process.stdin.write(json.dumps(told).encode() + b"\n")
            self.process.stdin.flush()

    def answer(self, table: pa.Table, note: Any) -> tuple[pa.Table, Any]:
        """Send a message and return what comes back.

        Raises:
            ResourceError: the process has ended.
            CrosslignError: what the work raised there.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            _send(self.process.stdin, table, note)
            table, answer = _receive(self.process.stdout)
        except (pa.ArrowInvalid, OSError, ValueError) as error:
            raise ResourceError(
                "a worker process ended before its work was done",
                where=self._where,
                why=f"exit status {self.process.wait()}",
                do="See its own message above, if there is one; a process that was killed often ran out of memory. "
                "Run the same command again",
            ) from error
        if "error" in answer:
            kind: type[CrosslignError] = getattr(sys.modules[CrosslignError.__module__], answer["error"].pop("kind"))
            raise kind(**answer["error"])
        return table, answer["value"]

    def ask(self, note: Any) -> Any:
        """Send a note alone, and return the note of the answer."""
        return self.answer(NOTHING, note)[1]

    def close(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()


class Workers:
    """A few workers alike that live as long as the `with` block; `count` says how many, the rest is as for `Worker`."""

    def __init__(self, count: int, work: Callable[..., Work], given: Mapping[str, Any], where: str) -> None:
        self.workers = [Worker(work, given, where) for _ in range(count)]
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        for worker in self.workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(count)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self.workers:
            worker.close()
        self._threads.shutdown(cancel_futures=True)

    def _answer(self, table: pa.Table, note: Any) -> tuple[pa.Table, Any]:
        worker = self._idle.get()
        try:
            return worker.answer(table, note)
        finally:
            self._idle.put(worker)

    def map(self, tables: Iterable[pa.Table], note: Any) -> Iterator[tuple[pa.Table, Any]]:
        """Yield the answer to each table, in order; few are under way at once."""
        waiting: deque[Future[tuple[pa.Table, Any]]] = deque()
        for table in tables:
            waiting.append(self._threads.submit(self._answer, table, note))
            if len(waiting) > len(self.workers):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def main() -> None:
    """Answer the messages on standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal reaches who started this process, too, and that one ends it
    source, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is not an answer
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    told = json.loads(source.readline())
    limit_threads(told["threads"])
    make, work = getattr(importlib.import_module(told["module"]), told["name"]), None
    while True:
        try:
            table, note = _receive(source)
        except (pa.ArrowInvalid, OSError):
            return
        try:
            work = work or make(**told["given"])
            table, value = work(table, note)
            reply = {"value": value}
        except CrosslignError as error:
            kind = next(one for one in type(error).__mro__ if one.__module__ == CrosslignError.__module__)
            said = {"kind": kind.__name__, "what": error.what, "where": error.where, "why": error.why, "do": error.do}
            table, reply = NOTHING, {"error": said}
        _send(answers, table, reply)


def end_with(parent: int) -> None:
    """Have the kernel kill this process when its parent, the one of the given number, ends, however that happens; Linux alone can."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the call
        os.kill(os.getpid(), signal.SIGKILL)


def _begin(parent: int) -> None:
    end_with(parent)
    for number in STOPPING:
        signal.signal(number, signal.SIG_DFL)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # threads do not outlive a fork


def forked(work: Callable[[Any], None], items: Sequence[Any], processes: int, where: str) -> None:
    """Do the work on each item, in forks of this process where there are several items and processes: they find in memory what it holds.

    Args:
        work: a function of a module, by its name there.
        items: what it is called with.
        processes: how many at most.
        where: what messages call the work.

    Raises:
        ResourceError: a process was killed.
    """
    if min(processes, len(items)) < 2 or sys.platform == "darwin":  # there a fork of a process that has threads may die
        deque(map(work, items), 0)
        return
    try:
        with ProcessPoolExecutor(processes, multiprocessing.get_context("fork"), _begin, (os.getpid(),)) as pool:
            deque(pool.map(work, items), 0)
    except BrokenProcessPool as error:
        do = "Ask for more memory, or for fewer threads"
        raise ResourceError("one of its processes was killed", where=where, do=do) from error


if __name__ == "__main__":
    main()
