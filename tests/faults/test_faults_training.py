"""Training that is stopped, starved, poisoned or resumed with something else: the same weights, or a word about it; never silence."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
import torch
import trial

from crosslign.encoders.encode import TOKEN_BUDGET, encode
from crosslign.encoders.matrices import embed_texts
from crosslign.encoders.model import Member, Model
from crosslign.errors import CrosslignError, ResourceError, StoppedError
from crosslign.files import write_rows

READOUT = {"pooling": "mean", "layer": -1, "max_length": 16, "normalise": True, "precision": "fp32", "prefix": ""}
RECIPE = {"train": {"steps": 8, "checkpoint_every": 2}, "select": {}}


@pytest.fixture(scope="module")
def program(forks, tiny_encoder, pairs_file):
    """Run a training in a process of its own, with `before` run in it first; where that says `begun`, it is sent a signal for it."""

    def start(folder, before="", number=None):
        settings = {
            "encoder": str(tiny_encoder),
            "examples": {"pairs": str(pairs_file)},
            "recipe": trial.recipe(**RECIPE),
            "out": str(folder / "run"),
            "checkpoints": str(folder / "run-work"),
        }
        (folder / "run.json").write_text(json.dumps(settings))
        code = f"import logging, sys; logging.basicConfig(level=20)\n{before}\n{trial.PROGRAM}"
        if "begun" not in before:
            done = forks.run(code, folder / "run.json")
            return done.returncode, done.stderr
        # A whole interpreter: the signal is to come while it loads the libraries.
        command = [sys.executable, "-c", code, str(folder / "run.json")]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"})
        said = []
        for line in process.stderr:
            said.append(line)
            if line == "begun\n":
                process.send_signal(number)
        return process.wait(), "".join(said)

    return start


WHEN_SAID = """
import os
class Stop(logging.Handler):
    def emit(self, record):
        if {said!r} in record.getMessage():
            os.kill(os.getpid(), {number})
logging.getLogger().addHandler(Stop())
"""
IN_THE_RENAME = """
import os
from pathlib import Path
def replace(self, target, real=Path.replace):
    if Path(target).name == {said!r}:
        os.kill(os.getpid(), {number})
    return real(self, target)
Path.replace = replace
"""
MOMENTS = {
    "first import": ("print('begun', file=sys.stderr)", "", signal.SIGUSR1),
    "before the first step": (WHEN_SAID, "8 steps on cpu", signal.SIGTERM),
    "while saving": (IN_THE_RENAME, "step-00000002", signal.SIGTERM),
    "after a save": (WHEN_SAID, "checkpoint written at step 2", signal.SIGUSR1),
    "last steps": (WHEN_SAID, "checkpoint written at step 6", signal.SIGTERM),
}
"""What sends the signal, from within but for the first import: no moment is missed."""


@pytest.fixture(scope="module")
def whole(program, tmp_path_factory):
    """The weights of a training that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    code, said = program(folder)
    assert code == 0, said
    return trial.weights(folder / "run")


@pytest.mark.workflow
@pytest.mark.parametrize("moment", MOMENTS)
def test_f02_a_training_told_to_stop_goes_on_to_the_same_weights(program, whole, tmp_path, moment):
    before, said, number = MOMENTS[moment]
    code, said = program(tmp_path, before.format(said=said, number=int(number)), number)
    # Before the trainer has begun there is nothing to save: the signal ends the process as it ends any.
    assert code in ((75, -number) if moment == "first import" else (75,)), said
    if code == 75:
        assert (tmp_path / "run-work" / "current").is_file()
        assert not (tmp_path / "run").exists()
    code, said = program(tmp_path)
    assert code == 0, said
    assert trial.weights(tmp_path / "run") == whole


def test_f03_two_signals_and_one_in_the_rename_leave_an_old_or_a_new_checkpoint(train, monkeypatch, tmp_path):
    _, whole = train(trial.recipe(**RECIPE), "whole")
    real = Path.replace

    def replace(self, target):
        result = real(self, target)
        if Path(target).name == "step-00000004":
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGUSR1)
        return result

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        with pytest.raises(StoppedError):
            train(trial.recipe(**RECIPE), "run")
    assert (tmp_path / "run-work" / "current").read_text() in ("step-00000004\n", "step-00000005\n")
    _, resumed = train(trial.recipe(**RECIPE), "run")
    assert trial.weights(resumed) == trial.weights(whole)


def test_f03_killed_between_the_rename_and_the_pointer_the_old_checkpoint_holds(train, monkeypatch, tmp_path, caplog):
    from crosslign.training import checkpoint

    def die(path, text):
        if text.startswith("step-00000004"):
            raise KeyboardInterrupt
        real(path, text)

    real = checkpoint.write_text
    _, whole = train(trial.recipe(**RECIPE), "whole")
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write_text", die)
        with pytest.raises(KeyboardInterrupt):
            train(trial.recipe(**RECIPE), "run")
    assert (tmp_path / "run-work" / "current").read_text() == "step-00000002\n"
    caplog.set_level("INFO")
    _, resumed = train(trial.recipe(**RECIPE), "run")
    assert "continuing after step 2" in caplog.text
    assert trial.weights(resumed) == trial.weights(whole)


def test_f19_memory_that_runs_out_in_encoding_halves_the_batch_once_and_is_recorded(tiny_model, tiny_encoder, monkeypatch, tmp_path):
    """The allocator refuses batches by their tokens; what fitted is kept for all that follows, and stands with the counts."""
    texts = ["one sentence of many"] * 40
    expected = encode(tiny_model, texts, ["en"] * 40, READOUT)
    real, refused = Member.forward, []

    def forward(self, features, *rest):
        if features["input_ids"].numel() > 60:
            refused.append(features["input_ids"].numel())
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(self, features, *rest)

    monkeypatch.setattr(Member, "forward", forward)
    monkeypatch.setattr("crosslign.encoders.encode.CHUNK", 20)
    assert abs(encode(tiny_model, texts, ["en"] * 40, READOUT) - expected).max() < 1e-5
    assert refused == sorted(set(refused), reverse=True), "the second half of the texts asked for too much again"
    assert refused
    table = pa.table({"text_id": [f"t{n}" for n in range(40)], "lang": ["en"] * 40, "text": texts})
    write_rows(tmp_path / "texts.parquet", table, "texts")
    counts = embed_texts({"main": tiny_encoder / "main"}, tmp_path / "texts.parquet", READOUT, tmp_path / "x.npy")
    assert counts["token_budget"] <= 60 < TOKEN_BUDGET


def test_f19_one_sentence_too_large_is_named(tiny_encoder, monkeypatch, tmp_path):
    real = Member.forward

    def forward(self, features, *rest):
        if features["input_ids"].shape[1] > 12:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(self, features, *rest)

    monkeypatch.setattr(Member, "forward", forward)
    table = pa.table({"text_id": ["t0", "t1", "t2"], "lang": ["en"] * 3, "text": ["Ja.", "It rained " * 20, "Yes."]})
    write_rows(tmp_path / "texts.parquet", table, "texts")
    with pytest.raises(ResourceError, match=r" t1 .*memory; 16 tokens.*max_length"):
        embed_texts({"main": tiny_encoder / "main"}, tmp_path / "texts.parquet", READOUT, tmp_path / "x.npy")
    assert not (tmp_path / "x.npy").exists()


def test_f20_memory_that_runs_out_in_training_names_the_setting_and_that_setting_gives_the_same_loss(train, tiny_encoder, monkeypatch):
    term = {"objective": "trial_paired", "weight": 1.0, "examples": "pairs", "batch": 8}
    recipe = trial.recipe(terms=[term], **RECIPE)
    real = Member.forward

    def forward(self, features, *rest):
        if len(features["input_ids"]) > 8:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(self, features, *rest)

    def model():
        """The tiny encoder without dropout, whose masks would differ between cuts of a batch."""
        loaded = Model.load({"main": tiny_encoder / "main"})
        for module in loaded.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        return loaded

    _, whole = train(recipe, "whole", model=model())
    monkeypatch.setattr(Member, "forward", forward)
    with pytest.raises(ResourceError, match=r"micro_batch.*'pairs': 4"):
        train(recipe, "run")
    _, small = train(trial.recipe(terms=[{**term, "micro_batch": 4}], **RECIPE), "small", model=model())
    losses = [[json.loads(line)["loss"] for line in (f / "curve.jsonl").read_text().splitlines()] for f in (whole, small)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_f21_a_loss_that_is_no_number_stops_with_its_examples_and_keeps_the_last_good_checkpoint(train, tmp_path):
    terms = [{"objective": "trial_paired", "examples": "pairs", "batch": 8, "poison_at": 5}]
    with pytest.raises(CrosslignError, match=r"step 6: .*loss.*sentences:sentences\.tsv:\d+.*curve\.jsonl"):
        train(trial.recipe(terms=terms, **RECIPE))
    assert (tmp_path / "run-work" / "current").read_text() == "step-00000004\n"
    assert not (tmp_path / "run").exists()


def cut(path):
    path.write_bytes(path.read_bytes()[:-2])


def flip(path):
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    "damage", [cut, flip, lambda path: path.write_bytes(b""), Path.unlink], ids=["cut", "bit flipped", "emptied", "gone"]
)
@pytest.mark.parametrize("file", ["model.safetensors", "optimiser.safetensors", "state.json"])
def test_f24_a_damaged_checkpoint_gives_way_to_the_one_before(train, monkeypatch, tmp_path, caplog, damage, file):
    from crosslign.training.step import Stepper

    recipe = trial.recipe(
        train={"steps": 6, "checkpoint_every": 2}, select={"best": {"task": "t", "subset": "s", "metric": "m", "every": 1}}
    )

    def dev(model):
        return {"best": float(next(model.parameters()).detach().double().sum())}

    _, whole = train(recipe, "whole", dev=dev)
    real = Stepper.run

    def run(self, step, *rest):
        if step == 4:
            os.kill(os.getpid(), signal.SIGUSR1)
        return real(self, step, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Stepper, "run", run)
        with pytest.raises(StoppedError):
            train(recipe, "run", dev=dev)
    work = tmp_path / "run-work"
    assert sorted(path.name for path in work.glob("step-*")) == ["step-00000004", "step-00000005"]
    damage(work / "step-00000005" / file)
    caplog.set_level("INFO")
    _, resumed = train(recipe, "run", dev=dev)
    assert "using an earlier one" in caplog.text
    assert "continuing after step 4" in caplog.text
    assert trial.weights(resumed) == trial.weights(whole)


@pytest.mark.parametrize("what", ["recipe", "versions", "threads", "data"])
def test_f25_a_checkpoint_of_something_else_is_never_gone_on_from_in_silence(train, monkeypatch, caplog, what, pairs_file):
    import crosslign.training.fit as module
    from crosslign.training.checkpoint import Checkpoints

    key = {"recipe": {"learning_rate": 1}, "versions": {"torch": "2"}, "threads": 1, "data": "abc"}
    other = {**key, what: "other"}
    assert Checkpoints(pairs_file.parent, key)._stale(other) == [what]
    assert Checkpoints(pairs_file.parent, key)._stale({k: v for k, v in key.items() if k != what}) == [what]
    if what == "versions":
        recipe = trial.recipe(train={"steps": 4, "checkpoint_every": 2})
        with monkeypatch.context() as patch:
            patch.setattr(module._Run, "write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                train(recipe)
        monkeypatch.setattr("crosslign.training.checkpoint.versions", lambda: {"torch": "0.0"})
        train(recipe)
        assert "made with another versions" in caplog.text
        assert "starting from the beginning" in caplog.text


def test_f27_a_lease_is_free_as_soon_as_its_holder_is_killed(monkeypatch, tmp_path):
    from crosslign.jobs.leases import lease_gpus

    device = f"GPU-{tmp_path.name}-{os.getpid()}"  # that no other test has
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", device)
    for name in ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"):
        monkeypatch.delenv(name, raising=False)
    code = "from crosslign.jobs.leases import lease_gpus\nwith lease_gpus(1):\n    print('held', flush=True)\n    input()"
    holder = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(ResourceError, match=r"GPU.*--resources gpu="), lease_gpus(1, wait_seconds=0):
        pass
    holder.kill()
    holder.wait()
    with lease_gpus(1, wait_seconds=0) as devices:
        assert devices == [device]
