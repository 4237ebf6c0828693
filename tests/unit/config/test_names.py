"""Names that stand for two things, or could not be part of a path, are refused when the configuration is read."""

import shutil
from pathlib import Path

import pytest

from crosslign import paths
from crosslign.config.load import load_project
from crosslign.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
PAPER, CATALOG, ENCODERS = "config/papers/faults.yaml", "config/corpora.yaml", "config/encoders.yaml"
SELECT = "readout: mean\n    select: {{{name}: {{task: sts_written, subset: mono, metric: spearman, every: 4}}}}"
VIEWS = "views: {sts_written: {builder: code_switch, from: [written_nli], dictionaries: {}, probability: 0.5}}\nfigures: {}"
TAKEN = {
    "a system like a run": (
        PAPER,
        [("  F-A:", "  F-A-s42:"), ("system: F-A}", "system: F-A-s42}")],
        r"systems.*'F-A-s42'.*run",
    ),
    "an encoder like a run": (ENCODERS, [("  tiny:", "  F-A-s42:")], r"encoders\.yaml:\d+: .*'F-A-s42'.*run"),
    "a training set like a seed's": (PAPER, [("  nli:", "  nli-s1:")], r"examples\.nli-s1: 'nli-s1'.*run"),
    "a system like an encoder": (PAPER, [("  F-A:", "  tiny:")], r"systems\.tiny: 'tiny'.*encoder"),
    "a view like a corpus": (PAPER, [("figures: {}", VIEWS)], r"views\.sts_written: 'sts_written'.*corpus"),
    "a table like all": (PAPER, [("  faults:\n", "  all:\n")], r"tables\.all: 'all'.*targets"),
    "a plus in a system": (PAPER, [("  F-A:", "  F-A+b:")], r"systems\.F-A\+b: .*'\^"),
    "a plus in an encoder": (ENCODERS, [("  tiny:", "  ti+ny:")], r"encoders\.ti\+ny: .*'\^"),
    "a readout of capitals": (ENCODERS, [("  mean:", "  Mean:")], r"readouts\.Mean: .*'\^"),
    "a checkpoint that leads elsewhere": (
        PAPER,
        [("readout: mean", SELECT.format(name="../../best"))],
        r"select\.\.\./\.\./best: .*'\^",
    ),
    "a checkpoint of capitals": (PAPER, [("readout: mean", SELECT.format(name="Best"))], r"select\.Best: .*'\^"),
    "the last checkpoint": (PAPER, [("readout: mean", SELECT.format(name="last"))], r"select\.last: 'last'.*checkpoint"),
    "a part that leads elsewhere": (
        PAPER,
        [("readout: mean", "readout: mean\n    parts: {../x: {kind: mlp}}")],
        r"parts\.\.\./x: .*'\^",
    ),
}


@pytest.fixture
def project(tmp_path):
    shutil.copytree(ROOT / "tests" / "faults" / "mini" / "config", tmp_path / "config")
    shutil.copytree(ROOT / "workflow" / "schemas", tmp_path / "workflow" / "schemas")
    return tmp_path


@pytest.mark.parametrize("name", TAKEN)
def test_a_name_that_stands_for_two_things_is_refused(project, name):
    file, edits, message = TAKEN[name]
    text = (project / file).read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (project / file).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_project(project)


def test_the_project_is_read_with_all_papers():
    papers = sorted(path.stem for path in (paths.CATALOG / "papers").glob("*.yaml"))
    assert load_project(ROOT, {"papers": papers, "targets": ["all"], "results": "results"}).systems
