"""Trainings on a GPU go like those on a CPU, in every precision, and after a stop."""

from __future__ import annotations

import json
import os

import methods
import numpy as np
import pyarrow as pa
import pytest
import torch
import trial
from safetensors.torch import load_file

from crosslign.files import write_rows
from crosslign.training.accelerator import WORKSPACE, start_accelerator

QUEUE = {"queue": methods.QUEUE | {"queue_init": "random", "store": "float16", "key_dropout": False}}
RANKS = {"gmm": {"kind": "gaussian_mixture", "gmm_init": "random", "tempered": True, "squared_prior": True}}
RANKS |= {"scores": {"kind": "rank_scores", "s_init": "linear"}}
GROUPS = {"all_anchors": True, "rescale": "row"}
OPTIONS = {
    "InfoNCE": ([methods.term("infonce", "triplets", mask_same_text=True, hard_negative_weight=0.5)], {}),
    "InfoNCE over views": ([methods.term("infonce", "labelled", mask_same_text=True, encode="sentences", over_views="sum")], {}),
    "multi-positive InfoNCE": ([methods.term("multi_positive_infonce", "groups", **GROUPS)], {}),
    "with hard negatives": ([methods.term("multi_positive_infonce", "triplets", hard_negatives="own", rescale="none")], {}),
    "dual encoder": ([methods.term("dual_encoder", "pairs", scale="scale", mask_same_text=True)], {"scale": {"kind": "logit_scale"}}),
    "alignment": ([methods.term("alignment", "labelled", similarity="mse", distributions="embedding")], {}),
    "supervised contrastive": ([methods.term("supervised_contrastive", "labelled", positives="same_class")], {}),
    "cross-entropy": ([methods.term("cross_entropy", "labelled", part="head", label_smoothing=0.1)], {"head": methods.HEAD}),
    "momentum contrast": ([methods.term("momentum_contrast", "pairs", queue="queue")], QUEUE),
    "ranks": (
        [
            methods.term("rank_infonce", "pairs", **methods.RANKS, rank_loss_aggregate="mean", self_positive=True),
            methods.term("gmm_ranks", "pairs", **methods.RANKS, labels="encoder", self_positive=True, label_smoothing=0.1),
        ],
        QUEUE | RANKS,
    ),
    "interpolated ranks": (
        [methods.term("gmm_ranks", "pairs", **methods.RANKS, binning="equal_width", normalise_interpolated=True)],
        QUEUE | RANKS,
    ),
}
READOUT = {"pooling": "mean", "precision": "fp32"}
TEXTS, LANGS = ["The dog sleeps.", "Es hat die ganze Nacht geregnet."], ["en", "de"]


def weights(folder):
    return load_file(folder / "last" / "main" / "model.safetensors")


@pytest.mark.parametrize("own", [None, ":16:8"])
def test_products_are_deterministic_without_a_variable_that_torch_parses_at_each(cuda, own, monkeypatch):
    monkeypatch.delenv(WORKSPACE, raising=False)
    if own:
        monkeypatch.setenv(WORKSPACE, own)
    start_accelerator("bf16")
    assert os.environ.get(WORKSPACE) == own
    assert torch.are_deterministic_algorithms_enabled()
    a, b = torch.randn(2, 512, 512, generator=torch.Generator().manual_seed(1)).to("cuda", torch.bfloat16)
    assert len({(a @ b.T).float().cpu().numpy().tobytes() for _ in range(3)}) == 1


@pytest.fixture
def long_pairs(examples, sentence_pairs, tmp_path, monkeypatch):
    """Put pairs of texts of some hundred tokens in the place of the pairs."""
    count, english, german = len(sentence_pairs), *zip(*sentence_pairs, strict=True)
    long = {name: [" ".join(texts[i:] + texts[:i]) * 2 for i in range(count)] for name, texts in (("a", english), ("b", german))}
    ids = [str(i) for i in range(count)]
    columns = {"id": ids, "rows": [[i] for i in ids], "a_text": long["a"], "a_lang": ["en"] * count}
    table = pa.table({**columns, "b_text": long["b"], "b_lang": ["de"] * count})
    write_rows(tmp_path / "long.parquet", table, "pairs")
    monkeypatch.setitem(examples, "pairs", tmp_path / "long.parquet")


def farthest(one, other):
    """Return the largest difference between two runs' weights."""
    a, b = weights(one), weights(other)
    assert a.keys() == b.keys()
    return max(float((a[name] - b[name]).abs().max()) for name in a)


@pytest.mark.parametrize("kernels", ["off", "auto"])
@pytest.mark.parametrize("system", methods.SYSTEMS)
def test_every_method_trains_as_on_a_cpu(cuda, on_a_cpu, fitted, system, kernels):
    with on_a_cpu():
        expected = fitted(system, "cpu")
    found = fitted(system, "gpu", kernels=kernels)
    assert (expected.summary["device"], found.summary["device"]) == ("cpu", "cuda")
    assert found.model.device.type == "cuda"
    assert found.losses == pytest.approx(expected.losses, abs=1e-3)


@pytest.mark.parametrize("options", OPTIONS)
def test_other_options_of_terms_and_parts_train_as_on_a_cpu(cuda, on_a_cpu, fitted, options):
    with on_a_cpu():
        expected = fitted(OPTIONS[options], "cpu", steps=2)
    assert fitted(OPTIONS[options], "gpu", steps=2).losses == pytest.approx(expected.losses, abs=1e-3)


@pytest.mark.parametrize("kernels", ["off", "auto"])
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_is_near_to_full(cuda, fitted, precision, kernels):
    full, half = (fitted("EMMA-X 1", name, precision=name, steps=6, kernels=kernels) for name in ("fp32", precision))
    assert half.summary["precision"] == precision
    assert half.losses != full.losses
    assert half.losses == pytest.approx(full.losses, rel=0.02)


def test_fp16_keeps_the_scale_of_its_gradients_for_resume(cuda, fitted, stopped_before, tmp_path):
    with stopped_before(4):
        fitted("mSimCSE", "run", steps=6, precision="fp16")
    state = json.loads((tmp_path / "run-work" / "step-00000004" / "state.json").read_text())
    assert state["scaler"]["scale"] == 2.0**16
    assert state["scaler"]["_growth_tracker"] == 4


@pytest.mark.parametrize("system", ["mSimCSE", "EMMA-X 1"])
def test_a_run_that_was_stopped_ends_close_to_one_that_was_not(cuda, fitted, stopped_before, system):
    """To a tenth of what one step moves a weight at most, dropout included: its draws are functions of seed and step."""
    whole = fitted(system, "whole", steps=6, dropout="on")
    with stopped_before(3):
        fitted(system, "stopped", steps=6, dropout="on")
    again = fitted(system, "stopped", steps=6, dropout="on")
    assert again.losses == pytest.approx(whole.losses, abs=1e-4)
    assert farthest(whole.folder, again.folder) < 1e-4


def test_dropout_is_drawn_on_the_gpu(cuda, fitted):
    without, first, second = (fitted("mSimCSE", name, steps=2, dropout=on) for name, on in (("a", None), ("b", "on"), ("c", "on")))
    assert first.losses != without.losses
    assert first.losses == pytest.approx(second.losses, abs=1e-5)


def test_checkpoints_and_models_of_a_gpu_load_on_a_cpu(cuda, on_a_cpu, fitted, stopped_before, tmp_path):
    from crosslign.encoders.encode import encode
    from crosslign.encoders.model import Model

    with stopped_before(3):
        fitted("EMMA-X 1", "run", steps=4)
    for path in (tmp_path / "run-work" / "step-00000002").glob("*.safetensors"):
        assert {tensor.device.type for tensor in load_file(path).values()} == {"cpu"}
    run = fitted("EMMA-X 1", "run", steps=4)
    vectors = encode(run.model, TEXTS, LANGS, READOUT)
    with on_a_cpu():
        loaded = Model.load({"main": run.folder / "last" / "main"})
        assert loaded.device.type == "cpu"
        assert np.abs(encode(loaded, TEXTS, LANGS, READOUT) - vectors).max() < 1e-5


def test_the_best_model_is_the_one_that_was_looked_at(cuda, fitted):
    from crosslign.encoders.encode import encode
    from crosslign.encoders.model import Model

    seen = {}

    def dev(model):
        seen[len(seen) + 1] = encode(model, TEXTS, LANGS, READOUT)
        return {"best": 1.0 if len(seen) == 2 else 0.0}

    run = fitted("mSimCSE", "run", steps=6, dev=dev, select={"best": {"every": 2}})
    assert run.summary["best"]["best"]["step"] == 4
    best = Model.load({"main": run.folder / "best" / "main"})
    assert np.abs(encode(best, TEXTS, LANGS, READOUT) - seen[2]).max() < 1e-5


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_look_reads_and_searches_on_the_gpu_in_the_precision_of_the_training(
    cuda, tiny_encoder, sentence_pairs, tmp_path, monkeypatch, precision
):
    from crosslign.corpora.evaluation import EvaluationBuilder
    from crosslign.encoders.encode import encode
    from crosslign.encoders.model import Model
    from crosslign.paths import EVALUATION_FILES
    from crosslign.tasks.scorers import retrieval
    from crosslign.training import run

    builder = EvaluationBuilder("dev_pairs")
    for number, (en, de) in enumerate(sentence_pairs):
        builder.item(f"en{number}", "de", "target", "en", en)
        builder.item(f"de{number}", "de", "source", "de", de)
        builder.link("de", f"de{number}", f"en{number}")
    files = {part: tmp_path / f"{part}.parquet" for part in EVALUATION_FILES}
    builder.build().write(files)
    chosen = {"subset": "de", "metric": "accuracy", "direction": "xx2en"}
    task = {"scorer": "retrieval", "texts": {"test": "dev_pairs"}, "output": "vectors", "averages": {}, "main": chosen}
    recipe = {
        "system": "s",
        "select": {"best": {"task": "dev", "every": 1, **chosen}},
        "readout": READOUT,
        "train": {"precision": precision},
    }
    read, searched = [], []
    monkeypatch.setattr(run, "encode", lambda *args: read.append(args[3]["precision"]) or encode(*args))
    search = retrieval.neighbours
    monkeypatch.setattr(retrieval, "neighbours", lambda *args, **how: searched.append(how["device"]) or search(*args, **how))
    dev = run.dev_scores(recipe, {"dev_pairs": files}, {"dev": task})
    scores = trial.scored(dev, Model.load({"main": tiny_encoder / "main"}).to(cuda))
    assert 0 <= scores["best"] <= 1
    assert read == [precision]
    assert {torch.device(device).type for one in searched for device in one} == {"cuda"}


def test_micro_batches_give_the_same_loss(cuda, fitted, monkeypatch):
    whole = fitted("MPCL", "whole")
    monkeypatch.setitem(methods.SYSTEMS, "MPCL", ([{**methods.SYSTEMS["MPCL"][0][0], "micro_batch": 3}], methods.SYSTEMS["MPCL"][1]))
    split = fitted("MPCL", "split")
    assert split.losses == pytest.approx(whole.losses, abs=1e-4)


def test_a_batch_that_does_not_fit_is_halved(cuda, fitted, long_pairs, monkeypatch):
    """Where memory has room for half of what lies between a batch of 20 and one of two, the batch is encoded in parts."""
    (term,), parts = methods.SYSTEMS["dual encoder"]

    def trained(name, micro_batch=20, **changes):
        monkeypatch.setitem(methods.SYSTEMS, "dual encoder", ([{**term, "batch": 20, "micro_batch": micro_batch}], parts))
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run = fitted("dual encoder", name, steps=1, max_length=512, **changes)
        return run.summary, run.losses, torch.cuda.max_memory_allocated() - before

    _, expected, most = trained("whole")
    _, _, least = trained("small", 2)
    assert least < most / 4
    torch.cuda.empty_cache()
    allowed = torch.cuda.memory_allocated() + (most + least) / 2
    torch.cuda.set_per_process_memory_fraction(allowed / torch.cuda.mem_get_info()[1])
    try:
        summary, losses, _ = trained("halved", auto_micro_batch=True)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert summary["micro_batches"]["pairs"] in (10, 5, 2)
    assert losses == pytest.approx(expected, abs=1e-4)
