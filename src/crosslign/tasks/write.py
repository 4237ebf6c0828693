"""Score files: one JSON per run, checkpoint, readout and task (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crosslign.console import number_of
from crosslign.corpora.evaluation import Evaluation
from crosslign.errors import InputError
from crosslign.files import read_json, write_json, write_rows
from crosslign.files.rows import SCHEMAS
from crosslign.tasks.data import ONE_THREAD, Machine
from crosslign.tasks.records import Record, check_value
from crosslign.tasks.score import Scored, score_with_resamples
from crosslign.vectors import VectorError, open_vectors

HEAD = ("run_id", "system", "seed", "task", "checkpoint", "readout", "profile")
IN_EACH_RECORD = ("run_id", "checkpoint_sha", "pooling", "layer", "max_length", "seed", "profile", "code_version", "data_manifest_sha")
PRECISION = {"precision": "fp32", "score_change": ""}
"""Also in each record: the readout's precision, and what that was measured to change; with what stands where nothing is said."""


def write_scores(out: Path, context: Mapping[str, Any], records: Sequence[Record]) -> None:
    """Write a score file; equal scores are equal bytes.

    Args:
        out: final path.
        context: the values named by `HEAD` and `IN_EACH_RECORD`, and by `PRECISION` where they are others; `lengths`, the tokens at most
            of each role, and `prefixes`, the text before its sentences, where they differ; else `prefix`, where there is one.
        records: at least one; written in sorted order.
    """
    for record in records:
        check_value(asdict(record), str(out))
    shared = {key: context[key] for key in IN_EACH_RECORD} | {key: context.get(key, usual) for key, usual in PRECISION.items()}
    shared |= {key: context[key] for key in ("lengths", "prefix", "prefixes") if context.get(key)}
    ordered = sorted(records, key=lambda record: (record.eval, record.subset, record.metric, record.direction, record.protocol))
    fields = [{key: value for key, value in asdict(record).items() if key != "note" or value} for record in ordered]  # few have a note
    write_json(out, {**{key: context[key] for key in HEAD}, "records": [{**shared, **own} for own in fields]})


def write_resamples(out: Path, scored: Sequence[Scored]) -> None:
    """Write the values of the main metric on all bootstrap resamples (float32): all subsets, directions and protocols of it.

    Four bytes a resample and record, whatever the number of items: 4 kB for each language of Tatoeba and direction, before compression.
    """
    metric = next(record.metric for record, _ in scored if record.main)
    kept = [(record, values) for record, values in scored if record.metric == metric and values is not None]
    rows = [
        {"subset": r.subset, "metric": r.metric, "direction": r.direction, "protocol": r.protocol, "values": values.astype(np.float32)}
        for r, values in kept
    ]
    write_rows(out, pa.Table.from_pylist(rows, schema=SCHEMAS["resamples"]), "resamples")


def read_scores(path: Path) -> tuple[dict[str, Any], list[Record]]:
    """Read a score file: its context, as `write_scores` took it, and its records.

    Raises:
        InputError: the file is missing, is no JSON, or lacks a field.
    """
    content = read_json(path)
    names = [field.name for field in fields(Record)]
    try:
        rows = content["records"]
        context = {**{key: content[key] for key in HEAD}, **{key: row[key] for row in rows[:1] for key in (*IN_EACH_RECORD, *PRECISION)}}
        return context, [Record(**{name: row.get(name, "") if name == "note" else row[name] for name in names}) for row in rows]
    except (KeyError, TypeError) as error:
        raise InputError(f"not a score file: {error}", where=str(path), do="Delete it; the next run makes it again") from error


def score_run(
    name: str,
    task: Mapping[str, Any],
    matrices: Mapping[str, Path],
    sets: Mapping[str, Mapping[str, Path]],
    out: Path,
    context: Mapping[str, Any],
    resamples: Path | None = None,
    machine: Machine = ONE_THREAD,
) -> list[Record]:
    """Score one run on one task from files, and write its score file, and its resamples where somebody wants them.

    Args:
        name: task id.
        task: its entry in config/tasks.yaml.
        matrices: for each role, the `.npy` of its evaluation corpus; memory-mapped.
        sets: for each role, the paths of its texts, items and gold.
        out: score file.
        context: what `write_scores` needs, except the task; `collapsed` where training marked the checkpoint; `note`, what tables are
            to say of each of these values.
        resamples: file of `write_resamples`, or None.
        machine: what its searches may use.

    Raises:
        InputError: a file is missing or unreadable, or a matrix has another number of rows than its texts (names both numbers), or a
            vector of NaN or zeros (names file, row and text).
    """
    outputs = {role: open_vectors(path) for role, path in matrices.items()}
    evaluations = {role: Evaluation.read(sets[role]) for role in matrices}
    for role, matrix in outputs.items():
        texts = evaluations[role].texts.num_rows
        if len(matrix) != texts:
            why = f"{number_of(len(matrix), 'row')}, but {sets[role]['texts']} has {number_of(texts, 'text')}"
            raise InputError(
                "embeddings do not belong to their texts", where=str(matrices[role]), why=why, do="Delete it; the next run makes it again"
            )
    try:
        scored = score_with_resamples(name, task, outputs, evaluations, str(context.get("collapsed", "")), machine)
    except VectorError as error:
        raise _with_text(error, matrices, evaluations) from error
    records = [_noted(record, str(context.get("note", ""))) for record, _ in scored]
    if resamples is not None:
        write_resamples(resamples, scored)
    write_scores(out, {**context, "task": name}, records)
    return records


def _noted(record: Record, note: str) -> Record:
    return replace(record, note=" ".join(filter(None, (record.note, note)))) if note else record


def _with_text(error: VectorError, matrices: Mapping[str, Path], evaluations: Mapping[str, Evaluation]) -> InputError:
    """Return the error with the text whose vector it is."""
    for role, path in matrices.items():
        if Path(path).resolve() == Path(error.matrix).resolve():
            text = evaluations[role].texts["text_id"][error.row].as_py()
            return InputError(
                error.what, where=f"{path}, row {error.row} (text {text!r})", do="Delete the file; the next run makes it again"
            )
    return error
