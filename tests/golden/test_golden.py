"""Results change only where a version is raised: every stage and implementation against its kept results."""

import shutil

import pytest
from all_cases import SLOW, all_cases
from golden import KEPT, kept_file, module_of, problems, same
from made_inputs import FOLDER
from option_cases import kept_settings, used_settings

from crosslign.config.versions import code_behind
from crosslign.corpora import EVALUATIONS, READERS, SOURCES, STAND_INS
from crosslign.corpora.filters import FILTERS
from crosslign.encoders.formats import FORMATS
from crosslign.examples import BUILDERS
from crosslign.mining.backends import BACKENDS
from crosslign.objectives import OBJECTIVES, PARTS
from crosslign.reporting.figures import FIGURES
from crosslign.stages import STAGES
from crosslign.tasks import SCORERS
from crosslign.views import TRANSLATORS, VIEWS

NOTHING_OF_OURS = {
    "corpora.sources/github",
    "corpora.sources/hub",
    "corpora.sources/opus",
    "corpora.sources/package",
    "corpora.sources/url",
    "corpora.sources/local",
    "stages/fetch_model",
    "views.translators/apertium",
}
"""What gives what others publish, byte for byte (checksums of the catalog hold it; the stage `fetch` has its result), or asks an engine of
the machine: nothing to keep."""
REGISTRIES = (
    SOURCES,
    STAND_INS,
    READERS,
    EVALUATIONS,
    FILTERS,
    FORMATS,
    VIEWS,
    TRANSLATORS,
    BUILDERS,
    OBJECTIVES,
    PARTS,
    SCORERS,
    BACKENDS,
    FIGURES,
    STAGES,
)
CASES = all_cases()


@pytest.fixture(scope="session", autouse=True)
def _swept():
    yield
    shutil.rmtree(FOLDER, ignore_errors=True)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.long] if name.startswith(SLOW) else []) for name in CASES])
def test_a_result_changes_only_with_its_version(name):
    found = problems(name, CASES[name]())
    assert not found, "\n".join(found)


def test_every_stage_and_implementation_has_a_kept_result():
    every = {f"{registry.package.removeprefix('crosslign.')}/{name}" for registry in REGISTRIES for name in registry.names()}
    assert every - set(CASES) == NOTHING_OF_OURS
    assert {name for name in CASES if not kept_file(name).exists()} == set()


def test_every_setting_of_the_papers_trainings_is_one_of_a_kept_training():
    assert set(used_settings()) - set(kept_settings()) == set()


def test_no_result_of_a_version_that_is_gone_is_kept():
    assert set(KEPT.rglob("*.json")) == {kept_file(name) for name in CASES}
    assert sum(path.stat().st_size for path in KEPT.rglob("*.json")) < 400_000


def test_every_name_is_a_module_that_a_job_rests_on():
    for name in CASES:
        assert module_of(name).startswith("crosslign.")
    assert code_behind("embed", {"head": {}}) == {"embed": module_of("stages/embed")}


@pytest.mark.parametrize(
    ("old", "new", "equal"),
    [
        (1.0, 1.00001, True),
        (1.0, 1.001, False),
        ([1.0, "a"], [1.0, "a"], True),
        ([1.0], [1.0, 2.0], False),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {"b": 1}, False),
        ("x", "y", False),
        (float("nan"), float("nan"), True),
        (0.0, 1e-7, True),
    ],
)
def test_numbers_may_differ_by_the_documented_tolerance_and_all_else_by_nothing(old, new, equal):
    assert same(old, new) is equal
