"""Shards of a large source: what the filters left of each is kept until the corpus is done, so that a killed job repeats the last alone.

A sample is drawn by priorities that hang on a row's key, so which rows it has hangs neither on how many shards there are, nor on which
of them were read back.
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

log = logging.getLogger(__name__)
Counts = Sequence[Mapping[str, int]]


class Shards:
    """What filters left of the shards of one corpus.

    Args:
        folder: where they lie; made when the first is done.
        identity: what rows hang on; shards of another one are removed. JSON can hold it.
    """

    def __init__(self, folder: Path, identity: Any) -> None:
        self._folder, self._identity = folder, json.dumps(identity, sort_keys=True)
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
            yield number, chain([first], islice(source, SHARD - 1))

    def _file(self, number: int) -> Path:
        return self._folder / f"{number}.arrow"

    def kept(self, number: int) -> tuple[Staged, Counts] | None:
        """Return the rows of a shard that is done, and the counts of its filters; None where it is not, or what was kept is damaged."""
        rows = self._file(number)
        try:
            said = read_mapping(rows.with_suffix(".json"))
            if said["sha256"] == (sha256_file(rows) if said["tables"] else ""):
                return Staged(rows, said["tables"]), said["counts"]
            log.warning("%s is damaged: that part of the source is filtered again", rows)
        except (OSError, InputError, KeyError):
            pass
        return None

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

    def remove(self) -> None:
        """Remove all shards, once the corpus is written."""
        shutil.rmtree(self._folder, ignore_errors=True)
