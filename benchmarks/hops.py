"""Which files and functions of the library one training step, and one table cell, run through; where a new loss or evaluation is named.

A reader who asks what happens in a step has to open these files. The step is the third of a training by plain InfoNCE on pairs, on a
CPU; the cell is a Tatoeba accuracy, from embeddings on disk to a line of a CSV. Imports are no hops, comprehensions no functions.

The places of a new loss are the files that name `cosine_regression`, those of a new evaluation the files that name `xcopa` (an evaluation
corpus of a format of its own, and its task), in code, schemas and catalog; recipes and tables that use them, documentation and tests do not
count.

    python benchmarks/hops.py [--list]

Last lines: the number of files and functions of each, as `step: … files, … functions`. No clock is read: the figures are the same on every
machine.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from _common import ROOT, parser
from _training import tokenised

import crosslign

SOURCE = Path(crosslign.__file__).resolve().parent
"""Of the library as it is imported, which need not be that of this checkout."""
WORDS = [
    "the", "sea", "and", "land", "were", "calm", "when", "we", "saw", "two", "birds", "over", "a", "far", "hill", "by", "night", "or",
    "day",
]  # fmt: skip
LOSS, EVALUATION = "cosine_regression", "xcopa"
USES = ("config/papers", "catalog/papers", "docs", "tests", "resources")


class Hops:
    """Functions of the library that were entered, by file."""

    def __init__(self) -> None:
        self.entered: Counter[tuple[str, str]] = Counter()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Take note of a call (a profile function)."""
        code = frame.f_code
        if event == "call" and not code.co_qualname.rpartition(".")[2].startswith("<") and code.co_filename.startswith(str(SOURCE)):
            self.entered[str(Path(code.co_filename).relative_to(SOURCE)), code.co_qualname] += 1

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count while the block runs."""
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)

    @property
    def files(self) -> list[str]:
        """The files, sorted."""
        return sorted({file for file, _ in self.entered})


def sentences(count: int) -> list[str]:
    """Return distinct sentences of a few words."""
    draw = np.random.default_rng(1)
    return [" ".join(draw.choice(WORDS, 6)) + f" {number}" for number in range(count)]


def encoder(work: Path) -> Path:
    """Make a tiny encoder with random weights; return its folder."""
    from crosslign.encoders.prepare import prepare_encoder

    (work / "words.tsv").write_text("\n".join(sentences(64)), encoding="utf-8")
    entry: Any = {
        "construct": {"architecture": "bert", "layers": 2, "hidden": 32, "heads": 2, "intermediate": 64, "vocabulary": 256, "seed": 1}
    }
    prepare_encoder("tiny", entry, {"words.tsv": work / "words.tsv"}, work / "tiny")
    return work / "tiny" / "main"


def step(work: Path) -> Hops:
    """Return what the third step of a training by InfoNCE enters."""
    from crosslign.encoders.model import Model
    from crosslign.files import write_rows
    from crosslign.training import fit

    texts, ids = sentences(64), [str(i) for i in range(32)]
    columns = {
        "id": ids,
        "rows": [[i] for i in ids],
        "a_text": texts[:32],
        "a_lang": ["en"] * 32,
        "b_text": texts[32:],
        "b_lang": ["de"] * 32,
    }
    write_rows(work / "pairs.parquet", pa.table(columns), "pairs")
    readout = {"pooling": "mean", "layer": -1, "max_length": 16, "normalise": True, "precision": "fp32", "prefix": ""}
    train = {"steps": 4, "learning_rate": 1e-3, "schedule": "linear", "clip": 1.0, "precision": "fp32", "max_length": 16, "threads": 1}
    terms = [{"objective": "infonce", "examples": "pairs", "batch": 8}]
    recipe: Any = {"system": "s", "seed": 1, "parts": {}, "terms": terms, "train": train, "select": {}, "readout": readout}
    hops, real = Hops(), fit._Run.step

    def third(run: Any) -> Any:
        if run.done != 2:
            return real(run)
        with hops.counted():
            return real(run)

    with patch.object(fit._Run, "step", third):
        model = Model.load({"main": encoder(work)})
        fit.fit(recipe, tokenised(recipe, work / "pairs.parquet", model, work), model, {}, None, work / "run", work / "work")
    return hops


def cell(work: Path) -> Hops:
    """Return what a cell enters, from embeddings and evaluation corpus to a line of CSV."""
    from crosslign.corpora.evaluation import EvaluationBuilder
    from crosslign.reporting.formats import build_table
    from crosslign.tasks.score import HEAD, IN_EACH_RECORD, score_run

    builder, texts = EvaluationBuilder("tatoeba"), sentences(32)
    for number in range(16):
        for role, lang, text in (("source", "de", texts[number]), ("target", "en", texts[16 + number])):
            builder.item(f"{role}{number}", "de-en", role, lang, text)
        builder.link("de-en", f"source{number}", f"target{number}")
    tables = {part: work / f"{part}.parquet" for part in ("texts", "items", "gold")}
    builder.build().write(tables)
    np.save(work / "matrix.npy", np.random.default_rng(1).normal(size=(32, 8)).astype(np.float32))
    main = {"subset": "de-en", "metric": "accuracy", "direction": "xx2en"}
    task: Any = {"scorer": "retrieval", "texts": {"texts": "tatoeba"}, "main": main, "averages": {}}
    context = {**dict.fromkeys((*HEAD, *IN_EACH_RECORD), "x"), "seed": 1}
    (work / "published").mkdir()
    column = {"label": "de", "group": "", **main, "task": "tatoeba"}
    select = {"task": "tatoeba", "subset": "de-en", "metric": "accuracy", "protocol": "", "direction": "xx2en"}
    table: Any = {
        "id": "t", "title": "T", "caption": "", "columns": [column], "rows": [{"label": "s", "group": "", "system": "s"}], "footnotes": [],
        "cells": [[{"scores": ["tatoeba.json"], "select": select}]], "scale": "paper", "stand_in": False, "encoders": {}, "paper": "p",
        "print": {},
    }  # fmt: skip
    score_run("tatoeba", task, {"texts": work / "matrix.npy"}, {"texts": tables}, work / "first.json", context)  # modules are loaded now
    hops = Hops()
    with hops.counted():
        score_run("tatoeba", task, {"texts": work / "matrix.npy"}, {"texts": tables}, work / "tatoeba.json", context)
        build_table(table, work, work / "published", {"csv": work / "t.csv"})
    return hops


def places(name: str) -> list[str]:
    """Return the files that name an implementation and are written by hand, and its own module."""
    found = []
    for path in sorted(path for folder in ("src", "workflow", "config") for path in (ROOT / folder).rglob("*")):
        relative = path.relative_to(ROOT)
        if path.suffix not in (".py", ".smk", ".yaml") or any(use in str(relative) for use in USES):
            continue
        if path.stem == name or re.search(rf"\b{name}\b", path.read_text(encoding="utf-8")):
            found.append(str(relative))
    return found


def main() -> None:
    """Print the figures."""
    arguments = parser(__doc__)
    arguments.add_argument("--list", action="store_true", help="name the files, with the functions entered in each")
    listed = arguments.parse_args().list
    traced: dict[str, Callable[[Path], Hops]] = {"step": step, "cell": cell}
    lines = []
    for name, trace in traced.items():
        with tempfile.TemporaryDirectory() as work:
            hops = trace(Path(work))
        if not hops.files:
            sys.exit(f"{name}: no function below {SOURCE} was entered")
        for file in hops.files if listed else ():
            print(f"{name}: {file}: {', '.join(function for at, function in hops.entered if at == file)}")
        lines.append(f"{name}: {len(hops.files)} files, {len(hops.entered)} functions")
    for name, implementation in (("loss", LOSS), ("evaluation", EVALUATION)):
        found = places(implementation)
        print(f"a new {name}: {', '.join(found)}")
        lines.append(f"{name}: {len(found)} places")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
