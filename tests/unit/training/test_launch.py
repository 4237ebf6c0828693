"""Several processes train one run: stopped they save one state and go on from it, and what one raises is raised."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest
import trial

from crosslign.errors import CrosslignError, StoppedError
from crosslign.training import launch
from crosslign.training.accelerator import start_accelerator
from crosslign.training.launch import MODULE, train_on


@pytest.fixture
def arguments(tiny_encoder, pairs_file, tmp_path, monkeypatch):
    """Arguments of a training of two processes on a CPU."""
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    terms = [{"objective": "infonce", "weight": 1.0, "examples": "pairs", "batch": 8, "temperature": 0.05}]
    recipe = trial.recipe(terms=terms, train={"steps": 60, "epsilon": 1.0, "checkpoint_minutes": 1e-4})
    return {
        "recipe": recipe,
        "examples": {"pairs": str(pairs_file)},
        "base": {"main": str(tiny_encoder / "main")},
        "sets": {},
        "tasks": {},
        "out": str(tmp_path / "run"),
        "checkpoints": str(tmp_path / "work"),
        "context": {"code": "abc"},
    }


def stop_in_the_middle(pointer):
    """Ask this process to stop as soon as the training has written another checkpoint."""
    before = pointer.read_text()

    def wait():
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline and pointer.read_text() == before:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def alive(process):
    """Tell whether a process runs: a zombie has ended, and only waits for its parent."""
    try:
        return open(f"/proc/{process}/stat").read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill_the_launcher(arguments, tmp_path):
    """Train on two processes below one of their own, and kill that one after the first checkpoint; return its ranks, which end too."""
    (tmp_path / "given.json").write_text(json.dumps(arguments))
    code = "import json, sys; from crosslign.training.launch import train_on; train_on(2, json.load(open(sys.argv[1])))"
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "given.json")]) as launcher:
        deadline = time.monotonic() + 240
        while not (tmp_path / "work" / "current").exists() and launcher.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        ranks = [int(rank) for rank in open(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read().split()]  # noqa: SIM115
        launcher.kill()
    deadline = time.monotonic() + 10
    while any(map(alive, ranks)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return ranks


def test_a_killed_then_stopped_training_of_two_goes_on_to_the_same_bytes(arguments, tmp_path):
    ranks = kill_the_launcher(arguments, tmp_path)
    assert len(ranks) == 2
    assert not any(map(alive, ranks))
    assert not (tmp_path / "run").exists()
    stop_in_the_middle(tmp_path / "work" / "current")
    with pytest.raises(StoppedError, match="asked to stop"):
        train_on(2, arguments)
    state = json.loads(max((tmp_path / "work").glob("step-*/state.json")).read_text())
    assert 0 < state["step"] < 60
    arguments["recipe"]["train"]["checkpoint_minutes"] = 10
    counts = train_on(2, arguments)
    assert (counts["ranks"], counts["steps"]) == (2, 60)
    undisturbed = train_on(2, {**arguments, "out": str(tmp_path / "other"), "checkpoints": str(tmp_path / "other_work")})
    assert counts.pop("earlier_s") > undisturbed.pop("earlier_s") == 0.0
    assert undisturbed == counts
    for file in ("curve.jsonl", "last/main/model.safetensors"):
        assert (tmp_path / "run" / file).read_bytes() == (tmp_path / "other" / file).read_bytes()


def test_torchrun_trains_to_the_same_bytes(arguments, tmp_path):
    arguments["recipe"]["train"]["steps"] = 5
    counts = train_on(2, arguments)
    given = {**arguments, "out": str(tmp_path / "torchrun"), "checkpoints": str(tmp_path / "torchrun_work")}
    (tmp_path / "arguments.json").write_text(json.dumps(given))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", MODULE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads((tmp_path / "counts.json").read_text()) == counts
    assert counts["ranks"] == 2
    assert trial.weights(tmp_path / "torchrun") == trial.weights(tmp_path / "run")


def test_what_a_process_raises_is_raised_and_nobody_waits_for_it(arguments):
    arguments["recipe"]["parts"] = {"head": {"kind": "no_such_part"}}
    with pytest.raises(CrosslignError, match="no_such_part"):
        train_on(2, arguments)


def test_examples_are_tokenised_before_the_processes_start(arguments, tmp_path, monkeypatch):
    def start(command, env):
        assert (tmp_path / "work" / "examples" / "pairs" / "facts.json").is_file()
        raise CrosslignError("would have started")

    monkeypatch.setattr(launch.subprocess, "Popen", start)
    with pytest.raises(CrosslignError, match="would have started"):
        train_on(2, arguments)


def test_a_process_waits_for_the_others_for_as_long_as_one_of_them_may_tokenise():
    assert start_accelerator("fp32").init_handler.timeout >= timedelta(days=1)
