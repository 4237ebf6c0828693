"""Every objective under the one trainer: the loss falls on a few rows, and a stopped run goes on to the same bytes."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
import torch

from crosslign.encoders.model import Model
from crosslign.files import write_rows
from crosslign.training.fit import fit
from crosslign.training.step import Stepper
from crosslign.training.terms import build_parts

QUEUE = {"kind": "momentum_queue", "size": 12, "momentum": 0.9}
RANKS = {"queue": "queue", "classifier": "gmm", "scores": "scores"}
HEAD = {"kind": "classification", "labels": 2}
EMMA_X = {"queue": QUEUE, "gmm": {"kind": "gaussian_mixture", "learning_rate": 1e-3, "clip": 1.0}, "scores": {"kind": "rank_scores"}}


def term(objective, examples, **options):
    return {"objective": objective, "examples": examples, "batch": 8, **options}


SYSTEMS = {
    "mSimCSE": ([term("infonce", "triplets", projection="mlp")], {"mlp": {"kind": "mlp_train_only"}}),
    "MoCo-BERT with NLI": (
        [
            term("momentum_contrast", "pairs", queue="queue", temperature=0.2, in_batch_keys=True),
            term("cross_entropy", "labelled", part="head", encode="sentences", weight=0.1, batch=4),
        ],
        {"queue": QUEUE, "head": HEAD | {"head": "mlp", "features": "concat"}},
    ),
    "SCL": ([term("cross_entropy", "labelled", part="head"), term("supervised_contrastive", "labelled")], {"head": HEAD}),
    "MVA": ([term("cross_entropy", "labelled", part="head"), term("alignment", "labelled", part="head")], {"head": HEAD}),
    "CL": ([term("cross_entropy", "labelled", part="head"), term("infonce", "labelled", temperature=1.0)], {"head": HEAD}),
    "SCL retrieval": ([term("supervised_contrastive", "labelled", form="retrieval")], {}),
    "MPCL": ([term("multi_positive_infonce", "groups", projection="mlp")], {"mlp": {"kind": "mlp_train_only"}}),
    "EMMA-X 1": (
        [
            term("momentum_contrast", "pairs", queue="queue", temperature=0.2, in_batch_keys=True, own_side_keys=True, weight=0.5),
            term("gmm_ranks", "pairs", classifier="gmm", scores="scores", queue="queue"),
        ],
        EMMA_X,
    ),
    "EMMA-X 2": (
        [
            term("rank_infonce", "pairs", **RANKS, anchor_parallel=0.5),
            term("gmm_ranks", "pairs", **RANKS, anchor_parallel=0.5, labels="encoder"),
        ],
        EMMA_X,
    ),
    "EMMA-X network": ([term("rank_infonce", "pairs", **RANKS)], EMMA_X | {"gmm": {"kind": "rank_network"}}),
    "regression": ([term("cosine_regression", "labelled")], {}),
    "dual encoder": ([term("dual_encoder", "pairs", scale="scale")], {"scale": {"kind": "logit_scale", "initial": 10.0}}),
}


@pytest.fixture(scope="module")
def example_files(tmp_path_factory, sentence_pairs, pairs_file, groups_file):
    """Training sets of all shapes."""
    folder, count = tmp_path_factory.mktemp("examples"), len(sentence_pairs)
    ids = [f"row:{i}" for i in range(count)]
    english, german = ([pair[side] for pair in sentence_pairs] for side in (0, 1))
    common = {"id": ids, "rows": [[i] for i in ids], "a_text": english, "a_lang": ["en"] * count}
    hard = {"c_text": [german[i - 1] if i % 3 else None for i in range(count)], "c_lang": ["de" if i % 3 else None for i in range(count)]}
    triplets = {**common, "b_text": german, "b_lang": ["de"] * count, **hard}
    write_rows(folder / "triplets.parquet", pa.table(triplets), "triplets")
    partner = english[1:] + english[:1]
    views = [
        [{"kind": "full", "lang": "de", "a_text": german[i], "b_text": german[(i + 1) % count]}]
        + [{"kind": "partial", "lang": "de", "a_text": english[i], "b_text": german[(i + 1) % count]}] * (i % 2)
        for i in range(count)
    ]
    labels = [[float(i % 2)] for i in range(count)]
    labelled = {**common, "b_text": partner, "b_lang": ["en"] * count, "label": labels, "views": views}
    schema = pa.table({**labelled, "supervised": [i % 5 > 0 for i in range(count)]})
    write_rows(folder / "labelled.parquet", schema, "labelled_examples")
    return {
        "pairs": pairs_file,
        "groups": groups_file,
        "triplets": folder / "triplets.parquet",
        "labelled": folder / "labelled.parquet",
    }


@pytest.fixture
def train(tiny_encoder, example_files, tmp_path):
    """Train a fresh tiny model by a system's terms and parts; return the run's folder."""

    def run(system, name, members=("main",), steps=6, **changes):
        terms, parts = SYSTEMS[system]
        settings = {
            "steps": steps,
            "learning_rate": 1e-3,
            "schedule": "constant",
            "precision": "fp32",
            "max_length": 16,
            "checkpoint_every": 2,
            "clip": 1.0,
        }
        readout = {"pooling": "mean", "layer": -1, "max_length": 16, "normalise": True, "precision": "fp32", "prefix": ""}
        recipe = {
            "system": system,
            "seed": 3,
            "terms": terms,
            "parts": parts,
            "train": settings | changes,
            "select": {},
            "readout": readout,
        }
        model = Model.load(dict.fromkeys(members, tiny_encoder / "main"))
        used = {entry["examples"]: example_files[entry["examples"]] for entry in terms}
        fit(recipe, used, model, build_parts(recipe, model), None, tmp_path / name, tmp_path / f"{name}-work")
        return tmp_path / name

    return run


def curve(folder):
    return [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("system", list(SYSTEMS))
def test_goes_on_to_the_same_bytes(system, train, monkeypatch):
    whole = train(system, "whole")
    real = Stepper.run

    def stop(self, step, *rest):
        result = real(self, step, *rest)
        if step == 4:
            raise KeyboardInterrupt  # after the parts have changed, before the next checkpoint
        return result

    monkeypatch.setattr(Stepper, "run", stop)
    with pytest.raises(KeyboardInterrupt):
        train(system, "again")
    monkeypatch.setattr(Stepper, "run", real)
    again = train(system, "again")
    files = sorted(f.relative_to(whole) for f in whole.rglob("*") if f.is_file())
    assert any(f.name == "model.safetensors" for f in files)
    for name in files:
        assert (whole / name).read_bytes() == (again / name).read_bytes(), name
    assert all(torch.isfinite(torch.tensor(line["loss"])) for line in curve(whole))


FALL = ["mSimCSE", "SCL", "MVA", "CL", "SCL retrieval", "MPCL", "EMMA-X 1", "regression", "dual encoder"]


@pytest.mark.parametrize("system", FALL)
def test_the_loss_falls(system, train):
    losses = [line["loss"] for line in curve(train(system, "run", steps=42))]
    assert sum(losses[-6:]) < 0.9 * sum(losses[:6])  # six steps are two epochs: batches of 8, 8 and 4 rows, twice


def test_moco_with_a_member_per_language(train):
    folder = train("MoCo-BERT with NLI", "run", members=("de", "en"))
    assert (folder / "last" / "de" / "model.safetensors").is_file()
    filled = [line["terms"]["momentum_contrast"]["queue_filled"] for line in curve(folder)]
    assert filled[0] == 0  # the first batch sees an empty queue
    assert filled[1:3] == pytest.approx([8 / 12, 1.0])


def test_micro_batches_give_the_same_loss(train, monkeypatch):
    monkeypatch.setattr("crosslign.training.encoding.Encoding._forward", _without_dropout)
    whole = curve(train("EMMA-X 1", "whole", steps=1))
    terms, parts = SYSTEMS["EMMA-X 1"]
    monkeypatch.setitem(SYSTEMS, "EMMA-X 1", ([entry | {"micro_batch": 3} for entry in terms], parts))
    split = curve(train("EMMA-X 1", "split", steps=1))
    assert split[0]["loss"] == pytest.approx(whole[0]["loss"], abs=1e-6)
    assert split[0]["grad_norm"] == pytest.approx(whole[0]["grad_norm"], rel=1e-4)


def _without_dropout(self, group, rows, number):
    from crosslign.encoders.tokens import collate

    group.module.eval()
    features = collate([group.ids[i] for i in rows], None, 0, torch.device("cpu"))
    return group.module(features, group.pooling, -1).float()


def vectors_of(folder, sentence_pairs):
    """Return the unit vectors of the English sentences and of their translations."""
    from crosslign.encoders.encode import encode

    readout = {"pooling": "mean", "layer": -1, "max_length": 16, "normalise": True, "precision": "fp32", "prefix": ""}
    model = Model.load({member.name: member for member in (folder / "last").iterdir() if member.is_dir()})
    sides = zip(*sentence_pairs, strict=True)
    return [torch.as_tensor(encode(model, side, [lang] * len(side), readout)) for side, lang in zip(sides, ("en", "de"), strict=True)]


@pytest.mark.parametrize(("momentum", "lowest", "highest"), [(0.0, 0.0, 0.2), (0.99, 0.8, 1.0)])
def test_without_momentum_nothing_is_learnt(train, monkeypatch, sentence_pairs, momentum, lowest, highest):
    # MoCo-BERT's table 5: with m = 0 retrieval falls to chance, here one in twenty.
    terms = [term("momentum_contrast", "pairs", queue="queue", temperature=0.05)]
    monkeypatch.setitem(SYSTEMS, "MoCo", (terms, {"queue": QUEUE | {"momentum": momentum, "size": 16}}))
    english, german = vectors_of(train("MoCo", "run", members=("de", "en"), steps=100, learning_rate=5e-3), sentence_pairs)
    accuracy = ((english @ german.T).argmax(1) == torch.arange(len(english))).float().mean()
    assert lowest <= float(accuracy) <= highest


@pytest.mark.parametrize(
    ("entry", "lowest", "highest"),
    [
        (term("alignment", "labelled", similarity="cosine", encode="sentences"), 0.99, 1.0),
        (term("supervised_contrastive", "labelled", form="retrieval", temperature=0.1), -0.2, 0.2),
    ],
)
def test_alignment_alone_makes_all_sentences_equal(train, monkeypatch, sentence_pairs, entry, lowest, highest):
    # SCL's tables 6 and 7: MVA, which pushes nothing apart, collapses where SCL does not.
    monkeypatch.setitem(SYSTEMS, "aligned", ([entry], {}))
    english, german = vectors_of(train("aligned", "run", steps=60), sentence_pairs)
    others = (english @ german.T)[~torch.eye(len(english), dtype=torch.bool)]
    assert lowest <= float(others.mean()) <= highest
