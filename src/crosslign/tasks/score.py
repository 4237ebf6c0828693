"""From matrices to a score file: one scorer, the named averages, intervals, and the main score (docs/protocols.md).

A score file is one JSON of records per run, checkpoint, readout and task.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from inspect import signature
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

from crosslign.corpora.evaluation import Evaluation
from crosslign.entries.catalog import Task
from crosslign.errors import InputError
from crosslign.files import read_json, write_json, write_rows
from crosslign.files.rows import SCHEMAS
from crosslign.registry import options_of
from crosslign.tasks import SCORERS
from crosslign.tasks.data import ONE_THREAD, Averages, EncodedCorpus, Machine, TaskData, members
from crosslign.tasks.measures import Measure, interval
from crosslign.tasks.records import Record, bounds_of, check_value
from crosslign.vectors import VectorError, open_vectors

Scored = tuple[Record, np.ndarray | None]
HEAD = ("run_id", "system", "seed", "task", "checkpoint", "readout", "profile")
IN_EACH_RECORD = ("run_id", "checkpoint_sha", "pooling", "layer", "max_length", "seed", "profile", "code_version", "data_manifest_sha")
PRECISION = {"precision": "fp32", "score_change": ""}
"""Also in each record: the readout's precision, and what that was measured to change; with what stands where nothing is said."""


def _average(name: str, wanted: Sequence[str], found: Mapping[str, Measure]) -> Measure:
    """Return the plain mean of unrounded values; undefined, with the reason, where one of them is."""
    first = next(iter(found.values()))
    present = [found[subset] for subset in wanted if subset in found]
    common = {"direction": first.direction, "protocol": first.protocol, "n_items": sum(measure.n_items for measure in present)}
    missing = [subset for subset in wanted if subset not in found]
    undefined = [measure for measure in present if not measure.defined]
    if missing or undefined:
        reason = f"no subset {missing[0]!r}" if missing else f"{undefined[0].subset}: {undefined[0].reason}"
        return Measure(name, first.metric, None, reason=reason, **common)  # type: ignore[arg-type]
    value = float(np.mean([measure.value for measure in present]))
    # Resample i of subsets of one size holds the same positions (`Bootstrap`).
    parts = [measure.resamples for measure in present if measure.resamples is not None]
    resamples = np.mean(parts, axis=0) if parts and len(parts) == len(present) else None
    alike = [measure for measure in present if measure.collapsed]
    collapsed = f"{len(alike)} of {len(present)} subsets, in {alike[0].subset} {alike[0].collapsed}" if alike else ""
    return Measure(
        name,
        first.metric,
        value,
        threshold_from=first.threshold_from,
        resamples=resamples,
        collapsed=collapsed,
        **common,  # type: ignore[arg-type]
    )


def averages_of(measures: Sequence[Measure], averages: Averages) -> list[Measure]:
    """Return the named averages of every metric, direction and protocol.

    Resample i of an average is the mean of the subsets' resamples i.
    """
    groups: dict[tuple[str, str, str], dict[str, Measure]] = {}
    for measure in measures:
        if measure.subset not in averages:
            groups.setdefault((measure.metric, measure.direction, measure.protocol), {})[measure.subset] = measure
    made = []
    for found in groups.values():
        for name in averages:
            wanted = members(averages, name, list(found))
            if any(subset in found for subset in wanted):
                made.append(_average(name, wanted, found))
    return made


def checked_measures(scorer: str, returned: Any) -> list[Measure]:
    """Return what a scorer yields.

    Raises:
        InputError: it yields something else; says what was expected.
    """
    found = list(returned) if isinstance(returned, Iterable) else [returned]
    others = [type(one).__name__ for one in found if not isinstance(one, Measure)]
    if others or not found:
        do = "Yield Measure(subset, metric, value, n_items, …) (docs/add-a-task.md)"
        raise InputError("not a measure", where=f"scorer {scorer}", why=f"it yielded {others[0] if others else 'nothing'}", do=do)
    return found


def _record(name: str, measure: Measure, main: bool, collapsed: str) -> Record:
    share_of = measure.n_items if bounds_of(measure.metric) == (0.0, 1.0) else 0
    low, high = interval(measure.resamples, share_of) if measure.defined else (None, None)
    status, reason = ("ok", "") if measure.defined else ("undefined", measure.reason or "not defined on these items")
    if collapsed or measure.collapsed:
        status, reason = "collapsed", measure.collapsed or collapsed
    return Record(
        eval=name,
        subset=measure.subset,
        metric=measure.metric,
        value=measure.value if measure.defined else None,
        n_items=measure.n_items,
        direction=measure.direction,
        protocol=measure.protocol,
        # An infinite threshold extracts nothing; JSON has no number for it.
        threshold=measure.threshold if measure.threshold is None or np.isfinite(measure.threshold) else None,
        threshold_from=measure.threshold_from,
        main=main,
        ci_low=low,
        ci_high=high,
        status=status,  # type: ignore[arg-type]
        reason=reason,
        note=measure.note,
    )


def _identity(record: Record | Measure) -> tuple[str, str, str, str]:
    return record.subset, record.metric, record.direction, record.protocol


def without_intervals(task: Task) -> Task:
    """Return a task's entry for those who want values alone: to resample the items can take longer than to encode them."""
    has = "resamples" in signature(SCORERS.get(task["scorer"])).parameters
    return cast(Task, {**task, "resamples": 0}) if has else task


def score_with_resamples(
    name: str,
    task: Task,
    outputs: Mapping[str, np.ndarray],
    corpora: Mapping[str, Evaluation],
    collapsed: str = "",
    machine: Machine = ONE_THREAD,
) -> list[Scored]:
    """Score one system on one task.

    Args:
        name: task id.
        task: its entry in config/tasks.yaml: `scorer`, `texts`, `main`, `averages`, `splits`, and the scorer's options.
        outputs: for each role, a matrix whose row i belongs to row i of the role's texts.
        corpora: for each role, its evaluation corpus.
        collapsed: why the checkpoint counts as collapsed by what its training saw, or empty.
        machine: what its searches may use.

    Returns:
        All records, sorted, each with its value on every bootstrap resample (float64 [r], or None); averages are means of unrounded
        values; exactly one record is the main one.

    Raises:
        InputError: rows and texts differ in number, a vector has no direction, gold names unknown items, or `main` names no record.
    """
    splits = task.get("splits", {})
    corpora = {role: corpora[role].one_split(splits[role]) if role in splits else corpora[role] for role in outputs}
    data = TaskData(
        name, {role: EncodedCorpus(role, corpora[role], outputs[role]) for role in sorted(outputs)}, task.get("averages", {}), machine
    )
    measures = checked_measures(task["scorer"], SCORERS.get(task["scorer"], where=f"task {name!r}")(data, **options_of("tasks", task)))
    measures += averages_of(measures, data.averages)
    main = task["main"]
    wanted = (main["subset"], main["metric"], main.get("direction", ""), main.get("protocol", ""))
    if [_identity(measure) for measure in measures].count(wanted) != 1:
        made = "; ".join(sorted({" ".join(filter(None, _identity(measure))) for measure in measures}))
        raise InputError(
            f"`main` names no record: {' '.join(filter(None, wanted))}", where=f"tasks.{name}.main", why=f"its records are: {made}"
        )
    # Logits of one sign are not a sign of collapse; scorers of logits tell it themselves.
    if task.get("output") != "logits" and any(part.collapsed for part in data.corpora.values()):
        collapsed = "all vectors are alike"
    scored = [(_record(name, measure, _identity(measure) == wanted, collapsed), measure.resamples) for measure in measures]
    return sorted(scored, key=lambda pair: _identity(pair[0]))


def score(
    name: str,
    task: Task,
    outputs: Mapping[str, np.ndarray],
    corpora: Mapping[str, Evaluation],
    machine: Machine = ONE_THREAD,
) -> list[Record]:
    """Return the records of `score_with_resamples`."""
    return [record for record, _ in score_with_resamples(name, task, outputs, corpora, machine=machine)]


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
        raise InputError(f"not a score file: {error}", where=str(path), do="Delete it; the next run rebuilds it") from error


def score_run(
    name: str,
    task: Task,
    matrices: Mapping[str, Path],
    files: Mapping[str, Mapping[str, Path]],
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
        files: for each role, the paths of its texts, items and gold.
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
    corpora = {role: Evaluation.read(files[role]) for role in matrices}
    try:
        scored = score_with_resamples(name, task, outputs, corpora, str(context.get("collapsed", "")), machine)
    except VectorError as error:
        raise _with_text(error, matrices, corpora) from error
    records = [_noted(record, str(context.get("note", ""))) for record, _ in scored]
    if resamples is not None:
        write_resamples(resamples, scored)
    write_scores(out, {**context, "task": name}, records)
    return records


def _noted(record: Record, note: str) -> Record:
    return replace(record, note=" ".join(filter(None, (record.note, note)))) if note else record


def _with_text(error: VectorError, matrices: Mapping[str, Path], corpora: Mapping[str, Evaluation]) -> InputError:
    """Return the error with the text whose vector it is."""
    for role, path in matrices.items():
        if Path(path).resolve() == Path(error.matrix).resolve():
            text = corpora[role].texts["text_id"][error.row].as_py()
            return InputError(error.what, where=f"{path}, row {error.row} (text {text!r})", do="Delete the file; the next run rebuilds it")
    return error
