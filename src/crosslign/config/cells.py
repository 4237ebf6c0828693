"""Tables resolved: each cell leads to score files or to a reason, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from crosslign.config.baselines import ONLY_PUBLISHED, baseline_rows, layout_of, named_columns
from crosslign.config.budgets import spent_by
from crosslign.config.entry_keys import head_of
from crosslign.config.graph import corpus_path
from crosslign.config.kept_out import not_searched
from crosslign.config.members import why_unread
from crosslign.config.project import Project, remembered
from crosslign.config.resolve import (
    base_checkpoint,
    checkpoint_name,
    encoder_at_scale,
    encoders_under,
    entry_of,
    is_untrained,
    readout_name,
    resolve,
    runs_of,
    seeds_of,
    value_at,
)
from crosslign.config.targets import covered
from crosslign.config.uses import why_missing
from crosslign.entries.papers import Column, Table
from crosslign.entries.resolved import ResolvedCell, ResolvedTable
from crosslign.errors import InputError
from crosslign.paths import COUNTS, origin_files, resamples_path

SELECT = ("task", "subset", "metric", "protocol", "direction")
READ = ("readout", "length")
"""How vectors are read: a table may say it for all its cells, a row for its own, a column for its own."""
SHARED = ("seeds", *READ)
"""What a table says for all its rows."""
SYSTEMS = "systems"
"""What is counted of runs: what their trainings asked of the encoder."""
Found = Callable[[str, Mapping[str, Any]], Iterable[str]]
OF_ROW = ("protocol", "direction")
"""What a row may say for all its columns."""


def _in_column(row: Mapping[str, Any], column: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a row says of itself in one column alone."""
    own: Mapping[str, Any] = row.get("columns", {}).get(column.get("label"), {})
    return own


def system_of(row: Mapping[str, Any], column: Mapping[str, Any]) -> str:
    """Return the system of a cell: the row's, with the column's variant in place of `*`, and the column's fine-tune on top."""
    system = str({**row, **_in_column(row, column)}["system"]).replace("*", str(column.get("variant", "*")))
    return system + (f"+{column['finetune']}" if "finetune" in column else "")


def _row_systems(table: Table) -> list[set[str]]:
    """Return the systems of each row of a table's entry; none of rows that are not run."""
    scored = [column for column in table["columns"] if is_scored(column)]
    return [{system_of(row, column) for column in scored if "system" in row and not row.get("reason")} for row in table["rows"]]


def row_systems(project: Project, table: Table) -> list[list[str]]:
    """Return the trained systems of each row of a table's entry; none of rows that are not run."""
    return [sorted(system for system in systems if not is_untrained(project, system)) for systems in _row_systems(table)]


def is_scored(column: Column) -> bool:
    """Tell whether a column shows evaluations of its own: one, or the mean of several that no column shows."""
    return "task" in column or any(not isinstance(part, str) for part in column.get("mean_of", []))


def column_facts(column: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the parts of an average take over from its column."""
    return {key: column[key] for key in (*READ, "checkpoint", "finetune", "variant") if key in column}


def _named_reading(project: Project, row: Mapping[str, Any], column: Mapping[str, Any]) -> dict[str, Any]:
    """Return how the column says that vectors are read, or the row; what a fine-tune made is read as the fine-tune says."""
    of_row = () if "finetune" in column or project.tasks[column["task"]]["output"] == "logits" else READ
    own = _in_column(row, column)
    return {key: said[key] for said in (row, column, own) for key in READ if key in said and (said is not row or key in of_row)}


def resolved_cell(project: Project, row: Mapping[str, Any], column: Mapping[str, Any]) -> ResolvedCell:
    """Return one cell: `scores` (a path a run) with what to select from them, `parts` or `mean_of` of an average, or `reason`.

    Scores that are there need no data: they may have come from elsewhere.
    """
    if "mean_of" in column:
        parts = column["mean_of"]
        if all(isinstance(part, str) for part in parts):
            return {"mean_of": parts}
        return {"parts": [resolved_cell(project, row, {**column_facts(column), **part}) for part in parts]}
    reason = row.get("reason", "") or column.get("reason", "")
    if "system" not in row or reason:
        return {"reason": reason or why_missing(project, "task", column["task"]) or ONLY_PUBLISHED}
    column = {**column, **{key: said[key] for said in (row, _in_column(row, column)) for key in OF_ROW if key in said}}
    system, task = system_of(row, column), column["task"]
    if project.tasks[task]["output"] == "logits" and (is_untrained(project, system) or head_of(entry_of(project, system)) is None):
        return {"reason": why_missing(project, "task", task) or f"{task} needs a classification head: no fine-tune is named"}
    checkpoint = checkpoint_name(project, system, task, column)
    readout = readout_name(project, system, task, _named_reading(project, row, column))
    scores = [project.paths.score(run, checkpoint, readout, task) for run in runs_of(project, system, row.get("seeds"))]
    reason = why_missing(project, "task", task) or why_missing(project, "system", system)
    reason = reason or why_unread(project, system, project.tasks[task]["texts"].values()) or _not_sent(project, scores)
    if reason and not all(path.exists() for path in scores):
        return {"reason": reason}
    select = {"protocol": "", "direction": "", **{key: column[key] for key in SELECT if key in column}}
    return {"scores": [str(path.relative_to(project.paths.results)) for path in scores], "select": select}


@remembered
def origins_at(project: Project, folder: Path) -> list[Path]:
    """Return the `origin.txt` in a folder of scores or above it, as `origin_files` finds them; looked for once in a process."""
    return origin_files(project.paths.results, (folder / "*").relative_to(project.paths.results).as_posix())


def _not_sent(project: Project, scores: Sequence[Path]) -> str:
    """Return the missing scores of folders that another group made; nothing is computed into these."""
    absent = (path for path in scores if origins_at(project, path.parent) and not path.exists())
    folders = [origins_at(project, path.parent)[0].parent.relative_to(project.paths.results) for path in absent]
    return f"not among the scores of another group in {folders[0]}" if folders else ""


def counted(row: Mapping[str, Any], column: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a column of counts counts in a row (`corpora`, `examples`, `subset`, `count`); empty where nothing is named."""
    named: Mapping[str, Any] = row.get("data", {}).get(column["of"], {})
    return named


def _count_cell(project: Project, table: str, row: Mapping[str, Any], column: Mapping[str, Any]) -> ResolvedCell:
    """Return a cell that is counted: one record of the table's counts, the sum of several, or the main metric of a task by its name."""
    named = counted(row, column)
    if "metric_of" in named:
        return {"text": str(project.tasks[named["metric_of"]]["main"]["metric"])}
    reason = row.get("reason", "") or column.get("reason", "") or named.get("reason", "")
    needed = [("corpus", name) for name in named.get("corpora", [])] + [("examples", name) for name in named.get("examples", [])]
    reason = reason or next(filter(None, (why_missing(project, *need) for need in needed)), "")
    if reason or not named:
        return {"reason": reason or ONLY_PUBLISHED}
    fixed = {"task": COUNTS, "metric": named.get("count", column["count"]), "subset": named.get("subset", column.get("subset", "all"))}
    scores = [str(project.paths.counts(table).relative_to(project.paths.results))]
    cells: list[ResolvedCell] = [
        {"scores": scores, "select": {**fixed, "direction": kind, "protocol": name}}
        for kind in ("corpora", "examples")
        for name in named.get(kind, [])
    ]
    return cells[0] if len(cells) == 1 else {"parts": cells, "total": True}


def _setting_cell(project: Project, row: Mapping[str, Any], column: Mapping[str, Any]) -> ResolvedCell:
    """Return a cell that shows a setting of a system's recipe, as this scale trains it: `text`, or a reason."""
    if "setting" not in row:
        return {"reason": row.get("reason", "") or ONLY_PUBLISHED}
    return {"text": setting_of(project, column["setting_of"], row["setting"])}


def setting_of(project: Project, system: str, setting: str) -> str:
    """Return a setting of a trained system's recipe, such as `train.learning_rate` or `terms.0.batch`; `gpus` is the run's own.

    Raises:
        InputError: it has none of that name.
    """
    if setting == "gpus":
        return str(project.gpus)
    try:
        return str(value_at(resolve(project, system, seeds_of(project, system)[0]), setting))
    except InputError as error:
        raise InputError(f"{system} has no setting {setting!r}", why=error.why) from error


@remembered
def counted_rows(project: Project, table: str) -> dict[tuple[str, str], Path]:
    """Return what a table counts, by (`corpora`, `examples` or `systems`, id): rows of corpora and training sets, folders of runs."""
    resolved = resolve_table(project, table)
    cells = [cell for row in resolved["cells"] for cell in row]
    selects = [part["select"] for cell in cells for part in cell.get("parts", [cell]) if "scores" in part]
    named = {(select["direction"], select["protocol"]) for select in selects if select["task"] == COUNTS}
    named |= {(SYSTEMS, run) for row in resolved.get("spent", ()) for chain in row for run in chain}
    place = {"corpora": lambda name: corpus_path(project, name), "examples": project.paths.examples, SYSTEMS: project.paths.system}
    return {(kind, name): place[kind](name) for kind, name in sorted(named)}


@remembered
def _chosen_by(project: Project, system: str, checkpoint: str) -> set[str]:
    """Return the evaluations by which a checkpoint, and the one that its system goes on from, were chosen."""
    if is_untrained(project, system):
        return set()
    entry = entry_of(project, system)
    select, base = entry.get("select", {}).get(checkpoint), entry["base"]
    before = _chosen_by(project, base["system"], base_checkpoint(project, base)) if "system" in base else set()
    return before | ({select["task"]} if select else set())


def evaluated(columns: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the columns that show an evaluation, in place of an average the parts that it names."""
    parts = [{**column_facts(column), **part} for column in columns for part in column.get("mean_of", []) if not isinstance(part, str)]
    return [*(dict(column) for column in columns if "task" in column), *parts]


def _row_notes(table: Table, columns: Iterable[Mapping[str, Any]], text: str, found: Found) -> list[dict[str, Any]]:
    """Return a footnote for each row of which something is found: `text` with the evaluations, or evaluation corpora, in question.

    Args:
        table: its entry.
        columns: those that are looked at.
        text: of the footnotes.
        found: gives what is to be named of a system in a column.
    """
    notes = []
    for number, row in enumerate(table["rows"]):
        named = {one for column in columns if "system" in row for one in found(system_of(row, column), column)}
        notes += [{"at": {"number": number}, "text": text.format(", ".join(sorted(named)))}] if named else []
    return notes


def _notes(project: Project, table: Table) -> list[dict[str, Any]]:
    """Return the footnotes of a table's tasks, of checkpoints chosen by an evaluation, and of text that evaluations may stand in."""
    shown = evaluated(table["columns"])
    asked = [column for column in shown if not why_missing(project, "task", column["task"])]

    def chosen_by(system: str, column: Mapping[str, Any]) -> Iterable[str]:
        return _chosen_by(project, system, checkpoint_name(project, system, column["task"], column))

    return [
        *_task_notes(project, table["columns"]),
        *_row_notes(table, shown, "checkpoint chosen by {}", chosen_by),
        *_row_notes(
            table,
            asked,
            "training text was not searched for sentences of {}",
            lambda system, column: not_searched(project, system, column["task"]),
        ),
    ]


def _task_notes(project: Project, columns: Sequence[Column]) -> list[dict[str, Any]]:
    return [
        {"at": {"column": column["label"]}, "text": project.tasks[column["task"]]["footnote"]}
        for column in columns
        if "task" in column and "footnote" in project.tasks[column["task"]]
    ]


def _any_cell(project: Project, table: str, row: Mapping[str, Any], column: Mapping[str, Any]) -> ResolvedCell:
    if "count" in column:
        return _count_cell(project, table, row, column)
    return _setting_cell(project, row, column) if "setting_of" in column else resolved_cell(project, row, column)


def _replaced_encoders(project: Project, table: Table) -> dict[str, str]:
    """Return the encoders that this scale replaces, among those that the systems of a table name, with their replacements."""
    named = {name for systems in _row_systems(table) for system in systems for name in encoders_under(project, system).values()}
    used = {name: encoder_at_scale(project, name) for name in named}
    return {name: other for name, other in sorted(used.items()) if name != other}


@remembered
def resolve_table(project: Project, table: str) -> ResolvedTable:
    """Return a table with every cell resolved: what the table rule gets as its parameter.

    Returns:
        the table's entry with `id`, `paper`, `scale`, `stand_in`, `encoders` (which one stands for which at this scale), `cells` (a list
        of rows of cells, as the table's rows and columns stand) and `footnotes` (the table's own, then those of its tasks and of
        checkpoint selection).

    Raises:
        InputError: a row is compared with one that is not there, or LaTeX is to print a column that is not there.
    """
    entry = project.tables[table]
    rows, columns = entry["rows"], entry["columns"]
    baseline_rows(rows)
    named_columns(columns, layout_of(entry).get("latex", []))
    shared = {key: value for key, value in entry.items() if key in SHARED}
    cells = [[_any_cell(project, table, {**shared, **row}, column) for column in columns] for row in rows]
    resolved = {
        **{key: value for key, value in entry.items() if key != "on_request"},
        "id": table,
        "paper": project.paper_of[table],
        "scale": project.settings["scale"],
        "stand_in": project.stand_in,
        "encoders": _replaced_encoders(project, entry),
        **spent_by(project, entry, row_systems(project, entry)),
        "cells": cells,
        "footnotes": [*entry.get("footnotes", []), *_notes(project, entry)],
    }
    return cast(ResolvedTable, resolved)


def cell_parts(resolved: ResolvedTable, row: int, column: int) -> list[tuple[str, ResolvedCell]]:
    """Return the resolved cells that hold a cell's scores, each with its column's label; more than one for averages and sums."""
    cell, labels = resolved["cells"][row][column], [entry["label"] for entry in resolved["columns"]]
    if "mean_of" in cell:
        return [part for label in cell["mean_of"] for part in cell_parts(resolved, row, labels.index(label))]
    return [(labels[column], part) for part in cell.get("parts", [cell])]


def scores_behind(cell: ResolvedCell) -> list[str]:
    """Return the score files that a resolved cell reads, those of its parts included, relative to `{results}`."""
    return [*cell.get("scores", []), *(score for part in cell.get("parts", []) for score in scores_behind(part))]


def table_files(resolved: ResolvedTable) -> set[str]:
    """Return the score files that a resolved table reads, relative to `{results}`."""
    return {score for row in resolved["cells"] for cell in row for score in scores_behind(cell)}


def resamples_behind(project: Project, scores: Iterable[str]) -> set[Path]:
    """Return the resamples of score files that must be there; scores of another group may have come without."""
    tested = [project.paths.results / score for score in scores]
    return {resamples_path(path) for path in tested if not origins_at(project, path.parent) or resamples_path(path).exists()}


@remembered
def table_scores(project: Project, table: str) -> list[Path]:
    """Return every score file that a table reads, sorted, and the resamples where it tests differences.

    Scores of another group may have come without resamples; their cells are then not tested.
    """
    resolved, layout = resolve_table(project, table), layout_of(resolve_table(project, table))
    scores = table_files(resolved)
    counts = {project.paths.counts(table)} if any(resolved.get("spent", ())) else set()
    compared = layout.get("significance") == "paired_bootstrap" or layout.get("ties")
    resamples = resamples_behind(project, scores) if compared else set()
    return sorted({project.paths.results / score for score in scores} | resamples | counts)


def _words(entry: Mapping[str, Any]) -> dict[str, str]:
    return {"title": str(entry["title"]), "caption": str(entry.get("caption", ""))}


@remembered
def overview(project: Project) -> dict[str, Any]:
    """Return what overview and report show: tables, resolved; id, paper, title and caption of figures.

    They come in the order of the papers, and those of pairs of languages behind them.
    """
    papers = project.settings["papers"]
    order = {paper: place for place, paper in enumerate([*papers, *(one for one in project.paper_of.values() if one not in papers)])}
    covered_tables, covered_figures = covered(project)
    tables = [resolve_table(project, name) for name in covered_tables]
    figures = [{"id": name, "paper": project.paper_of[name], **_words(project.figures[name])} for name in covered_figures]
    return {
        "tables": sorted(tables, key=lambda table: order[table["paper"]]),
        "figures": sorted(figures, key=lambda figure: order[figure["paper"]]),
        "scale": project.settings["scale"],
        "stand_in": project.stand_in,
    }
