"""What `doctor` says of a Slurm, told by stand-ins for its commands."""

import pytest

from crosslign.cli.commands.doctor import BAD, NOTE, OK, scheduler


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
    assert found["slurm/local.yaml"] == (OK, "found")
    (tmp_path / "slurm" / "local.yaml").write_text("slurm-init-seconds-before-status-checks: 10\n")  # as it was told
    assert (OK, "Slurm MinJobAge", "30 s") in list(scheduler())


def test_where_accounting_answers_jobs_may_be_forgotten_early(slurm):
    slurm("accounting_storage/slurmdbd", 30)
    found = {what: (state, text) for state, what, text in scheduler()}
    assert "Slurm accounting" not in found
    assert found["Slurm MinJobAge"] == (OK, "30 s")
