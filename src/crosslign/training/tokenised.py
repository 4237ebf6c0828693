"""The tokenised copy of a training set: shards in Arrow's format, each written whole, and read as memory maps.

A killed process leaves its finished shards to the next one; a copy opens in no time and takes no memory of the process.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crosslign.config.entry_keys import PAIR_VIEWS, PAIRS, SENTENCES, VIEWS
from crosslign.encoders.model import Model
from crosslign.encoders.tokens import Ids
from crosslign.errors import InputError
from crosslign.files import atomic_folder, read_json, sha256_file, sha256_text, write_json
from crosslign.files.rows import ParquetRows, head_of
from crosslign.objectives.contract import Batch
from crosslign.workers import forked

SHARD = 16384
"""Rows of one shard, and what a killed process loses at most."""
TOKENS, SEGMENTS, LONGEST, TRUNCATED = ADDED = ("tokens", "segments", "longest", "truncated")
"""Columns of a copy beside those of its examples: token ids of each text of a row, segment numbers where pairs are read as one, tokens of
the row's longest text, and how many of its texts were cut."""
FACTS = "facts.json"

Text = tuple[str, str, str | None]
"""Language, sentence, and the second sentence of a pair that is read as one."""
Lookup = dict[Text, tuple[Ids, Ids | None]]
"""Token ids of a batch's texts, and segment numbers of pairs, by (member, sentence, second sentence of a pair or None)."""


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


def _tokenise(model: Model, settings: Mapping[str, Any], texts: Sequence[Text]) -> tuple[list[Ids], list[Ids], NDArray[np.int32]]:
    """Return ids, segment numbers (zeros of single sentences) and cuts of texts; those of one member and kind are tokenised together."""
    ids, segments, cut = [np.empty(0, np.int32)] * len(texts), [np.empty(0, np.int32)] * len(texts), np.zeros(len(texts), np.int32)
    kinds: dict[tuple[str, bool], list[int]] = {}
    for place, (lang, _, second) in enumerate(texts):
        kinds.setdefault((model.member_of(lang), second is not None), []).append(place)
    for (member, paired), places in kinds.items():
        firsts = [settings["prefix"] + texts[place][1] for place in places]
        seconds = [str(texts[place][2]) for place in places] if paired else None
        tokens = model.member(member).tokenise(firsts, seconds, settings["max_length"])
        cut[places] = tokens.cut
        for place, own, numbers in zip(places, tokens.ids, tokens.segments or map(np.zeros_like, tokens.ids), strict=True):
            ids[place], segments[place] = own, numbers
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
"""Training set, folder and key of its shards, model and settings: what processes that tokenise inherit."""


def _write_shard(number: int) -> None:
    """Write a shard under a temporary name, then under one with what it was made of and its own checksum."""
    path, work, key, model, settings = _given
    rows, place = ParquetRows(path).between(number * SHARD, (number + 1) * SHARD), work / f"{number:06}-{key}.arrow"
    given = {"batched": True, "batch_size": len(rows), "writer_batch_size": len(rows), "fn_kwargs": {"model": model, "settings": settings}}
    examples = datasets.Dataset(rows, fingerprint=place.stem).with_format("arrow")
    examples.map(_with_tokens, cache_file_name=str(place), load_from_cache_file=False, new_fingerprint=f"{place.stem}-tokens", **given)
    place.replace(place.with_name(f"{place.stem}-{sha256_file(place)[:16]}.arrow"))


def _finished(work: Path, key: str) -> dict[int, Path]:
    """Return the finished shards of a killed process by number, each as it was written, and remove what else lies there."""
    found = {}
    for path in sorted(work.iterdir()):
        number, made_of, written = [*path.stem.split("-"), "", ""][:3]
        if made_of == key and written == sha256_file(path)[:16]:
            found[int(number)] = path
        else:
            path.unlink()
    return found


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
        InputError: a file that cannot be read, or a language without member.
        ResourceError: a process that tokenises was killed.
    """
    rows = head_of(path)[1]
    asked = {name: settings[name] for name in ("max_length", "prefix", "forms")}
    made_of = {"examples": sha256_file(path), "tokenizers": model.tokenizer_keys()}
    key = sha256_text(json.dumps([made_of, asked, {name: member.positions for name, member in model.members.items()}, SHARD]))[:16]
    work.mkdir(parents=True, exist_ok=True)
    todo = sorted(set(range(ceil(rows / SHARD))) - set(_finished(work, key)))
    datasets.disable_progress_bars()
    _given[:] = path, work, key, model, asked
    forked(_write_shard, todo, processes, str(path))
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
    counts: Counter[str] = Counter()
    for batch in shards(folder).data.to_batches():
        tokens, cut = batch.column(TOKENS), int(batch.column(TRUNCATED).to_numpy().sum())
        counts.update(rows=len(tokens), texts=len(tokens.values), tokens=len(tokens.values.values), truncated=cut)
    return dict(counts)


class Store:
    """A training set that is tokenised.

    Args:
        folder: what `tokenise_examples` wrote.
        model: whose members read it.

    Attributes:
        rows: number of examples.
        facts: rows, texts (sentences, and pairs that are read as one), tokens, truncated (texts longer than max_length).
        examples: SHA-256 of the training set.
        columns: names of its columns.

    Raises:
        InputError: it was tokenised for another model.
    """

    def __init__(self, folder: Path, model: Model) -> None:
        facts = read_json(folder / FACTS)
        if facts["tokenizers"] != model.tokenizer_keys():
            raise InputError(
                "the examples were tokenised for another encoder", where=str(folder), do="Delete the folder; the next run rebuilds it"
            )
        self._forms: list[str] = facts["forms"]
        self.examples: str = facts["examples"]
        self.facts: dict[str, int] = {name: facts[name] for name in ("rows", "texts", "tokens", "truncated")}
        self.rows = self.facts["rows"]
        self._model = model
        self._data = shards(folder).with_format("arrow")
        self.columns: list[str] = [name for name in self._data.column_names if name not in ADDED]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of the longest text of each example."""
        return np.asarray(self._data.data.column(LONGEST).to_numpy(), np.int64)

    def column(self, name: str) -> list[Any]:
        """Return one column of all examples.

        Raises:
            InputError: they have no such column, or it has nulls.
        """
        values = self._data.data.column(name).to_pylist() if name in self.columns else [None]
        if None in values:
            raise InputError(f"every example needs a {name}", where="examples", do="Build the training set from rows that have one")
        return values

    def batch(self, rows: NDArray[np.int64], step: int) -> tuple[Batch, Lookup]:
        """Return the examples with the given row numbers, and the token ids of their texts."""
        table = self._data[rows.tolist()].combine_chunks()  # each row is a chunk of its own, slow to read
        columns = table.select(self.columns).to_pydict()
        nested = table[TOKENS].chunk(0)
        texts, starts, tokens = nested.offsets.to_numpy(), nested.values.offsets.to_numpy(), nested.values.values.to_numpy()
        segments = table[SEGMENTS].chunk(0).values.values.to_numpy() if SEGMENTS in table.column_names else None
        lookup: Lookup = {}
        for row in range(len(rows)):
            for number, (lang, text, second) in enumerate(row_texts(columns, row, self._forms), start=int(texts[row])):
                span = slice(starts[number], starts[number + 1])
                pair = segments[span].astype(np.int32) if segments is not None and second is not None else None
                lookup[self._model.member_of(lang), text, second] = tokens[span], pair
        return Batch(columns["id"], {name: values for name, values in columns.items() if name != "id"}, step), lookup
