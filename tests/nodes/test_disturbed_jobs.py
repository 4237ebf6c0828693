"""A job on a Slurm of several nodes that is pre-empted, killed, out of time, held: the run goes on, or says what to do."""

import pytest
from nodes_project import STEPS, TRAINED
from slurm_project import wait_for

pytestmark = pytest.mark.long


@pytest.fixture
def training(project, begun):
    """Start the training anew, and wait until it is in its middle, where it has a checkpoint; gives the process."""

    def begin(*arguments):
        project.forget_training()
        process = begun(TRAINED, *arguments, rule="train_system")
        wait_for(lambda: project.curve() > STEPS // 4, 180, "the training does not begin")
        return process

    return begin


def take_node(nodes, job):
    """Take the node of a job from it, for as long as the test lasts."""
    node = job.fields["NodeList"]
    nodes.ask("sbatch", "--partition=urgent", "--exclusive", f"--nodelist={node}", "--output=/dev/null", "--wrap=sleep 3000")
    return node


def test_a_pre_empted_training_goes_on_at_another_node_and_ends_in_the_same_bytes(nodes, project, begun, training):
    process = training()
    with project.frozen("train_system"):
        (job,) = begun.jobs()
        node = take_node(nodes, job)
        wait_for(lambda: begun.jobs()[0].state != "RUNNING", 60, "the job is not pre-empted")
    said = project.ends_well(process)
    (again,) = begun.jobs()
    assert (again.id, again.state, again.fields["Restarts"]) == (job.id, "COMPLETED", "1")
    assert again.fields["NodeList"] != node
    assert "Trying to restart" not in said


def test_a_training_that_is_pre_empted_for_good_is_tried_again_elsewhere(nodes, project, begun, training):
    process = training("--set-resources", "train_system:slurm_partition=spare")
    with project.frozen("train_system"):
        (job,) = begun.jobs()
        node = take_node(nodes, job)
        wait_for(lambda: begun.jobs()[0].state != "RUNNING", 60, "the job is not pre-empted")
    project.ends_well(process)
    pre_empted, again = begun.jobs()
    assert (pre_empted.id, pre_empted.state, again.state) == (job.id, "PREEMPTED", "COMPLETED")
    assert again.fields["NodeList"] != node


def test_a_job_that_is_killed_for_memory_comes_back_with_more(nodes, project, begun):
    project.forget_score()
    project.take(4000)
    process = begun()
    (job,) = begun.jobs()
    assert job.megabytes < 4000
    said = project.ends_well(process)
    killed, again = begun.jobs()
    assert (killed.state, again.state) == ("FAILED", "COMPLETED")  # OUT_OF_MEMORY where Slurm watches memory by cgroups
    assert again.megabytes > 4000
    assert "exceeded memory limit" in said


def test_a_job_that_does_not_hear_that_its_time_is_up_comes_back_with_more(nodes, project, begun):
    project.forget_score()
    project.hold("deaf")
    process = begun()
    project.wait_until_held()  # before, it would hear
    (job,) = begun.jobs()
    nodes.ask("scontrol", "update", f"jobid={job.id}", "TimeLimit=1")
    wait_for(lambda: begun.jobs()[0].state == "TIMEOUT", 180, "Slurm does not end the job")
    project.release()
    said = project.ends_well(process)
    late, again = begun.jobs()
    assert (late.id, late.state, again.state) == (job.id, "TIMEOUT", "COMPLETED")
    assert again.minutes > job.minutes
    assert "DUE TO TIME LIMIT" in said


def test_a_job_that_is_put_back_and_held_waits_for_the_one_who_releases_it(nodes, project, begun):
    project.forget_score()
    project.hold()
    process = begun()
    project.wait_until_held()
    (job,) = begun.jobs()
    nodes.ask("scontrol", "requeuehold", job.id)
    project.release()
    wait_for(lambda: "can never start" in process.said(), 120, "nobody says that the job is held")
    assert f"{job.id}; see its Slurm log, then run `scontrol release <job id>`" in process.said()
    nodes.ask("scontrol", "release", job.id)
    said = project.ends_well(process)
    (again,) = begun.jobs()
    assert (again.id, again.state, again.fields["Restarts"]) == (job.id, "COMPLETED", "1")
    assert "Trying to restart" not in said
