"""What `doctor` says of a Slurm, told by stand-ins for its commands."""

import socket

import pytest

from crosslign.cli.commands.doctor import BAD, NOTE, OK, network, python_and_packages, scheduler


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Put commands of a Slurm on the path; gives the function that says how it is set up."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def install(accounting, age, *, answers=True):
        config = f"AccountingStorageType   = {accounting}\nMinJobAge               = {age} sec\n"
        texts = {"sbatch": "", "sacct": "", "sinfo": "main* up gpu:2\n", "scontrol": config}
        for name, text in texts.items():
            path = tmp_path / name
            path.write_text("#!/bin/sh\n" + ("" if answers else "echo cannot connect >&2; exit 1\n") + f"printf '%s' '{text}'\n")
            path.chmod(0o755)

    return install


def test_a_machine_without_slurm_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [state for state, *_ in scheduler()] == [NOTE]


def test_a_controller_that_does_not_answer_is_bad(slurm):
    slurm("accounting_storage/none", 300, answers=False)
    assert list(scheduler()) == [(BAD, "Slurm", "sinfo fails: cannot connect")]


def test_a_controller_that_hangs_is_bad_too(slurm, tmp_path, monkeypatch):
    slurm("accounting_storage/none", 300)
    (tmp_path / "sinfo").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    monkeypatch.setattr("crosslign.config.scheduler.SECONDS", 0.2)
    assert list(scheduler()) == [(BAD, "Slurm", "sinfo fails: no answer within 0.2 s")]


def test_accounting_that_answers_nothing_is_found_out(slurm):
    slurm("accounting_storage/none", 300)
    found = {what: (state, text) for state, what, text in scheduler()}
    assert found["Slurm partition"] == (OK, "main* up gpu:2")
    assert found["Slurm accounting"][0] == NOTE
    assert found["Slurm MinJobAge"] == (OK, "300 s")
    assert found["slurm/local.yaml"][0] == NOTE


def test_jobs_that_are_forgotten_too_early_are_bad(slurm, tmp_path):
    slurm("accounting_storage/none", 30)
    (tmp_path / "slurm").mkdir()
    (tmp_path / "slurm" / "config.yaml").write_text("slurm-init-seconds-before-status-checks: 20\n")
    (tmp_path / "slurm" / "local.yaml").write_text("jobs: 5\n")
    found = {what: (state, text) for state, what, text in scheduler()}
    assert found["Slurm MinJobAge"] == (BAD, "30 s: set slurm-init-seconds-before-status-checks to 10 or less in slurm/local.yaml")
    assert found["slurm/local.yaml"] == (OK, "found: Slurm takes a job with its names")
    (tmp_path / "slurm" / "local.yaml").write_text("slurm-init-seconds-before-status-checks: 10\n")  # as it was told
    assert (OK, "Slurm MinJobAge", "30 s") in list(scheduler())


def test_where_accounting_answers_jobs_may_be_forgotten_early(slurm):
    slurm("accounting_storage/slurmdbd", 30)
    found = {what: (state, text) for state, what, text in scheduler()}
    assert "Slurm accounting" not in found
    assert found["Slurm MinJobAge"] == (OK, "30 s")


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ("- jobs\n", "this is no mapping"),
        ("default-resources: [slurm_partition=main]\n", "resources are a mapping here"),
        ("default-resources: {slurm_partition: nowhere}\n", "invalid partition specified"),
    ],
)
def test_ones_own_file_that_cannot_work_is_bad(slurm, tmp_path, own, said):
    slurm("accounting_storage/none", 300)
    (tmp_path / "sbatch").write_text('#!/bin/sh\ncase "$*" in *nowhere*) echo "invalid partition specified" >&2; exit 1;; esac\n')
    (tmp_path / "slurm").mkdir()
    (tmp_path / "slurm" / "local.yaml").write_text(own)
    state, text = {what: (state, text) for state, what, text in scheduler()}["slurm/local.yaml"]
    assert (state, said in text) == (BAD, True), text


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
