"""Vectors of some of many texts, written into their rows of one memory-mapped file; and workers that do so side by side."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
import xxhash
from torch import nn

from crosslign.collector import collect_rarely
from crosslign.encoders.encode import TokenisedTexts, apply_head, encode_counted, text_columns, token_budget, tokenised
from crosslign.encoders.model import Model
from crosslign.encoders.unknown import Known
from crosslign.entries.catalog import Readout
from crosslign.errors import InputError
from crosslign.files.rows import ParquetRows
from crosslign.progress import Progress
from crosslign.workers import Work, Worker

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
    readout: Readout
    matrix: str
    dtype: str = "float32"
    named: str = "{}"
    shard: int = SHARD
    kernels: str = "off"


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
        matrix, kept = np.lib.format.open_memmap(self._task.matrix, "r+"), as_stored(vectors, self._task, names)
        matrix[start : self._stop(start)] = kept
        matrix.flush()
        return {"truncated": truncated, "token_budget": token_budget(self.model), "known": known, "sum": sum_of_rows(kept)}


def sum_of_rows(rows: np.ndarray) -> str:
    """Return a checksum of rows of a matrix: those that a killed run left are believed only as they were written."""
    return xxhash.xxh3_128_hexdigest(np.ascontiguousarray(rows).data)


def as_stored(vectors: np.ndarray, task: Task, names: Sequence[str]) -> np.ndarray:
    """Return vectors in the type of the matrix; refuse what it cannot hold."""
    with np.errstate(over="ignore"):
        kept = vectors.astype(task.dtype)
    bad = np.flatnonzero(~np.isfinite(kept).all(1) | ((vectors != 0).any(1) & ~kept.any(1)))
    if bad.size:
        raise InputError(
            f"a vector is out of range for {task.dtype}",
            where=f"{task.texts}, {names[bad[0]]}",
            why=f"its largest coordinate is {np.abs(vectors[bad[0]]).max():.3g}",
            do="Set `embeddings: float32`",
        )
    return kept


def shard_work(task: Mapping[str, Any], device: str) -> Work:
    """Return the work of a worker: of shards, named by their first rows, it encodes the first; asked for none, it says its facts."""
    collect_rarely()
    encoder = ShardEncoder(Task(**task), device)

    def work(nothing: pa.Table, starts: Sequence[int]) -> tuple[pa.Table, Any]:
        encoder.prepare(starts)
        return nothing, encoder(starts[0]) if starts else encoder.facts

    return work


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
    workers = [Worker(shard_work, {"task": asdict(task), "device": device}, task.texts, threads) for device in devices]
    told = 1 if devices[0] == "cpu" else 2  # a GPU's process prepares the next shard too
    busy: dict[Future[Any], tuple[Worker, list[int]]] = {}
    with ThreadPoolExecutor(len(workers)) as pool:
        try:
            starting = [pool.submit(worker.ask, []) for worker in workers]
            todo = iter(prepare(starting[0].result()))
            firsts = [list(islice(todo, 1)) for _ in workers]

            def ask(worker: Worker, starts: list[int]) -> None:
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
