"""What a score file says of the checkpoint, the data, and the layer and lengths that were read; and its form for MTEB."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from crosslign.corpora.evaluation import EvaluationBuilder
from crosslign.errors import InputError
from crosslign.files.lineage import Lineage
from crosslign.jobs.job import Job, all_paths
from crosslign.paths import EVALUATION_FILES
from crosslign.reporting.mteb import export
from crosslign.stages.embed import embed
from crosslign.stages.score import score
from crosslign.tasks.score import read_scores

READOUT = {"pooling": "mean", "layer": 8, "max_length": 32, "normalise": True, "precision": "fp32", "prefix": ""}
MAIN = {"metric": "accuracy", "direction": "mean"}


class Results:
    """A small results folder: runs of two checkpoints, evaluation corpora, their matrices and scores."""

    def __init__(self, folder, encoder, pairs):
        self.folder, self._encoder, self._pairs = folder, encoder, pairs

    def run(self, name):
        """Make a run; the weights of `best` are not those of `last`."""
        run = self.folder / "systems" / name
        for checkpoint in ("last", "best"):
            shutil.copytree(self._encoder / "main", run / checkpoint / "main")
        weights = run / "best" / "main" / "model.safetensors"
        tensors = load_file(weights)
        tensors["embeddings.word_embeddings.weight"][5] += 1
        save_file(tensors, weights, metadata={"format": "pt"})
        Lineage("train_system", {}, [], self.folder).write(run, "system")

    def evaluation(self, corpus, langs, links=lambda number: number):
        """Write an evaluation corpus with a subset for each language, of the same sentences."""
        builder = EvaluationBuilder(corpus)
        for lang in langs:
            for number, (english, german) in enumerate(self._pairs[:6]):
                builder.item(f"l{number}", lang, "source", lang, german)
                builder.item(f"r{number}", lang, "target", "en", english)
                builder.link(lang, f"l{number}", f"r{links(number)}")
        files = {part: self.folder / "evaluation" / corpus / f"{part}.parquet" for part in EVALUATION_FILES}
        builder.build().write(files)
        for file in files.values():
            Lineage("build_evaluation", {}, [], self.folder).write(file, "evaluation")
        return files

    def matrix(self, run, checkpoint, corpus, files, readout):
        """Encode a set."""
        system = self.folder / "systems" / run
        recipe = {"run": run, "checkpoint": checkpoint, "readout_entry": readout, "head": {}}
        inputs = {"encoder": system, "texts": files["texts"]}
        out = self.folder / "embeddings" / run / checkpoint / f"t{readout['max_length']}" / f"{corpus}.npy"
        params = {"recipe": recipe, "members": {"main": str(system / checkpoint / "main")}, "work": str(self.folder / "w")}
        embed(Job("embed", inputs, {"matrix": out}, params, 1, Lineage("embed", recipe, list(inputs.values()), self.folder)))
        return out

    def score(self, run, checkpoint, task, corpora, files, readouts=None, entry_of_readout=READOUT):
        """Score a set, or one a role, as MTEB's `task`; return what stands in the file."""
        readouts = readouts or dict.fromkeys(corpora, READOUT)
        roles = {
            role: {"matrix": self.matrix(run, checkpoint, corpus, files[corpus], readouts[role]), **files[corpus]}
            for role, corpus in corpora.items()
        }
        entry = {"scorer": "retrieval", "texts": corpora, "main": {"subset": "deu", **MAIN}, "resamples": 0, "output": "vectors"}
        if len(corpora) > 1:
            entry |= {"scorer": "bitext_mining", "protocols": ["train_oracle"], "main": {"subset": "deu", "metric": "f1"}}
            entry["main"]["protocol"] = "train_oracle"
        recipe = {"run_id": run, "system": run, "seed": 42, "checkpoint": checkpoint, "readout": "mean", "profile": "quick"}
        recipe |= {"readout_entry": entry_of_readout, "task": task, "task_entry": entry}
        out = self.folder / "scores" / run / checkpoint / "mean" / f"{task}.json"
        outputs = {"scores": out, "resamples": out.with_suffix(".resamples.parquet")}
        params = {"recipe": recipe, "work": str(self.folder / "searches")}
        score(Job("score", {"roles": roles}, outputs, params, 1, Lineage("score", recipe, all_paths(roles), self.folder)))
        assert not Path(params["work"]).exists()
        return json.loads(out.read_text(encoding="utf-8"))["records"][0]


@pytest.fixture
def results(tmp_path, tiny_encoder, sentence_pairs):
    made = Results(tmp_path / "results", tiny_encoder, sentence_pairs)
    made.run("A-s42")
    return made


def test_hashes_are_those_of_the_checkpoint_and_of_the_data(results):
    results.run("B-s42")
    save = results.folder / "systems" / "B-s42" / "last" / "main" / "model.safetensors"
    save_file({name: tensor * 1.5 for name, tensor in load_file(save).items()}, save, metadata={"format": "pt"})
    Lineage("train_system", {}, [], results.folder).write(results.folder / "systems" / "B-s42", "system")
    files = {"tatoeba": results.evaluation("tatoeba", ["deu", "nld"]), "six": results.evaluation("six", ["deu"])}
    first = results.score("A-s42", "last", "tatoeba", {"test": "tatoeba"}, files)
    other_task = results.score("A-s42", "last", "tatoeba_six", {"test": "six"}, files)
    best = results.score("A-s42", "best", "tatoeba", {"test": "tatoeba"}, files)
    other_system = results.score("B-s42", "last", "tatoeba", {"test": "tatoeba"}, files)
    assert first["checkpoint_sha"] == other_task["checkpoint_sha"]
    assert len({first["checkpoint_sha"], best["checkpoint_sha"], other_system["checkpoint_sha"]}) == 3
    assert first["data_manifest_sha"] == best["data_manifest_sha"] == other_system["data_manifest_sha"] != other_task["data_manifest_sha"]
    written = list(export(results.folder, results.folder / "mteb", {}))
    assert [path.name for path in written] == ["Tatoeba.json"] * 3
    assert len({path.parent for path in written}) == 3
    files["tatoeba"] = results.evaluation("tatoeba", ["deu", "nld"], links=lambda number: 5 - number)
    assert results.score("A-s42", "last", "tatoeba", {"test": "tatoeba"}, files)["data_manifest_sha"] != first["data_manifest_sha"]


def test_the_layer_and_the_lengths_that_were_read_are_recorded(results):
    files = {name: results.evaluation(name, ["deu"]) for name in ("dev", "test")}
    alone = results.score("A-s42", "last", "bucc", {"test": "test"}, files)
    assert (alone["layer"], alone["max_length"], "lengths" in alone) == (2, 32, False)
    readouts = {"dev": {**READOUT, "max_length": 8}, "test": READOUT}
    both = results.score("A-s42", "last", "bucc", {"dev": "dev", "test": "test"}, files, readouts)
    assert (both["max_length"], both["lengths"]) == (32, {"dev": 8, "test": 32})
    context, _ = read_scores(results.folder / "scores" / "A-s42" / "last" / "mean" / "bucc.json")
    assert context["max_length"] == 32


def test_the_text_before_each_sentence_is_recorded_where_there_is_one(results):
    files = {"test": results.evaluation("test", ["deu"])}
    found = []
    for prefix in ("", "query: "):
        entry = {**READOUT, "prefix": prefix}
        found.append(results.score("A-s42", "last", "tatoeba", {"test": "test"}, files, {"test": entry}, entry))
    assert [(record.get("prefix"), record.get("prefixes")) for record in found] == [(None, None), ("query: ", None)]


def test_prefixes_of_a_tasks_evaluation_corpora_are_recorded_where_they_differ(results):
    files = {name: results.evaluation(name, ["deu"]) for name in ("dev", "test")}
    readouts = {"dev": {**READOUT, "prefix": "query: "}, "test": {**READOUT, "prefix": ""}}
    record = results.score("A-s42", "last", "bucc", {"dev": "dev", "test": "test"}, files, readouts)
    assert (record["prefixes"], "prefix" in record) == ({"dev": "query: ", "test": ""}, False)


@pytest.mark.parametrize(
    ("changed", "said"),
    [({}, ""), ({"precision": "bf16"}, "not measured"), ({"precision": "bf16", "score_change": "at most 0.1"}, "at most 0.1")],
)
def test_a_record_names_what_the_precision_changes_or_that_nobody_measured_it(results, changed, said):
    files = {"test": results.evaluation("test", ["deu"])}
    record = results.score("A-s42", "last", "tatoeba", {"test": "test"}, files, entry_of_readout={**READOUT, **changed})
    assert (record["precision"], record["score_change"]) == (changed.get("precision", "fp32"), said)


def test_matrices_of_two_checkpoints_make_no_score(results, monkeypatch):
    files = {name: results.evaluation(name, ["deu"]) for name in ("dev", "test")}
    one = results.matrix
    monkeypatch.setattr(
        results, "matrix", lambda run, checkpoint, corpus, *rest: one(run, "best" if corpus == "dev" else checkpoint, corpus, *rest)
    )
    with pytest.raises(InputError, match=r"dev\.npy.*test\.npy: .*checkpoints"):
        results.score("A-s42", "last", "bucc", {"dev": "dev", "test": "test"}, files)


def test_scores_of_texts_that_the_encoder_does_not_know_say_so_in_a_footnote(results, tmp_path, sentence_pairs):
    known = results.evaluation("known", ["deu"])
    amharic = Results(results.folder, None, [("ሰላም ልዑል", german) for _, german in sentence_pairs]).evaluation("amharic", ["deu"])
    assert "note" not in results.score("A-s42", "last", "known", {"test": "known"}, {"known": known})
    note = results.score("A-s42", "last", "amharic", {"test": "amharic"}, {"amharic": amharic})["note"]
    assert note.startswith("amharic: ")
    assert note.endswith("% of all tokens are unknown to the encoder (en 100.0 %).")
