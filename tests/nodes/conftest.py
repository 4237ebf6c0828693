"""One Slurm of six nodes and the smallest whole workflow, built on it once, that all tests share; they take minutes."""

import signal
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("faults", "cluster")]


def pytest_configure(config):
    # Asked to end, pytest would leave the daemons behind; an exception lets it tear down.
    def stop(number, frame):
        raise KeyboardInterrupt(f"signal {number}")

    signal.signal(signal.SIGTERM, stop)


@pytest.fixture(scope="session")
def nodes():
    from many_nodes import ManyNodes, lacking

    if reason := lacking():
        pytest.skip(reason)
    made = ManyNodes()
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture(scope="session")
def built(nodes, tmp_path_factory):
    """A project with its table, which no cluster had to do with; `known` are the files of the table and the weights of its training."""
    from nodes_project import NodesProject

    made = NodesProject(tmp_path_factory.mktemp("nodes") / "project")
    made.run("--notemp")
    made.known = made.tables(), made.weights()
    return made


@pytest.fixture
def project(nodes, built):
    """The same for a test that disturbs it: afterwards its jobs are cancelled, and what they wait for and what is set goes."""
    yield built
    built.release()
    built.set_own()
    nodes.cancel_all()
    nodes.wait_until_idle()
    if not built.is_whole():
        built.run("--unlock", check=False)
        built.run("--notemp")


@pytest.fixture
def begun(nodes, project):
    """Start a command, and wait until its one job of a rule runs on a node; gives the process. `begun.jobs()` are the jobs of that rule."""
    from slurm_project import wait_for

    with ExitStack() as opened:

        def begin(*arguments, rule="score", **changes):
            before = nodes.last()
            begin.jobs = lambda: nodes.jobs(word=f"_{rule}", after=before)
            process = opened.enter_context(project.started(*arguments, **changes))
            wait_for(lambda: process.poll() is not None or [job for job in begin.jobs() if job.state == "RUNNING"], 180, "no job begins")
            assert process.poll() is None, process.said()[-6000:]
            return process

        yield begin
