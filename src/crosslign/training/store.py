"""Training examples on disk, tokenised once: memory maps that open in no time and take no memory of the process."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from crosslign.encoders.model import Model
from crosslign.encoders.tokens import Ids
from crosslign.errors import InputError
from crosslign.files import atomic_folder, read_json, sha256_file, sha256_text, write_json
from crosslign.objectives.contract import Batch

CHUNK = 16384
"""Rows of one record batch."""

PROGRESS_SECONDS = 5.0

Lookup = dict[tuple[str, str], Ids]
"""Token ids of a batch's sentences by (member, text)."""

log = logging.getLogger(__name__)


def _row_texts(columns: Mapping[str, Sequence[Any]], row: int) -> Iterator[tuple[str, str]]:
    """Yield the (language, text) of every sentence of a row, in the order that token ids are stored in."""
    for side in ("a", "b", "c"):
        if f"{side}_text" in columns and (text := columns[f"{side}_text"][row]) is not None:
            yield columns[f"{side}_lang"][row], text
    if "texts" in columns:
        yield from zip(columns["langs"][row], columns["texts"][row], strict=True)
    for view in (columns["views"][row] or ()) if "views" in columns else ():
        yield view["lang"], view["a_text"]
        if view["b_text"] is not None:
            yield view["lang"], view["b_text"]


def _tokenizer_key(tokenizer: Any) -> str:
    """Return a checksum of a tokenizer, its momentary truncation and padding left out."""
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    return sha256_text(backend.to_str())


class _Writer:
    """Appends the token ids of rows, in three flat files: ids, where each sentence starts, where each row starts."""

    def __init__(self, model: Model, max_length: int, prefix: str, files: Mapping[str, BinaryIO]) -> None:
        self.model, self.max_length, self.prefix, self.files = model, max_length, prefix, files
        self.tokens = self.texts = self.rows = self.truncated = 0
        for name in ("starts", "rows"):
            files[name].write(np.zeros(1, np.int64).tobytes())

    def _tokenise(self, sentences: Sequence[tuple[str, str]]) -> list[Ids]:
        members = np.array([self.model.member_of(lang) for lang, _ in sentences], dtype=object)
        ids: list[Ids] = [np.empty(0, np.int32)] * len(sentences)
        for name in sorted(set(members)):
            places = np.flatnonzero(members == name)
            tokens = self.model.member(name).tokenise([self.prefix + sentences[int(i)][1] for i in places], None, self.max_length)
            self.truncated += tokens.truncated
            for place, array in zip(places, tokens.ids, strict=True):
                ids[place] = array
        return ids

    def add(self, columns: Mapping[str, Sequence[Any]], rows: int) -> None:
        per_row = [list(_row_texts(columns, row)) for row in range(rows)]
        ids = self._tokenise([sentence for sentences in per_row for sentence in sentences])
        ends = self.tokens + np.cumsum([len(array) for array in ids], dtype=np.int64)
        row_ends = self.texts + np.cumsum([len(sentences) for sentences in per_row], dtype=np.int64)
        self.files["tokens"].write(np.concatenate([np.empty(0, np.int32), *ids]).tobytes())
        self.files["starts"].write(ends.tobytes())
        self.files["rows"].write(row_ends.tobytes())
        self.tokens, self.texts, self.rows = int(ends[-1]), int(row_ends[-1]), self.rows + rows


def _check_columns(schema: pa.Schema, path: Path) -> None:
    wanted = ["id", "texts", "langs"] if "texts" in schema.names else ["id", "a_text", "a_lang"]
    missing = [name for name in wanted if name not in schema.names]
    if missing:
        raise InputError(f"column {missing[0]!r} is missing", where=str(path), why=f"found {schema.names}")


def _write(path: Path, folder: Path, model: Model, max_length: int, prefix: str, key: Mapping[str, Any]) -> None:
    try:
        source = pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError("not a readable Parquet file", where=str(path), why=str(error).splitlines()[0]) from error
    _check_columns(source.schema_arrow, path)
    total, last = source.metadata.num_rows, time.monotonic()
    if not total:
        raise InputError("the training set is empty", where=str(path), do="Look at the counts in its lineage")
    with atomic_folder(folder) as temporary:
        files = {name: open(temporary / f"{name}.bin", "wb") for name in ("tokens", "starts", "rows")}  # noqa: SIM115
        with files["tokens"], files["starts"], files["rows"], pa.OSFile(str(temporary / "rows.arrow"), "wb") as sink:
            writer = _Writer(model, max_length, prefix, files)
            with pa.ipc.new_file(sink, source.schema_arrow) as arrow:
                for batch in source.iter_batches(CHUNK):
                    for start in range(0, batch.num_rows, CHUNK):
                        piece = batch.slice(start, CHUNK)
                        writer.add(piece.to_pydict(), piece.num_rows)
                        arrow.write_batch(piece)
                    if time.monotonic() - last > PROGRESS_SECONDS:
                        last = time.monotonic()
                        log.info("tokenised %d of %d examples of %s", writer.rows, total, path.name)
        counts = {name: getattr(writer, name) for name in ("rows", "texts", "tokens", "truncated")}
        write_json(temporary / "facts.json", {"key": key, **counts})


class Store:
    """A training set whose sentences are tokenised.

    Attributes:
        rows: number of examples.
        facts: rows, texts, tokens, truncated (sentences longer than max_length).
    """

    def __init__(self, folder: Path, model: Model) -> None:
        self.facts: dict[str, int] = {name: count for name, count in read_json(folder / "facts.json").items() if name != "key"}
        self.rows = self.facts["rows"]
        self._model = model
        self._tokens = np.memmap(folder / "tokens.bin", np.int32, "r")
        self._starts = np.memmap(folder / "starts.bin", np.int64, "r")
        self._row_starts = np.memmap(folder / "rows.bin", np.int64, "r")
        reader = pa.ipc.open_file(pa.memory_map(str(folder / "rows.arrow")))
        self._names: list[str] = reader.schema.names
        self._batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        self._ends = np.cumsum([batch.num_rows for batch in self._batches])

    @classmethod
    def open(cls, path: Path, folder: Path, model: Model, max_length: int, prefix: str = "") -> Store:
        """Open the tokenised copy of a training set, and make it first where it is missing or was made otherwise.

        Args:
            path: `<examples>.parquet`.
            folder: where the copy lies, written whole or not at all.
            model: its members' tokenizers are used; the language of a sentence picks the member.
            max_length: tokens of a sentence, special ones included.
            prefix: text put before each sentence.

        Raises:
            InputError: no examples, a column is missing, or a language without member.
        """
        tokenizers = {name: _tokenizer_key(model.member(name).tokenizer) for name in model.members}
        key = {"examples": sha256_file(path), "tokenizers": tokenizers, "max_length": max_length, "prefix": prefix}
        facts = folder / "facts.json"
        if not facts.exists() or read_json(facts)["key"] != key:
            _write(path, folder, model, max_length, prefix, key)
        return cls(folder, model)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of the longest sentence of each example."""
        lengths = np.diff(self._starts)
        return np.maximum.reduceat(lengths, self._row_starts[:-1])

    def column(self, name: str) -> list[Any]:
        """Return one column of all examples.

        Raises:
            InputError: they have no such column, or it has nulls.
        """
        values = [value for batch in self._batches for value in batch.column(name).to_pylist()] if name in self._names else [None]
        if None in values:
            raise InputError(f"every example needs a {name}", where="examples", do="Build the training set from rows that have one")
        return values

    def batch(self, rows: NDArray[np.int64], step: int) -> tuple[Batch, Lookup]:
        """Return the examples with the given row numbers, and the token ids of their sentences."""
        columns: dict[str, list[Any]] = {name: [] for name in self._names}
        for row in rows:
            chunk = int(np.searchsorted(self._ends, row, side="right"))
            place = int(row) - (int(self._ends[chunk - 1]) if chunk else 0)
            for name, column in zip(self._names, self._batches[chunk].columns, strict=True):
                columns[name].append(column[place].as_py())
        lookup: Lookup = {}
        for place, row in enumerate(rows):
            for text, (lang, sentence) in enumerate(_row_texts(columns, place), start=int(self._row_starts[row])):
                lookup[self._model.member_of(lang), sentence] = self._tokens[self._starts[text] : self._starts[text + 1]]
        return Batch(columns["id"], {name: values for name, values in columns.items() if name != "id"}, step), lookup
