"""Several processes train one run: stopped they save one state and go on from it, and what one raises is raised."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from datetime import timedelta

import pytest
import trial
from tokenise import tokenised

from crosslign.errors import CrosslignError, InputError, NetworkError, ResourceError, StoppedError
from crosslign.training import launch, rank
from crosslign.training.accelerator import start_accelerator
from crosslign.training.launch import MODULE, train_on
from crosslign.workers import STOPPING


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
        recipe = trial.recipe(terms=terms, train={"steps": 60, "epsilon": 1.0, "checkpoint_minutes": 10, **train})
        examples = tokenised(recipe, {"pairs": pairs_file}, {"main": tiny_encoder / "main"}, folder / "sets")
        return {
            "recipe": recipe,
            "examples": {name: str(path) for name, path in examples.items()},
            "base": {"main": str(tiny_encoder / "main")},
            "sets": {},
            "tasks": {},
            "out": str(folder / "run"),
            "checkpoints": str(folder / "work"),
            "context": {"version": "train_system@1"},
        }

    return make


@pytest.fixture
def arguments(arguments_in, tmp_path):
    return arguments_in(tmp_path)


@pytest.fixture(scope="module")
def undisturbed(arguments_in, tmp_path_factory):
    """What a whole training of two processes counts, and its folder; two calls of torchrun, as on two nodes, start one each."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "arguments.json").write_text(json.dumps(arguments_in(folder)))
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d"]
    command += ["--rdzv-conf", "store_type=file", "--rdzv-endpoint", str(folder / "meeting"), "-m", MODULE, str(folder)]
    nodes = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for node in nodes:
        said = node.communicate(timeout=300)[1]
        assert node.returncode == 0, said[-2000:]
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


@pytest.mark.long
def test_a_killed_then_stopped_training_of_two_goes_on_to_the_bytes_that_torchrun_makes(forks, arguments_in, undisturbed, tmp_path):
    arguments = arguments_in(tmp_path, checkpoint_minutes=1e-4)
    ranks = kill_the_launcher(forks, arguments, tmp_path)
    assert len(ranks) == 2
    assert not any(map(alive, ranks))
    assert not (tmp_path / "run").exists()
    stop_in_the_middle(tmp_path / "work" / "current")
    with pytest.raises(StoppedError, match="SIGTERM"):
        train_on(2, arguments)
    state = json.loads(max((tmp_path / "work").glob("step-*/state.json")).read_text())
    assert 0 < state["step"] < 60
    counts, (whole, folder) = train_on(2, arguments_in(tmp_path)), undisturbed
    assert (counts["ranks"], counts["steps"]) == (2, 60)
    assert counts["earlier_s"] > whole["earlier_s"] == 0.0
    assert {**counts, "earlier_s": 0.0, "working_bytes": whole["working_bytes"]} == whole
    assert trial.weights(tmp_path / "run") == trial.weights(folder)


def test_what_a_process_raises_is_raised_and_nobody_waits_for_it(arguments):
    arguments["recipe"]["parts"] = {"head": {"kind": "no_such_part"}}
    with pytest.raises(InputError, match="no_such_part"):  # the kind, too: a job ends with its exit code
        train_on(2, arguments)


SHRINKING = """
import json, os, pathlib, sys
folder, rank = pathlib.Path(sys.argv[1]), os.environ["RANK"]
tried = folder / f"tried-{rank}"
if tried.exists():
    (folder / "counts.json").write_text(json.dumps({"steps": 4})) if rank == "0" else None
    sys.exit(0)
tried.touch()
(folder / f"error-{rank}.json").write_text(json.dumps({"error": "the batch does not fit", "again": AGAIN}))
sys.exit(4)
"""


@pytest.mark.parametrize("again", [True, False])
def test_all_start_again_where_a_batch_did_not_fit_and_smaller_ones_are_allowed(monkeypatch, tmp_path, again):
    (tmp_path / "shrinking.py").write_text(SHRINKING.replace("AGAIN", str(again)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(launch, "MODULE", "shrinking")
    with nullcontext() if again else pytest.raises(ResourceError, match="does not fit"):
        assert train_on(2, {}) == {"steps": 4}


def test_a_process_waits_for_the_others_for_as_long_as_one_of_them_may_evaluate_and_not_for_days():
    """Sets are tokenised before, by a rule of their own."""
    assert start_accelerator("fp32").init_handler.timeout == timedelta(minutes=30)


def test_each_process_has_a_device_of_its_own(monkeypatch):
    started = []

    class Process:
        def __init__(self, command, env):
            started.append({name: env[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_PORT")})
            if len(started) == 3:
                raise CrosslignError("all were started")

    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_PORT"):
        monkeypatch.setenv(name, "7")  # of whatever the job itself is a process of
    monkeypatch.setattr(launch.subprocess, "Popen", Process)
    with pytest.raises(CrosslignError, match="all were started"):
        launch._train_on(3, None)
    assert [(env["RANK"], env["LOCAL_RANK"]) for env in started] == [("0", "0"), ("1", "1"), ("2", "2")]
    assert {(env["WORLD_SIZE"], env["LOCAL_WORLD_SIZE"]) for env in started} == {("3", "3")}
    assert len({env["MASTER_PORT"] for env in started}) == 1


class Told:
    """A process that notes what is done to it."""

    def __init__(self, *given, **named):
        self.signals, self.killed = [], False

    def send_signal(self, number):
        self.signals.append(number)

    def kill(self):
        self.killed = True


@pytest.mark.parametrize("code", [0, StoppedError.exit_code])
def test_a_process_that_is_done_or_has_saved_its_state_ends_no_other(code):
    """The others may still be writing."""
    processes = [subprocess.Popen(["sh", "-c", command]) for command in (f"exit {code}", f"sleep 0.6; exit {code}")]
    assert launch._wait(processes) == [code, code]


@pytest.mark.parametrize("code", [1, ResourceError.exit_code, -signal.SIGKILL])
def test_a_process_that_fails_ends_the_others(code):
    command = f"kill -{-code} $$" if code < 0 else f"exit {code}"
    assert launch._wait([subprocess.Popen(["sh", "-c", one]) for one in ("exec sleep 60", command)]) == [-signal.SIGKILL, code]


@pytest.mark.parametrize(
    ("codes", "error"),
    [
        ((0, InputError.exit_code), InputError),
        ((-signal.SIGKILL, NetworkError.exit_code), NetworkError),  # the first was ended for the second
        ((StoppedError.exit_code, ResourceError.exit_code), ResourceError),
        ((StoppedError.exit_code, -signal.SIGKILL), StoppedError),
        ((-signal.SIGTERM, -signal.SIGTERM), StoppedError),  # told to stop while they were starting
        ((-signal.SIGKILL, -signal.SIGKILL), CrosslignError),
        ((-signal.SIGSEGV, -signal.SIGKILL), CrosslignError),
    ],
)
def test_the_kind_of_an_error_is_that_of_the_process_that_failed(monkeypatch, tmp_path, codes, error):
    monkeypatch.setattr(launch.subprocess, "Popen", Told)
    monkeypatch.setattr(launch, "_wait", lambda processes: list(codes))
    with pytest.raises(CrosslignError, match="exit") as caught:
        launch._train_on(2, tmp_path)
    assert type(caught.value) is error


def test_no_process_is_left_behind_where_the_launcher_is_interrupted(monkeypatch, tmp_path):
    started = []

    def interrupted(processes):
        started.extend(processes)
        raise KeyboardInterrupt

    monkeypatch.setattr(launch.subprocess, "Popen", Told)
    monkeypatch.setattr(launch, "_wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        launch._train_on(2, tmp_path)
    assert [process.killed for process in started] == [True, True]


def test_a_signal_to_stop_reaches_every_process_and_later_ones_whoever_listened_before():
    noted, processes = [], [Told(), Told()]
    before = {number: signal.signal(number, lambda number, frame: noted.append(number)) for number in STOPPING}
    try:
        for _ in range(2):
            with launch._passing_on(processes):
                for number in STOPPING:
                    signal.raise_signal(number)
        assert noted == []
        for number in STOPPING:
            signal.raise_signal(number)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert [process.signals for process in processes] == [list(STOPPING) * 2] * 2
    assert noted == list(STOPPING)


@pytest.mark.parametrize("number", [0, 1])
def test_a_process_trains_what_its_folder_says_and_the_first_one_tells_what_it_counted(arguments, tmp_path, monkeypatch, number):
    given = []
    monkeypatch.setenv("RANK", str(number))
    monkeypatch.delenv(launch.LAUNCHER_VARIABLE, raising=False)
    monkeypatch.setattr(rank, "train_run", lambda *what: given.append(what) or {"steps": 60})
    (tmp_path / "arguments.json").write_text(json.dumps(arguments))
    assert rank.main(tmp_path) == 0
    ((*_, out, checkpoints, context),) = given
    assert (out, checkpoints, context) == (tmp_path / "run", tmp_path / "work", {"version": "train_system@1"})
    assert (tmp_path / "counts.json").exists() == (number == 0)
