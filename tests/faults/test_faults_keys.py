"""F32 for every key: the schemas say which keys there are; each is changed once, and what would run again is what hangs on it."""

from __future__ import annotations

import shutil

import pytest
from mini_project import ROOT, Mini
from ruamel.yaml import YAML
from test_faults_runs import planned

pytestmark = pytest.mark.workflow
SCHEMAS = ROOT / "workflow" / "schemas"
PAPER, ENCODERS, TASKS = "config/papers/faults.yaml", "config/encoders.yaml", "config/tasks.yaml"
TRAINED = {"train_system", "embed", "score", "make_table"}
RECIPE = "paper.yaml", "$defs.recipe.properties"
TABLE = "paper.yaml", "properties.tables.additionalProperties.properties"
ENTRIES = (
    # file, place of the entry, schema and place of its keys, rules that a change runs again
    (PAPER, "systems.F-A", *RECIPE, TRAINED),
    (PAPER, "systems.F-A.train", RECIPE[0], f"{RECIPE[1]}.train.properties", TRAINED),
    (PAPER, "systems.F-A.train.guards", RECIPE[0], f"{RECIPE[1]}.train.properties.guards.properties", TRAINED),
    (PAPER, "systems.F-A.terms.0", RECIPE[0], f"{RECIPE[1]}.terms.items.properties", TRAINED),
    (PAPER, "examples.nli", "paper.yaml", "properties.examples.additionalProperties.properties", {"build_examples", *TRAINED}),
    (PAPER, "tables.faults", *TABLE, {"make_table"}),
    (PAPER, "tables.faults.print", TABLE[0], f"{TABLE[1]}.print.properties", {"make_table"}),
    (PAPER, "tables.faults.columns.0", TABLE[0], f"{TABLE[1]}.columns.items.properties", {"make_table"}),
    (PAPER, "tables.faults.rows.0", TABLE[0], f"{TABLE[1]}.rows.items.properties", {"make_table"}),
    (ENCODERS, "readouts.mean", "encoders.yaml", "properties.readouts.additionalProperties.properties", TRAINED),
    (TASKS, "tasks.sts_written", "tasks.yaml", "properties.tasks.additionalProperties.properties", {"score", "make_table"}),
)
OWN = {
    # a plan's figure runs nothing; a footnote is the table's; where a row says why it is not run, nothing is made for it
    "systems.F-A.gpu_hours": set(),
    "systems.F-A.seeds": {*TRAINED},
    "tasks.sts_written.footnote": {"make_table"},
}
NAMED = "like objective examples builder from of system scorer task readout checkpoint finetune direction"
"""Keys that name something else: the test of edits changes them, and what they name."""
SHAPED = "langs decontaminate subset metric protocol output count mean_of setting_of variant data setting"
"""Keys whose other values mean another shape of the entry."""


def at(tree, place):
    for step in place.split("."):
        tree = tree[int(step)] if isinstance(tree, list) else tree.get(step, {})
    return tree


def other(schema, now):
    """Return another value that the schema allows; None where it is not one value."""
    if "enum" in schema:
        return next(value for value in schema["enum"] if value != now and value != schema.get("default"))
    kind = schema.get("type")
    if kind == "boolean":
        return not now
    if kind == "integer":
        return (now if now is not None else schema.get("default", schema.get("minimum", 0))) + 1
    if kind == "number":
        return now * 0.5 if now else 1.23 if schema.get("minimum") == 1 else 0.123
    if kind == "string":
        return f"{now or ''} changed"
    if kind == "array" and schema["items"].get("type") in ("integer", "number"):
        return [0.8, 0.9] if schema["items"]["type"] == "number" else [43]
    return None


def keys():
    yaml = YAML(typ="safe")
    for file, place, schema, where, rules in ENTRIES:
        entry = at(yaml.load((ROOT / "tests/faults/mini" / file).read_text(encoding="utf-8")), place)
        for key, allowed in at(yaml.load((SCHEMAS / schema).read_text(encoding="utf-8")), where).items():
            value = None if key in f"{NAMED} {SHAPED}".split() or "$ref" in allowed else other(allowed, entry.get(key))
            if value is not None:
                name = f"{place}.{key}"
                yield pytest.param(file, place, key, value, OWN.get(name, rules), id=name)


@pytest.fixture(scope="module")
def workflow(undisturbed, tmp_path_factory):
    mini = Mini(tmp_path_factory.mktemp("keys") / "copy")
    for name in ("results", ".snakemake"):
        shutil.copytree(undisturbed.folder / name, mini.folder / name, dirs_exist_ok=True, symlinks=True)
    return mini


@pytest.mark.parametrize(("file", "place", "key", "value", "rules"), list(keys()))
def test_f32_each_key_of_the_schemas_reruns_what_hangs_on_it(workflow, file, place, key, value, rules):
    path, yaml = workflow.folder / file, YAML()
    before = path.read_text(encoding="utf-8")
    tree = yaml.load(before)
    parent, _, last = place.rpartition(".")
    entry = at(tree, place)
    if isinstance(at(tree, parent), dict):
        at(tree, parent).setdefault(last, entry)
    entry[key] = value
    try:
        with open(path, "w", encoding="utf-8") as out:
            yaml.dump(tree, out)
        assert planned(workflow) == rules
    finally:
        path.write_text(before, encoding="utf-8")


def test_the_schemas_give_keys():
    assert len(list(keys())) > 40
