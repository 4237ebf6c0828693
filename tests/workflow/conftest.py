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
def changed(finished):
    """The finished run; configuration that the test edits is put back, and its results with it."""
    kept = finished.folder.parent / "config-kept"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(finished.folder / "config", kept)
    yield finished
    shutil.rmtree(finished.folder / "config")
    shutil.copytree(kept, finished.folder / "config")
    finished.run()


@pytest.fixture
def untouched(tmp_path):
    """A copy of the project without results."""
    return Workflow(copy_project(tmp_path / "project"))
