"""Each key that the schemas give a recipe, a readout and an evaluation is changed once: what the rules are given changes with it."""

import copy
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from crosslign.config.load import load_project
from crosslign.config.resolve import pace_of, readout, resolve, scored_entry

ROOT = Path(__file__).resolve().parents[3]
RECIPE = "$defs.recipe.properties"
ENTRIES = (
    # place of the entry, schema and place of its keys
    ("systems.F-A", "paper.yaml", RECIPE),
    ("systems.F-A.train", "paper.yaml", f"{RECIPE}.train.properties"),
    ("systems.F-A.train.guards", "paper.yaml", f"{RECIPE}.train.properties.guards.properties"),
    ("systems.F-A.terms.0", "paper.yaml", f"{RECIPE}.terms.items.properties"),
    ("readouts.mean", "encoders.yaml", "properties.readouts.additionalProperties.properties"),
    ("tasks.sts_written", "tasks.yaml", "properties.tasks.additionalProperties.properties"),
)
NOTHING = {"systems.F-A.place", "systems.F-A.gpu_hours", "systems.F-A.seeds", "tasks.sts_written.footnote"}
NOTHING |= {"systems.F-A.train.checkpoint_minutes", "systems.F-A.train.checkpoint_every"}
"""What makes nothing anew: words, a plan's figure, which seeds there are, how often a training is saved."""


def at(tree, place):
    for step in place.split("."):
        tree = tree[int(step)] if isinstance(tree, list) else tree.setdefault(step, {})
    return tree


def other(schema, now):
    """Return another value that the schema allows; None where it is a name or has parts."""
    now = schema.get("default") if now is None else now
    if "enum" in schema:
        return next(value for value in reversed(schema["enum"]) if value != now)
    plain = {"boolean": lambda: not now, "string": lambda: f"{now or ''} changed"}
    plain |= {"integer": lambda: (now or schema.get("minimum", 0)) + 1, "number": lambda: now * 0.5 if now else 1.23}
    lists = {"number": [0.8, 0.9], "integer": [43]}
    plain["array"] = lambda: lists.get(schema["items"].get("type"))
    return plain.get(schema.get("type"), lambda: None)()


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    shutil.copytree(ROOT / "tests" / "faults" / "mini" / "config", folder / "config")
    shutil.copytree(ROOT / "workflow" / "schemas", folder / "workflow" / "schemas")
    return load_project(folder, {"scale": "mini", "papers": ["faults"], "targets": ["faults"], "results": str(folder / "results")})


def given(project):
    """Return what the rules of a training, an encoding and a score are given."""
    return resolve(project, "F-A", 42), readout(project, "mean"), scored_entry(project, "sts_written")


def keys():
    for place, file, where in ENTRIES:
        schema = YAML(typ="safe").load((ROOT / "workflow" / "schemas" / file).read_text(encoding="utf-8"))
        for key, allowed in at(schema, where).items():
            if "$ref" not in allowed and other(allowed, None) is not None:
                yield place, key, allowed


@pytest.mark.parametrize(("place", "key", "allowed"), [pytest.param(*key, id=f"{key[0]}.{key[1]}") for key in keys()])
def test_a_changed_key_changes_what_the_rules_are_given(project, place, key, allowed):
    changed = replace(copy.deepcopy(project))  # remembers nothing
    section, _, rest = place.partition(".")
    entry = at(getattr(changed, section), rest)
    entry[key] = other(allowed, entry.get(key))
    before, after = given(project), given(changed)
    assert (before == after) == (f"{place}.{key}" in NOTHING)


def test_how_often_a_training_is_saved_is_the_least_of_recipe_and_scale(project):
    changed = copy.deepcopy(project)

    def pace():
        return pace_of(replace(changed), "F-A")  # remembers nothing

    assert pace() == {"checkpoint_minutes": 10, "checkpoint_every": 2}
    changed.systems["F-A"]["train"] |= {"checkpoint_minutes": 3, "checkpoint_every": 50}
    assert pace() == {"checkpoint_minutes": 3, "checkpoint_every": 50}
    changed.scale["limits"]["checkpoint_every"] = 20
    assert pace()["checkpoint_every"] == 20
    del changed.systems["F-A"]["train"]["checkpoint_every"], changed.scale["limits"]["checkpoint_every"]
    assert pace()["checkpoint_every"] == 0


def test_the_schemas_give_keys():
    assert len(list(keys())) > 30
