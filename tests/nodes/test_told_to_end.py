"""A run that is itself a job of a Slurm of several nodes is told to end before its time; the next goes on."""

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
    options = ["--parsable", f"--chdir={project.folder}", f"--output={log}", "--mem=4000", "--time=60", "--signal=B:TERM@600"]
    variables = ",".join(f"{name}={value}" for name, value in {"PYTHONPATH": project.before, **OWN}.items())
    controller = nodes.ask("sbatch", *options, f"--export=ALL,{variables}", f"--wrap=exec {shlex.join(project.command(*ON_SLURM))}").strip()
    project.wait_until_held()
    nodes.ask("scancel", "--batch", "--signal=TERM", controller)
    told = "told to end: jobs that only waited are cancelled, 1 running ones are waited for"
    wait_for(lambda: told in log.read_text(), 120, "the run does not hear it")
    project.release()
    wait_for(lambda: not nodes.active(), 180, "the jobs do not end")
    states = [job.state for job in nodes.jobs(after=before)]
    assert states == ["FAILED", "COMPLETED"]  # its exit code tells that something is left to do
    project.on_slurm()
    assert project.is_whole()
    assert len(nodes.jobs(after=before)) == 2  # only the table was left, which is made where the command is given
