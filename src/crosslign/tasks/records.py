"""Score records: one metric each, as a fraction, with all that names it (docs/protocols.md)."""

from __future__ import annotations

import functools
import math
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from crosslign.errors import InputError
from crosslign.files import read_json
from crosslign.paths import origin_files

SHARES = {"accuracy", "f1", "precision", "recall", "map", "mrr", "purity", "error_rate", "recall_cap", "exact_match", "top1_in_gold"}
SHARES |= {"isotropy", "isotropy_low", "isotropy_high"}
SIGNED = {"spearman", "pearson", "kendall", "cosine"}
AT = re.compile(r"(_at_|@)\d+$")
ROUNDING = 1e-9
RECORD = {"eval", "subset", "metric", "value"}
"""What each record of a score file has."""
NAMES = ("eval", "subset", "metric", "protocol", "direction")
"""Fields that a record is found by: texts."""
TEXTS = ("run_id", "checkpoint", "threshold_from", "status", "reason", "note")
COUNTS = ("n_items", "seed")
"""Further fields that are read where a record has them: texts, and whole numbers."""
ThresholdFrom = Literal["dev", "train", "same_gold", "none"]
"""Where a threshold was tuned."""
KEPT = 16
"""Score files whose records are kept in memory; of the largest, Tatoeba's, each takes some megabytes."""


def bounds_of(metric: str) -> tuple[float, float]:
    """Return the least and the greatest value that a metric can have, by its name: `macro_f1` and `map_at_20` are shares."""
    name = AT.sub("", metric)
    names = {name, name.rpartition("_")[2]}
    if names & SHARES:
        return 0.0, 1.0
    return (-1.0, 1.0) if names & SIGNED else (-math.inf, math.inf)


def check_value(record: Mapping[str, Any], where: str) -> None:
    """Refuse a score that its metric cannot have.

    Args:
        record: `metric`, `value`, `ci_low` and `ci_high`, and `eval` and `subset` for the message; None is undefined, and passes.
        where: the score file.

    Raises:
        InputError: what is not a finite number (a truth value, a text), a value beyond the bounds of the metric, or an interval that
            ends below its beginning.
    """
    low, high = bounds_of(str(record["metric"]))
    start = -math.inf if record.get("ci_low") is None else record["ci_low"]
    for key, least, most in (("value", low, high), ("ci_low", -math.inf, math.inf), ("ci_high", start, math.inf)):
        found = record.get(key)
        number = isinstance(found, int | float) and not isinstance(found, bool) and abs(found) <= sys.float_info.max
        if found is not None and not (number and least - ROUNDING <= found <= most + ROUNDING):
            raise InputError(
                f"{record['metric'] if key == 'value' else key} is {repr(found)[:40]}",
                where=f"{where}: {record['eval']}/{record['subset']}",
                why=f"it must lie between {least:g} and {most:g}" if number else "it must be a finite number",
                do="Delete the score file: the next run rebuilds it. Report it if the problem returns",
            )


@dataclass(frozen=True)
class Record:
    """One metric of one evaluation.

    Attributes:
        eval: task id.
        subset: language, pair, named set or average.
        metric: name of the metric, such as `f1`, `accuracy`, `spearman`.
        value: a fraction (a correlation lies in [-1, 1]); None where it is undefined.
        direction: `xx2en`, `en2xx`, `mean`, or empty.
        protocol: which reading of the evaluation this is, or empty.
        n_items: how many items the value depends on.
        threshold: decision threshold, or None.
        threshold_from: where the threshold was tuned.
        main: whether this is the task's main score.
        ci_low, ci_high: 95 % interval of the value, or None.
        status: `undefined` where there is nothing to measure, `collapsed` where all vectors are alike.
        reason: why, in one clause, when status is not `ok`.
        note: what else a table is to say of the value, in a footnote; a score file leaves an empty one out.
    """

    eval: str
    subset: str
    metric: str
    value: float | None
    n_items: int
    direction: str = ""
    protocol: str = ""
    threshold: float | None = None
    threshold_from: ThresholdFrom = "none"
    main: bool = False
    ci_low: float | None = None
    ci_high: float | None = None
    status: Literal["ok", "undefined", "collapsed"] = "ok"
    reason: str = ""
    note: str = ""


class NoRecordError(InputError):
    """A score file that has no record for a cell."""


def records_of(path: Path) -> list[dict[str, Any]]:
    """Return the records of a score file.

    Raises:
        InputError: the file is missing, or is none; names it, and the target to run.
    """
    try:
        stat = path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError("file is missing", where=str(path), do=f"Run snakemake --cores all -- {shlex.quote(str(path))}") from error
    except OSError as error:
        raise InputError("cannot be read", where=str(path), why=str(error.strerror)) from error
    return _read_records(path, (stat.st_mtime_ns, stat.st_size, stat.st_ino))


@functools.lru_cache(maxsize=KEPT)
def _read_records(path: Path, version: tuple[int, ...]) -> list[dict[str, Any]]:
    """Read the records of one version of a score file: the cells of a row mostly read the same few files."""
    content = read_json(path)
    records = content.get("records") if isinstance(content, dict) else None
    if not isinstance(records, list) or not all(map(_is_record, records)):
        why = f"it must have `records`, each with {', '.join(sorted(RECORD))}"
        raise InputError("not a score file", where=str(path), why=why, do="Delete it; the next run rebuilds it")
    return records


def _is_record(record: Any) -> bool:
    """Tell whether a record can be found: it has all fields, and texts where it is found by them."""
    return isinstance(record, dict) and record.keys() >= RECORD and all(isinstance(record.get(key), str | None) for key in NAMES)


def checked_records(path: Path) -> list[dict[str, Any]]:
    """Return the records of a score file, each looked at: values that their metrics can have, fields of the right kinds.

    Raises:
        InputError: as `records_of`, and where one is neither.
    """
    records = records_of(path)
    for record in records:
        _check(record, str(path))
    return records


def _check(record: Mapping[str, Any], where: str) -> None:
    """Refuse a record with a value that its metric cannot have, or whose fields are of the wrong kind.

    Raises:
        InputError: names file, evaluation, subset and field.
    """
    check_value(record, where)
    wrong = [(key, "a text") for key in TEXTS if not isinstance(record.get(key) or "", str)]
    wrong += [(key, "a whole number, 0 or more") for key in COUNTS if not isinstance(found := record.get(key) or 0, int) or found < 0]
    if not isinstance(record.get("threshold") or 0.0, int | float):
        wrong.append(("threshold", "a number"))
    if wrong:
        key, kind = wrong[0]
        what, place = f"{key} is {repr(record[key])[:40]}", f"{where}: {record['eval']}/{record['subset']}"
        raise InputError(
            what, where=place, why=f"it must be {kind}", do="Ask the authors of the scores, or delete the file: the next run computes ours"
        )


def find_record(path: Path, select: Mapping[str, str]) -> dict[str, Any]:
    """Return the one record of a score file that fits `select` (task, subset, metric, protocol, direction); what it lacks is empty.

    Raises:
        InputError: the file is missing; none fits, or more than one; names the file, what it holds and the target to run.
    """
    records = records_of(path)
    wanted = {("eval" if key == "task" else key): value for key, value in select.items()}
    found = [record for record in records if all((record.get(key) or "") == value for key, value in wanted.items())]
    if len(found) != 1:
        held = sorted({f"{r['metric']}/{r['subset']}/{r.get('protocol') or ''}/{r.get('direction') or ''}" for r in records})
        why = f"it has (metric/subset/protocol/direction): {', '.join(held[:12])}"
        place, asked = shlex.quote(str(path)), ", ".join(f"{key} {value}" for key, value in wanted.items() if value)
        do = "Name subset, metric, protocol and direction of the column; if the file lost records, "
        kind = InputError if found else NoRecordError
        raise kind(
            f"{len(found)} records fit {asked}", where=str(path), why=why, do=f"{do}snakemake --cores all --forcerun {place} -- {place}"
        )
    _check(found[0], str(path))
    return {**found[0], **{key: found[0].get(key) or "" for key in ("protocol", "direction")}}


def origins(results: Path, scores: Sequence[str]) -> list[str]:
    """Return whose scores these are, where they are not ours: the first line of an `origin.txt` beside a score file or above it.

    Args:
        results: the `{results}` folder.
        scores: score files, relative to it; folders are searched up to its `scores`.
    """
    notes = dict.fromkeys(note for score in scores for note in origin_files(results, score))
    return sorted({_first_line(note) or "another group" for note in notes})


def _first_line(note: Path) -> str:
    with note.open(encoding="utf-8-sig", errors="replace") as file:
        return file.read(1000).strip().partition("\n")[0][:200]
