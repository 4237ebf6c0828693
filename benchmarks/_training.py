"""What the training benchmarks share: pairs, clock, recipe, our trainer timed, and sides that run in processes of their own."""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from _common import ROOT, measured, verses

LEARNING_RATE, TEMPERATURE, COLD, SEED = 2e-5, 0.05, 2, 1
Pairs = list[tuple[str, ...]]
TOLERANCE = {"fp32": 2e-3, "bf16": 3e-2}


def read_pairs(path: Path | None, count: int, folder: Path) -> Pairs:
    """Return sentence pairs: of a training set, of two columns, or distinct verses in English and German."""
    if path is None:
        pairs = verses(folder, ["en", "de"], count, SEED)
    elif path.suffix == ".parquet":
        import pyarrow.parquet as pq

        table = pq.read_table(path, columns=["a_text", "b_text"]).to_pydict()
        pairs = list(zip(table["a_text"], table["b_text"], strict=True))
    else:
        cells = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
        pairs = [(row[0], row[1]) for row in cells if len(row) > 1]
    found = list(dict.fromkeys(pair for pair in pairs if all(pair)))
    return (found * (count // len(found) + 1))[:count]


class Clock:
    """Wall and processor time after each step.

    Nothing waits for a GPU here, which would keep it idle until the next step's first kernel: each side asks for its loss in every step,
    so that a GPU is as far behind at one mark as at any other.
    """

    def __init__(self) -> None:
        self.marks: list[tuple[float, float]] = []

    def mark(self) -> None:
        """Take the times of a step that ended."""
        self.marks.append((time.perf_counter(), time.process_time()))

    def per_step(self) -> tuple[float, float]:
        """Return median seconds of a step, wall and processor."""
        steps = np.diff(np.array(self.marks[COLD:]), axis=0)
        wall, processor = np.median(steps, axis=0)
        return float(wall), float(processor)


Train = Callable[[Path, Pairs, argparse.Namespace, Path], tuple[Clock, list[float]]]
"""One side: encoder's folder, pairs, options and a working folder give the times and losses of the steps."""


def recipe_of(options: argparse.Namespace, steps: int) -> Any:
    """Return our recipe: the sides' common settings."""
    readout = {"pooling": "mean", "layer": -1, "max_length": options.max_length, "normalise": True, "precision": "fp32", "prefix": ""}
    term = {"objective": "infonce", "examples": "pairs", "batch": options.batch, "temperature": TEMPERATURE}
    if options.micro_batch:
        term["micro_batch"] = options.micro_batch
    train = {
        "steps": steps, "learning_rate": LEARNING_RATE, "schedule": "linear", "warmup_steps": 0, "weight_decay": 0.0, "clip": 1.0,
        "precision": options.precision, "max_length": options.max_length, "threads": options.threads, "checkpoint_every": 1 << 30,
    }  # fmt: skip
    return {"system": "benchmark", "seed": 1, "parts": {}, "terms": [term], "train": train, "select": {}, "readout": readout}


def tokenised(recipe: dict[str, Any], path: Path, model: Any, work: Path) -> dict[str, Path]:
    """Tokenise sentence pairs for a recipe."""
    from crosslign.training.tokenised import tokenise_examples

    settings = {"max_length": recipe["train"]["max_length"], "prefix": "", "forms": ["sentences"]}
    tokenise_examples(path, work / "tokenised", work / "tokenising", model, settings)
    return {"pairs": work / "tokenised"}


def fit_timed(recipe: Any, model: Any, parts: dict[str, Any], pairs: Pairs, work: Path) -> tuple[Clock, list[float]]:
    """Train with the project's trainer; the pairs come in the order of `pairs`. Return the times and the loss of each step."""
    import pyarrow as pa

    from crosslign.files import write_rows
    from crosslign.training import fit as module
    from crosslign.training.draws import Order

    ids = [f"pair:{i}" for i in range(len(pairs))]
    columns = {"id": ids, "rows": [[i] for i in ids], "a_text": [a for a, _ in pairs], "a_lang": ["en"] * len(ids)}
    write_rows(work / "pairs.parquet", pa.table({**columns, "b_text": [b for _, b in pairs], "b_lang": ["de"] * len(ids)}), "pairs")
    clock, step = Clock(), module._Run.step

    def in_order(order: Order, number: int) -> np.ndarray:
        return np.arange(number * order.batch, (number + 1) * order.batch)

    def only_the_curve(run: Any, out: Path) -> None:
        run.curve.flush()
        out.mkdir(parents=True)
        shutil.copyfile(run.curve.path, out / "curve.jsonl")

    def timed(run: Any) -> Any:
        result = step(run)
        clock.mark()
        return result

    with patch.object(Order, "at", in_order), patch.multiple(module._Run, step=timed, write=only_the_curve):
        module.fit(recipe, tokenised(recipe, work / "pairs.parquet", model, work), model, parts, None, work / "run", work / "work")
    lines = (work / "run" / "curve.jsonl").read_text(encoding="utf-8").splitlines()
    return clock, [json.loads(line)["loss"] for line in lines]


def one_side(options: argparse.Namespace, sides: Mapping[str, Train]) -> None:
    """Train one side, first without dropout, and print its figures as JSON."""
    import torch

    torch.set_num_threads(options.threads)
    pairs = [tuple(pair) for pair in json.loads(options.data.read_text())]
    train = sides[options.side]
    with tempfile.TemporaryDirectory() as work:
        plain = without_dropout(options.folder, Path(work) / "plain")
        _, checked = train(plain, pairs[: options.batch * options.check], options, Path(work))
    with tempfile.TemporaryDirectory() as work:
        clock, losses = train(options.folder, pairs, options, Path(work))
    wall, processor = clock.per_step()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"wall": wall, "processor": processor, "peak_mb": peak, "losses": losses, "checked": checked}))


def run(script: str, side: str, folder: Path, data: Path, options: argparse.Namespace, *more: str) -> dict[str, Any]:
    """Run one side of a script in a process of its own; `more` names further options that it has."""
    settings = ("batch", "max_length", "threads", "precision", "check", *more)
    given = [f"--{name.replace('_', '-')}={getattr(options, name)}" for name in settings if getattr(options, name) is not None]
    command = [sys.executable, script, f"--side={side}", f"--folder={folder}", f"--data={data}", *given]
    variables = {"OMP_NUM_THREADS": str(options.threads), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    variables["OMP_WAIT_POLICY"] = "PASSIVE"  # threads that wait in a loop would count as processor time
    return dict(json.loads(measured(command, ROOT, **variables).out.splitlines()[-1]))


def without_dropout(folder: Path, copy: Path) -> Path:
    """Copy an encoder's folder with dropout switched off."""
    shutil.copytree(folder, copy)
    config = json.loads((copy / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (copy / "config.json").write_text(json.dumps(config))
    return copy
