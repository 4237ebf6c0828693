"""Mined pairs with their sentences, best first, as files of text for people and a Parquet file for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crosslign.errors import InputError
from crosslign.files import atomic_path, read_rows, write_batches
from crosslign.files.rows import parquet_file
from crosslign.mining.formats import TEXT_WRITERS, About
from crosslign.mining.lists import Neighbours
from crosslign.mining.margin import Margin, Pairs, Retrieval, mine
from crosslign.paths import MINED_SIDES
from crosslign.vectors import blocks

SCHEMA = pa.schema(
    [
        ("score", pa.float64()),
        ("above_threshold", pa.bool_()),
        ("source_line", pa.int64()),
        ("target_line", pa.int64()),
        ("source_text", pa.string()),
        ("target_text", pa.string()),
    ]
)
PLACE = r"^(?:(?P<file>(?s:.*)):)?(?P<line>[0-9]+)(?:[.](?P<sentence>[0-9]+))?$"
"""Of a sentence, as `texts` writes it."""
BEYOND = {"file": pa.string(), "sentence": pa.int64()}
"""Columns of a side (`source_file`) where its line is not the whole place: of several files, of documents that were split."""
RECALL = pa.field("recall_at_k", pa.float64())
"""Last column of pairs that depend on an approximate search: the same number beside every score."""

BATCH = 65_536


class _Side:
    """Sentences and places of one side, by row; the bytes of the sentences are in memory once.

    Attributes:
        lang: their language.
        beyond: columns of `BEYOND` that its places fill.
    """

    def __init__(self, texts: Path) -> None:
        table = read_rows(texts, "texts")
        self.lang = str(table["lang"][0].as_py()) if len(table) else ""
        # 64-bit offsets: the sentences of one side may exceed 2 GiB.
        self._texts, self._places = (pc.cast(table[column], pa.large_string()).combine_chunks() for column in ("text", "text_id"))
        of_first = pc.extract_regex(self._places[:1], PLACE).to_pylist()
        self.beyond = [name for name in BEYOND if of_first and of_first[0][name]]
        if not self.beyond:
            self._places = pc.cast(self._places, pa.int64())

    def __len__(self) -> int:
        return len(self._texts)

    def take(self, rows: np.ndarray) -> dict[str, pa.Array]:
        """Return line, text, and what else a place has, of some rows."""
        places, found = self._places.take(pa.array(rows)), {"text": self._texts.take(pa.array(rows)).cast(pa.string())}
        if not self.beyond:
            return {"line": places, **found}
        parts = pc.extract_regex(places, PLACE)
        names = {"line": pa.int64(), **{name: BEYOND[name] for name in self.beyond}}
        return {**found, **{name: parts.field(name).cast(pa.string()).cast(kind) for name, kind in names.items()}}


def chosen_pairs(near: Neighbours, margin: Margin, retrieval: Retrieval) -> Pairs:
    """Return the pairs of a retrieval, best first; a pair without a score (a ratio to a mean of 0) is left out."""
    pairs = mine(near, margin, retrieval).ranked()
    return pairs.take(np.isfinite(pairs.scores))


def _schema(sides: Mapping[str, _Side], recall: float | None) -> pa.Schema:
    beyond = [pa.field(f"{side}_{name}", BEYOND[name]) for side, texts in sides.items() for name in texts.beyond]
    return pa.schema([*SCHEMA, *beyond, *([] if recall is None else [RECALL])])


def _tables(pairs: Pairs, above: np.ndarray, sides: Mapping[str, _Side], schema: pa.Schema, recall: float | None) -> Iterator[pa.Table]:
    for at in blocks(len(pairs), BATCH):
        columns: dict[str, Any] = {"score": pairs.scores[at], "above_threshold": above[at]}
        for (name, side), rows in zip(sides.items(), (pairs.sources[at], pairs.targets[at]), strict=True):
            columns |= {f"{name}_{part}": column for part, column in side.take(rows).items()}
        if recall is not None:
            columns[RECALL.name] = np.full(len(columns["score"]), recall)
        yield pa.table([columns[name] for name in schema.names], schema=schema)


def _write(outputs: Mapping[str, Path], tables: Callable[[], Iterator[pa.Table]], schema: pa.Schema, about: About) -> None:
    """Write the tables in each form; no file gets its name before the last is whole."""
    with ExitStack() as all_of_them:
        for name, path in outputs.items():
            temporary = all_of_them.enter_context(atomic_path(path))
            if name == "parquet":
                write_batches(temporary, tables(), schema)
            else:
                TEXT_WRITERS[name](temporary, tables(), schema, about)


def write_pairs(
    near: Neighbours,
    texts: tuple[Path, Path],
    outputs: Mapping[str, Path],
    *,
    margin: Margin,
    retrieval: Retrieval,
    threshold: float | None,
    only_above: bool = False,
    encoders: Sequence[str] = (),
) -> dict[str, Any]:
    """Choose pairs and write them with their sentences.

    Args:
        near: nearest neighbours of both sides.
        texts: Parquet files of the two sides, of the kind `texts`, row-aligned with what was searched.
        outputs: files by what they are, `parquet` or a name of `formats.TEXT_WRITERS`; the tables have score, above_threshold,
            source_line, target_line, source_text, target_text; best first, of equal scores by line; each written whole or not at all.
            A side of several files has `source_file`, one of documents that were split `source_sentence`; pairs of an approximate search
            have a last column `recall_at_k`.
        margin, retrieval: as `mine` takes them.
        threshold: lowest score that is above it; None: all are.
        only_above: leave the others out.
        encoders: base encoders that read the sentences; Parquet names them in the metadata of its schema, TMX in its head.

    Returns:
        pairs found, pairs above the threshold, pairs written, the threshold, and the recall of an approximate search, else None.

    Raises:
        InputError: the sentences are not those that were searched.
    """
    source, target = (_Side(path) for path in texts)
    sides = dict(zip(MINED_SIDES, (source, target), strict=True))
    if (len(source), len(target)) != (len(near.forward_indices), len(near.backward_indices)):
        why = f"{len(source)} and {len(target)} sentences, {len(near.forward_indices)} and {len(near.backward_indices)} rows"
        raise InputError("neighbours do not belong to these sentences", where=str(texts[0]), why=why, do="Search again")
    pairs = chosen_pairs(near, margin, retrieval)
    above = np.ones(len(pairs), dtype=bool) if threshold is None else pairs.scores >= threshold
    counts = {"pairs": len(pairs), "above_threshold": int(above.sum()), "threshold": threshold}
    if only_above:
        pairs, above = pairs.take(above), above[above]
    schema, about = _schema(sides, near.recall), About((source.lang, target.lang), ", ".join(encoders))
    told = schema.with_metadata({"encoders": about.encoders}) if encoders else schema
    _write(outputs, lambda: _tables(pairs, above, sides, schema, near.recall), told, about)
    return {**counts, "written": len(pairs), "recall_at_k": near.recall}


def write_again(pairs: Path, outputs: Mapping[str, Path], langs: Sequence[str]) -> None:
    """Write finished pairs in other forms.

    Args:
        pairs: Parquet file of `write_pairs`.
        outputs: files by what they are, as `write_pairs` takes them.
        langs: codes of the two sides.

    Raises:
        InputError: an output is the file itself.
    """
    with parquet_file(pairs) as file:
        schema = file.schema_arrow
        about = About((langs[0], langs[1]), (schema.metadata or {}).get(b"encoders", b"").decode())
        for path in outputs.values():
            if path.resolve() == pairs.resolve():
                raise InputError("the output is also the input", where=str(path), do="Choose another output")
        _write(outputs, lambda: (pa.Table.from_batches([batch]) for batch in file.iter_batches(BATCH)), schema, about)
