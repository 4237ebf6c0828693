"""A run on a Slurm of several nodes is told to end: by Slurm, as a job itself, before its time, or while its jobs only wait."""

import shlex

import pytest
from nodes_project import ON_SLURM
from slurm_project import wait_for

pytestmark = pytest.mark.long
OWN = {"CROSSLIGN_OFFLINE": 1, "HF_HUB_OFFLINE": 1, "OMP_NUM_THREADS": 1}


def test_a_run_inside_a_job_is_told_to_end_before_its_time_and_the_next_goes_on(nodes, project):
    project.forget_score()
    project.hold()
    before, log = nodes.last(), project.folder / "controller.log"
    options = ["--parsable", f"--chdir={project.folder}", f"--output={log}", "--mem=4000", "--time=6", "--signal=B:TERM@240"]
    variables = ",".join(f"{name}={value}" for name, value in {"PYTHONPATH": project.before, **OWN}.items())
    nodes.ask("sbatch", *options, f"--export=ALL,{variables}", f"--wrap=exec {shlex.join(project.command(*ON_SLURM))}")
    project.wait_until_held()
    told = "stopping: waiting jobs are cancelled, the run waits for 1 running ones"
    wait_for(lambda: told in log.read_text(), 240, "Slurm does not tell it, or it does not hear")  # after two minutes of the six
    assert [job.state for job in nodes.jobs(after=before)] == ["RUNNING", "RUNNING"]
    project.release()
    wait_for(lambda: not nodes.active(), 180, "the jobs do not end")
    states = [job.state for job in nodes.jobs(after=before)]
    assert states == ["FAILED", "COMPLETED"]  # its exit code tells that something is left to do
    project.on_slurm()
    assert project.is_whole()
    assert len(nodes.jobs(after=before)) == 2  # only the table was left, which is made where the command is given


def test_a_run_whose_jobs_all_wait_is_told_to_end_cancels_them_and_the_next_goes_on(nodes, project):
    project.forget_score()
    for node in ("n1", "n2", "n3", "n4"):
        nodes.ask("sbatch", f"--nodelist={node}", "--exclusive", "--output=/dev/null", "--wrap=sleep 3000")
    before = nodes.last()
    with project.started() as process:
        wait_for(lambda: nodes.jobs(after=before), 120, "no job is submitted")
        process.terminate()
        wait_for(lambda: process.poll() is not None, 120, process.said()[-6000:])
    assert process.returncode != 0
    assert "stopping: waiting jobs are cancelled, the run waits for 0 running ones\n" in process.said()
    assert [job.state for job in nodes.jobs(after=before)] == ["CANCELLED"]
    nodes.cancel_all()
    project.on_slurm()
    assert project.is_whole()
