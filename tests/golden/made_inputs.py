"""What golden results are made of: every entry of config/ and its papers at scale quick, and their inputs, made as they are asked for."""

from __future__ import annotations

import functools
import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crosslign.config import graph
from crosslign.config.catalog import reader_of
from crosslign.config.load import load_project
from crosslign.config.settings import read_settings
from crosslign.config.versions import code_behind
from crosslign.corpora import EVALUATIONS, READERS, Given
from crosslign.corpora.build_evaluation import Tables
from crosslign.corpora.columns import SIDES
from crosslign.corpora.evaluation import Evaluation
from crosslign.corpora.stand_ins._file import write_file
from crosslign.corpora.stand_ins._sentences import load_sentences
from crosslign.files import write_rows
from crosslign.files.home import own_folder
from crosslign.paths import CATALOG
from crosslign.registry import options_of
from crosslign.views import VIEWS, Setting
from crosslign.views.build import view_schema

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(tempfile.mkdtemp(prefix="crosslign-golden-"))
"""Removed when the tests end."""
ROWS, ITEMS = 120, 20
"""Rows of a corpus, and items of a subset, that results are made of."""
ALL = 10**9
NAMES = ("member", "codes", "sides", "file_langs")
"""Options that say how something is called: one value of them stands for all."""


@functools.cache
def project():
    """Return the project with every paper, at scale quick."""
    papers = sorted(path.stem for path in (CATALOG / "papers").glob("*.yaml"))
    given = {"scale": "quick", "papers": papers, "results": str(FOLDER / "results")}
    return load_project(ROOT, read_settings([ROOT / "config" / "config.yaml"], given))


@functools.cache
def sentences():
    return load_sentences(CATALOG / "resources" / "written")


def digest(value: Any) -> str:
    """Return 16 hexadecimal digits of a value that JSON can hold."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def rows_digest(table: pa.Table) -> str:
    """Return the SHA-256 of a table's rows and columns, whatever the Parquet writer of the day makes of them."""
    return hashlib.sha256(json.dumps([table.column_names, table.to_pylist()], ensure_ascii=False).encode()).hexdigest()


def first_rows(tables, rows: int = ROWS) -> pa.Table:
    """Return the first rows of a stream of tables."""
    taken, left = [], rows
    for table in tables:
        taken.append(table.slice(0, left))
        left -= taken[-1].num_rows
        if left <= 0:
            break
    return pa.concat_tables(taken)


@functools.cache
def download(source: str, file: str) -> Path:
    """Return a file of a source, written as its stand-in, or the project's own."""
    entry, path = project().sources[source], project().paths.download(source, file)
    if "stand_in" not in entry:
        return own_folder(entry["local"]) / next(f.get("path", f["name"]) for f in entry["files"] if f["name"] == file)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, entry["stand_in"], file, sentences())
    return path


def files_of(corpus: str) -> dict[str, Path]:
    """Return the files that a corpus is read from; few of them, where it has hundreds."""
    entry = project().corpora[corpus]
    names = list(graph.own_files(project(), project().corpora[corpus]))
    return {name: download(entry["source"], name) for name in names}


@functools.cache
def corpus(name: str) -> pa.Table:
    """Return the first rows of a corpus or view as its reader gives them, not filtered."""
    if name in project().views:
        return view(name)
    entry = project().corpora[name]
    read = READERS.get(entry["reader"])
    return first_rows(
        read(files_of(name), name, entry.get("langs", ()), **entry.get("options", {})),
        ALL if name in _whole() or entry["kind"] == "multiway" else ROWS,
    )


@functools.cache
def _whole() -> set[str]:
    """Return the corpora that others are made of: of these all rows are wanted, since languages may follow one another."""
    sets = (name for name, entry in project().corpora.items() if entry["kind"] == "evaluation")
    return {one for name in sets for one in graph.corpus_references(project(), name)} | {
        one for made in (project().examples, project().views) for entry in made.values() for one in entry.get("from", [])
    }


@functools.cache
def corpus_file(name: str) -> Path:
    path = FOLDER / "corpora" / f"{name}.parquet"
    table = corpus(name)
    schema = view_schema(kind_of(name)) if name in project().views else kind_of(name)
    write_rows(path, table, schema)
    return path


def kind_of(name: str) -> str:
    """Return the kind of a corpus's rows, or of the rows that a view copies."""
    return kind_of(project().views[name]["from"][0]) if name in project().views else project().corpora[name]["kind"]


@functools.cache
def view(name: str) -> pa.Table:
    """Return the copies of the first rows of a view's corpora."""
    entry = project().views[name]
    named = {one: corpus_file(one) for one in graph.view_inputs(project(), name)}
    builder = VIEWS.get(entry["builder"])(Setting(name, named, entry["seed"]), **options_of("views", entry))
    return pa.concat_tables([builder.augment(corpus(one).slice(0, 10 * ROWS), SIDES[kind_of(one)]) for one in entry["from"]])


@functools.cache
def evaluation(name: str) -> Evaluation:
    """Return an evaluation corpus of few items."""
    entry = project().corpora[name]
    langs = entry.get("langs", ())
    others = {part: evaluation(part) for part in entry.get("of", [])}
    named = {one: corpus_file(one) for one in graph.corpus_references(project(), name)}
    tables = Tables(named, {*langs, entry.get("options", {}).get("pivot", "en")} if langs else ())
    read = EVALUATIONS.get(reader_of(entry))
    return read(Given(files_of(name), tables, name, langs, ITEMS, entry.get("seed", 42), others), **entry.get("options", {}))


@functools.cache
def evaluation_texts(name: str) -> Path:
    path = FOLDER / "evaluations" / f"{name}.parquet"
    write_rows(path, evaluation(name).texts, "texts")
    return path


def vectors(*named: Any, rows: int, size: int = 16) -> np.ndarray:
    """Return vectors that are one function of what names them."""
    seed = int(hashlib.sha256(repr(named).encode()).hexdigest()[:8], 16)
    return np.random.default_rng(seed).standard_normal((rows, size)).astype(np.float32)


def behind_corpora(names) -> set[str]:
    """Return the modules that rows of corpora, views and evaluation corpora depend on, stages left out: here none takes part."""
    found: set[str] = set()
    for name in names:
        if name in project().views:
            rule, entry, parts = "build_view", project().views[name], graph.view_inputs(project(), name)
        else:
            entry = {key: value for key, value in project().corpora[name].items() if key != "filters"}
            rule = "build_evaluation" if entry["kind"] == "evaluation" else "build_corpus"
            parts = [*graph.corpus_references(project(), name), *entry.get("of", [])]
            parts = [part for part in parts if part in [*entry.get("from", []), *entry.get("of", [])]]
            kind = project().sources[entry["source"]].get("stand_in") if "source" in entry else None
            found |= {f"crosslign.corpora.stand_ins.{kind}"} if kind else set()
        found |= set(list(code_behind(rule, {"entry": entry}).values())[1:]) | behind_corpora(parts)
    return found


def cover(point, entries, kept):
    """Return few of many entries that together have every value of every option that any of them has.

    Args:
        point: of the implementations.
        entries: (implementation, name, options) each.
        kept: (`point/implementation`, name) of what is kept: these come first, so that another paper changes none.
    """
    chosen, seen = [], set()
    for implementation, name, options in sorted(entries, key=lambda one: (f"{point}/{one[0]}", one[1]) not in kept):
        values = {(implementation, key, "" if key in NAMES else digest(value)) for key, value in {**options, "": None}.items()}
        if (f"{point}/{implementation}", name) in kept or values - seen:
            chosen.append((implementation, name, options))
            seen |= values
    return chosen
