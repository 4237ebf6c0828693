"""Plugins: a method, a filter or a scorer outside the project is read, checked, versioned and found by jobs, as the library's own."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml

from crosslign.cli.commands.new import write_objective
from crosslign.config import plugins
from crosslign.config.load import load_project
from crosslign.config.resolve import resolve
from crosslign.config.versions import job_versions
from crosslign.errors import InputError
from crosslign.files.fingerprint import fingerprint
from crosslign.objectives import OBJECTIVES
from crosslign.objectives.contract import Batch
from crosslign.registry import plugin_modules

ROOT = Path(__file__).resolve().parents[3]
FILTER = """
from crosslign.corpora.filters import FILTERS, SideRule


@FILTERS.register(version=3)
class NoDigits(SideRule):
    def accept(self, side):
        import numpy as np

        return np.array([not any(map(str.isdigit, text)) for text in side.texts])
"""
SCORER = """
from crosslign.tasks import SCORERS
from crosslign.tasks.measures import Measure


@SCORERS.register(version=2)
def everything(task, *, value: float = 1.0):
    for subset in task.only_corpus().subsets:
        yield Measure(subset, "all", value, 1)
"""

EVALUATION = """
from crosslign.corpora import EVALUATIONS
from crosslign.corpora.evaluation import EvaluationBuilder


@EVALUATIONS.register(version=4, subsets="languages")
def read(given, *, split: str = "test"):
    builder = EvaluationBuilder(given.name)
    for number, line in enumerate(given.files["verses.db"].read_bytes()[:3]):
        builder.item(str(number), "de", "source", "de", str(line), split=split)
    return builder.build()
"""


@pytest.fixture(autouse=True)
def none_afterwards():
    yield
    plugins.use_plugins(ROOT, [])
    for name in [name for name in sys.modules if name.endswith(("near_enough", "no_digits"))]:
        del sys.modules[name]
    OBJECTIVES._entries.pop("near_enough", None)


@pytest.fixture
def folder(tmp_path):
    write_objective(tmp_path / "near_enough", "near_enough")
    return tmp_path / "near_enough"


def load(*folders, **more):
    return load_project(ROOT, {"scale": "quick", "papers": ["contest"], "targets": ["contest"], "plugins": list(map(str, folders)), **more})


def edit(folder, change):
    (path,) = folder.glob("*.yaml")
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def test_a_new_objective_is_a_row_of_the_contest(folder):
    project = load(folder)
    assert project.tables["contest_parallel"]["rows"][-1]["system"] == "near_enough"
    assert project.plugins == (f"plugin {folder}/near_enough.yaml: near_enough@1",)
    recipe = resolve(project, "near_enough", 42)
    assert recipe["terms"] == [{"objective": "near_enough", "examples": "ct_pairs", "batch": 16, "margin": 0.2}]
    assert job_versions("train_system", recipe) == "train_system@1 tokenise@1 near_enough@1"
    assert "near_enough" in OBJECTIVES.names()
    assert len(load().tables["contest_parallel"]["rows"]) == len(project.tables["contest_parallel"]["rows"]) - 1
    assert "near_enough" not in OBJECTIVES.names()


def test_its_loss_is_what_it_says(folder):
    load(folder)
    objective = OBJECTIVES.get("near_enough")(margin=0.5)
    vectors = {"a": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "b": torch.tensor([[0.8, 0.6], [0.6, 0.8]])}
    found = objective.loss(vectors, Batch(["1", "2"], {}), {})
    assert float(found) == pytest.approx(0.5 - 0.8 + 0.6)  # of both rows: own 0.8, the other 0.6


def test_a_raised_version_and_other_code_are_seen(folder):
    load(folder)
    module, before = "crosslign.objectives.terms.near_enough", fingerprint("crosslign.objectives.terms.near_enough")
    assert len(before) == 16
    path = folder / "near_enough.py"
    path.write_text(path.read_text(encoding="utf-8").replace("version=1", "version=2"), encoding="utf-8")
    recipe = resolve(load(folder), "near_enough", 42)
    assert job_versions("train_system", recipe).endswith("near_enough@2")
    assert plugin_modules()[module] == str(path)


def test_processes_that_are_started_know_it(folder):
    load(folder)
    code = "from crosslign.objectives import OBJECTIVES; print(OBJECTIVES.get('near_enough').__name__)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "NearEnough\n"


def test_an_evaluation_of_a_new_format_is_two_files(tmp_path):
    own = tmp_path / "mine"
    own.mkdir()
    (own / "bytes_of_verses.py").write_text(EVALUATION, encoding="utf-8")
    source = load().corpora["bible_dev"]["source"]
    task = {"scorer": "retrieval", "texts": {"test": "own_bytes"}, "output": "vectors"}
    content = {
        "corpora": {
            "own_bytes": {"kind": "evaluation", "source": source, "reader": "bytes_of_verses", "langs": ["de"], "licence": "CC0-1.0"}
        },
        "tasks": {"own_bytes": {**task, "main": {"metric": "accuracy", "subset": "de", "direction": "xx2en"}}},
    }
    (own / "mine.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    project = load(own)
    assert job_versions("build_evaluation", {"entry": project.corpora["own_bytes"]}).endswith(" bytes_of_verses@4")
    assert project.tasks["own_bytes"]["texts"] == {"test": "own_bytes"}
    edit(own, lambda c: c["corpora"]["own_bytes"].update(options={"part": "dev"}))
    with pytest.raises(InputError, match=r"mine\.yaml:\d+: corpora\.own_bytes\.options\.part: .*'part'"):
        load(own)


def test_filters_and_scorers_come_the_same_way_with_entries_of_catalogs(tmp_path):
    own = tmp_path / "mine"
    own.mkdir()
    (own / "no_digits.py").write_text(FILTER, encoding="utf-8")
    (own / "everything.py").write_text(SCORER, encoding="utf-8")
    verses = load().corpora["bible_dev"]
    content = {
        "corpora": {"verses_without_digits": {**verses, "filters": [{"no_digits": {}}]}},
        "tasks": {"whole": {"scorer": "everything", "texts": {"test": "contest_dev"}, "output": "vectors", "value": 0.5,
                            "main": {"metric": "all", "subset": "de"}}},
    }  # fmt: skip
    (own / "mine.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    project = load(own)
    assert job_versions("build_corpus", {"entry": project.corpora["verses_without_digits"]}).endswith("bible_sqlite@1 no_digits@3")
    assert job_versions("score", {"task_entry": project.tasks["whole"]}).endswith(" everything@2")
    assert "mine" not in project.settings["papers"]  # it has no entries of papers
    edit(own, lambda c: c["tasks"]["whole"].update(valu=c["tasks"]["whole"].pop("value")))
    with pytest.raises(InputError, match=r"mine\.yaml:\d+: tasks\.whole\.valu: .*'valu'.*'value'"):
        load(own)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.update(system=c.pop("systems")), r"near_enough\.yaml:\d+: system: .*'system'.*'systems'"),
        (lambda c: c["systems"]["near_enough"]["terms"][0].update(margn=1), r"near_enough\.yaml:\d+: .*'margn'.*'margin'"),
        (lambda c: c["systems"]["near_enough"]["terms"][0].update(margin="wide"), r"near_enough\.yaml:\d+: .*margin: .*'wide'"),
        (lambda c: c.update(options={}), r"near_enough\.yaml:\d+: options: .*'options'"),
        (
            lambda c: c["rows"]["contest_parallel"][0].update(system="near_enoug"),
            r"parallel.0.system: .*.near_enoug\W",
        ),
        (
            lambda c: c["systems"]["near_enough"].update(train={"budget": 2e12}),
            r"contest_parallel\.rows\.\d+\.system: .*near_enough.*3e\+12.*2e\+12",
        ),
    ],
)
def test_what_is_wrong_in_a_plugin_is_refused_with_its_place(folder, change, said):
    edit(folder, change)
    with pytest.raises(InputError, match=said):
        load(folder)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "logit_scale",
            "@PARTS.register(version=1)\nclass Own: pass\n",
            r"logit_scale\.py: .*'logit_scale'.*taken",
        ),
        (
            "own",
            "@BUILDERS.register(version=1)\ndef build(): pass\n",
            r"own\.py:1: .*BUILDERS.*EVALUATIONS",
        ),
        ("own", "@FILTERS.register()\nclass Own: pass\n", r"own\.py: .*own .*@NAME\.register\(version=1\)"),
        ("own", "@FILTERS.register(version=True)\nclass Own: pass\n", r"own\.py: .*own .*@NAME\.register\(version=1\)"),
        ("own", "class Own(:\n", r"own\.py: .*Python.*own\.py, line 1"),
        ("own", "x = 1\0\n", r"own\.py: .*Python"),
        ("own", "@OBJECTIVES.register(version=1)\ndef own(): pass\n", r"own\.py:2: [^']*class\."),
        (
            "own",
            "@OBJECTIVES.register(version=1)\nclass Own:\n    def loss(self): pass\n",
            r"own\.py:2: .*'inputs'",
        ),
        ("own", "@FILTERS.register(version=1)\nclass A: pass\n\n\n" * 2, r"own\.py:5: .*registers"),
        ("Own", "@FILTERS.register(version=1)\nclass Own: pass\n", r"Own\.py: 'Own'.*YAML"),
    ],
)
def test_what_is_wrong_in_a_plugins_module_is_refused_with_its_place(folder, name, text, said):
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        load(folder)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import helper_of_mine", ":2: .*ModuleNotFoundError: .*'helper_of_mine'"),
        ("from .helper_of_mine import X", r":2: .*ModuleNotFoundError"),
        ("X = 1 / 0", r":2: .*ZeroDivisionError"),
    ],
)
def test_a_module_that_cannot_be_loaded_says_where(line, said, folder):
    path = folder / "near_enough.py"
    head, _, rest = path.read_text(encoding="utf-8").partition("\n")
    path.write_text("\n".join([head, line, rest]), encoding="utf-8")
    (folder / "helper_of_mine.py").write_text("X = 1\n")
    load(folder)
    with pytest.raises(InputError, match=r"near_enough\.py" + said):
        OBJECTIVES.get("near_enough")


@pytest.mark.parametrize("head", [b"\xef\xbb\xbf", b"# -*- coding: latin-1 -*-\n# \xe9\n"])
def test_a_module_is_read_as_python_reads_it(head, folder):
    path = folder / "near_enough.py"
    path.write_bytes(head + path.read_bytes())
    load(folder)
    assert OBJECTIVES.get("near_enough")().margin == 0.2


def test_a_folder_that_is_none_and_a_name_that_is_taken_are_refused(folder, tmp_path):
    with pytest.raises(InputError, match=r"nowhere: .*such"):
        load(tmp_path / "nowhere")
    (folder / "other.yaml").touch()
    with pytest.raises(InputError, match=r"near_enough: .* 2 YAML"):
        load(folder)
    (folder / "other.yaml").unlink()
    (folder / "near_enough.yaml").rename(folder / "contest.yaml")
    with pytest.raises(InputError, match=r"contest\.yaml: .*'contest'.*taken"):
        load(folder)
    for name in ("Margin", "infonce", "near_enough"):
        with pytest.raises(InputError):
            write_objective(tmp_path / "near_enough", name)


@pytest.fixture
def install(folder, tmp_path, monkeypatch):
    """Return a function that installs the folder as a package with an entry point of this value."""

    def installed(value):
        site = tmp_path / "site"
        shutil.copytree(folder, site / "near_package")
        (site / "near_package" / "__init__.py").touch()
        (site / "near_module.py").write_text("1 / 0\n")
        info = site / "near_package-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: near-package\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[crosslign.plugins]\nnear = {value}\n")
        monkeypatch.syspath_prepend(str(site))

    return installed


@pytest.mark.parametrize("value", ["near_gone", "near_gone.inner", "near_module", "near_module.inner"])
def test_an_entry_point_that_names_no_package_is_refused(value, install):
    install(value)
    with pytest.raises(InputError, match=f"crosslign.plugins: {value}: .*'near'"):
        load()


def test_an_installed_plugin_stands_out_of_runs_without_what_it_is_like(install):
    """Nobody named it for this run: what it implements is there, and its systems wait for their paper."""
    install("near_package")
    project = load(papers=["quickstart"], targets=["quickstart"])
    assert "near_enough" not in {*project.systems, *project.tables}
    assert plugin_modules()
    assert project.plugins[0].endswith("near_enough@1; without its systems, which are like CT-IN of papers outside this run")
    with pytest.raises(InputError, match=r"systems\.near_enough\.like: .*'CT-IN'.*contest.*`papers`"):
        load(papers=["quickstart", "near_enough"], targets=["quickstart"])


@pytest.mark.parametrize("value", ["near_package", "near_package:anything"])
def test_an_installed_package_brings_its_plugin(value, install):
    install(value)
    assert load().tables["contest_parallel"]["rows"][-1]["system"] == "near_enough"
