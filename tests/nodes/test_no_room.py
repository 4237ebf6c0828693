"""A Slurm of several nodes that takes no more jobs, or whose accounting does not answer: the run waits, or says what to do."""

import pytest
from slurm_project import wait_for

pytestmark = pytest.mark.long
WAITS = ("--output=/dev/null", "--wrap=true", "--hold")


def test_a_run_waits_where_its_qos_takes_no_more_jobs(nodes, project):
    project.forget_score()
    for _ in range(10):
        assert nodes.ask("sbatch", "--qos=tiny", "--time=5", *WAITS)
    with project.started("--set-resources", "score:qos=tiny", "score:runtime=10") as process:
        wait_for(lambda: "Slurm accepts no jobs at present (QOSMaxSubmitJob" in process.said(), 120, "nobody says why no job is submitted")
        nodes.cancel_all()
        said = project.ends_well(process)
    assert "Trying to restart" not in said


def test_a_run_waits_where_slurm_remembers_as_many_jobs_as_it_may(nodes, project):
    project.forget_score()
    with nodes.changed(age=5):
        wait_for(lambda: not nodes.jobs(), 300, "Slurm remembers jobs that ended long ago")
        with nodes.changed(most=2):  # one less than it says are taken
            assert nodes.ask("sbatch", *WAITS)
            with project.started() as process:  # `sbatch` itself tries for two minutes
                said = "Slurm accepts no jobs at present (temporarily unable to accept job)"
                wait_for(lambda: said in process.said(), 300, "nobody says why no job is submitted")
                nodes.cancel_all()
                said = project.ends_well(process, 600)
    assert "Trying to restart" not in said


def test_without_accounting_a_run_that_would_ask_it_is_refused_with_what_to_do(nodes, project):
    project.forget_score()
    with nodes.without_accounting():
        assert "sacct does not answer: keep `slurm-status-command: squeue`" in project.crosslign("doctor")
        done = project.on_slurm("--slurm-status-command", "sacct", check=False)
        assert done.returncode != 0
        assert "Write `slurm-status-command: squeue` into slurm/local.yaml" in done.stdout
        project.on_slurm()
    assert project.is_whole()


def test_a_run_goes_on_while_accounting_does_not_answer(nodes, project, begun):
    project.forget_score()
    project.hold()
    process = begun("--slurm-status-command", "sacct")
    project.wait_until_held()
    with nodes.without_accounting():
        wait_for(lambda: "Slurm does not answer" in process.said(), 120, "nobody says that accounting is gone")
        project.release()
        wait_for(lambda: begun.jobs()[0].state == "COMPLETED", 120, "the job does not end")
    said = project.ends_well(process)
    assert "Trying to restart" not in said
