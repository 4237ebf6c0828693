"""The layers of the library: packages import in one direction, modules too, and nothing imports Snakemake."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import crosslign

SOURCE = Path(crosslign.__file__).parent


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def modules():
    """Return path and dotted name of each module."""
    parts = {path: path.relative_to(SOURCE).with_suffix("").parts for path in SOURCE.rglob("*.py")}
    return {path: ".".join(["crosslign", *own]).removesuffix(".__init__") for path, own in parts.items()}


def in_order(graph):
    """Return the nodes of a graph, each behind those that it points to; a cycle is a CycleError that names it."""
    return list(TopologicalSorter(graph).static_order())


def test_no_package_is_imported_by_one_that_it_imports():
    graph = {}
    for path, name in modules().items():
        own = [*name.split("."), ""][1]
        if own:
            found = {module.split(".")[1] for module in imports_of(path) if module.startswith("crosslign.")}
            graph.setdefault(own, set()).update(found - {own})
    order = in_order(graph)
    assert order.index("errors") < order.index("files") < order.index("config") < order.index("stages") < order.index("cli")


def test_no_module_is_imported_by_one_that_it_imports():
    names = modules()
    known = set(names.values())
    assert in_order({name: {module for module in imports_of(path) if module in known} for path, name in names.items()})


def test_the_library_knows_no_workflow_engine():
    assert [str(p) for p in SOURCE.rglob("*.py") if any(m.split(".")[0] == "snakemake" for m in imports_of(p))] == []


LIGHT = ("make_table", "draw_figure", "score", "build_corpus", "build_examples", "fetch", "mine_pairs", "mine_join")
"""Stages that run no encoder."""


def test_a_stage_that_runs_no_encoder_loads_no_torch():
    """Loading it takes most of such a job's time, and there are hundreds of them. One process names the first stage that does."""
    program = f"""
import importlib, sys
for stage in {LIGHT}:
    importlib.import_module("crosslign.stages." + stage)
    if "torch" in sys.modules:
        sys.exit(stage)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


WALKS = {"rglob", "glob", "iterdir", "walk", "scandir", "listdir"}
OWN_CODE, OWN_FOLDER, LOCKED = "files of this package", "the folder of its job alone", "a shared folder, under a lock or one name at a time"
PERSONS, FETCHED = "a folder of a person's, read as it is this moment", "a snapshot of the hub, or a model's folder, just fetched"
WALKERS = {
    "files/walk.py": (3, "the ones for folders in which others work"),
    "paths.py": (1, "os.walk, which passes over what goes away"),
    "provenance/artefact_states.py": (1, "names of the pages, which are not opened"),
    "provenance/crate.py": (5, f"{PERSONS}, its own temporary folder, and a place that is only refused"),
    "jobs/job.py": (1, "names beside an output; each is locked before it is touched, and passed over where it is gone"),
    "corpora/fetch.py": (1, LOCKED),
    "views/translations.py": (2, f"{LOCKED}: a file that another job removed is passed over"),
    "config/borrowed.py": (1, OWN_CODE),
    "config/schema.py": (1, OWN_CODE),
    "registry.py": (1, OWN_CODE),
    "config/layers.py": (1, PERSONS),
    "config/plugins.py": (2, PERSONS),
    "config/mining.py": (1, PERSONS),
    "files/own.py": (2, PERSONS),
    "corpora/stand_ins/_sentences.py": (1, PERSONS),
    "corpora/sources/_snapshot.py": (2, FETCHED),
    "encoders/formats/laser.py": (2, FETCHED),
    "encoders/formats/torch_weights.py": (2, FETCHED),
    "files/safetensors_only.py": (1, FETCHED),
    "views/hub_models.py": (3, FETCHED),
    "encoders/formats/transformers_folder.py": (1, OWN_FOLDER),
    "encoders/prune.py": (1, OWN_FOLDER),
    "encoders/soundness.py": (7, OWN_FOLDER),
    "encoders/weights.py": (1, OWN_FOLDER),
    "files/atomic.py": (2, OWN_FOLDER),
    "mining/knn.py": (1, OWN_FOLDER),
    "objectives/saved_parts.py": (1, OWN_FOLDER),
    "reporting/card.py": (1, OWN_FOLDER),
    "training/checkpoint.py": (3, OWN_FOLDER),
    "training/launch.py": (2, OWN_FOLDER),
    "training/selection.py": (1, OWN_FOLDER),
    "training/tokenised.py": (2, OWN_FOLDER),
}
"""Walks that are not `files_below` or `folders_in`: how many a module has, and why nothing goes away beneath them, or may."""


def walks_in(path):
    calls = [node.func for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    return sum(isinstance(call, ast.Attribute) and call.attr in WALKS and ast.unparse(call.value) != "ast" for call in calls)


def test_folders_in_which_others_work_are_walked_by_the_one_walker():
    """What goes away, or is half there, ends any other walk: it was a traceback in one of a thousand commands beside a run."""
    found = {path.relative_to(SOURCE).as_posix(): walks_in(path) for path in SOURCE.rglob("*.py")}
    assert {path: count for path, count in found.items() if count} == {path: count for path, (count, _) in WALKERS.items()}


def test_the_help_of_the_command_line_loads_no_torch():
    """Every command is loaded for it: torch would take ten times as long as the rest."""
    program = "import sys; from crosslign.cli.main import parser; parser().format_help(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
