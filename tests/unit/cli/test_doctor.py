"""What `doctor` says of a Slurm, told by stand-ins for its commands."""

import socket
from importlib import util

import pytest
import torch

from crosslign.cli.commands.doctor import BAD, NOTE, OK, devices, network, python_and_packages, scheduler

ELSEWHERE = ": use another login node, or ask your administrators"


@pytest.fixture
def slurm(tmp_path, monkeypatch, command):
    """Commands of a Slurm, and no others; gives the function that says how it is set up."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def install(age, *, accounting=False, answers=True):
        texts = {"sbatch": "", "sacct": "", "sinfo": "main* up gpu:2\n", "scontrol": f"MinJobAge               = {age} sec\n"}
        for name, text in texts.items():
            fails = "" if answers and (accounting or name != "sacct") else "echo cannot connect >&2; exit 1\n"
            command(name, f"{fails}printf '%s' '{text}'")

    return install


def test_a_machine_without_slurm_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [state for state, *_ in scheduler()] == [NOTE]


def test_bf16_that_a_gpu_only_emulates_is_none(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for real, said in ((False, "no"), (True, "yes")):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True, real=real: including_emulation or real)
        assert list(devices()) == [(OK, "torch on GPU", f"2 devices, bf16 {said}")]


def test_a_controller_that_does_not_answer_is_bad(slurm):
    slurm(300, answers=False)
    assert list(scheduler()) == [(BAD, "Slurm", f"sinfo fails: cannot connect{ELSEWHERE}")]


def test_of_many_lines_of_a_complaint_the_last_is_told(slurm, command):
    slurm(300)
    command("sinfo", "echo 'sinfo: error: no such host' >&2; echo 'sinfo: fatal: no configuration' >&2; exit 1")
    assert list(scheduler()) == [(BAD, "Slurm", f"sinfo fails: sinfo: fatal: no configuration{ELSEWHERE}")]


def test_a_controller_that_hangs_is_bad_too(slurm, command, monkeypatch):
    slurm(300)
    command("sinfo", "exec /bin/sleep 60")
    monkeypatch.setattr("crosslign.slurm.commands.SECONDS", 0.2)
    assert list(scheduler()) == [(BAD, "Slurm", f"sinfo fails: no answer within 0.2 s{ELSEWHERE}")]


def test_accounting_that_answers_nothing_is_found_out(slurm):
    slurm(300)
    found = {what: (state, text) for state, what, text in scheduler()}
    assert found["Slurm partition"] == (OK, "main* up gpu:2")
    assert found["Slurm accounting"][0] == NOTE
    assert found["Slurm MinJobAge"] == (OK, "300 s")
    assert found["slurm/local.yaml"][0] == NOTE
    slurm(300, accounting=True)
    assert "Slurm accounting" not in [what for _, what, _ in scheduler()]


@pytest.mark.parametrize(("age", "state"), [(0, OK), (2, NOTE), (179, NOTE), (180, OK)])  # zero is for ever
def test_jobs_that_are_forgotten_early_are_told(slurm, age, state):
    slurm(age)
    found = {what: (state, text) for state, what, text in scheduler()}
    assert found["Slurm MinJobAge"][0] == state
    slurm(age, accounting=True)
    told = {what: text for _, what, text in scheduler()}["Slurm MinJobAge"]
    assert ("slurm-status-command: sacct" in told) == (state == NOTE)


def test_ones_own_file_that_slurm_takes_is_well(slurm, tmp_path):
    slurm(300)
    (tmp_path / "slurm").mkdir()
    (tmp_path / "slurm" / "local.yaml").write_text("jobs: 5\n")
    assert (OK, "slurm/local.yaml", "found: Slurm accepts jobs with its settings (all jobs)") in list(scheduler())


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ("- jobs\n", "the file must be a mapping"),
        ("default-resources: [slurm_partition=main]\n", "resources must be a mapping"),
        ("default-resources: {slurm_partition: nowhere}\n", "invalid partition specified"),
    ],
)
def test_ones_own_file_that_cannot_work_is_bad(slurm, command, tmp_path, own, said):
    slurm(300)
    command("sbatch", 'case "$*" in *nowhere*) echo "invalid partition specified" >&2; exit 1;; esac')
    (tmp_path / "slurm").mkdir()
    (tmp_path / "slurm" / "local.yaml").write_text(own)
    state, text = {what: (state, text) for state, what, text in scheduler()}["slurm/local.yaml"]
    assert (state, said in text) == (BAD, True), text


@pytest.mark.parametrize(("name", "state"), [("faiss", OK), ("no_such_module", NOTE)])
def test_faiss_is_looked_for_by_its_module(monkeypatch, name, state):  # conda's package is called faiss-gpu
    real = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda _: real(name))
    assert {what: state for state, what, _ in python_and_packages()}["faiss"] == state


@pytest.mark.parametrize(("version", "state"), [((3, 9, 18), BAD), ((3, 11, 0), OK), ((3, 14, 1), OK)])
def test_an_old_python_is_bad(monkeypatch, version, state):
    monkeypatch.setattr("sys.version_info", version)
    assert {what: state for state, what, _ in python_and_packages()}["python"] == state


def test_behind_a_proxy_the_proxy_is_asked(monkeypatch):
    monkeypatch.delenv("CROSSLIGN_OFFLINE", raising=False)
    for name in ("no_proxy", "NO_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setenv("https_proxy", f"http://user:secret@127.0.0.1:{port}")
        found = list(network())
    assert {state for state, *_ in found} == {OK}
    assert f"huggingface.co, by its proxy 127.0.0.1:{port}, answers" in [text for *_, text in found]
    assert {state for state, *_ in network()} == {NOTE}  # it is gone
    assert "secret" not in str([*found, *network()])
