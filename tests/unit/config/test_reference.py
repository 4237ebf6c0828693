"""The reference and the options' schema say what the code takes."""

import inspect
import re
from pathlib import Path

import pytest

from crosslign.config.entry_keys import TRAIN_DEFAULTS
from crosslign.config.reference import PACKAGES, reference
from crosslign.config.yaml_files import load_yaml
from crosslign.corpora import EVALUATIONS, READERS
from crosslign.corpora.filters import FILTERS
from crosslign.examples import BUILDERS
from crosslign.objectives import OBJECTIVES, PARTS
from crosslign.tasks import SCORERS
from crosslign.views import TRANSLATORS, VIEWS

ROOT = Path(__file__).resolve().parents[3]
SEAMS = {
    "readers": READERS,
    "evaluations": EVALUATIONS,
    "filters": FILTERS,
    "views": VIEWS,
    "translators": TRANSLATORS,
    "example_builders": BUILDERS,
    "parts": PARTS,
    "objectives": OBJECTIVES,
    "scorers": SCORERS,
}

GIVEN = {"threads"}
"""What a stage gives, and no configuration."""


def test_the_reference_is_what_the_schemas_say():
    assert (ROOT / "config" / "README.md").read_text(encoding="utf-8") == reference(ROOT / "workflow" / "schemas")


def test_every_key_is_explained():
    lines = (ROOT / "config" / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) > 500
    assert not [line for line in lines if re.match(r" *- `", line) and not re.match(r" *- `[^`]+` \(.+\): \S", line)]


def test_options_are_explained_by_what_implements_them():
    page = (ROOT / "config" / "README.md").read_text(encoding="utf-8")
    assert {seam: f"crosslign.{package}" for seam, package in PACKAGES.items()} == {seam: SEAMS[seam].package for seam in SEAMS}
    line = next(line for line in page.splitlines() if line.startswith("    - `exclude_whitespace`"))
    described = inspect.getdoc(FILTERS.get("alphabet_ratio")).split("exclude_whitespace: ")[1].splitlines()[0]
    assert line == f"    - `exclude_whitespace` (boolean): {described}"
    assert not re.search("PROTOCOLS|CONTRACTS|golden", page)


def test_defaults_are_written_as_in_yaml():
    page = (ROOT / "config" / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"default (None|True|False|null|true|false)\b", page)) == {"null", "true", "false"}


def test_defaults_of_trainings_are_those_of_recipes():
    recipe = load_yaml(ROOT / "workflow" / "schemas" / "paper.yaml").content["$defs"]["recipe"]["properties"]
    assert {key: recipe["train"]["properties"][key].get("default") for key in TRAIN_DEFAULTS} == TRAIN_DEFAULTS


def schemas_of(seam):
    return load_yaml(ROOT / "workflow" / "schemas" / "options.yaml").content["$defs"][seam]["properties"]


def test_what_objectives_read_is_what_the_schema_says():
    assert {name: schema.get("shape") for name, schema in schemas_of("objectives").items()} == {
        name: OBJECTIVES.get(name).shape for name in OBJECTIVES.names()
    }


def test_each_reader_s_schema_says_of_what_kind_its_rows_are():
    for name, schema in schemas_of("readers").items():
        if "kind" in schema["properties"]:
            assert inspect.signature(READERS.get(name)).parameters["kind"].default == schema["properties"]["kind"]["default"]
        else:
            assert len(schema["gives"]) == 1, name


@pytest.mark.parametrize("seam", SEAMS)
def test_every_implementation_has_a_schema_with_its_own_options(seam):
    schemas = schemas_of(seam)
    assert sorted(schemas) == SEAMS[seam].names()
    for name in SEAMS[seam].names():
        entry = SEAMS[seam].get(name)
        parameters = inspect.signature(entry).parameters.values()
        taken = {p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
        if seam in ("parts", "objectives"):
            own = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
            taken = {p.name for p in parameters if p.kind in own}
        assert set(schemas[name]["properties"]) == taken - GIVEN, name
