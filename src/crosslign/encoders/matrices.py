"""Texts to their matrix on disk: shard after shard, in one process or several, going on where a killed run stopped."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from crosslign.devices import encoding_devices
from crosslign.encoders.shards import SHARD, Counts, Facts, Head, ShardEncoder, Task, side_by_side, sum_of_rows
from crosslign.encoders.unknown import in_words, joined, shares
from crosslign.entries.catalog import Readout
from crosslign.errors import InputError
from crosslign.files import atomic_path, iter_rows
from crosslign.files.atomic import reserve
from crosslign.files.rows import head_of
from crosslign.files.text import read_sealed, write_sealed
from crosslign.progress import Progress
from crosslign.threads import limit_threads

log = logging.getLogger(__name__)


def _check_pairs(texts: Path) -> None:
    """Refuse texts of which only some rows have a second segment."""
    missing = rows = 0
    for table in iter_rows(texts, ["pair_text"]):
        missing, rows = missing + table["pair_text"].null_count, rows + table.num_rows
    if 0 < missing < rows:
        raise InputError("only some rows have a pair_text", where=str(texts), why=f"{missing} of {rows} have none")


def _is_whole(matrix: Path) -> bool:
    """Tell whether a matrix is there with all its bytes: a shorter one that is opened for writing is filled up with zeros."""
    try:
        np.load(matrix, mmap_mode="r")
    except (OSError, ValueError, EOFError):
        return False
    return True


class _Shards:
    """Which shards are done, on the disk; another identity knows of none."""

    def __init__(self, folder: Path, stem: str, identity: Mapping[str, Any]) -> None:
        self.matrix, self._state = folder / f"{stem}.part.npy", folder / f"{stem}.json"
        self._identity = dict(identity)
        self.done: dict[int, Counts] = {}
        try:
            saved = read_sealed(self._state)
            if _is_whole(self.matrix) and saved["identity"] == json.loads(json.dumps(self._identity)):
                self.done = self._undamaged({int(start): dict(counts) for start, counts in saved["done"].items()})
        except (InputError, OSError, ValueError, KeyError, TypeError, AttributeError):
            pass

    def _undamaged(self, done: Mapping[int, Counts]) -> dict[int, Counts]:
        """Return the shards whose rows are those that were written."""
        matrix = np.load(self.matrix, mmap_mode="r")
        whole = {start: counts for start, counts in done.items() if counts["sum"] == sum_of_rows(matrix[start : start + SHARD])}
        for start in sorted(done.keys() - whole.keys()):
            log.warning("%s: rows from %d on are damaged; encoding them again", self.matrix, start)
        return whole

    def add(self, start: int, counts: Counts) -> None:
        """Note that a shard's rows are in the matrix, and what was counted of them."""
        self.done[start] = counts
        write_sealed(self._state, {"identity": self._identity, "done": {str(at): self.done[at] for at in sorted(self.done)}})

    def counts(self) -> Counts:
        """Return what was counted of all shards."""
        done = self.done.values()
        unknown = shares(joined(one.get("known", {}) for one in done))
        counts: Counts = {"truncated": sum(one["truncated"] for one in done)}
        counts["token_budget"] = min((one["token_budget"] for one in done), default=0)
        return counts | ({"unknown_tokens": unknown} if unknown else {})

    def finish(self, out: Path) -> None:
        """Give the matrix its final name."""
        with atomic_path(out) as temporary:
            shutil.move(self.matrix, temporary)
        self._state.unlink(missing_ok=True)

    def prepare(self, rows: int, dimension: int, dtype: str) -> list[int]:
        """Make the matrix unless it is there; return the first rows of the shards that are left."""
        left = [start for start in range(0, rows, SHARD) if start not in self.done]
        if not rows:
            np.save(self.matrix, np.empty((0, dimension), dtype))
        elif not self.done:
            np.lib.format.open_memmap(self.matrix, "w+", np.dtype(dtype), (rows, dimension)).flush()
            reserve(self.matrix)
        return left


@contextmanager
def _folder(work: Path | None, out: Path) -> Iterator[Path]:
    """Yield the folder of unfinished work; one of its own beside `out`, which does not outlive the block, where none is given."""
    folder = work or out.parent / f".{out.name}.work"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    finally:
        if work is None:
            shutil.rmtree(folder, ignore_errors=True)


def _encode(task: Task, devices: list[str], threads: int, head: Head | None, shards: _Shards, rows: int) -> Facts:
    """Encode what is left; return what is known of the encoder."""
    known: Facts = {}
    progress = Progress(rows, "encoded", "texts")

    def size(start: int) -> int:
        return min(SHARD, rows - start)

    def prepare(facts: Facts) -> list[int]:
        known.update(facts)
        progress.skip(sum(map(size, shards.done)))
        return shards.prepare(rows, facts["dimension"], task.dtype)

    if len(devices) == 1:
        encoder = ShardEncoder(task, devices[0], head)
        left = prepare(encoder.facts)
        for at, start in enumerate(left):
            encoder.prepare(left[at : at + 2])
            shards.add(start, encoder(start, progress))
    else:
        with closing(side_by_side(task, devices, threads, prepare)) as done:
            for start, counts in done:
                shards.add(start, counts)
                progress.add(size(start))
    return known


def embed_texts(
    members: Mapping[str, Path],
    texts: Path,
    readout: Readout,
    out: Path,
    threads: int = 1,
    head: Head | None = None,
    *,
    processes: int = 1,
    dtype: Literal["float32", "float16"] = "float32",
    work: Path | None = None,
    identity: Mapping[str, Any] | None = None,
    named: str = "{}",
    kernels: str = "off",
) -> dict[str, Any]:
    """Encode texts with a saved model and write the matrix, row i for text i: vectors, or a head's logits.

    The matrix is memory-mapped: memory holds the model and one shard of texts in each process. Shards and the threads of a process
    decide the bytes, the number of processes does not. Every visible GPU works, in a process of its own where there are several, and
    a thread tokenises its next shard meanwhile, which memory holds too; without one, the CPU.

    Args:
        members: folder of each member.
        texts: Parquet file of the kind `texts`.
        readout: pooling, layer, max_length, normalise, precision, prefix.
        out: path of the .npy file, written whole or not at all.
        threads: threads of each process on a CPU; on GPUs, where the threads decide no byte, of all processes together.
        head: gives a trained classification head on the model: the matrix then holds its logits [rows, classes], of vectors
            that are not normalised, whatever the readout says. One process then.
        processes: processes on a CPU; on GPUs as many threads together, if these are more.
        dtype: type on disk.
        work: folder for what a killed run leaves; without one, every run starts from the beginning.
        identity: what the vectors depend on, as JSON; what another one left is not taken over.
        named: how a text is named in messages, `{}` for its id.
        kernels: whether the project's own kernels are used on a GPU, without padding, in half precision: `off`, `auto`, `on`.

    Returns:
        rows, dimension, dtype, truncated (texts longer than max_length), token_budget (the least that a batch was held to; less than
        usual where memory ran out), unknown_tokens (`unknown.shares`, where there are many: the log warns of them), layer_read (see
        `Member.layer_read`), tokenizer (its classes), device, and how many devices.

    Raises:
        InputError: a vector with NaN, of zeros, or outside the range of `dtype`; a language without member; second segments in some
            rows only. The message names the text.
        ResourceError: a process ended, memory does not suffice for one sentence, or the disk has no room for the matrix.
    """
    _check_pairs(texts)
    rows = head_of(texts)[1]
    devices = encoding_devices()
    devices = (devices * max(1, processes) if devices == ["cpu"] else devices)[: max(1, -(-rows // SHARD)) if head is None else 1]
    if devices[0] != "cpu":  # the cores tokenise, and are shared
        threads = max(1, max(threads, processes) // len(devices))
    limit_threads(threads)
    with _folder(work, out) as folder:
        shards = _Shards(folder, out.stem, {**(identity or {}), "dtype": dtype, "rows": rows, "shard": SHARD})
        paths = {name: str(path) for name, path in members.items()}
        task = Task(paths, str(texts), readout, str(shards.matrix), dtype, named, SHARD, kernels)
        facts = _encode(task, devices, threads, head, shards, rows)
        shards.finish(out)
    device, counts = torch.device(devices[0]).type, shards.counts()
    if unknown := in_words(counts.get("unknown_tokens", {})):
        log.warning("%s: %s: its vectors carry no information about them", texts.parent.name, unknown)
    return {"rows": rows, **facts, "dtype": dtype, **counts, "device": device, "devices": len(devices)}
