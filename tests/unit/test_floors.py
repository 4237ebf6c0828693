"""The floors of the library: a module imports only from its own package or from a lower one, and nothing imports Snakemake."""

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import crosslign

FLOORS = [
    {"catalog", "collector", "console", "durations", "errors", "memory", "progress", "registry", "threads"},
    {"files", "languages", "paths", "vectors"},
    {"config"},
    {"planning", "slurm"},
    {"corpora"},
    {"views"},
    {"examples"},
    {"encoders"},
    {"mining"},
    {"tasks"},
    {"objectives"},
    {"training"},
    {"reporting"},
    {"provenance"},
    {"jobs"},
    {"stages"},
    {"cli"},
]
SOURCE = Path(crosslign.__file__).parent


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def room(module):
    return module.split(".")[1]


def test_imports_go_down():
    level = {name: number for number, names in enumerate(FLOORS) for name in names}
    wrong = []
    for path in SOURCE.rglob("*.py"):
        here = path.relative_to(SOURCE).with_suffix("").parts[0]
        if here == "__init__":
            continue
        for module in imports_of(path):
            if module.startswith("crosslign.") and level[room(module)] > level[here]:
                wrong.append(f"{path.relative_to(SOURCE)} imports {module}")
    assert wrong == []


def test_the_page_names_every_room_on_its_floor():
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = []
    for line in page.split("| floor | room |")[1].split("\n\n")[0].splitlines()[2:]:
        floor, rooms = line.split("|")[1:3]
        if floor.strip():
            named.append(set())
        named[-1] |= set(re.findall(r"`(\w+)`", rooms))
    assert named == FLOORS
    assert {path.stem for path in SOURCE.iterdir() if not path.name.startswith("_")} == set().union(*FLOORS)


def test_no_circle_of_imports():
    parts = {path: path.relative_to(SOURCE).with_suffix("").parts for path in SOURCE.rglob("*.py")}
    names = {path: ".".join(["crosslign", *own]).removesuffix(".__init__") for path, own in parts.items()}
    modules = set(names.values())
    graph = {name: {module for module in imports_of(path) if module in modules} for path, name in names.items()}
    assert list(TopologicalSorter(graph).static_order())  # CycleError names a circle


def test_the_library_knows_no_workflow_engine():
    assert [str(p) for p in SOURCE.rglob("*.py") if any(m.split(".")[0] == "snakemake" for m in imports_of(p))] == []


@pytest.mark.parametrize("stage", ["make_table", "draw_figure", "score", "build_corpus", "build_examples", "fetch"])
def test_a_stage_that_runs_no_encoder_loads_no_torch(stage):
    """Loading it takes most of such a job's time, and there are hundreds of them."""
    program = f"import sys, crosslign.stages.{stage}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
