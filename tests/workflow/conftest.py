"""One finished run at scale quick that all tests share, and fresh copies of the project."""

import shutil

import pytest
from project_copy import Pristine, Workflow, copy_project


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A finished run at scale quick."""
    workflow = Workflow(copy_project(tmp_path_factory.mktemp("quick")))
    workflow.first = workflow.run()
    return workflow


@pytest.fixture(scope="session")
def pristine(tmp_path_factory):
    """A copy of the project without results that all tests share: they ask it for dry runs and change nothing."""
    return Pristine(copy_project(tmp_path_factory.mktemp("pristine") / "project"))


@pytest.fixture
def changed(finished, tmp_path):
    """A copy of the finished run, which the test may change: nothing is to be made again because it lies elsewhere."""
    return Workflow(shutil.copytree(finished.folder, tmp_path / "changed", symlinks=True))


@pytest.fixture
def untouched(tmp_path):
    """A copy of the project without results."""
    return Workflow(copy_project(tmp_path / "project"))
