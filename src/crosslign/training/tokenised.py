"""The tokenised copy of a training set, written chunk by chunk: a process that is stopped leaves the finished ones to the next."""

from __future__ import annotations

import logging
import multiprocessing
import os
import shutil
import signal
import time
import zlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from crosslign.encoders.model import Model
from crosslign.encoders.tokens import Ids, Tokens
from crosslign.errors import InputError, ResourceError, StoppedError
from crosslign.files import atomic_folder, read_json, sha256_file, write_json
from crosslign.threads import processes_given
from crosslign.training.signals import STOPPING, StopFlag, end_with

CHUNK = 16384
"""Rows of one record batch, and what a stopped or killed process loses at most."""

PROGRESS_SECONDS = 5.0
SENTENCES, VIEWS, PAIRS, PAIR_VIEWS = "sentences", "views", "pairs", "pairs of views"
WIDTHS = {"tokens": 4, "segments": 1, "starts": 8, "rows": 8}
"""Bytes of an entry of each flat file: token ids, segment numbers, where each text starts, where each row's texts start."""

Text = tuple[str, str, str | None]
"""Language, sentence, and the second sentence of a pair that is read as one."""

log = logging.getLogger(__name__)


def flat_files(forms: Sequence[str]) -> list[str]:
    """Return the names of a copy's flat files; segment numbers are kept where pairs are read as one."""
    return [name for name in WIDTHS if name != "segments" or {PAIRS, PAIR_VIEWS} & set(forms)]


def row_texts(columns: Mapping[str, Sequence[Any]], row: int, forms: Sequence[str]) -> Iterator[Text]:
    """Yield what is tokenised of a row, in the order that it is stored in.

    Args:
        columns: of the examples, by name.
        row: number of the row.
        forms: what the terms read: `sentences` of every side alone, those of `views`, rows as `pairs`, these with the `pairs of views`.
    """
    views = (columns["views"][row] or ()) if "views" in columns else ()
    if {PAIRS, PAIR_VIEWS} & set(forms) and "a_text" in columns:
        yield columns["a_lang"][row], columns["a_text"][row], columns["b_text"][row] if "b_text" in columns else None
    if PAIR_VIEWS in forms:
        yield from ((view["lang"], view["a_text"], view["b_text"]) for view in views)
    if SENTENCES in forms:
        for side in ("a", "b", "c"):
            if f"{side}_text" in columns and (text := columns[f"{side}_text"][row]) is not None:
                yield columns[f"{side}_lang"][row], text, None
        if "texts" in columns:
            yield from ((lang, text, None) for lang, text in zip(columns["langs"][row], columns["texts"][row], strict=True))
    if VIEWS in forms:
        yield from ((view["lang"], view[key], None) for view in views for key in ("a_text", "b_text") if view[key] is not None)


@dataclass
class _Progress:
    """What the finished chunks hold, and the CRC-32 of each flat file so far, which goes on with the file."""

    rows: int = 0
    texts: int = 0
    tokens: int = 0
    truncated: int = 0
    sums: dict[str, int] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """The numbers alone."""
        return {name: number for name, number in vars(self).items() if name != "sums"}


def sizes(counts: Mapping[str, int], forms: Sequence[str]) -> dict[str, int]:
    """Return the bytes of each flat file of a copy that holds so many rows, texts and tokens."""
    entries = {"tokens": counts["tokens"], "segments": counts["tokens"], "starts": counts["texts"] + 1, "rows": counts["rows"] + 1}
    return {name: entries[name] * WIDTHS[name] for name in flat_files(forms)}


def sums_of(folder: Path, forms: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of each file of a finished copy."""
    return {name: sha256_file(folder / name) for name in (*(f"{name}.bin" for name in flat_files(forms)), "rows.arrow")}


def _sum_of(path: Path, size: int) -> int:
    """Return the CRC-32 of the first bytes of a file."""
    found = 0
    with open(path, "rb") as file:
        while size > 0 and (piece := file.read(min(size, 1 << 20))):
            found, size = zlib.crc32(piece, found), size - len(piece)
    return found


class _Writer:
    """Appends the token ids of rows to flat files; those of a stopped process with the same key are gone on with."""

    def __init__(self, folder: Path, key: Mapping[str, Any]) -> None:
        self.folder, self.key = folder, key
        self.files = flat_files(key["forms"])
        self.done = self._found() or self._fresh()

    def _place(self, name: str) -> Path:
        return self.folder / f"{name}.bin"

    def _found(self) -> _Progress | None:
        try:
            state = read_json(self.folder / "progress.json")
            done = _Progress(**state["done"])
            written = sizes(done.counts, self.key["forms"])
            if state["key"] != self.key or any(self._place(name).stat().st_size < size for name, size in written.items()):
                return None
            if damaged := [name for name, size in written.items() if _sum_of(self._place(name), size) != done.sums[name]]:
                log.warning("%s is damaged: tokenising from the beginning", self._place(damaged[0]))
                return None
        except (InputError, OSError, KeyError, TypeError):
            return None
        for name, size in written.items():
            os.truncate(self._place(name), size)
        log.info("%d examples are tokenised already", done.rows)
        return done

    def _fresh(self) -> _Progress:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        first = {name: bytes(8) if name in ("starts", "rows") else b"" for name in self.files}
        for name, content in first.items():
            self._place(name).write_bytes(content)
        return _Progress(sums={name: zlib.crc32(content) for name, content in first.items()})

    def check(self, total: int, name: str, stop: StopFlag | None) -> None:
        """Stop where this process was asked to, unless all of so many examples of a set of this name are tokenised."""
        if stop and self.done.rows < total:
            raise StoppedError(
                "training was asked to stop",
                where=f"{self.done.rows} of {total} examples of {name} are tokenised",
                why=str(stop.signal),
                do="Run the same command again: it goes on from here",
            )

    def add(self, chunk: Chunk) -> None:
        """Append a chunk, and put it on the disk."""
        done = self.done
        ends = done.tokens + np.cumsum(chunk.lengths)
        row_ends = done.texts + np.cumsum(chunk.texts)
        added: dict[str, NDArray[Any]] = {"tokens": chunk.tokens, "segments": chunk.segments, "starts": ends, "rows": row_ends}
        sums = {}
        for name in self.files:
            content = added[name].tobytes()
            sums[name] = zlib.crc32(content, done.sums[name])
            with open(self._place(name), "ab") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        totals = done.texts + len(chunk.lengths), done.tokens + len(chunk.tokens), done.truncated + chunk.truncated
        self.done = _Progress(done.rows + len(chunk.texts), *totals, sums)
        write_json(self.folder / "progress.json", {"key": self.key, "done": vars(self.done)})


def _tokenise(model: Model, key: Mapping[str, Any], texts: Sequence[Text]) -> Tokens:
    """Tokenise texts, those of one member and kind together; segments of single sentences are zeros."""
    kinds = np.array([f"{model.member_of(lang)}\0{int(second is not None)}" for lang, _, second in texts], dtype=object)
    ids: list[Ids] = [np.empty(0, np.int32)] * len(texts)
    segments, truncated = list(ids), 0
    for kind in sorted(set(kinds)):
        places, member = np.flatnonzero(kinds == kind).tolist(), kind.split("\0")[0]
        firsts = [key["prefix"] + texts[i][1] for i in places]
        seconds = [str(texts[i][2]) for i in places] if kind.endswith("1") else None
        tokens = model.member(member).tokenise(firsts, seconds, key["max_length"])
        truncated += tokens.truncated
        for at, place in enumerate(places):
            ids[place] = tokens.ids[at]
            segments[place] = tokens.segments[at] if tokens.segments is not None else np.zeros_like(tokens.ids[at])
    return Tokens(ids, segments, truncated)


@dataclass(frozen=True)
class Chunk:
    """Some rows, tokenised.

    Attributes:
        texts: int64 [rows], texts of each row.
        lengths: int64 [texts], tokens of each text.
        tokens, segments: int32 and uint8, of all texts one behind another.
        truncated: texts that were cut.
    """

    texts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    tokens: Ids
    segments: NDArray[np.uint8]
    truncated: int


def make_chunk(model: Model, key: Mapping[str, Any], columns: Mapping[str, Sequence[Any]], rows: int) -> Chunk:
    """Tokenise rows, given by their columns."""
    per_row = [list(row_texts(columns, row, key["forms"])) for row in range(rows)]
    tokens = _tokenise(model, key, [text for texts in per_row for text in texts])
    return Chunk(
        np.array([len(texts) for texts in per_row], np.int64),
        np.array([len(ids) for ids in tokens.ids], np.int64),
        np.concatenate([np.empty(0, np.int32), *tokens.ids]),
        np.concatenate([np.empty(0, np.uint8), *(array.astype(np.uint8) for array in tokens.segments or ())]),
        tokens.truncated,
    )


_given: list[Any] = []
"""Model and key of a process that tokenises for another one."""


def _begin(parent: int, *given: Any) -> None:
    end_with(parent)
    for number in STOPPING:
        signal.signal(number, signal.SIG_DFL)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # threads do not outlive a fork
    _given[:] = given


def _work(columns: Mapping[str, Sequence[Any]], rows: int) -> Chunk:
    model, key = _given
    return make_chunk(model, key, columns, rows)


def _chunks(model: Model, key: Mapping[str, Any], pieces: Iterator[pa.RecordBatch], processes: int) -> Iterator[Chunk]:
    """Tokenise pieces in their order, by so many processes where that is more than one."""
    if processes < 2:
        yield from (make_chunk(model, key, piece.to_pydict(), piece.num_rows) for piece in pieces)
        return
    waiting: deque[Future[Chunk]] = deque()
    begin = (os.getpid(), model, key)
    with ProcessPoolExecutor(processes, multiprocessing.get_context("fork"), _begin, begin) as pool:
        try:
            for piece in pieces:
                waiting.append(pool.submit(_work, piece.to_pydict(), piece.num_rows))
                if len(waiting) > processes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def open_examples(path: Path) -> pq.ParquetFile:
    """Open a training set.

    Raises:
        InputError: it has no examples, lacks a column, or is no such file.
    """
    try:
        source = pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError("not a readable Parquet file", where=str(path), why=str(error).splitlines()[0]) from error
    found = source.schema_arrow.names
    wanted = ["id", "texts", "langs"] if "texts" in found else ["id", "a_text", "a_lang"]
    missing = [name for name in wanted if name not in found]
    if missing:
        raise InputError(f"column {missing[0]!r} is missing", where=str(path), why=f"found {found}")
    if not source.metadata.num_rows:
        raise InputError("the training set is empty", where=str(path), do="Look at the counts in its lineage")
    return source


def _pieces(source: pq.ParquetFile, done: int = 0) -> Iterator[pa.RecordBatch]:
    """Yield the rows behind the first `done`, which are whole pieces."""
    seen = 0
    for batch in source.iter_batches(CHUNK):
        for start in range(0, batch.num_rows, CHUNK):
            piece = batch.slice(start, CHUNK)
            seen += piece.num_rows
            if seen > done:
                yield piece


def _fill(writer: _Writer, source: pq.ParquetFile, model: Model, name: str, stop: StopFlag | None) -> None:
    """Tokenise what the writer does not have yet."""
    total, last = source.metadata.num_rows, time.monotonic()
    writer.check(total, name, stop)
    processes = min(processes_given(), ceil((total - writer.done.rows) / CHUNK))
    for chunk in _chunks(model, writer.key, _pieces(source, writer.done.rows), processes):
        writer.add(chunk)
        writer.check(total, name, stop)
        if time.monotonic() - last > PROGRESS_SECONDS:
            last = time.monotonic()
            log.info("tokenised %d of %d examples of %s", writer.done.rows, total, name)


def write_tokenised(path: Path, folder: Path, partial: Path, model: Model, key: Mapping[str, Any], stop: StopFlag | None = None) -> None:
    """Write the tokenised copy of a training set.

    Args:
        path: `<examples>.parquet`.
        folder: where the copy lies, whole or not at all.
        partial: where what is not finished lies, of this run alone; on the same disk.
        model: its members' tokenizers are used; the language of a text picks the member.
        key: what the copy depends on, `max_length`, `prefix` and `forms` (see `row_texts`) among it.
        stop: asked between chunks.

    Raises:
        StoppedError: this process was asked to stop; the finished chunks are kept.
        InputError: no examples, a column is missing, or a language without member.
        ResourceError: a process that tokenises was killed.
    """
    source = open_examples(path)
    writer = _Writer(partial, key)
    try:
        _fill(writer, source, model, path.name, stop)
    except BrokenProcessPool as error:
        writer.check(source.metadata.num_rows, path.name, stop)  # a scheduler's signal to stop goes to all processes of a job
        raise ResourceError("a process that tokenises was killed", where=str(path), do="Ask for more memory, or for fewer CPUs") from error
    with atomic_folder(folder) as temporary:
        with pa.OSFile(str(temporary / "rows.arrow"), "wb") as sink, pa.ipc.new_file(sink, source.schema_arrow) as arrow:
            for piece in _pieces(source):
                arrow.write_batch(piece)
        for name in writer.files:
            (writer.folder / f"{name}.bin").replace(temporary / f"{name}.bin")
        write_json(temporary / "facts.json", {"key": key, **writer.done.counts, "sha256": sums_of(temporary, key["forms"])})
    shutil.rmtree(writer.folder)
