"""Fine-tunes of a cross-encoder as recipes: trained, saved, read back as logits; and their regularisers."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trial
from safetensors.torch import load_file
from tokenise import tokenised

from crosslign.corpora.evaluation import EvaluationBuilder
from crosslign.encoders.encode import encode
from crosslign.encoders.matrices import embed_texts
from crosslign.encoders.model import Model
from crosslign.errors import InputError
from crosslign.files import write_rows
from crosslign.objectives.saved_parts import load_part
from crosslign.paths import EVALUATION_FILES
from crosslign.training.run import train_run
from crosslign.training.step import Stepper

HEAD = {"kind": "classification", "labels": 2, "learning_rate": 1e-3}
TRAIN = {"learning_rate": 2e-3, "threads": 1, "precision": "fp32", "clip": 1.0}
READOUT = {"pooling": "cls", "layer": -1, "max_length": 32, "normalise": True, "precision": "fp32", "prefix": ""}


@pytest.fixture(scope="module")
def rows(sentence_pairs):
    """Labelled rows with a rule to learn: class 1 where the second sentence translates the first, else another translation."""
    count = len(sentence_pairs)
    made = []
    for n in range(2 * count):
        i, right = n // 2, n % 2
        english, german = sentence_pairs[i][0], sentence_pairs[i if right else (i + 7) % count][1]
        views = [{"kind": "full", "lang": "de", "a_text": sentence_pairs[i][1], "b_text": german}]
        made.append({"a_text": english, "a_lang": "en", "b_text": german, "b_lang": "de", "label": [float(right)], "views": views})
        made[-1] |= {"id": f"r:{n}", "rows": [f"s:{n}"], "group": f"q{i}", "supervised": True}
    return made


@pytest.fixture
def train(tiny_encoder, rows, tmp_path):
    """Train on the rows by terms and parts; return the run's folder and the rows' curve."""

    def run(terms, parts, steps=40, content=None, **changes):
        path = tmp_path / "rows.parquet"
        table = pa.Table.from_pylist(content or rows)
        write_rows(path, table, "labelled_examples")
        recipe = trial.recipe(
            parts=parts, terms=[{"examples": "rows", "batch": 16, **term} for term in terms], train={**TRAIN, "steps": steps}
        )
        recipe |= {"readout": READOUT, **changes.pop("recipe", {})}
        sets, tasks = changes.get("sets", {}), changes.get("tasks", {})
        base = {"main": tiny_encoder / "main"}
        examples = tokenised(recipe, {"rows": path}, base, tmp_path / "sets")
        train_run(recipe, examples, base, sets, tasks, tmp_path / "run", tmp_path / "work", {})
        return tmp_path / "run", [json.loads(line) for line in (tmp_path / "run" / "curve.jsonl").read_text().splitlines()]

    return run


def text_set(folder, rows):
    """Write the rows' pairs as an evaluation corpus whose items carry the labels."""
    builder = EvaluationBuilder("pairs")
    for row in rows:
        builder.item(row["id"], "en", "pair", row["a_lang"], row["a_text"], pair_text=row["b_text"], label=row["label"], group=row["group"])
    paths = {part: folder / f"{part}.parquet" for part in EVALUATION_FILES}
    builder.build().write(paths)
    return paths


CROSS_ENTROPY = {"objective": "cross_entropy", "part": "head"}
REGULARISERS = {
    "none": [],
    "SCL": [{"objective": "supervised_contrastive", "temperature": 1.0}],
    "CL": [{"objective": "infonce", "temperature": 1.0}],
    "MVA": [{"objective": "alignment", "similarity": "kl", "part": "head"}],
}


@pytest.mark.parametrize("name", REGULARISERS)
def test_a_cross_encoder_with_a_regulariser_learns_and_its_logits_are_those_of_its_head(name, train, rows, tmp_path):
    folder, curve = train([CROSS_ENTROPY, *REGULARISERS[name]], {"head": HEAD})
    losses = [line["terms"]["cross_entropy"]["loss"] for line in curve]
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
    assert all(len(line["terms"]) == 1 + len(REGULARISERS[name]) for line in curve)
    paths = text_set(tmp_path, rows)
    out = tmp_path / "logits.npy"
    embed_texts(
        {"main": folder / "last" / "main"}, paths["texts"], READOUT, out, head=lambda m: load_part("head", HEAD, m, folder / "last")
    )
    logits, texts = np.load(out), pq.read_table(paths["texts"])
    assert logits.shape == (texts.num_rows, 2)
    model = Model.load({"main": folder / "last" / "main"})
    raw = encode(
        model, texts["text"].to_pylist(), texts["lang"].to_pylist(), {**READOUT, "normalise": False}, texts["pair_text"].to_pylist()
    )
    tensors = load_file(folder / "last" / "parts.safetensors")
    dense, last = (tensors[f"head.layers.{n}.weight"].double().numpy() for n in (1, 4))
    biases = [tensors[f"head.layers.{n}.bias"].double().numpy() for n in (1, 4)]
    expected = np.tanh(raw.astype(np.float64) @ dense.T + biases[0]) @ last.T + biases[1]
    assert np.abs(logits - expected).max() < 1e-5


def test_a_checkpoint_is_chosen_by_the_scores_of_its_logits(train, rows, tmp_path, monkeypatch):
    sets, seen = {"pairs": text_set(tmp_path, rows)}, []

    def score(name, task, outputs, evaluations, machine):
        seen.append(outputs["test"])
        return [SimpleNamespace(subset="en", metric="accuracy", protocol="", direction="", main=True, value=float(len(seen)))]

    monkeypatch.setattr("crosslign.training.run.score", score)
    select = {"best": {"task": "pairs", "subset": "en", "metric": "accuracy", "every": 2}}
    main = {"metric": "accuracy", "subset": "en"}
    tasks = {"pairs": {"scorer": "classification", "texts": {"test": "pairs"}, "output": "logits", "main": main}}
    folder, _ = train([CROSS_ENTROPY], {"head": HEAD}, steps=4, sets=sets, tasks=tasks, recipe={"select": select})
    assert [matrix.shape for matrix in seen] == [(len(rows), 2)] * 2
    logits = tmp_path / "logits.npy"
    read = {"main": folder / "best" / "main"}
    embed_texts(read, sets["pairs"]["texts"], READOUT, logits, head=lambda m: load_part("head", HEAD, m, folder / "best"))
    assert np.abs(np.load(logits) - seen[1]).max() < 1e-6


def test_a_selection_by_logits_without_a_head_is_refused(train, rows, tmp_path):
    select = {"best": {"task": "pairs", "subset": "en", "metric": "accuracy", "every": 2}}
    main = {"metric": "accuracy", "subset": "en"}
    tasks = {"pairs": {"scorer": "classification", "texts": {"test": "pairs"}, "output": "logits", "main": main}}
    terms = [{"objective": "cosine_regression"}]
    with pytest.raises(InputError, match=r"select: .*logits"):
        train(terms, {}, sets={"pairs": text_set(tmp_path, rows)}, tasks=tasks, recipe={"select": select})


def batches_seen(monkeypatch):
    """Note the batches that steps draw."""
    seen, real = [], Stepper._draw

    def draw(self, stream, step):
        drawn = real(self, stream, step)
        seen.append(drawn.batch)
        return drawn

    monkeypatch.setattr(Stepper, "_draw", draw)
    return seen


def test_multiple_choice_sees_whole_questions_and_learns(train, rows, sentence_pairs, monkeypatch):
    # As SIQA and COPA: the choices of a question are rows of one group, label 1 marks the right one, the head scores each. Here
    # the right answers are ten sentences and the wrong ones ten others.
    answers = [german for _, german in sentence_pairs]
    content = [{**row, "b_text": answers[n // 2 % 10 + 10 * (1 - n % 2)]} for n, row in enumerate(rows)]
    seen = batches_seen(monkeypatch)
    _, curve = train([{**CROSS_ENTROPY, "form": "multiple_choice", "batch": 7}], {"head": HEAD | {"labels": 1}}, steps=60, content=content)
    assert len(seen) == 60
    for batch in seen:
        groups = list(batch.columns["group"])
        assert len(groups) in (6, 4)  # three questions of two choices fit into seven rows; twenty questions leave two
        assert all(groups.count(group) == 2 for group in groups)
    accuracies = [line["terms"]["cross_entropy"]["accuracy"] for line in curve]
    losses = [line["terms"]["cross_entropy"]["loss"] for line in curve]
    assert losses[0] == pytest.approx(np.log(2), abs=0.1)  # two choices, nothing known
    assert np.mean(accuracies[-14:]) > 0.9


RECIPES = {
    "multi-label, as MultiEURLEX": ([{**CROSS_ENTROPY, "form": "multi_label"}], {"head": HEAD | {"labels": 3}}, "single"),
    "regression, as QE": ([{"objective": "cosine_regression", "high": 1.0}], {}, "pair"),
    "NLI beside a sentence encoder": (
        [{**CROSS_ENTROPY, "encode": "sentences"}],
        {"head": HEAD | {"head": "mlp", "features": "concat", "learning_rate": 1e-2}},
        "premise",
    ),
}


@pytest.mark.parametrize("name", RECIPES)
def test_other_fine_tunes_learn(name, train, rows):
    terms, parts, kind = RECIPES[name]
    content = rows
    if kind == "single":  # a document has any number of classes: here class 0 of every second, class 2 of every third
        content = [{**row, "b_text": None, "b_lang": None, "views": None} for row in rows]
        for n, row in enumerate(content):
            row["label"] = [float(c) for c, every in ((0, 4), (2, 3)) if n // 2 % every == 0]
    if kind == "premise":  # a random encoder does not know translations; which premise it sees it does
        content = [{**row, "label": [float(n // 2 % 2)]} for n, row in enumerate(rows)]
    _, curve = train(terms, parts, steps=60, content=content)
    losses = [line["loss"] for line in curve]
    assert np.mean(losses[-6:]) < 0.8 * np.mean(losses[:6])


def test_a_dual_encoder_trains_its_scale(tiny_encoder, pairs_file, tmp_path):
    recipe = trial.recipe(
        parts={"scale": {"kind": "logit_scale", "initial": 20.0, "learning_rate": 0.5}},
        terms=[{"objective": "dual_encoder", "examples": "pairs", "batch": 20, "scale": "scale"}],
        train={**TRAIN, "steps": 20},
    )
    base = {"main": tiny_encoder / "main"}
    examples = tokenised(recipe, {"pairs": pairs_file}, base, tmp_path / "sets")
    train_run(recipe, examples, base, {}, {}, tmp_path / "run", tmp_path / "work", {})
    losses = [json.loads(line)["loss"] for line in (tmp_path / "run" / "curve.jsonl").read_text().splitlines()]
    assert losses[-1] < 0.6 * losses[0]
    assert float(load_file(tmp_path / "run" / "last" / "parts.safetensors")["scale.scale"]) != 20.0
