"""Edits of the library under a finished run: harmless ones make nothing again; harmful ones fail, are named, and rerun their dependents."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from project_copy import ROOT

pytestmark = pytest.mark.workflow

SRC = "src/crosslign"
OTHER_PAPER = """\
systems:
  O-A:
    place: "Of another paper."
    base: {encoder: tiny}
    terms: [{objective: infonce, weight: 1.0, examples: other_nli, batch: 8, temperature: 0.1}]
    train: {steps: 12, learning_rate: 1e-3, precision: fp32}
    readout: mean
examples:
  other_nli: {builder: nli_triplets, from: [written_nli], langs: [en], seed: 7}
tables:
  others:
    title: "Of another paper"
    caption: "One system."
    columns: [{label: mono, task: sts_written, subset: mono, metric: spearman}]
    rows: [{label: "O-A", system: O-A}]
"""
MOVED = """\
from torch import Tensor


def mean_of(values: Tensor) -> Tensor:
    return values.detach().float().mean() if values.numel() else values.new_zeros(())
"""
HARMLESS = {
    "a private function of the registries renamed": ("registry.py", "_snake", "_underscored"),
    "a constant added to the schemas of rows": ("files/rows.py", "", "\nSPARE = 7\n"),
    "an exit code of errors": ("errors.py", "exit_code = 3", "exit_code = 33"),
    "a new kind of error": ("errors.py", "", "\n\nclass SpareError(CrosslignError):\n    exit_code = 9\n"),
    "a word of a log line of checkpoints": ("training/checkpoint.py", "checkpoint written at step", "a checkpoint was written at step"),
    "a word of a log line of trainings": ("training/fit.py", '"%s: %d steps on %s"', '"%s: will take %d steps on %s"'),
    "a private function of model cards renamed": ("reporting/card.py", "_use(", "_usage("),
    "a private class of encoding renamed": ("encoders/matrices.py", "_Shards", "_Pieces"),
    "a private function of training sets renamed": ("examples/build.py", "_numbered", "_with_numbers"),
    "the words of an error of a builder": (
        "examples/builders/nli_triplets.py",
        "no premise has an entailed",
        "there is no premise with an entailed",
    ),
    "the words of an error of a reader": ("corpora/evaluations/sts_tsv.py", "a grade must be a number", "each grade must be a number"),
    "a docstring of a stage": ("stages/train_system.py", "Train one run, or go on", "Train a run, or go on"),
    "a comment in a scorer": ("tasks/scorers/sts.py", "", "\n# Spearman's is the papers' metric.\n"),
    "a helper moved to a module of its own": (
        "objectives/contract.py",
        'def mean_of(values: Tensor) -> Tensor:\n    """Return the mean as a number for the log; 0 of nothing."""\n'
        "    return values.detach().float().mean() if values.numel() else torch.zeros((), device=values.device)\n",
        "from crosslign.objectives.plain import mean_of  # noqa: E402, F401\n",
    ),
    "a new optional key of trainings with its default": ("config/entry_keys.py", '"threads": 1,', '"threads": 1,\n    "smoothing": 0.0,'),
    "a new optional key of minings with its default": ("config/mining.py", '"threads": 2,', '"threads": 2,\n    "cap": None,'),
    "a new option of an objective": (
        "objectives/terms/infonce.py",
        "hard_negative_weight: float = 0.0,",
        "hard_negative_weight: float = 0.0,\n        margin: float = 0.0,",
    ),
    "a check added to the configuration": (
        "config/recipes.py",
        "        _check_batches(recipe)\n",
        "        _check_batches(recipe)\n        assert recipe.name\n",
    ),
    "a new scorer": (
        "tasks/scorers/spare.py",
        "",
        '"""Spare."""\nfrom crosslign.tasks import SCORERS\n\n\n@SCORERS.register(version=1)\ndef spare(task): ...\n',
    ),
    "another paper": ("../../config/papers/other.yaml", "", OTHER_PAPER),
}
"""Name: file below the library, text, and what takes its place; no text: what is added at the end."""

TABLE = {"make_table"}
SCORED = {"score", *TABLE}
EMBEDDED = {"embed", *SCORED}
TRAINED = {"tokenise", "train_system", *EMBEDDED}
BUILT = {"build_examples", *TRAINED}
HARMFUL = {
    "corpora.filters/length": ("corpora/filters/length.py", "side.units <= high", "side.units < high", {"build_corpus", *BUILT}),
    "corpora.filters/identical_pair": ("corpora/filters/identical_pair.py", "bares(right.texts)", "right.texts", {"build_corpus", *BUILT}),
    "corpora.readers/nli_tsv": ("corpora/readers/nli_tsv.py", '"contradicting": 2.0', '"contradicting": 1.0', {"build_corpus", *BUILT}),
    "corpora.evaluations/sts_tsv": (
        "corpora/evaluations/sts_tsv.py",
        "score=grade_of(first, item, path)",
        "score=5 - grade_of(first, item, path)",
        {"build_evaluation", *BUILT},
    ),
    "examples.builders/nli_triplets": ("examples/builders/nli_triplets.py", "drawn = choices[int(", "drawn = choices[-1 - int(", BUILT),
    "objectives.terms/infonce": (
        "objectives/terms/infonce.py",
        "        logits = similarities / self.temperature\n",
        "        logits = similarities * self.temperature\n",
        TRAINED,
    ),
    "stages/train_system": ("training/optimiser.py", "(1.0 - final_share) * left\n", "(1.0 - final_share) * left * left\n", TRAINED),
    "stages/embed": ("encoders/pooling.py", "weights.sum(1).clamp(min=1.0)", "(weights.sum(1) + 1.0)", EMBEDDED),
    "tasks.scorers/sts": ("tasks/scorers/sts.py", "np.clip(out, -1.0, 1.0)", "np.clip(out, 0.0, 1.0)", SCORED),
    "stages/make_table": ("reporting/layout.py", 'f"{value * scale_by:.{decimals}f}"', 'f"{value * scale_by:.{decimals + 1}f}"', TABLE),
}
"""What the edit changes: file, text, what takes its place, and the rules that run once the version is raised."""


@pytest.fixture
def library(copy):
    """A copy of the library for a finished run, with commands to plan and to check it."""
    shutil.copytree(ROOT / SRC, copy.folder / SRC)
    return Library(copy)


class Library:
    """The library that a finished run is planned with."""

    def __init__(self, mini) -> None:
        self.mini, self.folder = mini, mini.folder / SRC

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.folder / file
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        assert old in text, f"{file} no longer holds {old!r}: write the edit anew"
        path.write_text(text.replace(old, new) if old else text + new, encoding="utf-8")

    def planned(self, *config: str) -> set[str]:
        """Return the rules that a dry run would start."""
        said = self.mini.run("-n", config=config, PYTHONPATH=str(self.folder.parent)).stdout
        jobs = re.search(r"^Job stats:\n.*?\n-.*?\n(.*?)\n\n", said, flags=re.MULTILINE | re.DOTALL)
        return {line.split()[0] for line in jobs[1].splitlines()} - {"total", "all"} if jobs else set()

    def golden(self, name: str) -> str:
        """Return what the golden results of an implementation say of this library."""
        tool = [sys.executable, str(ROOT / "tests" / "golden" / "golden.py"), "check", name]
        settings = {**os.environ, "PYTHONPATH": str(self.folder.parent)}
        return subprocess.run(tool, env=settings, capture_output=True, text=True, check=False).stdout

    def file_of(self, name: str) -> Path:
        """Return the module that registers an implementation."""
        return self.folder.joinpath(*name.replace("/", ".").split(".")).with_suffix(".py")


def test_f31_twenty_harmless_edits_make_nothing_again(library):
    assert len(HARMLESS) == 20
    library.edit("objectives/plain.py", "", MOVED)
    for file, old, new in HARMLESS.values():
        library.edit(file, old, new)
    found = library.planned("papers=[faults,other]", "targets=[faults]")
    if found:  # which of them it is
        shutil.rmtree(library.folder)
        for name, (file, old, new) in HARMLESS.items():
            shutil.copytree(ROOT / SRC, library.folder)
            library.edit("objectives/plain.py", "", MOVED)
            library.edit(file, old, new)
            assert library.planned() == set(), name
            shutil.rmtree(library.folder)
    assert found == set()


@pytest.mark.parametrize("name", HARMFUL)
def test_f31_a_harmful_edit_is_named_by_its_golden_result_and_its_raised_version_reruns_its_dependents(library, name):
    file, old, new, expected = HARMFUL[name]
    library.edit(file, old, new)
    assert library.planned() == set()
    assert f"raise the version of {name.rpartition('/')[2]}, or keep the result" in library.golden(name)
    path = library.file_of(name)
    text = path.read_text(encoding="utf-8")
    version = int(re.search(r"register\(version=(\d+)\)", text)[1])
    path.write_text(text.replace(f"register(version={version})", f"register(version={version + 1})"), encoding="utf-8")
    assert library.planned() == expected
    assert f"no result of version {version + 1} is kept" in library.golden(name)


def test_f31_ten_harmful_edits_are_listed():
    assert len(HARMFUL) == 10


def test_f31_results_copied_beside_a_fresh_checkout_make_nothing_again(undisturbed, tmp_path):
    """Neither `.snakemake` nor time stamps come along, and the project's own files are newer than all that was made of them."""
    from mini_project import Mini

    fresh = Mini(tmp_path / "fresh")
    shutil.copytree(undisturbed.folder / "results", fresh.folder / "results", copy_function=shutil.copyfile)
    for path in (fresh.folder / "resources").rglob("*"):
        os.utime(path)
    assert not (fresh.folder / ".snakemake").exists()
    assert "Nothing to be done" in fresh.run("-n").stdout
    shutil.rmtree(fresh.results / "tables")
    assert re.findall(r"^Job \d+: (.*) \[", fresh.run().stdout, flags=re.MULTILINE) == ["Building the table faults"]
    assert fresh.tables() == undisturbed.tables()


def test_f31_results_from_before_there_were_versions_are_taken_as_they_are(library):
    """Lineage of then: a fingerprint of the code, and no versions. It stands for version 1 of everything."""
    from crosslign.files import read_json, write_json

    copy = library.mini
    sidecars = list(copy.folder.rglob("*lineage.json"))
    assert sidecars
    for path in sidecars:
        old = read_json(path)
        for key in ("version", "settings"):
            del old[key]
        write_json(path, {**old, "code": old["run"].pop("code")})
    shutil.rmtree(copy.folder / ".snakemake")
    for path in library.folder.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"register\(version=\d+\)", "register(version=1)", text), encoding="utf-8")
    assert library.planned() == set()
    scorer = library.file_of("tasks.scorers/sts")
    scorer.write_text(scorer.read_text(encoding="utf-8").replace("register(version=1)", "register(version=2)"), encoding="utf-8")
    assert library.planned() == SCORED
