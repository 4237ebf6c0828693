"""One training job as the workflow starts it: real objective, real part, selection by a real scorer, and its embeddings."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import trial
from safetensors.numpy import load_file
from tokenise import tokenised

from crosslign.corpora.evaluation import EvaluationBuilder
from crosslign.encoders.encode import encode
from crosslign.encoders.matrices import embed_texts
from crosslign.encoders.model import Model
from crosslign.paths import EVALUATION_FILES
from crosslign.training.run import train_run


def _retrieval_set(folder, pairs):
    builder = EvaluationBuilder("dev_pairs")
    for i, (en, de) in enumerate(pairs):
        builder.item(f"en{i}", "de", "target", "en", en)
        builder.item(f"de{i}", "de", "source", "de", de)
        builder.link("de", f"de{i}", f"en{i}")
    paths = {part: folder / f"{part}.parquet" for part in EVALUATION_FILES}
    builder.build().write(paths)
    return paths


def test_run_trains_selects_and_can_be_embedded(tiny_encoder, pairs_file, sentence_pairs, tmp_path):
    sets = {"dev_pairs": _retrieval_set(tmp_path, sentence_pairs)}
    task = {"scorer": "retrieval", "texts": {"test": "dev_pairs"}, "output": "vectors", "averages": {}}
    task["main"] = {"metric": "accuracy", "subset": "de", "direction": "xx2en"}
    recipe = trial.recipe(
        parts={"mlp": {"kind": "mlp_train_only"}},
        terms=[{"objective": "infonce", "weight": 1.0, "examples": "pairs", "batch": 20, "temperature": 0.05, "projection": "mlp"}],
        train={"steps": 60, "learning_rate": 3e-3, "threads": 1},
        select={"best": {"task": "dev", "subset": "de", "metric": "accuracy", "direction": "xx2en", "every": 20}},
    )
    base = {"main": tiny_encoder / "main"}
    examples = tokenised(recipe, {"pairs": pairs_file}, base, tmp_path / "sets")
    counts = train_run(recipe, examples, base, sets, {"dev": task}, tmp_path / "run", tmp_path / "work", {"version": "train_system@1"})
    evaluations = json.loads((tmp_path / "run" / "selection.json").read_text())["looks"]
    assert [evaluation["step"] for evaluation in evaluations] == [20, 40, 60]
    assert counts["best"]["best"]["value"] == max(evaluation["scores"]["best"] for evaluation in evaluations) >= 0.5
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["best", "curve.jsonl", "last", "selection.json"]
    assert json.loads(json.dumps(counts)) == counts
    out = tmp_path / "m.npy"
    embed_texts({"main": tmp_path / "run" / "last" / "main"}, sets["dev_pairs"]["texts"], recipe["readout"], out)
    texts = pq.read_table(sets["dev_pairs"]["texts"])
    model = Model.load({"main": tmp_path / "run" / "last" / "main"})
    assert np.array_equal(np.load(out), encode(model, texts["text"].to_pylist(), texts["lang"].to_pylist(), recipe["readout"]))


def test_run_goes_on_from_another_runs_checkpoint(tiny_encoder, pairs_file, tmp_path):
    terms = [{"objective": "infonce", "examples": "pairs", "batch": 8, "projection": "mlp"}]
    first = trial.recipe(parts={"mlp": {"kind": "mlp_train_only"}}, terms=terms, train={"steps": 3})
    base = {"main": tiny_encoder / "main"}
    examples = tokenised(first, {"pairs": pairs_file}, base, tmp_path / "sets")
    train_run(first, examples, base, {}, {}, tmp_path / "one", tmp_path / "w1", {})
    second = first | {
        "parts": {"mlp": {"kind": "mlp_train_only", "start_from": "base"}},
        "train": first["train"] | {"learning_rate": 1e-12, "weight_decay": 0},
    }
    train_run(second, examples, {"main": tmp_path / "one" / "last" / "main"}, {}, {}, tmp_path / "two", tmp_path / "w2", {})
    one, two = (Model.load({"main": tmp_path / name / "last" / "main"}).state_dict() for name in ("one", "two"))
    assert all(np.allclose(one[name], two[name], atol=1e-7) for name in one)
    one, two = (load_file(tmp_path / name / "last" / "parts.safetensors") for name in ("one", "two"))
    assert one.keys() == two.keys() == {"mlp.dense.weight", "mlp.dense.bias"}
    assert all(np.allclose(one[name], two[name], atol=1e-7) for name in one)


def test_selection_reads_each_text_set_as_its_task_does_and_alike_ones_once(tiny_model, sentence_pairs, tmp_path, monkeypatch):
    from crosslign.training import run

    sets = {"dev_pairs": _retrieval_set(tmp_path, sentence_pairs)}
    task = {"scorer": "retrieval", "texts": {"test": "dev_pairs"}, "output": "vectors", "averages": {}}
    task["main"] = {"metric": "accuracy", "subset": "de", "direction": "xx2en"}
    chosen = {name: {"task": name, "subset": "de", "metric": "accuracy", "direction": "xx2en", "every": 1} for name in ("a", "b", "c", "d")}
    recipe = trial.recipe(select=chosen, terms=[], parts={})
    short = {**recipe["readout"], "max_length": 5}
    raw = {**recipe["readout"], "normalise": False}
    recipe["dev_readouts"] = {"a": {"test": short}, "b": {"test": raw}, "c": {"test": dict(short)}}  # d: the recipe's own
    used = []
    monkeypatch.setattr(run, "encode", lambda *args: used.append(args[3]) or encode(*args))
    scores = trial.scored(run.dev_scores(recipe, sets, dict.fromkeys(chosen, task)), tiny_model)
    assert used == [short, raw, recipe["readout"]]
    assert scores["a"] == scores["c"]
    assert set(scores) == set(chosen)


@pytest.mark.parametrize(("device", "asked", "used"), [("cuda", "fp32", "bf16"), ("cuda", "fp16", "fp16"), ("cpu", "fp32", "fp32")])
def test_a_dev_evaluation_on_a_gpu_encodes_in_the_precision_of_the_training(
    tiny_model, sentence_pairs, tmp_path, monkeypatch, device, asked, used
):
    from crosslign.training import run

    task = {"scorer": "retrieval", "texts": {"test": "dev_pairs"}, "output": "vectors", "averages": {}}
    task["main"] = {"metric": "accuracy", "subset": "de", "direction": "xx2en"}
    recipe = trial.recipe(train={"precision": "bf16"}, select={"best": {"task": "a", **task["main"], "every": 1}}, terms=[], parts={})
    recipe["readout"] = {**recipe["readout"], "precision": asked}
    found = []
    monkeypatch.setattr(type(tiny_model), "device", property(lambda _: torch.device(device)))
    monkeypatch.setattr(run, "encode", lambda *args: found.append(args[3]["precision"]))
    monkeypatch.setattr(run, "score", lambda *_: [])
    monkeypatch.setattr(run, "pick_score", lambda *_: 1.0)
    trial.scored(run.dev_scores(recipe, {"dev_pairs": _retrieval_set(tmp_path, sentence_pairs)}, {"a": task}), tiny_model)
    assert found == [used]


@pytest.mark.parametrize("ranks", [2, 3])
def test_the_shares_that_ranks_encode_of_dev_data_are_what_one_alone_encodes(tiny_model, sentence_pairs, tmp_path, ranks):
    from crosslign.training import run

    task = {"scorer": "retrieval", "texts": {"test": "dev_pairs"}, "output": "vectors", "averages": {}}
    task["main"] = {"metric": "accuracy", "subset": "de", "direction": "xx2en"}
    recipe = trial.recipe(select={"best": {"task": "a", **task["main"], "every": 1}}, terms=[], parts={})
    dev = run.dev_scores(recipe, {"dev_pairs": _retrieval_set(tmp_path, sentence_pairs)}, {"a": task})
    (alone,) = dev.encode(tiny_model, 0, 1)
    joined = np.full_like(alone, np.nan)
    for rank in range(ranks):
        (joined[rank::ranks],) = dev.encode(tiny_model, rank, ranks)
    assert np.abs(joined - alone).max() < 1e-6
    assert dev.score(tiny_model, [joined]) == dev.score(tiny_model, [alone])


def test_a_dev_evaluation_resamples_nothing(tiny_model, sentence_pairs, tmp_path, monkeypatch):
    from crosslign.training import run

    sets = {"dev_pairs": _retrieval_set(tmp_path, sentence_pairs)}
    task = {"scorer": "retrieval", "texts": {"test": "dev_pairs"}, "output": "vectors", "averages": {}}
    task["main"] = {"metric": "accuracy", "subset": "de", "direction": "xx2en"}
    recipe = trial.recipe(select={"best": {"task": "looked_at", **task["main"], "every": 1}}, terms=[], parts={})
    resampled = lambda self, number: pytest.fail("resampled") if self.resamples else iter(())  # noqa: E731
    monkeypatch.setattr("crosslign.tasks.measures.Bootstrap.counts", resampled)
    assert 0 <= trial.scored(run.dev_scores(recipe, sets, {"looked_at": task}), tiny_model)["best"] <= 1
