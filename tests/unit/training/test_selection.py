"""Several named checkpoints in one run: each keeps the best of its own evaluations, and all are checked before the run goes on."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tarfile

import pytest
import trial

from crosslign.encoders.model import Model
from crosslign.errors import InputError
from crosslign.files import sha256_folder
from crosslign.files.walk import disk_below
from crosslign.training.selection import Selection, copy_linked

LOOKED_AT = {"task": "t", "subset": "s", "metric": "m"}
OFTEN = [0.5, 0.9, 0.1, 0.2, 0.3, 0.1, 0.1]
SELDOM = [2.0, 2.0, 0.2, 2.0, 2.0, 0.4, 0.3]
"""Its largest scores come where no evaluation of its own is due."""


def test_each_name_keeps_the_best_of_its_own_looks(train):
    select = {name: LOOKED_AT | {"every": every} for name, every in {"often": 1, "seldom": 3, "never": 2}.items()}
    seen = []

    def dev(model):
        seen.append({name: tensor.detach().clone() for name, tensor in model.state_dict().items()})
        return {"often": OFTEN[len(seen) - 1], "seldom": SELDOM[len(seen) - 1], "never": float("nan")}

    summary, folder = train(trial.recipe(train={"steps": 7}, select=select), dev=dev)
    found = json.loads((folder / "selection.json").read_text())
    assert found["best"] == summary["best"] == {"often": {"step": 2, "value": 0.9}, "seldom": {"step": 6, "value": 0.4}}
    assert found["without_score"] == ["never"]
    assert [sorted(evaluation["scores"]) for evaluation in found["looks"]] == [
        ["often"],
        ["never", "often"],
        ["often", "seldom"],
        ["never", "often"],
        ["often"],
        ["never", "often", "seldom"],
        ["never", "often", "seldom"],
    ]
    for name, step in {"often": 2, "seldom": 6, "never": 7, "last": 7}.items():
        kept = Model.load({"main": folder / name / "main"}).state_dict()
        assert all(kept[key].equal(seen[step - 1][key]) for key in kept), name


def test_names_that_share_a_step_share_its_files_and_a_copy_of_the_run_has_the_same_sum(train, tmp_path):
    """One and two are best at the first evaluation, three at the last step: two models lie on disk, whatever carries them elsewhere."""
    select = {name: LOOKED_AT | {"every": 2} for name in ("one", "two", "three")}
    evaluations = iter(range(9))

    def dev(model):
        evaluation = next(evaluations)
        return {"one": -evaluation, "two": -evaluation, "three": evaluation}

    _, folder = train(trial.recipe(train={"steps": 4}, select=select), dev=dev)
    weights = {name: folder / name / "main" / "model.safetensors" for name in ("one", "two", "three", "last")}
    assert weights["one"].samefile(weights["two"])
    assert weights["three"].samefile(weights["last"])
    assert not weights["one"].samefile(weights["last"])
    with tarfile.open(tmp_path / "run.tar", "w") as archive:
        archive.add(folder, "run")
    with tarfile.open(tmp_path / "run.tar") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)  # not in Python 3.11.2
        archive.extractall(tmp_path / "unpacked")
    shutil.copytree(folder, tmp_path / "copied")
    assert sha256_folder(tmp_path / "unpacked" / "run") == sha256_folder(tmp_path / "copied") == sha256_folder(folder)
    assert Model.load({"main": tmp_path / "unpacked" / "run" / "two" / "main"})


def test_a_stopped_run_goes_on_with_the_best_model_of_every_name(train, stopped_before, tiny_encoder, caplog):
    """One gets better at each evaluation, the other stays the first one."""
    caplog.set_level("INFO")
    recipe = trial.recipe(select={name: LOOKED_AT | {"every": 1} for name in ("falls", "rises")})
    start = next(Model.load({"main": tiny_encoder / "main"}).parameters()).detach()

    def dev(model):
        moved = float((next(model.parameters()).detach() - start).abs().sum())
        return {"falls": -moved, "rises": moved}

    summary, whole = train(recipe, "whole", dev=dev)
    assert {name: entry["step"] for name, entry in summary["best"].items()} == {"falls": 1, "rises": 6}
    with stopped_before(5):
        train(recipe, dev=dev)
    _, resumed = train(recipe, dev=dev)
    assert "continuing after step 4" in caplog.text
    assert trial.weights(resumed) == trial.weights(whole)


@pytest.mark.parametrize("damaged", ["first", "second"])
def test_the_best_model_of_every_name_is_checked(tmp_path, damaged):
    steps = {"first": 4, "second": 2}
    state = {"best": {name: {"step": step, "value": 0.5} for name, step in steps.items()}, "sha256": {}}
    for name, step in steps.items():
        (tmp_path / f"{name}-{step:08d}").mkdir()
        (tmp_path / f"{name}-{step:08d}" / "weights").write_text(name)
        state["sha256"][name] = sha256_folder(tmp_path / f"{name}-{step:08d}")
    selection = Selection({name: LOOKED_AT | {"every": 2} for name in steps}, None, tmp_path, {}, 3, None)
    selection.check(state)
    (tmp_path / f"{damaged}-{steps[damaged]:08d}" / "weights").write_text("others")
    with pytest.raises(InputError, match=rf"{damaged}-\d+: .*{damaged} .*written"):
        selection.check(state)


@pytest.fixture
def folder(tmp_path):
    inner = tmp_path / "one" / "main"
    inner.mkdir(parents=True)
    (inner / "weights").write_bytes(b"123")
    (tmp_path / "one" / "parts").write_bytes(b"45")
    return tmp_path / "one"


def test_a_copy_shares_its_files_and_outlives_the_first(folder, tmp_path):
    copy_linked(folder, tmp_path / "two")
    assert (tmp_path / "two" / "main" / "weights").samefile(folder / "main" / "weights")
    (folder / "main" / "weights").unlink()
    assert (tmp_path / "two" / "main" / "weights").read_bytes() == b"123"
    assert (tmp_path / "two" / "parts").read_bytes() == b"45"


def test_files_of_several_names_take_disk_once(folder, tmp_path):
    copy_linked(folder, tmp_path / "two")
    (tmp_path / "two" / "own").write_bytes(b"6789")
    assert disk_below(tmp_path) == 3 + 2 + 4
    assert disk_below(tmp_path / "none") == 0


def test_without_links_it_copies(folder, tmp_path, monkeypatch):
    def refused(*_, **__):
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refused)
    copy_linked(folder, tmp_path / "two")
    assert (tmp_path / "two" / "main" / "weights").read_bytes() == b"123"
    assert not (tmp_path / "two" / "main" / "weights").samefile(folder / "main" / "weights")
