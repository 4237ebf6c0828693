"""Vectors of a user's sentences, encoded piece by piece into one memory-mapped file."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crosslign.encoders.encode import encode_counted, pick_device, text_columns
from crosslign.encoders.model import Model
from crosslign.errors import InputError
from crosslign.files import atomic_path, iter_rows, write_json
from crosslign.threads import limit_threads

log = logging.getLogger(__name__)


def _done_before(state: Path, matrix: Path, identity: Mapping[str, Any]) -> tuple[int, int]:
    """Return rows and cut texts that an earlier, interrupted run of the same work left behind."""
    try:
        saved = json.loads(state.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0, 0
    return (saved["rows"], saved["truncated"]) if matrix.exists() and saved["identity"] == identity else (0, 0)


def _encode_piece(model: Model, table: pa.Table, readout: Mapping[str, Any], dtype: str, where: str) -> tuple[np.ndarray, int]:
    ids, texts, langs, _ = text_columns(table, where)
    vectors, truncated = encode_counted(model, texts, langs, readout, names=[f"line {number}" for number in ids])
    with np.errstate(over="ignore"):
        kept = vectors.astype(dtype)
    bad = np.flatnonzero(~np.isfinite(kept).all(1) | ~kept.any(1))
    if bad.size:
        raise InputError(
            f"a vector does not fit {dtype}",
            where=f"{where}, line {ids[bad[0]]}",
            why=f"its largest coordinate is {np.abs(vectors[bad[0]]).max():.3g}",
            do="Set `embeddings: float32`",
        )
    return kept, truncated


def embed_sentences(
    members: Mapping[str, Path],
    texts: Path,
    readout: Mapping[str, Any],
    out: Path,
    *,
    dtype: Literal["float32", "float16"],
    work: Path,
    identity: Mapping[str, Any],
    threads: int = 1,
    device: str = "auto",
) -> dict[str, Any]:
    """Encode a text set of any size; memory holds one piece of 65,536 sentences.

    A piece is on the disk before it counts as done; an interrupted run goes on behind the last such piece.

    Args:
        members: folder of each member of the encoder.
        texts: Parquet file of the kind `texts`.
        readout: pooling, layer, max_length, normalise, precision, prefix.
        out: `.npy` [rows, d] of that type, row i for text i; written whole or not at all.
        dtype: type on disk.
        work: folder for what an interrupted run leaves; emptied at the end.
        identity: what the vectors depend on, as JSON; another one starts from the beginning.
        threads: threads to use.
        device: `auto`, `cpu`, `cuda`, …

    Returns:
        rows, dimension, dtype, truncated (texts longer than max_length) and device.

    Raises:
        InputError: a vector with NaN, of zeros, or outside the range of `dtype`; names the line.
    """
    limit_threads(threads)
    chosen = pick_device(device)
    rows = pq.ParquetFile(texts).metadata.num_rows
    model = Model.load(members).to(chosen)
    matrix, state = work / f"{out.stem}.part.npy", work / f"{out.stem}.json"
    work.mkdir(parents=True, exist_ok=True)
    identity = {**identity, "dtype": dtype, "rows": rows}
    done, truncated = _done_before(state, matrix, identity)
    mode: Literal["r+", "w+"] = "r+" if done else "w+"
    vectors = np.lib.format.open_memmap(matrix, mode, np.dtype(dtype), (rows, model.dimension))
    start = 0
    for table in iter_rows(texts):
        stop = start + table.num_rows
        if stop > done:
            vectors[start:stop], cut = _encode_piece(model, table, readout, dtype, str(texts))
            vectors.flush()
            truncated += cut
            write_json(state, {"rows": stop, "truncated": truncated, "identity": identity})
            log.info("%d of %d sentences encoded", stop, rows)
        start = stop
    del vectors
    with atomic_path(out) as temporary:
        matrix.replace(temporary)
    state.unlink()
    return {"rows": rows, "dimension": model.dimension, "dtype": dtype, "truncated": truncated, "device": chosen.type}
