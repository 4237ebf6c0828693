import os
from dataclasses import replace

import pytest

from crosslign.config.entry_keys import TRAIN_DEFAULTS
from crosslign.files import own, read_json, write_json
from crosslign.files.lineage import Lineage, lineage_path
from crosslign.provenance import reruns as module
from crosslign.provenance.reruns import Asked, Reruns

RECIPE = {"run_id": "A-s1", "train": {**TRAIN_DEFAULTS, "learning_rate": 1e-5}, "terms": [{"objective": "infonce", "langs": ("de", "en")}]}


class Small:
    """A run made of a training set, an encoder, and a file from outside, in a results folder."""

    def __init__(self, folder):
        self.results = folder / "results" / "quick"
        self.examples, self.encoder = self.results / "examples" / "e.parquet", self.results / "encoders" / "tiny"
        self.own, self.system = folder / "mine.tsv", self.results / "systems" / "A-s1"
        for file in (self.examples, self.encoder / "model", self.own, self.system / "model"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(file.name)
        self.params = {"recipe": RECIPE, "version": "train_system@1 infonce@1", "root": str(self.results), "seed": 1, "threads": 1}
        self.params |= {"tasks": {"dev": {"scorer": "sts", "averages": {"all": ["de"]}}}, "checkpoints": "anywhere"}
        self.inputs = [self.examples, self.encoder, self.own]
        for path in self.inputs[:2]:
            Lineage("made", {}, [], self.results).write(path, "kind")
        self.write()
        self.asked = Asked([self.system], self.inputs, [], self.params)

    def write(self):
        job = Lineage("train_system", RECIPE, self.inputs, self.results, 1, 1, self.params["version"], {"tasks": self.params["tasks"]})
        job.write(self.system, "system")

    def changed(self, **params):
        return replace(self.asked, params={**self.params, **params})

    def why(self, asked=None):
        return Reruns().why(asked or self.asked)


@pytest.fixture
def small(tmp_path):
    return Small(tmp_path)


def test_what_is_as_it_was_asked_for_runs_no_more_whatever_its_times_say(small):
    assert small.why() == []
    for path, time in ((small.examples, 4e9), (small.own, 4e9), (small.system, 0), (small.encoder, 4e9)):
        os.utime(path, (time, time))
    assert small.why() == []
    assert Reruns().described(small.asked.outputs)


def test_a_raised_version_is_named(small):
    assert small.why(small.changed(version="train_system@1 infonce@2")) == [("infonce@1", "infonce@2")]


def test_a_key_of_the_recipe_is_named_with_both_values(small):
    recipe = {**RECIPE, "train": {**RECIPE["train"], "learning_rate": 2e-5}}
    assert small.why(small.changed(recipe=recipe)) == [("train.learning_rate 1e-05", "train.learning_rate 2e-05")]


def test_a_key_that_has_come_up_since_counts_at_its_default_and_not_at_another_value(small, monkeypatch):
    monkeypatch.setitem(TRAIN_DEFAULTS, "smoothing", 0.0)
    at = lambda value: small.changed(recipe={**RECIPE, "train": {**RECIPE["train"], "smoothing": value}})  # noqa: E731
    assert small.why(at(0.0)) == []
    assert small.why(at(0.1)) == [("train.smoothing 0.0", "train.smoothing 0.1")]


def test_a_changed_default_is_a_changed_recipe(small, monkeypatch):
    monkeypatch.setitem(TRAIN_DEFAULTS, "clip", 0.5)
    recipe = {**RECIPE, "train": {**RECIPE["train"], "clip": 0.5}}
    assert small.why(small.changed(recipe=recipe)) == [("train.clip 1.0", "train.clip 0.5")]


def test_seed_threads_and_the_tasks_of_a_selection_count(small):
    assert small.why(small.changed(seed=2, threads=2)) == [("seed 1", "seed 2"), ("threads 1", "threads 2")]
    tasks = {"dev": {"scorer": "sts", "averages": {"all": ["en"]}}}
    assert small.why(small.changed(tasks=tasks)) == [('tasks.dev.averages.all[0] "de"', 'tasks.dev.averages.all[0] "en"')]
    assert small.why(small.changed(checkpoints="elsewhere")) == []


def test_paths_in_settings_are_the_same_wherever_the_results_lie(small, tmp_path):
    panels = {"panels": [{"curve": str(small.results / "systems/A-s1/curve.jsonl")}]}
    asked = Asked([small.results / "f.csv"], [], [], {"recipe": {}, "root": str(small.results), "inputs": panels})
    asked.outputs[0].write_text("f")
    from crosslign.files.lineage import beside_recipe

    Lineage("draw_figure", {}, [], small.results, settings=beside_recipe(asked.params, small.results)).write(asked.outputs[0], "figure")
    assert read_json(lineage_path(asked.outputs[0]))["settings"]["inputs"] == {"panels": [{"curve": "systems/A-s1/curve.jsonl"}]}
    assert small.why(asked) == []
    other = {"panels": [{"curve": str(small.results / "systems/B-s1/curve.jsonl")}]}
    assert small.why(replace(asked, params={**asked.params, "inputs": other}))


def test_another_set_of_inputs_is_named(small, tmp_path):
    assert small.why(replace(small.asked, inputs=small.inputs[1:])) == [("read examples/e.parquet", "(absent)")]
    assert small.why(replace(small.asked, inputs=[*small.inputs, small.results / "new"])) == [("(absent)", "reads new")]


def test_an_input_that_was_made_anew_is_named_by_its_lineage(small):
    small.examples.write_text("other rows")
    Lineage("made", {}, [], small.results).write(small.examples, "kind")
    os.utime(small.examples, (0, 0))
    (found,) = small.why()
    assert found[0].startswith("examples/e.parquet ")


def test_a_file_from_outside_that_is_newer_is_hashed(small):
    small.own.write_text("edited")
    os.utime(small.own, (4e9, 4e9))
    assert [before.split()[0] for before, _ in small.why()] == ["mine.tsv"]
    small.own.unlink()
    assert small.why() == []  # what was read is noted; that it is gone makes nothing anew


def test_a_described_file_that_was_touched_is_hashed_where_it_is_small_and_measured_where_it_is_large(small, monkeypatch):
    small.examples.write_text("other one")
    os.utime(small.examples, (4e9, 4e9))
    assert small.why()
    monkeypatch.setattr(module, "LARGEST", 1)
    small.examples.write_text("E.parquet")  # as many bytes
    os.utime(small.examples, (4e9, 4e9))
    assert small.why() == []  # crosslign verify hashes it
    small.examples.write_text("e.parquet and more")
    os.utime(small.examples, (4e9, 4e9))
    assert small.why()


def test_lineage_that_is_read_itself_is_always_hashed(small):
    page = small.results / "report.html"
    page.write_text("page")
    read = [lineage_path(small.examples)]
    Lineage("write_report", {}, read, small.results).write(page, "report")
    asked = Asked([page], read, [], {"recipe": {}, "root": str(small.results)})
    assert small.why(asked) == []
    write_json(read[0], {**read_json(read[0]), "version": "made@2"})
    os.utime(read[0], (0, 0))
    assert len(small.why(asked)) == 1


def test_a_copy_is_made_again_where_what_it_is_a_copy_of_has_changed(small, tmp_path):
    copy = tmp_path / "results" / "downloads" / "mine.tsv"
    copy.parent.mkdir()
    copy.write_text("mine.tsv")
    recipe = {"source": "mine"}
    Lineage("fetch", recipe, [], tmp_path / "results").write(copy, "download")
    asked = Asked([copy], [], [small.own], {"recipe": recipe, "version": "fetch@1 local@1", "root": str(tmp_path / "results")})
    os.utime(small.own, (4e9, 4e9))
    assert small.why(asked) == []
    small.own.write_text("edited")
    os.utime(small.own, (4e9, 4e9))
    assert len(small.why(asked)) == 1


def test_lineage_from_before_there_were_versions_is_that_of_the_first(small):
    sidecar = lineage_path(small.system)
    old = read_json(sidecar)
    del old["version"], old["settings"], old["run"]["code"]
    write_json(sidecar, {**old, "code": "0123456789abcdef"})
    assert small.why() == []
    assert small.why(small.changed(version="train_system@2 infonce@1")) == [("train_system@1", "train_system@2")]


def test_where_there_is_no_lineage_or_none_that_can_be_read_others_decide(small):
    assert not Reruns().described([small.results / "nothing"])
    lineage_path(small.system).write_text("{")
    assert not Reruns().described([small.system])
    lineage_path(small.system).unlink()
    assert not Reruns().described([small.system])


def test_what_was_removed_after_its_last_use_is_known_by_its_lineage(small):
    matrix = small.results / "embeddings" / "x.npy"
    matrix.parent.mkdir()
    matrix.write_text("vectors")
    Lineage("embed", {}, [small.encoder], small.results, version="embed@1").write(matrix, "embeddings")
    matrix.unlink()
    asked = Asked([matrix], [small.encoder], [], {"recipe": {}, "version": "embed@1", "root": str(small.results)})
    assert Reruns().described([matrix])
    assert small.why(asked) == []
    assert small.why(replace(asked, params={**asked.params, "version": "embed@2"})) == [("embed@1", "embed@2")]


def test_files_of_one_name_in_several_folders_are_compared_one_by_one(small, tmp_path):
    files = [tmp_path / year / "news.txt" for year in ("2023", "2024")]
    for file in files:
        file.parent.mkdir()
        file.write_text(file.parent.name)
    texts = small.results / "texts"
    texts.write_text("texts")
    Lineage("mine_texts", {}, files, small.results).write(texts, "texts")
    asked = Asked([texts], files, [], {"recipe": {}, "root": str(small.results)})
    assert small.why(asked) == []
    for file in files:
        before = file.read_text()
        file.write_text("edited")
        os.utime(file, (4e9, 4e9))
        assert [change[0].split()[0] for change in small.why(asked)] == ["news.txt"]
        file.write_text(before)
    assert small.why(replace(asked, inputs=files[:1])) == [("read news.txt", "(absent)")]
    assert small.why(replace(asked, inputs=[*files, small.own]))[0] == ("(absent)", "reads mine.tsv")


def test_a_file_that_another_was_moved_over_is_hashed_whatever_its_time_says(small):
    other = small.own.with_name("other")
    other.write_text("other one")
    other.replace(small.own)
    for path in (small.own, small.system):
        os.utime(path, (0, 0))
    assert [change[0].split()[0] for change in small.why()] == ["mine.tsv"]
    link = small.own.with_name("link")
    small.own.rename(small.own.with_name("target"))
    link.symlink_to("target")
    assert own.changed_ns(link) >= link.lstat().st_ctime_ns
