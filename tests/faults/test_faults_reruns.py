"""Faults of what a finished run left: damaged, mis-timed, edited; what hangs on it is made again, and nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from crosslign.provenance.discard import discard
from crosslign.provenance.settle import settle
from crosslign.provenance.verify import verify
from crosslign.registry import version_of

pytestmark = pytest.mark.workflow


def planned_jobs(mini, *arguments, config=()):
    """Return the number of jobs of each rule that a dry run would start."""
    said = mini.run("-n", *arguments, config=config).stdout
    jobs = re.search(r"^Job stats:\n.*?\n-.*?\n(.*?)\n\n", said, flags=re.MULTILINE | re.DOTALL)
    found = {line.split()[0]: int(line.split()[1]) for line in jobs[1].splitlines()} if jobs else {}
    return {rule: number for rule, number in found.items() if rule not in ("total", "all")}


def planned(mini, *arguments, config=()):
    """Return the rules that a dry run would start."""
    return set(planned_jobs(mini, *arguments, config=config))


DAMAGED = (
    ("scores/**/sts_written.json", "make_table"),
    ("embeddings/**/sts_written.npy", "score"),
    ("systems/F-A-s42/last/main/model.safetensors", "embed"),
    ("encoders/tiny/main/model.safetensors", "train_system"),
    ("examples/nli.parquet", "train_system"),
    ("corpora/written_nli/*.parquet", "build_examples"),
    ("corpora/sts_written/texts.parquet", "build_examples"),
    ("../downloads/own_texts/nli_en.tsv", "build_corpus"),
)
"""One file of each kind of artefact, from the last to the first, and the rule that reads it."""


def test_f23_one_damaged_byte_of_any_artefact_is_refused_by_name_and_mended_by_discarding_it(undisturbed, copy):
    for number, (pattern, rule) in enumerate(DAMAGED):
        (path,) = copy.results.glob(pattern)
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content if number % 2 else content[:-1])
        done = copy.run("--until", rule, check=False)
        assert done.returncode != 0, done.stdout[-3000:]
        assert "the file differs from its lineage; it is damaged, or was changed by hand" in done.stdout, done.stdout[-3000:]
        assert not verify(copy.results)[1]
        assert discard(copy.results)[0]
    shutil.rmtree(copy.results / ".discarded")
    copy.finish()
    assert copy.tables() == undisturbed.tables()
    assert copy.artefacts() == undisturbed.artefacts()


def test_f28_time_stamps_and_clocks_that_lie_make_no_needless_rerun_and_hashes_find_the_missing_one(undisturbed, copy):
    for folder, stamp in (("corpora", 4e9), ("scores", 0)):
        for path in (copy.results / folder).rglob("*"):
            os.utime(path, (stamp, stamp))
    by_time_alone = ("--max-checksum-file-size", "0")  # as Snakemake judges large files; of small ones it compares the bytes
    assert planned(copy) == set()
    assert planned(copy, *by_time_alone) == set()
    settle(copy.results)
    assert max(path.stat().st_mtime for path in copy.results.rglob("*") if path.is_file()) < 2e9  # the future would stop what reads it
    score = next(copy.results.glob("scores/**/sts_written.json"))
    before = score.read_bytes()
    # A file changed by hand that looks old: time stamps see nothing, hashes do.
    content = json.loads(before)
    content["records"][0]["value"] = 0.5
    score.write_text(json.dumps(content))
    os.utime(score, (0, 0))
    text, whole = verify(copy.results)
    assert not whole
    assert "touched by hand: scores/" in text
    discard(copy.results)
    copy.finish()
    assert score.read_bytes() == before
    assert verify(copy.results)[1], verify(copy.results)[0]
    assert copy.tables() == undisturbed.tables()


def test_f31_a_raised_version_reruns_what_depends_on_it_and_an_edit_without_it_nothing(copy):
    """The library is changed under the workflow's feet: the scorer of this table's task."""
    shutil.copytree(Path(__file__).parents[2] / "src" / "crosslign", copy.folder / "src" / "crosslign")
    path = copy.folder / "src" / "crosslign" / "tasks" / "scorers" / "sts.py"
    environment = {"PYTHONPATH": str(copy.folder / "src")}
    assert "Nothing to be done" in copy.run("-n", **environment).stdout
    path.write_text(path.read_text(encoding="utf-8") + "\nCHANGED = 1\n", encoding="utf-8")
    assert "Nothing to be done" in copy.run("-n", **environment).stdout
    now = version_of("crosslign.tasks.scorers.sts")
    path.write_text(path.read_text(encoding="utf-8").replace(f"version={now}", f"version={now + 1}"), encoding="utf-8")
    said = copy.run("-n", **environment).stdout
    assert re.search(rf"before: sts@{now} +now: sts@{now + 1}", said)
    assert set(re.findall(r"^(score|make_table|embed|train_system|build_\w+|fetch|prepare_encoder) +\d+$", said, flags=re.MULTILINE)) == {
        "score",
        "make_table",
    }


ALL = {"build_examples", "tokenise", "train_system", "embed", "score", "make_table"}
EDITS = {
    "a filter": ("config/corpora.yaml", "min_words: 2", "min_words: 3", {"build_corpus", *ALL}),
    "an evaluation": ("config/corpora.yaml", "pairs: [en-en, de-de, en-de]", "pairs: [de-de, en-en, en-de]", {"build_evaluation", *ALL}),
    "an encoder": ("config/encoders.yaml", "seed: 0", "seed: 1", {"prepare_encoder", *ALL} - {"build_examples"}),
    "a seed of examples": ("config/papers/faults.yaml", "langs: [en], seed: 42", "langs: [en], seed: 43", ALL),
    "a learning rate": ("config/papers/faults.yaml", "1e-3", "2e-3", ALL - {"build_examples"}),
    "a readout": ("config/encoders.yaml", "max_length: 32", "max_length: 31", ALL - {"build_examples"}),
    "an average": ("config/tasks.yaml", "mono: [en-en, de-de]", "mono: [en-en]", {"score", "make_table"}),
    "a title": ("config/papers/faults.yaml", "The table of the", "A table of the", {"make_table"}),
    "a comment": ("config/papers/faults.yaml", "# One system", "# A system", set()),
    "a comment of a script": ("workflow/scripts/run_stage.py", "Runs the stage", "Run the stage", set()),
    "a citation": ("config/corpora.yaml", "Written for crosslign; in the form", "Written by hand, in the form", set()),
    "a citation of a source": ("config/corpora.yaml", "crosslign, resources/written", "resources/written", set()),
    "a citation of an encoder": ("config/encoders.yaml", "random weights", "weights at random", set()),
    "a rough size": ("config/corpora.yaml", "{name: nli_en.tsv}", "{name: nli_en.tsv, about_bytes: 50000}", set()),
    "a file of the user's own": (
        "resources/written/nli_en.tsv",
        "Marta simmered",
        "Marta stirred",
        {"fetch", "prepare_encoder", "build_corpus", *ALL},
    ),
    "how often a training is saved": ("config/papers/faults.yaml", "checkpoint_every: 2", "checkpoint_every: 3", set()),
}


@pytest.mark.parametrize("name", EDITS)
def test_f32_an_edited_value_reruns_its_rules_and_no_others(copy, name):
    file, old, new, expected = EDITS[name]
    copy.edit(file, old, new)
    assert planned(copy) == expected


def test_f32_a_file_of_the_users_own_that_is_gone_once_it_was_copied_makes_nothing_anew(copy):
    shutil.rmtree(copy.folder / "resources" / "written")
    assert planned(copy) == set()


PAPER, TASKS = "config/papers/faults.yaml", "config/tasks.yaml"


def test_f32_a_further_run_on_a_tokenised_set_that_is_gone_trains_no_other_anew(undisturbed, copy):
    before = {path: path.stat().st_mtime_ns for path in (copy.results / "systems" / "F-A-s42").rglob("*")}
    assert not (copy.results / "tokenised").exists()
    copy.edit(PAPER, "seeds: [42]", "seeds: [42, 43]")
    once = {"tokenise": 1, "train_system": 1, "embed": 1, "score": 1}
    assert planned_jobs(copy) == {**once, "make_table": 1}
    copy.run()
    assert {path: path.stat().st_mtime_ns for path in (copy.results / "systems" / "F-A-s42").rglob("*")} == before
    assert not (copy.results / "tokenised").exists()
    assert planned_jobs(copy) == {}
    shutil.rmtree(copy.results / "systems" / "F-A-s43")  # its score is there: nobody asks for it
    copy.edit(PAPER, "seeds: [42, 43]", "seeds: [42, 43, 44]")
    assert planned_jobs(copy) == {**once, "make_table": 1}
    copy.edit(PAPER, "1e-3", "2e-3")  # a reason of their own
    assert planned_jobs(copy)["train_system"] == 3


def test_f32_a_further_task_on_vectors_that_are_gone_scores_no_other_anew(copy):
    copy.edit("config/corpora.yaml", "{name: sts_en.tsv}", "{name: sts_en.tsv, about_bytes: 900000000}")
    (matrix,) = copy.results.glob("embeddings/**/sts_written.npy")
    matrix.unlink()
    assert planned_jobs(copy) == {}
    task = (copy.folder / TASKS).read_text(encoding="utf-8").partition("tasks:\n")[2].replace("sts_written:", "again:", 1)
    copy.edit(TASKS, "tasks:\n", f"tasks:\n{task}")
    copy.edit(PAPER, "      - {label: mean,", "      - {label: again, task: again, subset: mono, metric: spearman}\n      - {label: mean,")
    assert planned_jobs(copy) == {"embed_large": 1, "score": 1, "make_table": 1}
    for _ in range(2):  # a reason of their own, one task after the other
        copy.edit(TASKS, "mono: [en-en, de-de]", "mono: [en-en]")
    assert planned_jobs(copy) == {"embed_large": 1, "score": 2, "make_table": 1}
