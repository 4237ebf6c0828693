"""One finished run at scale quick that all tests share, and fresh copies of the project."""

import shutil
from importlib.util import find_spec
from pkgutil import iter_modules

import pytest
from forks import PYTHON
from project_copy import Pristine, Workflow, copy_project

PACKAGES = (
    "config", "corpora.evaluations", "corpora.filters", "corpora.readers", "corpora.stand_ins", "examples.builders", "jobs",
    "mining.backends", "planning", "provenance", "reporting", "reporting.figures", "slurm", "stages", "tasks.scorers", "views.builders",
)  # fmt: skip
ALSO = ("scipy.sparse", "scipy.stats", "sklearn.manifold", "snakemake.cli", "transformers.models.bert.modeling_bert")
"""What Snakemake and the jobs of the smallest run load, beside what trainings do."""


@pytest.fixture(scope="session")
def forked_python(forks):
    """The command that runs Snakemake without loading it; the jobs that it starts are processes as always, but where a test says else."""
    places = {name: find_spec(f"crosslign.{name}").submodule_search_locations for name in PACKAGES}
    forks.load(*ALSO, *(f"crosslign.{name}.{one.name}" for name, place in places.items() for one in iter_modules(place)))
    return forks.python


@pytest.fixture(scope="session")
def finished(tmp_path_factory, forked_python):
    """A finished run at scale quick, whose hundred jobs load nothing anew either."""
    workflow = Workflow(copy_project(tmp_path_factory.mktemp("quick")), forked_python)
    workflow.first = workflow.run(variables={PYTHON: str(forked_python)})
    return workflow


@pytest.fixture(scope="session")
def pristine(tmp_path_factory, forked_python):
    """A copy of the project without results that all tests share: they ask it for dry runs and change nothing."""
    return Pristine(copy_project(tmp_path_factory.mktemp("pristine") / "project"), forked_python)


@pytest.fixture
def changed(finished, forked_python, tmp_path):
    """A copy of the finished run, which the test may change: nothing is to be made again because it lies elsewhere."""
    return Workflow(shutil.copytree(finished.folder, tmp_path / "changed", symlinks=True), forked_python)


@pytest.fixture
def untouched(tmp_path, forked_python):
    """A copy of the project without results."""
    return Workflow(copy_project(tmp_path / "project"), forked_python)
