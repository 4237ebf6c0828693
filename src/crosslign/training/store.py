"""Training examples on disk, tokenised once: memory maps that open in no time and take no memory of the process."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from filelock import Timeout
from numpy.typing import NDArray

from crosslign.encoders.model import Model
from crosslign.encoders.tokens import Ids
from crosslign.errors import InputError, StoppedError
from crosslign.files import read_json, sha256_file, sha256_text
from crosslign.files.locks import locked
from crosslign.objectives.contract import Batch
from crosslign.registry import since_first, version_of
from crosslign.training import tokenised
from crosslign.training.checkpoint import remove_leftovers
from crosslign.training.signals import StopFlag
from crosslign.training.tokenised import PAIR_VIEWS, SENTENCES, VIEWS, flat_files, open_examples, row_texts, sizes, sums_of, write_tokenised

Lookup = dict[tuple[str, str, str | None], tuple[Ids, Ids | None]]
"""Token ids of a batch's texts, and segment numbers of pairs, by (member, sentence, second sentence of a pair or None)."""


log = logging.getLogger(__name__)


def _is_made(place: Path, key: Mapping[str, Any]) -> bool:
    """Tell whether a copy made with a key lies there, each byte as it was written: a damaged one is made again."""
    if not place.exists():
        return False
    try:
        facts = read_json(place / "facts.json")
        if facts["key"] != key:
            return False
        found, written = sums_of(place, key["forms"]), sizes(facts, key["forms"])
        damaged = sorted(name for name in found if found[name] != facts["sha256"].get(name))
        damaged += ["facts.json"] * any((place / f"{name}.bin").stat().st_size != size for name, size in written.items())
    except (InputError, OSError, KeyError, TypeError, AttributeError) as error:
        damaged = [" ".join(str(error).split())[:200]]
    if damaged:
        log.warning("the tokenised copy in %s is damaged (%s): it is made again", place, damaged[0])
    return not damaged


@contextmanager
def _alone(place: Path, stop: StopFlag | None) -> Iterator[None]:
    """Wait for other runs that are making a shared copy, and keep them from it; a process that is killed frees the lock.

    Raises:
        StoppedError: this process was asked to stop.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    waited = False
    while True:
        try:
            lock = locked(place.with_name(f".{place.name}.lock"), 1.0)
            break
        except Timeout:
            if stop:
                do = "Run the same command again: it goes on from here"
                raise StoppedError("training was asked to stop", where=f"another run tokenises {place.name}", do=do) from None
            if not waited:
                log.info("another run tokenises these examples: waiting for %s", place)
            waited = True
    with lock:
        list(place.parent.iterdir())  # on NFS, what another machine has finished is seen only then
        if not isinstance(lock, nullcontext):
            remove_leftovers(place.parent, place.name)
        yield


def _tokenizer_key(tokenizer: Any) -> str:
    """Return a checksum of a tokenizer, its momentary truncation and padding left out; of one in Python of its pieces and their merges."""
    if not tokenizer.is_fast:
        merges = sorted(getattr(tokenizer, "bpe_ranks", {}).items())
        return sha256_text(json.dumps([type(tokenizer).__name__, sorted(tokenizer.get_vocab().items()), merges]))
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    return sha256_text(backend.to_str())


def _copy_key(path: Path, model: Model, max_length: int, prefix: str, forms: Collection[str]) -> dict[str, Any]:
    """Return what a tokenised copy depends on; no text is longer than its member has positions."""
    if "views" not in open_examples(path).schema_arrow.names:  # the sides of a row then are views of each other (`objectives.views`)
        forms = {SENTENCES if form == PAIR_VIEWS else form for form in forms}
    return {
        "examples": sha256_file(path),
        "tokenizers": {name: _tokenizer_key(member.tokenizer) for name, member in model.members.items()},
        "max_length": max_length,
        "longest": {name: min(max_length, member.positions) for name, member in model.members.items()},
        "prefix": prefix,
        "forms": sorted(forms),
        "chunk": tokenised.CHUNK,
        **since_first(version_of("crosslign.stages.train_system")),
    }


def _mapped(path: Path, dtype: Any) -> NDArray[Any]:
    """Map a flat file into memory, as a plain array: slices of numpy's memmap class cost ten times as much."""
    return np.asarray(np.memmap(path, dtype, "r"))


class Store:
    """A training set that is tokenised.

    Attributes:
        rows: number of examples.
        facts: rows, texts (sentences, and pairs that are read as one), tokens, truncated (texts longer than max_length).
    """

    def __init__(self, folder: Path, model: Model) -> None:
        facts = read_json(folder / "facts.json")
        self._forms: list[str] = facts.pop("key")["forms"]
        del facts["sha256"]
        self.facts: dict[str, int] = facts
        self.rows = self.facts["rows"]
        self._model = model
        self._tokens = _mapped(folder / "tokens.bin", np.int32)
        self._segments = _mapped(folder / "segments.bin", np.uint8) if "segments" in flat_files(self._forms) else None
        self._starts = _mapped(folder / "starts.bin", np.int64)
        self._row_starts = _mapped(folder / "rows.bin", np.int64)
        reader = pa.ipc.open_file(pa.memory_map(str(folder / "rows.arrow")))
        batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        self._ends = np.cumsum([batch.num_rows for batch in batches])
        self._columns = {name: [batch.column(name) for batch in batches] for name in reader.schema.names}

    @classmethod
    def open(
        cls,
        path: Path,
        folder: Path,
        model: Model,
        max_length: int,
        prefix: str = "",
        forms: Collection[str] = (SENTENCES, VIEWS),
        stop: StopFlag | None = None,
        shared: Path | None = None,
    ) -> Store:
        """Open the tokenised copy of a training set, and make it first where it is missing or was made otherwise.

        Args:
            path: `<examples>.parquet`.
            folder: where the copy lies, written whole or not at all; what is not finished lies beside it, `<folder>.partial`.
            model: its members' tokenizers are used; the language of a sentence picks the member.
            max_length: tokens of a text, special ones included.
            prefix: text put before each sentence, the first of a pair.
            forms: what the terms read of a row, see `row_texts`; other texts are not in the lookup.
            stop: asked between chunks.
            shared: where the finished copy lies instead, under a name of its own, for all runs that want the same; one of them makes it.

        Raises:
            StoppedError: the process was asked to stop; what is tokenised is kept.
            InputError: no examples, a column is missing, or a language without member.
        """
        key = _copy_key(path, model, max_length, prefix, forms)
        partial = folder.with_name(f"{folder.name}.partial")
        if shared is None:
            if not _is_made(folder, key):
                write_tokenised(path, folder, partial, model, key, stop)
            return cls(folder, model)
        place = shared / f"{path.stem}-{sha256_text(json.dumps(key, sort_keys=True))[:16]}"
        if not _is_made(place, key):
            with _alone(place, stop):
                if not _is_made(place, key):
                    write_tokenised(path, place, partial, model, key, stop)
        return cls(place, model)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of the longest text of each example."""
        lengths = np.diff(self._starts)
        return np.maximum.reduceat(lengths, self._row_starts[:-1])

    def column(self, name: str) -> list[Any]:
        """Return one column of all examples.

        Raises:
            InputError: they have no such column, or it has nulls.
        """
        values = [value for part in self._columns[name] for value in part.to_pylist()] if name in self._columns else [None]
        if None in values:
            raise InputError(f"every example needs a {name}", where="examples", do="Build the training set from rows that have one")
        return values

    def batch(self, rows: NDArray[np.int64], step: int) -> tuple[Batch, Lookup]:
        """Return the examples with the given row numbers, and the token ids of their texts."""
        parts = np.searchsorted(self._ends, rows, side="right")
        places = rows - np.where(parts > 0, self._ends[parts - 1], 0)
        where = list(zip(parts.tolist(), places.tolist(), strict=True))
        columns = {name: [column[part][place].as_py() for part, place in where] for name, column in self._columns.items()}
        lookup: Lookup = {}
        for place, row in enumerate(rows):
            for number, (lang, text, second) in enumerate(row_texts(columns, place, self._forms), start=int(self._row_starts[row])):
                span = slice(self._starts[number], self._starts[number + 1])
                segments = self._segments[span].astype(np.int32) if self._segments is not None and second is not None else None
                lookup[self._model.member_of(lang), text, second] = self._tokens[span], segments
        return Batch(columns["id"], {name: values for name, values in columns.items() if name != "id"}, step), lookup
