"""Names of targets stand for files; a name that stands for nothing is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from crosslign.config.load import load_project
from crosslign.config.targets import minings_of, target_files
from crosslign.errors import InputError

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def project():
    return load_project(ROOT, {"scale": "quick", "papers": ["quickstart", "five_methods"], "targets": ["all"]})


def names(project, *wanted):
    return {path.relative_to(project.paths.results).as_posix() for path in target_files(project, wanted)}


def test_a_table_is_its_four_formats(project):
    assert names(project, "quickstart_retrieval") == {f"tables/quickstart_retrieval.{form}" for form in ("md", "csv", "tex", "html")}


def test_a_paper_is_its_tables_and_figures_and_no_others(project):
    found = names(project, "five_methods")
    assert {"tables/methods.md"} < found
    assert not any("quickstart" in name for name in found)


def test_all_is_everything(project):
    everything = names(project, "all")
    assert names(project, "all_tables", "all_figures", "overview", "overlap", "report") == everything
    assert {"report.html", "overview.html", "figures/quickstart_tsne.svg"} < everything


def test_an_unknown_name_names_the_nearest(project):
    with pytest.raises(InputError, match=r"targets: .*'quikstart'.*'quickstart'"):
        target_files(project, ["all_tables", "quikstart"])


def test_a_paper_that_is_switched_off_says_what_to_type(project):
    with pytest.raises(InputError) as caught:
        target_files(project, ["all_tables", "mpcl"])
    assert "target 'mpcl' is a paper that is switched off" in str(caught.value)
    assert "'papers=[quickstart,five_methods]' 'targets=[all]'" in str(caught.value)


def test_a_mining_is_a_target_of_its_own_whatever_a_paper_calls_the_same(project):
    both = replace(project, settings={**project.settings, "mine": {"verses_en": {}}})  # also a training set of the quick start
    assert minings_of(both, "verses_en") == ["verses_en"]
    assert minings_of(both, "quickstart") == []
