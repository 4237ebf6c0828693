"""Shards of a large source: what the filters left of each is kept until the corpus is done, so that a killed job repeats the last alone.

A sample is drawn by priorities that depend on a row's key. So its rows depend neither on the number of shards, nor on which of them were
read back, nor on the number of jobs that share them.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from crosslign.corpora.staged import Staged
from crosslign.errors import InputError
from crosslign.files import read_json, read_mapping, sha256_file, write_json

SHARD = 128
"""Tables of a reader in a shard: a million rows, a minute or two of filters."""
IDENTITY = "identity.json"
READ = "read.json"
"""In the folder of a job's shards: how many there are of the source in all, and what this job has read of it."""

log = logging.getLogger(__name__)
Counts = Sequence[Mapping[str, int]]


class Shards:
    """What filters left of the shards of one corpus.

    Args:
        folder: where they lie; made when the first is done.
        identity: what rows depend on, as JSON; shards of another identity are removed.
        part, parts: of so many jobs which one this is, from 1: each filters every so manieth shard.

    Attributes:
        total: how many shards the source has, once all its tables were asked for.
    """

    def __init__(self, folder: Path, identity: Any, part: int = 1, parts: int = 1) -> None:
        self._folder, self._identity = folder, json.dumps(identity, sort_keys=True)
        self._part, self._parts = part, parts
        self.total = 0
        self._tables = 0  # of the shard that was written last
        try:
            same = read_json(folder / IDENTITY) == self._identity
        except InputError:
            same = False
        if not same:
            self.remove()

    def parts(self, tables: Iterable[pa.Table]) -> Iterator[tuple[int, Iterator[pa.Table]]]:
        """Yield the number of each shard and its tables, which must be read before the next shard is asked for."""
        source = iter(tables)
        for number, first in enumerate(source):
            self.total = number + 1
            yield number, chain([first], islice(source, SHARD - 1))

    def own(self, number: int) -> bool:
        """Tell whether a shard is this job's."""
        return number % self._parts == self._part - 1

    def _file(self, number: int) -> Path:
        return _rows(self._folder, number)

    def kept(self, number: int) -> tuple[Staged, Counts] | None:
        """Return the rows of a shard that is done, and the counts of its filters; None where it is not, or what was kept is damaged."""
        return _kept(self._file(number))

    def keep(self, number: int, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Pass the rows of a shard on while they are written; it counts as kept once `done` says so."""
        if not self._folder.is_dir():
            self._folder.mkdir(parents=True)
            write_json(self._folder / IDENTITY, self._identity)
        with Staged(self._file(number)) as staged:
            for table in tables:
                staged.write(table)
                yield table
        self._tables = staged.tables

    def done(self, number: int, counts: Counts) -> None:
        """Note that a shard is whole, with the counts of its filters."""
        rows = self._file(number)
        summed = sha256_file(rows) if self._tables else ""
        write_json(rows.with_suffix(".json"), {"tables": self._tables, "sha256": summed, "counts": counts})

    def hand_over(self, folder: Path, read: Mapping[str, Any]) -> None:
        """Have the shards of this job lie in another folder, with what it has read: what `joined` takes."""
        for made in (self._folder, folder.parent):
            made.mkdir(parents=True, exist_ok=True)
        write_json(self._folder / READ, {**read, "shards": self.total})
        self._folder.replace(folder)

    def remove(self) -> None:
        """Remove all shards, once the corpus is written."""
        shutil.rmtree(self._folder, ignore_errors=True)


def joined(folders: Sequence[Path]) -> Iterator[tuple[Staged, Counts]]:
    """Yield the rows and counts of all shards of a source in their order, each from the folder of the job that filtered it.

    Raises:
        InputError: a shard is not there, or damaged; names the folder.
    """
    for number in range(max(read_of(folder)["shards"] for folder in folders)):
        folder = folders[number % len(folders)]
        kept = _kept(_rows(folder, number))
        if kept is None:
            raise InputError(f"shard {number} is missing or damaged", where=str(folder), do="Remove the folder; its job then reruns")
        yield kept


def read_of(folder: Path) -> dict[str, Any]:
    """Return what a job of a source's shards has read: `read`, `read_bytes`, `left_out`; and `shards`, how many there are in all."""
    return read_mapping(folder / READ)


def _rows(folder: Path, number: int) -> Path:
    return folder / f"{number}.arrow"


def _kept(rows: Path) -> tuple[Staged, Counts] | None:
    try:
        said = read_mapping(rows.with_suffix(".json"))
        if said["sha256"] == (sha256_file(rows) if said["tables"] else ""):
            return Staged(rows, said["tables"]), said["counts"]
        log.warning("%s is damaged", rows)
    except (OSError, InputError, KeyError):
        pass
    return None
