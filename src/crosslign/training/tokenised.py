"""The tokenised copy of a training set: shards in Arrow's format, each written whole, so that a killed process leaves the finished ones."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import signal
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from math import ceil
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from crosslign.config.entry_keys import PAIR_VIEWS, PAIRS, SENTENCES, VIEWS
from crosslign.encoders.model import Model
from crosslign.errors import InputError, ResourceError
from crosslign.files import atomic_folder, sha256_file, sha256_text, write_json
from crosslign.files.rows import head_of
from crosslign.training.signals import STOPPING, end_with

SHARD = 16384
"""Rows of one shard, and what a killed process loses at most."""
TOKENS, SEGMENTS, LONGEST, TRUNCATED = ADDED = ("tokens", "segments", "longest", "truncated")
"""Columns of a copy beside those of its examples: token ids of each text of a row, segment numbers where pairs are read as one, tokens of
the row's longest text, and how many of its texts were cut."""
FACTS = "facts.json"
FINISHED = re.compile(r"(\d{6})-([0-9a-f]{16})-([0-9a-f]{16})\.arrow")
"""Name of a finished shard: its number, what it was made of, and the checksum that it was written with."""

Text = tuple[str, str, str | None]
"""Language, sentence, and the second sentence of a pair that is read as one."""


def row_texts(columns: Mapping[str, Sequence[Any]], row: int, forms: Sequence[str]) -> Iterator[Text]:
    """Yield what is tokenised of a row, in the order that it is stored in.

    Args:
        columns: of the examples, by name.
        row: number of the row.
        forms: what the terms read (`crosslign.config.entry_keys.forms`).
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


def tokenizer_key(tokenizer: Any) -> str:
    """Return a checksum of a tokenizer, its momentary truncation and padding left out; of one in Python of its pieces and their merges."""
    if not tokenizer.is_fast:
        merges = sorted(getattr(tokenizer, "bpe_ranks", {}).items())
        return sha256_text(json.dumps([type(tokenizer).__name__, sorted(tokenizer.get_vocab().items()), merges]))
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    return sha256_text(backend.to_str())


def _tokenise(model: Model, settings: Mapping[str, Any], texts: Sequence[Text]) -> tuple[list[Any], list[Any], NDArray[np.int32]]:
    """Return ids, segment numbers and cuts of texts, those of one member and kind together; segments of single sentences are zeros."""
    kinds = np.array([f"{model.member_of(lang)}\0{int(second is not None)}" for lang, _, second in texts], dtype=object)
    ids: list[Any] = [np.empty(0, np.int32)] * len(texts)
    segments, cut = list(ids), np.zeros(len(texts), np.int32)
    for kind in sorted(set(kinds)):
        places, member = np.flatnonzero(kinds == kind).tolist(), kind.split("\0")[0]
        firsts = [settings["prefix"] + texts[i][1] for i in places]
        seconds = [str(texts[i][2]) for i in places] if kind.endswith("1") else None
        tokens = model.member(member).tokenise(firsts, seconds, settings["max_length"])
        cut[places] = tokens.cut
        for at, place in enumerate(places):
            ids[place] = tokens.ids[at]
            segments[place] = tokens.segments[at] if tokens.segments is not None else np.zeros_like(tokens.ids[at])
    return ids, segments, cut


def _with_tokens(rows: pa.Table, model: Model, settings: Mapping[str, Any]) -> pa.Table:
    """Return rows with the columns `ADDED`."""
    columns, forms = rows.to_pydict(), settings["forms"]
    per_row = [list(row_texts(columns, row, forms)) for row in range(rows.num_rows)]
    ids, segments, cut = _tokenise(model, settings, [text for texts in per_row for text in texts])
    starts = np.cumsum([0, *map(len, per_row)], dtype=np.int32)
    ends = np.cumsum([0, *map(len, ids)], dtype=np.int32)

    def nested(arrays: list[Any], kind: Any) -> pa.Array:
        flat = np.concatenate([np.empty(0, kind), *arrays]).astype(kind)
        return pa.ListArray.from_arrays(starts, pa.ListArray.from_arrays(ends, flat))

    rows = rows.append_column(TOKENS, nested(ids, np.int32))
    if {PAIRS, PAIR_VIEWS} & set(forms):
        rows = rows.append_column(SEGMENTS, nested(segments, np.uint8))
    rows = rows.append_column(LONGEST, pa.array(np.maximum.reduceat(np.diff(ends), starts[:-1])))
    return rows.append_column(TRUNCATED, pa.array(np.add.reduceat(cut, starts[:-1])))


_given: list[Any] = []
"""Training set, model and settings: what processes that tokenise inherit."""


def _begin(parent: int) -> None:
    end_with(parent)
    for number in STOPPING:
        signal.signal(number, signal.SIG_DFL)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # threads do not outlive a fork


def _rows(path: Path, number: int) -> pa.Table:
    """Read the rows of a shard, and no more row groups than they lie in."""
    source, first = pq.ParquetFile(path), number * SHARD
    ends = np.cumsum([source.metadata.row_group(group).num_rows for group in range(source.num_row_groups)])
    group, last = np.searchsorted(ends, [first, min(first + SHARD, ends[-1]) - 1], side="right").tolist()
    return source.read_row_groups([*range(group, last + 1)]).slice(first - (int(ends[group - 1]) if group else 0), SHARD)


def _write_shard(place: Path) -> None:
    """Write a shard under a temporary name, then its own, and put its checksum behind it."""
    path, model, settings = _given
    rows = _rows(path, int(place.stem.split("-")[0]))
    given = {"batched": True, "batch_size": len(rows), "writer_batch_size": len(rows), "fn_kwargs": {"model": model, "settings": settings}}
    examples = datasets.Dataset(rows, fingerprint=place.stem).with_format("arrow")
    examples.map(_with_tokens, cache_file_name=str(place), load_from_cache_file=False, new_fingerprint=f"{place.stem}-tokens", **given)
    place.replace(place.with_name(f"{place.stem}-{sha256_file(place)[:16]}.arrow"))


def _finished(work: Path, key: str) -> dict[int, Path]:
    """Return the finished shards of a killed process by number, each as it was written, and remove what else lies there."""
    found = {}
    for path in sorted(work.iterdir()):
        name = FINISHED.fullmatch(path.name)
        if name and name[2] == key and name[3] == sha256_file(path)[:16]:
            found[int(name[1])] = path
        else:
            path.unlink()
    return found


def _check(path: Path) -> int:
    """Return the number of rows of a training set.

    Raises:
        InputError: it has none, lacks a column, or is no such file.
    """
    found, rows = head_of(path)
    wanted = ["id", "texts", "langs"] if "texts" in found else ["id", "a_text", "a_lang"]
    if missing := [name for name in wanted if name not in found]:
        raise InputError(f"column {missing[0]!r} is missing", where=str(path), why=f"found {found}")
    if not rows:
        raise InputError("the training set is empty", where=str(path), do="Look at the counts in its lineage")
    return rows


def tokenise_examples(
    path: Path, folder: Path, work: Path, model: Model, settings: Mapping[str, Any], processes: int = 1
) -> dict[str, int]:
    """Write the tokenised copy of a training set.

    Args:
        path: `<examples>.parquet`.
        folder: where the copy lies, whole or not at all; on the disk of `work`.
        work: where finished shards wait for the others; a process that was killed leaves them to the next one.
        model: its members' tokenizers are used, weights are not; the language of a text picks the member.
        settings: `max_length` (tokens of a text, special ones included), `prefix` (put before each sentence, the first of a pair) and
            `forms` (`crosslign.config.entry_keys.forms`).
        processes: that tokenise; their number changes no byte.

    Returns:
        rows, texts (sentences, and pairs that are read as one), tokens, truncated (texts that were cut).

    Raises:
        InputError: no examples, a column is missing, or a language without member.
        ResourceError: a process that tokenises was killed.
    """
    rows = _check(path)
    asked = {name: settings[name] for name in ("max_length", "prefix", "forms")}
    made_of = {
        "examples": sha256_file(path),
        "tokenizers": {name: tokenizer_key(member.tokenizer) for name, member in model.members.items()},
    }
    key = sha256_text(json.dumps([made_of, asked, {name: member.positions for name, member in model.members.items()}, SHARD]))[:16]
    work.mkdir(parents=True, exist_ok=True)
    done = _finished(work, key)
    todo = [work / f"{number:06}-{key}.arrow" for number in range(ceil(rows / SHARD)) if number not in done]
    datasets.disable_progress_bars()
    _given[:] = path, model, asked
    try:
        if min(processes, len(todo)) < 2 or sys.platform == "darwin":  # there a fork of a process that has threads may die
            deque(map(_write_shard, todo), 0)
        else:
            with ProcessPoolExecutor(processes, multiprocessing.get_context("fork"), _begin, (os.getpid(),)) as pool:
                deque(pool.map(_write_shard, todo), 0)
    except BrokenProcessPool as error:
        raise ResourceError(
            "a process that tokenises was killed", where=str(path), do="Ask for more memory, or for fewer threads"
        ) from error
    with atomic_folder(folder) as temporary:
        for number, shard in _finished(work, key).items():
            shard.replace(temporary / f"{number:06}.arrow")
        counts = _counts(temporary)
        write_json(temporary / FACTS, {**made_of, **asked, **counts})
    shutil.rmtree(work)
    return counts


def shards(folder: Path) -> datasets.Dataset:
    """Map the shards of a copy into memory."""
    mapped = [datasets.table.MemoryMappedTable.from_file(str(path)) for path in sorted(folder.glob("*.arrow"))]
    return datasets.Dataset(datasets.table.concat_tables(mapped), fingerprint=folder.name)  # one, not one a shard: these take memory


def _counts(folder: Path) -> dict[str, int]:
    """Return the counts of a copy."""
    counts = {"rows": 0, "texts": 0, "tokens": 0, "truncated": 0}
    for batch in shards(folder).data.to_batches():
        tokens = batch.column(TOKENS)
        added = (len(tokens), len(tokens.values), len(tokens.values.values), int(batch.column(TRUNCATED).to_numpy().sum()))
        counts = {name: count + more for (name, count), more in zip(counts.items(), added, strict=True)}
    return counts
