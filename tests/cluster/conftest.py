"""One Slurm and one project with its first table that all tests share."""

import shutil
import signal

import pytest
from project_copy import ROOT, copy_project
from slurm_by_hand import Cluster, missing
from slurm_project import OWN, SlurmProject, engine_log


def pytest_configure(config):
    # Asked to end, pytest would leave the daemons behind; an exception lets it tear down.
    def stop(number, frame):
        raise KeyboardInterrupt(f"signal {number}")

    signal.signal(signal.SIGTERM, stop)


@pytest.fixture(scope="session")
def cluster():
    if reason := missing():
        pytest.skip(reason)
    made = Cluster()
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture(scope="session")
def first(cluster, tmp_path_factory):
    """A project whose first table was built there; `first_jobs` are the jobs that it took, `said` what it said, `first_log` its log."""
    folder = copy_project(tmp_path_factory.mktemp("cluster") / "project")
    shutil.copytree(ROOT / "slurm", folder / "slurm")
    (folder / "slurm" / "local.yaml").write_text(OWN)
    project = SlurmProject(folder)
    _, project.said = project.run(seconds=1800)
    project.first_jobs, project.first_log = cluster.jobs(), engine_log(folder)
    return project


@pytest.fixture
def own_file(first):
    """Let a test add to slurm/local.yaml; it is put back afterwards."""
    path = first.folder / "slurm" / "local.yaml"
    yield lambda text: path.write_text(OWN + text)
    path.write_text(OWN)
