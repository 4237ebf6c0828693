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

from crosslign.errors import CrosslignError, InputError, StoppedError
from crosslign.training import launch
from crosslign.training.accelerator import start_accelerator
from crosslign.training.launch import MODULE, train_on


@pytest.fixture(autouse=True, scope="module")
def _on_cpus():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACCELERATE_USE_CPU", "true")
        yield


@pytest.fixture(scope="module")
def arguments_in(tiny_encoder, pairs_file):
    """Arguments of a training of two processes on a CPU, in a folder."""

    def make(folder, **train):
        terms = [{"objective": "infonce", "weight": 1.0, "examples": "pairs", "batch": 8, "temperature": 0.05}]
        return {
            "recipe": trial.recipe(terms=terms, train={"steps": 60, "epsilon": 1.0, "checkpoint_minutes": 10, **train}),
            "examples": {"pairs": str(pairs_file)},
            "base": {"main": str(tiny_encoder / "main")},
            "sets": {},
            "tasks": {},
            "out": str(folder / "run"),
            "checkpoints": str(folder / "work"),
            "context": {"code": "abc"},
        }

    return make


@pytest.fixture
def arguments(arguments_in, tmp_path):
    return arguments_in(tmp_path)


@pytest.fixture(scope="module")
def undisturbed(arguments_in, tmp_path_factory):
    """What a whole training of two processes counts, and its folder; torchrun starts the two."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "arguments.json").write_text(json.dumps(arguments_in(folder)))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", MODULE, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads((folder / "counts.json").read_text()), folder / "run"


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


def kill_the_launcher(forks, arguments, tmp_path):
    """Train on two processes below one of their own, and kill that one after the first checkpoint; return its ranks, which end too."""
    (tmp_path / "given.json").write_text(json.dumps(arguments))
    code = "import json, sys; from crosslign.training.launch import train_on; train_on(2, json.load(open(sys.argv[1])))"
    launcher = forks.start(code, tmp_path / "given.json")
    deadline = time.monotonic() + 240
    while not (tmp_path / "work" / "current").exists() and alive(launcher[0]) and time.monotonic() < deadline:
        time.sleep(0.01)
    ranks = [int(rank) for rank in open(f"/proc/{launcher[0]}/task/{launcher[0]}/children").read().split()]  # noqa: SIM115
    os.kill(launcher[0], signal.SIGKILL)
    forks.wait(launcher)
    deadline = time.monotonic() + 120
    while any(map(alive, ranks)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return ranks


def test_a_killed_then_stopped_training_of_two_goes_on_to_the_bytes_that_torchrun_makes(forks, arguments_in, undisturbed, tmp_path):
    arguments = arguments_in(tmp_path, checkpoint_minutes=1e-4)
    ranks = kill_the_launcher(forks, arguments, tmp_path)
    assert len(ranks) == 2
    assert not any(map(alive, ranks))
    assert not (tmp_path / "run").exists()
    stop_in_the_middle(tmp_path / "work" / "current")
    with pytest.raises(StoppedError, match="asked to stop"):
        train_on(2, arguments)
    state = json.loads(max((tmp_path / "work").glob("step-*/state.json")).read_text())
    assert 0 < state["step"] < 60
    counts, (whole, folder) = train_on(2, arguments_in(tmp_path)), undisturbed
    assert (counts["ranks"], counts["steps"]) == (2, 60)
    assert counts["earlier_s"] > whole["earlier_s"] == 0.0
    assert {**counts, "earlier_s": 0.0} == whole
    assert trial.weights(tmp_path / "run") == trial.weights(folder)


def test_what_a_process_raises_is_raised_and_nobody_waits_for_it(arguments):
    arguments["recipe"]["parts"] = {"head": {"kind": "no_such_part"}}
    with pytest.raises(InputError, match="no_such_part"):  # the kind, too: a job ends with its exit code
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


def test_each_process_has_a_device_of_its_own(monkeypatch):
    started = []

    class Process:
        def __init__(self, command, env):
            started.append({name: env[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_PORT")})
            if len(started) == 3:
                raise CrosslignError("all were started")

    monkeypatch.setattr(launch.subprocess, "Popen", Process)
    with pytest.raises(CrosslignError, match="all were started"):
        launch._train_on(3, None)
    assert [(env["RANK"], env["LOCAL_RANK"]) for env in started] == [("0", "0"), ("1", "1"), ("2", "2")]
    assert {(env["WORLD_SIZE"], env["LOCAL_WORLD_SIZE"]) for env in started} == {("3", "3")}
    assert len({env["MASTER_PORT"] for env in started}) == 1
