"""Vectors of some of many texts, written into their rows of one memory-mapped file; and processes that do so side by side.

A worker is `python -m crosslign.encoders.shards`: it reads one line of JSON (what to encode, and how), answers with the length of its
vectors, then encodes shard after shard, named by their first rows. All write into one file, each its own rows; nothing is pickled.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
import xxhash
from torch import nn

from crosslign.collector import collect_rarely
from crosslign.encoders.encode import TokenisedTexts, apply_head, encode_counted, text_columns, token_budget, tokenised
from crosslign.encoders.model import Model
from crosslign.encoders.unknown import Known
from crosslign.errors import CrosslignError, InputError, ResourceError
from crosslign.progress import Progress
from crosslign.threads import VARIABLES, limit_threads

SHARD = 8192
"""Sentences that are encoded, and put on the disk, at a time: what a killed run loses at most, in each worker."""

log = logging.getLogger(__name__)
Head = Callable[[Model], nn.Module]
Counts = dict[str, Any]
"""Of a shard: `truncated`, texts that were cut, `token_budget`, the most tokens of a batch, `known`, tokens by language, and `sum`, of
its rows."""
Facts = dict[str, Any]
"""`dimension`, columns of the matrix, and `tokenizer`, the classes of the members' tokenizers."""


@dataclass(frozen=True)
class _Drawn:
    """A shard's texts: names, texts, languages and second segments; and their token ids, where these were made ahead."""

    names: list[str]
    texts: list[str]
    langs: list[str]
    pairs: list[str] | None
    parts: list[TokenisedTexts] | None


@dataclass(frozen=True)
class Task:
    """What a worker encodes; JSON can hold it.

    Attributes:
        members: folder of each member.
        texts: Parquet file of the kind `texts`.
        readout: pooling, layer, max_length, normalise, precision, prefix.
        matrix: `.npy` file that exists, one row a text.
        dtype: its type.
        named: how a text is named in messages, `{}` for its id.
        shard: rows that are encoded at a time.
        kernels: whether the project's own kernels are used on a GPU: `off`, `auto`, `on`.
    """

    members: Mapping[str, str]
    texts: str
    readout: Mapping[str, Any]
    matrix: str
    dtype: str = "float32"
    named: str = "{}"
    shard: int = SHARD
    kernels: str = "off"


class ParquetRows:
    """Rows of a Parquet file by number; one row group is in memory at a time."""

    def __init__(self, path: Path) -> None:
        self._file = pq.ParquetFile(path)
        sizes = [self._file.metadata.row_group(at).num_rows for at in range(self._file.num_row_groups)]
        self._ends = np.cumsum([0, *sizes])
        self._held: tuple[int, pa.Table | None] = (-1, None)

    def __len__(self) -> int:
        return int(self._ends[-1])

    def _group(self, at: int) -> pa.Table:
        if self._held[0] != at:
            self._held = at, self._file.read_row_group(at)
        return self._held[1]

    def between(self, start: int, stop: int) -> pa.Table:
        """Return the rows from `start` to before `stop`."""
        groups = np.flatnonzero((self._ends[1:] > start) & (self._ends[:-1] < stop)).tolist()
        parts = []
        for at in groups:
            first = max(start - int(self._ends[at]), 0)
            parts.append(self._group(at).slice(first, min(stop, int(self._ends[at + 1])) - int(self._ends[at]) - first))
        return pa.concat_tables(parts)


class ShardEncoder:
    """A loaded encoder that writes shards of the vectors of a file of texts.

    Args:
        task: what to encode.
        device: a torch device.
        head: gives a trained classification head on the model: the matrix then holds its logits.
    """

    def __init__(self, task: Task, device: str, head: Head | None = None) -> None:
        self._task = task
        place = torch.device(device)
        if place.type == "cuda":  # else every process takes memory of the first GPU too, for what names no device
            torch.cuda.set_device(place)
        self.model = Model.load({name: Path(folder) for name, folder in task.members.items()}).to(place)
        self.model.kernels = task.kernels
        self._head = None if head is None else head(self.model)
        self._readout = task.readout if head is None else {**task.readout, "normalise": False}
        self._rows = ParquetRows(Path(task.texts))
        self._thread = ThreadPoolExecutor(1) if place.type == "cuda" else None
        self._ahead: dict[int, Future[_Drawn]] = {}

    @property
    def facts(self) -> Facts:
        """What is known before the first shard."""
        pooling = self._readout["pooling"]
        dimension, layer = self.model.width(pooling), self.model.layer_read(pooling, self._readout.get("layer", -1))
        if self._head is not None:
            dimension = int(apply_head(self._head, np.zeros((1, dimension), dtype=np.float32), self.model.device).shape[1])
        tokenizers = sorted({type(self.model.member(m).tokenizer).__name__ for m in self.model.members})
        return {"dimension": dimension, "layer_read": layer, "tokenizer": tokenizers}

    def prepare(self, starts: Sequence[int]) -> None:
        """Let a thread read and tokenise shards, named by their first rows, while a GPU encodes; on a CPU each is read at its turn."""
        if self._thread is not None:
            self._ahead |= {start: self._thread.submit(self._draw, start) for start in starts if start not in self._ahead}

    def _draw(self, start: int) -> _Drawn:
        ids, texts, langs, pairs = text_columns(self._rows.between(start, self._stop(start)), self._task.texts)
        ahead = None if self._thread is None else list(tokenised(self.model, texts, langs, self._readout, pairs))
        return _Drawn([self._task.named.format(number) for number in ids], texts, langs, pairs, ahead)

    def _stop(self, start: int) -> int:
        return min(start + self._task.shard, len(self._rows))

    def __call__(self, start: int, progress: Progress | None = None) -> Counts:
        """Encode the shard that begins at a row; `progress` counts its texts."""
        self.prepare([start])
        drawn = self._draw(start) if self._thread is None else self._ahead.pop(start).result()
        names, texts, langs = drawn.names, drawn.texts, drawn.langs
        known: Known = {}
        vectors, truncated = encode_counted(self.model, texts, langs, self._readout, drawn.pairs, names, progress, drawn.parts, known)
        if self._head is not None:
            vectors = apply_head(self._head, vectors, self.model.device)
        matrix, kept = np.lib.format.open_memmap(self._task.matrix, "r+"), _fitting(vectors, self._task, names)
        matrix[start : self._stop(start)] = kept
        matrix.flush()
        return {"truncated": truncated, "token_budget": token_budget(self.model), "known": known, "sum": sum_of_rows(kept)}


def sum_of_rows(rows: np.ndarray) -> str:
    """Return a checksum of rows of a matrix: those that a killed run left are believed only as they were written."""
    return xxhash.xxh3_128_hexdigest(np.ascontiguousarray(rows).data)


def _fitting(vectors: np.ndarray, task: Task, names: Sequence[str]) -> np.ndarray:
    """Return vectors in the type of the matrix; refuse what it cannot hold."""
    with np.errstate(over="ignore"):
        kept = vectors.astype(task.dtype)
    bad = np.flatnonzero(~np.isfinite(kept).all(1) | ((vectors != 0).any(1) & ~kept.any(1)))
    if bad.size:
        raise InputError(
            f"a vector does not fit {task.dtype}",
            where=f"{task.texts}, {names[bad[0]]}",
            why=f"its largest coordinate is {np.abs(vectors[bad[0]]).max():.3g}",
            do="Set `embeddings: float32`",
        )
    return kept


class _Worker:
    """One process; told a shard, it answers when that is on the disk."""

    def __init__(self, task: Task, device: str, threads: int) -> None:
        environment = {**os.environ, **dict.fromkeys(VARIABLES, str(threads))}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        command = [sys.executable, "-m", __spec__.name]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True)
        self._where = task.texts
        self._first = {"task": asdict(task), "device": device, "threads": threads}

    def ask(self, line: Any) -> Any:
        """Send one line and return the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(line) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except OSError:
            answer = ""
        if not answer:
            raise ResourceError(
                "an encoding process ended before its work did",
                where=self._where,
                why=f"exit status {self._process.wait()}",
                do="Run the same command again: it goes on behind the shards that are done. A killed process often ran out of memory",
            )
        reply = json.loads(answer)
        if "error" in reply:
            kind: type[CrosslignError] = getattr(sys.modules["crosslign.errors"], reply["error"].pop("kind"))
            raise kind(**reply["error"])
        return reply["value"]

    def start(self) -> Facts:
        """Load the model."""
        return dict(self.ask(self._first))

    def close(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()


def side_by_side(
    task: Task, devices: Sequence[str], threads: int, prepare: Callable[[Facts], Iterable[int]]
) -> Generator[tuple[int, Counts], None, None]:
    """Encode shards in one process a device and yield each shard's first row, and its counts, as they are done.

    Args:
        task: what to encode.
        devices: torch device of each process; `cpu` as often as there are to be processes.
        threads: threads of each.
        prepare: called when a model is loaded; makes the matrix and returns the shards to encode.
    """
    workers = [_Worker(task, device, threads) for device in devices]
    told = 1 if devices[0] == "cpu" else 2  # a GPU's process prepares the next shard too
    busy: dict[Future[Any], tuple[_Worker, list[int]]] = {}
    with ThreadPoolExecutor(len(workers)) as pool:
        try:
            starting = [pool.submit(worker.start) for worker in workers]
            todo = iter(prepare(starting[0].result()))
            firsts = [list(islice(todo, 1)) for _ in workers]

            def ask(worker: _Worker, starts: list[int]) -> None:
                starts += islice(todo, told - len(starts))
                if starts:
                    busy[pool.submit(worker.ask, starts)] = worker, starts

            for worker, started, first in zip(workers, starting, firsts, strict=True):
                started.result()
                ask(worker, first)
            while busy:
                for done in wait(busy, return_when=FIRST_COMPLETED).done:
                    worker, (start, *following) = busy.pop(done)
                    counts = done.result()
                    ask(worker, following)
                    yield start, counts
        finally:  # the pool's threads wait for answers until then
            for worker in workers:
                worker.close()


def main() -> None:
    """Encode the shards that standard input names until it ends."""
    collect_rarely()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal reaches who started this process, too, and that one ends it
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    encoder: ShardEncoder | None = None
    for line in sys.stdin:
        told = json.loads(line)
        try:
            if encoder is None:
                limit_threads(told["threads"])
                encoder = ShardEncoder(Task(**told["task"]), told["device"])
                reply: dict[str, Any] = {"value": encoder.facts}
            else:
                encoder.prepare(told)
                reply = {"value": encoder(told[0])}
        except CrosslignError as error:
            reply = {"error": {"kind": type(error).__name__, "what": error.what, "where": error.where, "why": error.why, "do": error.do}}
        answers.write(json.dumps(reply) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
