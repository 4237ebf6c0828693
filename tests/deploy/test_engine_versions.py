"""The oldest and newest Snakemake that is allowed, and one that nobody has tried: the same tables, and one warning."""

import pytest
from mini_project import Mini
from other_version import renamed

WARNING = "with which this workflow's patches of it were tested"
OLDEST = "9.27.0"


@pytest.fixture(scope="module")
def newest(tmp_path_factory):
    """The tables of a run with the Snakemake that is installed."""
    mini = Mini(tmp_path_factory.mktemp("newest") / "project")
    assert WARNING not in mini.run().stdout
    return mini


def test_the_oldest_snakemake_that_is_allowed_makes_the_same_tables(newest, installed, tmp_path):
    mini = Mini(tmp_path / "project")
    said = mini.run(PYTHONPATH=installed(tmp_path / "oldest", "--no-deps", f"snakemake=={OLDEST}")).stdout
    assert f"Snakemake version: {OLDEST}" in mini.engine_log()
    assert WARNING not in said
    assert mini.tables() == newest.tables()


def test_a_snakemake_that_nobody_has_tried_is_left_as_it_is_and_makes_the_same_tables(newest, tmp_path):
    mini = Mini(tmp_path / "project")
    (tmp_path / "other").mkdir()
    path = renamed(tmp_path / "other", "snakemake", "9.99.0")
    said = mini.run(PYTHONPATH=path).stdout
    assert said.count(WARNING) == 1
    assert "snakemake 9.99.0 is not 9.27.x" in said
    assert mini.tables() == newest.tables()
    assert mini.run("-n", PYTHONPATH=path).stdout.count("Nothing to be done") == 1
