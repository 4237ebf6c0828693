"""The reference and the options' schema say what the code takes."""

import ast
import inspect
import re
from pathlib import Path

import pytest
from extension_points import POINTS

from crosslign.config.entry_keys import TRAIN_DEFAULTS
from crosslign.config.entry_types import MODULES, entry_types
from crosslign.config.reference import reference
from crosslign.config.signatures import IMPLEMENTATIONS, PACKAGES
from crosslign.config.yaml_files import load_yaml
from crosslign.corpora.filters import FILTERS

ROOT = Path(__file__).resolve().parents[3]


def test_the_reference_is_what_the_schemas_say():
    assert (ROOT / "config" / "README.md").read_text(encoding="utf-8") == reference()


@pytest.mark.parametrize("name", MODULES)
def test_the_types_of_entries_are_what_the_schemas_say(name):
    kept = (ROOT / "src" / "crosslign" / "entries" / f"{name}.py").read_text(encoding="utf-8")
    assert ast.dump(ast.parse(kept)) == ast.dump(ast.parse(entry_types(name)))


def test_every_key_is_explained():
    lines = (ROOT / "config" / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) > 500
    assert not [line for line in lines if re.match(r" *- `", line) and not re.match(r" *- `[^`]+` \(.+\): \S", line)]


def test_options_are_explained_by_what_implements_them():
    page = (ROOT / "config" / "README.md").read_text(encoding="utf-8")
    assert {point: f"crosslign.{package}" for point, package in PACKAGES.items()} == {point: POINTS[point].package for point in POINTS}
    line = next(line for line in page.splitlines() if line.startswith("    - `exclude_whitespace`"))
    described = inspect.getdoc(FILTERS.get("alphabet_ratio")).split("exclude_whitespace: ")[1].splitlines()[0]
    assert line == f"    - `exclude_whitespace` (boolean, default false): {described}"
    assert not re.search("PROTOCOLS|CONTRACTS|golden", page)


def test_defaults_are_written_as_in_yaml():
    page = (ROOT / "config" / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"default (None|True|False|null|true|false)\b", page)) == {"null", "true", "false"}


def test_defaults_of_trainings_are_those_of_recipes():
    recipe = load_yaml(ROOT / "workflow" / "schemas" / "paper.yaml").content["$defs"]["recipe"]["properties"]
    assert {key: recipe["train"]["properties"][key].get("default") for key in TRAIN_DEFAULTS} == TRAIN_DEFAULTS


def test_a_reader_that_chooses_its_kind_has_one_by_default():
    for reader in IMPLEMENTATIONS["readers"].values():
        assert ("kind" in reader.options) != ("gives" in reader.facts)
        assert "kind" not in reader.options or reader.options["kind"]["default"] in reader.options["kind"]["enum"]
