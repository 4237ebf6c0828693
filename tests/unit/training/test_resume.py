"""A run that is killed at any moment and started again ends in the same bytes as one that never was."""

from __future__ import annotations

import json
import os
import shutil
import signal
from itertools import count

import pytest
import torch
import trial
from tokenise import tokenised

from crosslign.config.entry_keys import TRAIN_DEFAULTS
from crosslign.encoders.model import Model
from crosslign.errors import StoppedError
from crosslign.files import read_rows, sha256_text, write_rows
from crosslign.training.fit import fit
from crosslign.training.terms import build_parts

TERMS = [
    {"objective": "trial_paired", "examples": "pairs", "batch": 8, "head": "head", "micro_batch": 3},
    {"objective": "trial_keyed", "examples": "more", "batch": 5, "weight": 0.5},
]
PARTS = {"head": {"kind": "trial_head"}, "momentum": {"kind": "trial_momentum", "momentum": 0.9}}


@pytest.fixture
def program(forks, tiny_encoder, pairs_file, tmp_path):
    """Train in a process of its own; return its exit code and what it said."""

    def run(name, recipe, **arguments):
        settings = {
            "encoder": str(tiny_encoder),
            "examples": {"pairs": str(pairs_file), "more": str(pairs_file)},
            "recipe": recipe,
            "out": str(tmp_path / name),
            "checkpoints": str(tmp_path / f"{name}-work"),
            **arguments,
        }
        (tmp_path / f"{name}.json").write_text(json.dumps(settings))
        done = forks.run(trial.PROGRAM, tmp_path / f"{name}.json")
        return done.returncode, done.stderr

    return run


def test_killed_and_resumed_is_bit_identical(program, tiny_encoder, pairs_file, tmp_path):
    recipe = trial.recipe(terms=TERMS, parts=PARTS, train={"steps": 9, "checkpoint_every": 3, "precision": "bf16"})
    model, threads = Model.load({"main": tiny_encoder / "main"}), torch.get_num_threads()
    torch.set_num_threads(1)
    examples = {"pairs": pairs_file, "more": pairs_file}
    sets = tokenised(recipe, examples, model, tmp_path / "sets")
    fit(recipe, sets, model, build_parts(recipe, model), None, tmp_path / "whole", tmp_path / "whole-work")
    torch.set_num_threads(threads)
    code, _ = program("killed", recipe, kill={"after": 4, "signal": "SIGKILL"})
    assert code == -9
    assert (tmp_path / "killed-work" / "current").read_text() == "step-00000003\n"
    assert not (tmp_path / "killed").exists()
    code, said = program("killed", recipe, kill={"after": 7, "signal": "SIGTERM"})
    assert code == 75, said
    assert "step 8 of 9" in said
    assert (tmp_path / "killed-work" / "current").read_text() == "step-00000008\n"
    code, said = program("killed", recipe)
    assert code == 0, said
    assert trial.weights(tmp_path / "killed") == trial.weights(tmp_path / "whole")
    assert not (tmp_path / "killed-work").exists()


def _stop_after(monkeypatch, done):
    """Ask the run to stop in the middle of the step after `done`."""
    from crosslign.training.step import Stepper

    real = Stepper.run

    def run(self, step, *rest):
        if step == done:
            os.kill(os.getpid(), signal.SIGUSR1)
        return real(self, step, *rest)

    monkeypatch.setattr(Stepper, "run", run)


def test_selection_survives_and_equals_that_of_an_undisturbed_run(train, monkeypatch, tmp_path):
    recipe = trial.recipe(train={"steps": 8}, select={"best": {"task": "t", "subset": "s", "metric": "m", "every": 2}})

    def dev(model):
        return {"best": -abs(float(next(model.parameters()).detach().double().sum()))}

    _, whole = train(recipe, "whole", dev=dev)
    with monkeypatch.context() as patch:
        _stop_after(patch, 4)
        with pytest.raises(StoppedError, match="SIGUSR1"):
            train(recipe, "stopped", dev=dev)
    _, resumed = train(recipe, "stopped", dev=dev)
    assert trial.weights(whole) == trial.weights(resumed)


@pytest.mark.parametrize("change", ["from before versions", "another code", "a key that has come up since"])
def test_a_training_goes_on_under_the_same_version(train, monkeypatch, caplog, tmp_path, change):
    recipe = trial.recipe(train={"steps": 6})
    _, whole = train(recipe, "whole")
    with monkeypatch.context() as patch:
        _stop_after(patch, 2)
        with pytest.raises(StoppedError):
            train(recipe, "run")
    for path in (tmp_path / "run-work").glob("step-*/state.json"):
        state = json.loads(path.read_text())
        del state["sum"], state["curve_sha256"]  # earlier ones have neither
        key = state["key"]
        if change == "from before versions":  # its recipe was a hash, its code a fingerprint
            del key["version"]
            key |= {"recipe": sha256_text(json.dumps(key["recipe"], sort_keys=True)), "code": "0123456789abcdef"}
        elif change == "another code":
            key["code"] = "0123456789abcdef"
        path.write_text(json.dumps(state))
    if change == "a key that has come up since":
        monkeypatch.setitem(TRAIN_DEFAULTS, "smoothing", 0.0)
        recipe = {**recipe, "train": {**recipe["train"], "smoothing": 0.0}}
    caplog.set_level("INFO")
    _, resumed = train(recipe, "run")
    assert "continuing after step" in caplog.text
    assert trial.weights(whole) == trial.weights(resumed)


@pytest.mark.parametrize("number", [1, 2, 4])
def test_a_look_at_dev_data_is_given_up_for_a_signal_and_taken_when_the_run_goes_on(program, tmp_path, number):
    """The evaluation of step 2, of step 4, where a checkpoint is due, too, and of the last step."""
    select = {"best": {"task": "t", "subset": "s", "metric": "m", "every": 2}}
    recipe = trial.recipe(train={"steps": 8, "checkpoint_every": 4}, select=select)
    code, said = program("whole", recipe, cut_short=0)
    assert (code, said.count("looked\n")) == (0, 4), said
    code, said = program("run", recipe, cut_short=number)
    assert (code, said.count("looked\n")) == (75, number - 1), said
    assert (tmp_path / "run-work" / "current").read_text() == f"step-{2 * number:08d}\n"
    assert not (tmp_path / "run").exists()
    code, said = program("run", recipe, cut_short=0)
    assert (code, said.count("looked\n")) == (0, 5 - number), said
    assert trial.weights(tmp_path / "run") == trial.weights(tmp_path / "whole")


def _stopped(train, monkeypatch, recipe):
    with monkeypatch.context() as patch:
        _stop_after(patch, 2)
        with pytest.raises(StoppedError):
            train(recipe)


@pytest.mark.parametrize("change", [{"seed": 2}, {"train": {"learning_rate": 2e-3}}])
def test_another_recipe_starts_anew_with_a_warning(train, monkeypatch, caplog, change):
    _stopped(train, monkeypatch, trial.recipe())
    _, fresh = train(trial.recipe(**change), "fresh")
    caplog.clear()
    _, changed = train(trial.recipe(**change))
    assert "made with another recipe" in caplog.text
    assert trial.weights(changed) == trial.weights(fresh)


@pytest.mark.parametrize("what", ["base", "examples", "threads", "version", "versions"])
def test_a_checkpoint_of_something_else_is_left_with_a_word(tiny_encoder, pairs_file, monkeypatch, caplog, tmp_path, what):
    import crosslign.training.checkpoint as module

    examples = tmp_path / "pairs.parquet"
    shutil.copy(pairs_file, examples)

    def train(version="train_system@1 infonce@1", moved=0.0):
        model = Model.load({"main": tiny_encoder / "main"})
        next(model.parameters()).data.add_(moved)
        sets = tokenised(trial.recipe(), {"pairs": examples}, model, tmp_path / "sets")
        return fit(trial.recipe(), sets, model, {}, None, tmp_path / "run", tmp_path / "run-work", version)

    with monkeypatch.context() as patch:
        _stop_after(patch, 2)
        with pytest.raises(StoppedError):
            train()
    if what == "examples":
        write_rows(examples, read_rows(pairs_file).slice(1), "pairs")
    if what == "threads":
        torch.set_num_threads(2)
    if what == "versions":
        monkeypatch.setattr(module, "versions", lambda: {"torch": "0.0"})
    assert train(f"train_system@1 infonce@{2 if what == 'version' else 1}", 0.1 if what == "base" else 0.0)["steps"] == 6
    assert f"the saved state at step 3 was made with another {what}: starting from the beginning" in caplog.text


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        ("state.json", lambda content: content[:20]),
        ("state.json", lambda content: content.replace(b'"skipped": 0', b'"skipped": 1')),
        ("model.safetensors", lambda content: content[:20]),
        ("optimiser.safetensors", lambda content: content[:-1] + bytes([content[-1] ^ 1])),
    ],
    ids=["cut state", "one bit of a number", "cut weights", "one bit of AdamW's"],
)
def test_a_damaged_checkpoint_gives_way_to_the_one_before(train, stopped_before, caplog, tmp_path, file, damage):
    """Each evaluation finds a better model: the best one of the older checkpoint, of step 2, must still be there after step 5."""
    caplog.set_level("INFO")
    recipe = trial.recipe(select={"best": {"task": "t", "subset": "s", "metric": "m", "every": 1}})
    _, fresh = train(recipe, "fresh", dev=_scored(1, 1))
    with stopped_before(5):
        train(recipe, dev=_scored(1, 1))
    path = tmp_path / "run-work" / "step-00000004" / file
    path.write_bytes(damage(path.read_bytes()))
    _, folder = train(recipe, dev=_scored(3, 1))
    assert "cannot be read" in caplog.text
    assert "continuing after step 2" in caplog.text
    assert trial.weights(folder) == trial.weights(fresh)


def _scored(first, step):
    """Return a function that scores models one after another, whatever they are."""
    scores = count(first, step)
    return lambda model: {"best": float(next(scores))}


def _sum_of_weights(model):
    return {"best": -abs(float(next(model.parameters()).detach().double().sum()))}


def _cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def _remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize(
    ("damaged", "damage"),
    [
        ("best", _remove),
        ("best/*/main/model.safetensors", _cut),
        ("curve.jsonl", _remove),
        ("curve.jsonl", lambda path: path.write_bytes(path.read_bytes()[:300])),
        ("curve.jsonl", lambda path: path.write_bytes(path.read_bytes().replace(b'"step": 2', b'"step": 3'))),
        ("current", lambda path: path.write_bytes(b"\xff")),
    ],
)
def test_whatever_is_damaged_in_the_working_folder_the_run_ends_in_the_same_bytes(train, monkeypatch, tmp_path, damaged, damage):
    recipe = trial.recipe(select={"best": {"task": "t", "subset": "s", "metric": "m", "every": 2}})
    _, whole = train(recipe, "whole", dev=_sum_of_weights)
    with monkeypatch.context() as patch:
        _stop_after(patch, 4)
        with pytest.raises(StoppedError):
            train(recipe, dev=_sum_of_weights)
    (path,) = (tmp_path / "run-work").glob(damaged)
    damage(path)
    _, folder = train(recipe, dev=_sum_of_weights)
    assert trial.weights(folder) == trial.weights(whole)
    assert (folder / "curve.jsonl").read_bytes() == (whole / "curve.jsonl").read_bytes()


def test_a_best_model_of_before_two_stops_is_still_checked(train, monkeypatch, caplog, tmp_path):
    """The first evaluation's model stays the best; it is damaged after the run has gone on once."""
    recipe = trial.recipe(select={"best": {"task": "t", "subset": "s", "metric": "m", "every": 1}})
    _, whole = train(recipe, "whole", dev=_scored(-1, -1))
    for done, first in ((1, -1), (3, -2)):
        with monkeypatch.context() as patch:
            _stop_after(patch, done)
            with pytest.raises(StoppedError):
                train(recipe, dev=_scored(first, -1))
    (best,) = (tmp_path / "run-work").glob("best/best-00000001/main/model.safetensors")
    _cut(best)
    _, folder = train(recipe, dev=_scored(-1, -1))
    assert "the best model by best differs from the one that was written" in caplog.text
    assert trial.weights(folder) == trial.weights(whole)


def test_the_disk_of_the_working_folder_is_that_of_three_checkpoints(train, monkeypatch, tmp_path):
    """The two that are kept and the newest lie there at once: weights and two moments each, at four bytes a number."""
    summary, _ = train(trial.recipe(train={"steps": 6, "checkpoint_every": 1}))
    assert 3 * 12 * summary["parameters"] < summary["working_bytes"] < 1.1 * 3 * 12 * summary["parameters"] + 100_000


def test_a_run_that_was_stopped_in_its_last_look_knows_its_last_loss(train):
    recipe = trial.recipe(select={"best": {"task": "t", "subset": "s", "metric": "m", "every": 6}})
    summary, _ = train(recipe, "whole", dev=_sum_of_weights)
    with pytest.raises(StoppedError, match="step 6 of 6"):
        train(recipe, dev=trial.evaluation_cut_short(1))
    again, _ = train(recipe, dev=_sum_of_weights)
    own = {"earlier_s": 0.0, "working_bytes": 0}
    assert again | own == summary | own


def test_crash_while_a_checkpoint_is_written_leaves_the_old_one(train, monkeypatch, tmp_path):
    from crosslign.training import checkpoint as module

    real = module.save_tensors

    def fail(path, tensors):
        if "step-00000004" in str(path.parent) and path.name == "optimiser.safetensors":
            raise KeyboardInterrupt
        real(path, tensors)

    with monkeypatch.context() as patch:
        patch.setattr(module, "save_tensors", fail)
        with pytest.raises(KeyboardInterrupt):
            train(trial.recipe())
    assert (tmp_path / "run-work" / "current").read_text() == "step-00000002\n"
    _, folder = train(trial.recipe())
    _, fresh = train(trial.recipe(), "fresh")
    assert trial.weights(folder) == trial.weights(fresh)


def test_what_a_killed_process_was_writing_is_removed(train, tmp_path, monkeypatch):
    (tmp_path / "run-work" / "best" / ".best-00000002.abc.part").mkdir(parents=True)
    (tmp_path / "run-work" / ".step-00000002.abc.part").mkdir()
    (tmp_path / "run-work" / ".step-00000002.abc.part" / "model.safetensors").write_bytes(b"half")
    (tmp_path / "run-work" / ".current.abc.part").write_text("step")
    _stopped(train, monkeypatch, trial.recipe())
    assert not list((tmp_path / "run-work").rglob(".*.part*"))


def test_checkpoint_holds_parts_and_optimiser(train, monkeypatch, tiny_encoder, tmp_path):
    from crosslign.training.checkpoint import Checkpoints
    from crosslign.training.optimiser import Optimiser

    recipe = trial.recipe(parts={"head": PARTS["head"]}, terms=[{**TERMS[0]}])
    model = Model.load({"main": tiny_encoder / "main"})
    parts = build_parts(recipe, model)
    optimiser = Optimiser(recipe, model, parts, 6)
    for p in [*model.parameters(), *parts["head"].parameters()]:
        p.grad = torch.full_like(p, 0.5)
    optimiser.step(0)
    checkpoints = Checkpoints(tmp_path / "work", {"recipe": "x"})
    checkpoints.save(model, parts, optimiser, {"step": 1})
    looked_at = []
    other = Model.load({"main": tiny_encoder / "main"})
    other_parts = build_parts(recipe | {"seed": 5}, other)
    other_optimiser = Optimiser(recipe, other, other_parts, 6)
    assert checkpoints.load(other, other_parts, other_optimiser, looked_at.append) == {"step": 1} == looked_at[0]
    assert torch.equal(parts["head"].dense.weight, other_parts["head"].dense.weight)
    assert all(torch.equal(v, other_optimiser.state()[k]) for k, v in optimiser.state().items())
    assert len(optimiser.state()) == 3 * (len(list(model.parameters())) + 2)


def test_a_stopped_training_counts_on_where_it_was(train, stopped_before):
    recipe = trial.recipe(train={"steps": 7, "checkpoint_every": 3})
    whole, _ = train(recipe, "whole")
    with stopped_before(4):
        train(recipe, "again")
    resumed, _ = train(recipe, "again")
    assert resumed["encoded"] == whole["encoded"]
