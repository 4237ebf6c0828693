"""One finished run at scale quick that all tests share, and fresh copies of the project."""

import shutil

import pytest
from project_copy import Workflow, copy_project


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A finished run at scale quick."""
    workflow = Workflow(copy_project(tmp_path_factory.mktemp("quick")))
    workflow.first = workflow.run()
    return workflow


@pytest.fixture
def changed(finished, tmp_path):
    """A copy of the finished run, which the test may change: nothing is to be made again because it lies elsewhere."""
    return Workflow(shutil.copytree(finished.folder, tmp_path / "changed", symlinks=True))


@pytest.fixture
def untouched(tmp_path):
    """A copy of the project without results."""
    return Workflow(copy_project(tmp_path / "project"))
