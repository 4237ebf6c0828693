"""What clusters do to a training: cancelled, out of time, its Snakemake killed, the controller restarted; it ends in the same bytes."""

import os
import re
import shutil
import signal

import pytest
from slurm_project import PATIENCE, SlurmProject, wait_for

RUN = "MB-base-s42"
TARGET = f"results/quick/systems/{RUN}"
STEPS, SEEN = 3000, 120
"""Most steps of the training, and those that are done before it is disturbed; a checkpoint is written every hundred."""


@pytest.fixture(scope="module")
def project(first, tmp_path_factory):
    """A copy of the first project, whose trainings take longer."""
    folder = shutil.copytree(first.folder, tmp_path_factory.mktemp("longer") / "project", symlinks=True)
    made = SlurmProject(folder)
    made.edit("config/scales/quick.yaml", "steps: 8", f"steps: {STEPS}")
    made.edit("config/scales/quick.yaml", "batch: 16", "batch: 2")  # its few rows last for eight times the steps
    made.edit("config/scales/quick.yaml", "every: 4", f"every: {STEPS}")
    return made


@pytest.fixture(scope="module")
def undisturbed(cluster, project):
    """The weights of a training that nobody disturbed; every test trains it again."""
    project.run("--forcerun", "train_system", targets=[TARGET])
    found = project.weights(RUN)
    assert len(found) >= 2  # two encoders
    return found


@pytest.fixture
def training(cluster, project, undisturbed):
    """Start the training anew, and wait until it is in its middle; gives the process and the training's job."""
    project.remove(RUN)
    before = cluster.last()

    def begin(*more, **settings):
        starting = project.started(*more, targets=[TARGET], **settings)
        process = starting.__enter__()
        opened.append(starting)
        wait_for(lambda: project.curve(RUN) >= SEEN or process.poll() is not None, 300, "the training does not begin")
        assert process.poll() is None, process.log.read_text()[-4000:]
        return process, jobs()[-1]

    def jobs():
        return cluster.jobs(word=RUN, after=before)

    opened = []
    begin.jobs = jobs
    yield begin
    for starting in opened:
        starting.__exit__(None, None, None)
    cluster.cancel_all()
    wait_for(lambda: not cluster.active(), 120, "jobs do not end")
    wait_for(lambda: not project.processes("Snakefile"), 120, "what jobs began goes on without them")
    project.run("--unlock", check=False)


def ends_well(process, seconds=600):
    code = process.wait(timeout=seconds)
    assert code == 0, process.log.read_text()[-6000:]


def went_on_under_its_number(project, training, job, undisturbed):
    last = training.jobs()[-1]
    assert (last.id, last.state, last.fields["Restarts"]) == (job.id, "COMPLETED", "1")
    assert "continuing after step" in project.job_log("train_system", RUN)
    assert project.weights(RUN) == undisturbed


def test_a_cancelled_training_comes_back_and_ends_in_the_same_bytes(cluster, project, undisturbed, training):
    process, job = training()
    cluster.ask("scancel", job.id)
    ends_well(process)
    cancelled, again = training.jobs()
    assert (cancelled.id, cancelled.state, again.state) == (job.id, "CANCELLED", "COMPLETED")
    assert "continuing after step" in project.job_log("train_system", RUN)
    assert project.weights(RUN) == undisturbed


@pytest.mark.long
def test_a_training_over_its_time_is_warned_saved_and_goes_on(cluster, project, undisturbed, training):
    process, job = training()
    with project.frozen("train_system"):
        cluster.ask("scontrol", "update", f"jobid={job.id}", "TimeLimit=1")
        wait_for(lambda: training.jobs()[0].state != "RUNNING", 300, "Slurm does not end the job")
    ends_well(process)
    states = [each.state for each in training.jobs()]
    assert states[0] in ("TIMEOUT", "FAILED")
    assert states[-1] == "COMPLETED"
    assert training.jobs()[1].minutes > job.minutes
    assert "continuing after step" in project.job_log("train_system", RUN)
    assert project.weights(RUN) == undisturbed


@pytest.mark.long
def test_a_training_whose_node_fails_comes_back_and_ends_in_the_same_bytes(cluster, project, undisturbed, training):
    process, job = training()
    node = job.fields["NodeList"]
    try:
        cluster.ask("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
        wait_for(lambda: training.jobs()[0].state != "RUNNING", 120, "the job outlives its node")
    finally:
        cluster.ask("scontrol", "update", f"nodename={node}", "state=resume")
    ends_well(process)
    went_on_under_its_number(project, training, job, undisturbed)


@pytest.mark.long
def test_a_pre_empted_training_comes_back_and_ends_in_the_same_bytes(cluster, project, undisturbed, training):
    process, job = training()
    cluster.ask("sbatch", "--partition=urgent", "--exclusive", "--output=/dev/null", "--wrap=sleep 5")
    wait_for(lambda: training.jobs()[0].state != "RUNNING", 120, "the job is not pre-empted")
    ends_well(process)
    went_on_under_its_number(project, training, job, undisturbed)


@pytest.mark.long
def test_a_training_that_is_pre_empted_for_good_is_tried_again_and_ends_in_the_same_bytes(cluster, project, undisturbed, training):
    process, job = training("--set-resources", "train_system:slurm_partition=spare")
    cluster.ask("sbatch", "--partition=urgent", "--exclusive", "--output=/dev/null", "--wrap=sleep 5")
    wait_for(lambda: training.jobs()[0].state != "RUNNING", 120, "the job is not pre-empted")
    ends_well(process)
    pre_empted, again = training.jobs()
    assert (pre_empted.id, pre_empted.state, again.state) == (job.id, "PREEMPTED", "COMPLETED")
    assert "continuing after step" in project.job_log("train_system", RUN)
    assert project.weights(RUN) == undisturbed


@pytest.mark.long
def test_a_killed_snakemake_leaves_a_lock_that_is_explained_and_goes_on(cluster, project, undisturbed, training):
    process, job = training()
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    with project.frozen("train_system"):
        code, said = project.run(targets=[TARGET], check=False)
        assert code != 0
        assert "--unlock" in said
        project.run("--unlock")
        code, said = project.run(targets=[TARGET], check=False)
        assert code != 0
        (command,) = re.findall(r"squeue --me .*? \| xargs scancel", said)
        cluster.ask("sh", "-c", command)
    wait_for(lambda: not cluster.active(), 120, "the job does not end")
    assert [(each.id, each.state) for each in training.jobs()] == [(job.id, "CANCELLED")]
    project.run(targets=[TARGET])
    assert "continuing after step" in project.job_log("train_system", RUN)
    assert project.weights(RUN) == undisturbed


@pytest.mark.long
def test_ctrl_c_ends_the_jobs_too_and_the_same_command_goes_on(cluster, project, undisturbed, training):
    process, job = training()
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=120 * PATIENCE) != 0
    wait_for(lambda: not cluster.active(), 60, "the job runs on")
    assert [(each.id, each.state) for each in training.jobs()] == [(job.id, "CANCELLED")]
    project.run(targets=[TARGET])
    assert "continuing after step" in project.job_log("train_system", RUN)
    assert project.weights(RUN) == undisturbed


@pytest.mark.long
def test_a_restarted_controller_disturbs_nobody(cluster, project, undisturbed, training):
    process, job = training()
    cluster.restart_controller()
    ends_well(process)
    assert [(each.id, each.state) for each in training.jobs()] == [(job.id, "COMPLETED")]
    assert project.weights(RUN) == undisturbed


@pytest.mark.long
def test_a_second_snakemake_refuses_and_the_first_ends_well(cluster, project, undisturbed, training):
    process, job = training()
    with project.frozen("train_system"):
        code, said = project.run(targets=[TARGET], check=False)
    assert code != 0
    assert "locked" in said
    ends_well(process)
    assert [each.id for each in training.jobs()] == [job.id]
    assert project.weights(RUN) == undisturbed
