"""What is said of failed jobs: from the events of a run and the logs of its jobs."""

import logging

import pytest

from crosslign.jobs.failures import Failure, FailuresHandler, explain

SLURM = "SLURM-job '17' failed, SLURM status is: 'TIMEOUT'. Detailed failure reason unavailable (status command is not 'sacct')."


def event(handler, name, **fields):
    record = logging.makeLogRecord({"event": name, **fields})
    handler.emit(record)


def test_a_failure_names_rule_wildcards_cause_last_lines_logs_and_what_to_do(tmp_path):
    log, slurm = tmp_path / "MB-base-s42.log", tmp_path / "17.log"
    lines = [f"2026-11-21 11:00:0{n},000 INFO crosslign.training: step {n}" for n in range(9)]
    log.write_text("\n".join([*lines, "2026-11-21 11:00:09,000 ERROR crosslign: the loss is not finite; step 9. Lower it", ""]))
    slurm.write_text("slurmstepd: error\n")
    handler = FailuresHandler()
    event(handler, "job_info", jobid=4, wildcards={"run": "MB-base-s42"})
    event(handler, "job_error", jobid=4, rule_name="train_system", rule_msg=SLURM, log=[str(log), str(slurm)])
    said = handler.text().splitlines()
    assert said[0] == "failed: train_system run=MB-base-s42"
    assert "  slurm job 17: TIMEOUT" in said
    assert "  cause: the loss is not finite; step 9. Lower it" in said
    assert next(line for line in said if line.startswith("  | ")).endswith("step 4")
    assert f"  log: {log}" in said
    assert f"  log: {slurm}" in said
    assert said[-1].startswith("  next: ")


def test_of_a_log_without_end_its_end_is_read(tmp_path):
    log = tmp_path / "a.log"
    with log.open("wb") as file:
        file.truncate(1 << 40)
        file.seek(0, 2)
        file.write(b"\n2026-11-21 11:00:09,000 ERROR crosslign: the loss is not finite\n")
    assert "  cause: the loss is not finite" in explain(Failure("train_system", {"run": "a"}, (log,), ""))


@pytest.mark.parametrize(("state", "advice"), [("PREEMPTED", "preempted by another job"), ("NODE_FAIL", "its node failed")])
def test_what_ends_a_job_from_outside_is_named(tmp_path, state, advice):
    said = list(explain(Failure("train_system", {"run": "a"}, (tmp_path / "no.log",), SLURM.replace("TIMEOUT", state))))
    assert said[1] == f"  slurm job 17: {state}"
    assert advice in said[2]
    assert "continues from its saved state" in said[2]


def test_a_job_that_a_later_try_finished_is_not_named(tmp_path):
    handler = FailuresHandler()
    event(handler, "job_error", jobid=4, rule_name="embed", log=[str(tmp_path / "no.log")])
    assert "failed: embed" in handler.text()
    event(handler, "job_finished", job_id=4)
    assert handler.text() == ""


def test_a_group_names_its_jobs(tmp_path):
    handler = FailuresHandler()
    job = {"jobid": 7, "rule_name": "score", "log": [str(tmp_path / "no.log")]}
    whole = {**job, "jobid": 8, "rule_name": "embed", "output": [str(tmp_path)]}
    event(handler, "group_error", groupid="x", aux_logs=[str(tmp_path / "3.log")], said=SLURM, job_error_info=[whole, job])
    event(handler, "job_error", indent=True, **job)
    said = handler.text()
    assert said.count("failed: ") == 1
    assert "failed: score" in said
    assert "slurm job 17: TIMEOUT" in said
    assert "3.log" in said


def test_without_a_cause_in_the_log_slurm_gives_it(tmp_path):
    log = tmp_path / "x.log"
    log.write_text("2026-11-21 11:00:00,000 INFO crosslign: begins\n")
    assert any("ran out of time" in line for line in explain(Failure("embed", {}, (log,), SLURM)))
    silent = list(explain(Failure("embed", {}, (tmp_path / "none.log", tmp_path / "slurm.log"))))
    assert any("wrote no log" in line for line in silent)


def test_a_submission_that_is_refused_gives_the_cause_in_the_schedulers_words(tmp_path):
    message = "SLURM sbatch failed. The error message was 'sbatch: error: Invalid account'.\n    sbatch call:\n        sbatch --parsable"
    said = list(explain(Failure("embed", {}, (tmp_path / "none.log",), message)))
    assert "  cause: SLURM sbatch failed. The error message was 'sbatch: error: Invalid account'." in said


@pytest.mark.parametrize(("level", "hopeless"), [("CRITICAL", True), ("ERROR", False)])
def test_no_try_helps_a_job_whose_last_error_is_of_its_input(tmp_path, level, hopeless):
    log, handler = tmp_path / "x.log", FailuresHandler()
    event(handler, "job_info", jobid=4, log=[str(log)])
    log.write_text(f"2026-11-21 11:00:00,000 {level} crosslign: a.tsv:3: two columns\n")
    event(handler, "job_error", jobid=4, rule_name="embed", log=[str(log)])
    assert handler.hopeless(4) is hopeless
    assert "  cause: a.tsv:3: two columns" in handler.text()
    assert not handler.hopeless(5)


def test_what_an_earlier_try_wrote_says_nothing_of_a_job_that_never_began(tmp_path):
    log, handler = tmp_path / "x.log", FailuresHandler()
    log.write_text("2026-11-21 11:00:00,000 CRITICAL crosslign: a.tsv:3: two columns\n")
    event(handler, "job_info", jobid=4, log=[str(log)])
    event(handler, "job_error", jobid=4, rule_name="embed", rule_msg=SLURM.replace("TIMEOUT", "CANCELLED"), log=[str(log)])
    assert not handler.hopeless(4)
    assert "two columns" not in handler.text()
    assert "it was cancelled" in handler.text()


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("slurmstepd-n1: error: StepId=10.0 exceeded memory limit (3368599552 > 3338665984), being killed", "ran out of memory"),
        ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=10.batch.", "ran out of memory"),
        ("slurmstepd-n1: error: *** STEP 13.0 ON n1 CANCELLED AT 2026-11-25T23:59:48 DUE TO TIME LIMIT ***", "ran out of time"),
        ("srun: error: n1: task 0: Exited with exit code 1", "wrote no log"),
    ],
)
def test_of_a_failed_job_slurms_log_tells_what_ended_it(tmp_path, line, advice):
    slurm = tmp_path / "10.log"
    slurm.write_text(f"Building DAG of jobs...\n{line}\nStoring output in storage.\n")
    said = list(explain(Failure("score", {}, (tmp_path / "none.log", slurm), SLURM.replace("TIMEOUT", "FAILED"))))
    assert said[1] == "  slurm job 17: FAILED"
    assert advice in said[2]
