"""One finished run at scale quick that all tests share, and fresh copies of the project."""

import shutil
from pathlib import Path

import pytest
from project_copy import Workflow, copy_project

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    """Keep these tests in one process of a parallel run: they share one finished workflow."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.xdist_group("workflow"))


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
