"""Where the jobs of a run stand is read from what Slurm's commands print."""

from datetime import datetime

from crosslign.cli.main import main
from crosslign.slurm.queue import RECORD, queue_lines

NOW = datetime(2026, 11, 24, 12, 0, 0)
QUEUE = """11|embed.QS-P-s42.last.run-7|RUNNING|None|2026-11-24T10:00:00|2026-11-24T11:30:00
12|score.bucc.run-7|PENDING|Priority|2026-11-24T11:00:00|N/A
13|score.sts.run-7|PENDING|Priority|2026-11-24T11:59:00|2026-11-24T14:00:00
14|train_system.X.run-7|PENDING|QOSMaxJobsPerUserLimit|2026-11-24T11:58:20|N/A
15|somebody else's|RUNNING|None|2026-11-24T10:00:00|2026-11-24T11:30:00
"""
ENDED = """9|tokenise.nli.run-7|FAILED
10|embed.QS-E-s42.run-7|COMPLETED
8|train_system.Y.run-7|TIMEOUT
7|other|FAILED
"""


def test_jobs_of_the_run_are_counted_by_what_they_wait_for(slurm):
    slurm.answers("squeue", QUEUE)
    slurm.answers("sacct", ENDED)
    assert queue_lines(["run-7"], NOW) == [
        "Slurm: 1 job running, 3 waiting",
        "  runs   embed.QS-P-s42.last, for 30 min 00 s",
        "  waits  2 jobs (Priority), the first for 1 h 00 min",
        "  waits  1 job (QOSMaxJobsPerUserLimit), the first for 1 min 40 s",
        "  ended  tokenise.nli: FAILED (job 9)",
        "  ended  train_system.Y: TIMEOUT (job 8)",
    ]


def test_without_accounting_the_queue_is_asked_what_ended_wrongly(slurm):
    slurm.answers("squeue", QUEUE, ENDED)
    slurm.fails("sacct", "Slurm accounting storage is disabled")
    lines = queue_lines(["run-7"], NOW)
    assert lines[4:] == ["  ended  tokenise.nli: FAILED (job 9)", "  ended  train_system.Y: TIMEOUT (job 8)"]
    assert "--states=BOOT_FAIL,DEADLINE,FAILED,NODE_FAIL,OUT_OF_MEMORY,TIMEOUT" in slurm.calls("squeue")[1]


def test_a_slurm_that_does_not_answer_is_a_line(slurm):
    slurm.fails("squeue", "cannot contact the controller")
    assert queue_lines(["run-7"], NOW) == ["the state of Slurm's queue is unknown: cannot contact the controller"]


def test_the_queue_is_told_before_any_job_has_finished(slurm, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the project's own results may have finished jobs
    (tmp_path / ".snakemake").mkdir()
    (tmp_path / RECORD).write_text("run-7")
    slurm.answers("squeue", QUEUE)
    slurm.answers("sacct", ENDED)
    assert main(["status", "results/quick", "--directory", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "0 finished jobs" in said
    assert "Slurm: 1 job running, 3 waiting\n" in said
