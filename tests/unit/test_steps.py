"""What is made in the user's cache, in the order in which it is made."""

import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from e5s1_file import build_file
from safetensors.numpy import load_file, save_file

from crosslign.config import graph
from crosslign.encoders.prepare import prepare_encoder
from crosslign.files.lineage import read_lineage
from crosslign.steps import Steps, cached_project


def test_an_encoder_gets_the_corpora_that_its_vocabulary_is_pruned_to(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    project = cached_project(["scale=quick"], tmp_path)
    corpus = next(name for name, entry in project.corpora.items() if entry["kind"] == "mono" and "source" in entry)
    entry = {**project.encoders["me5_small"], "prune": {"corpora": [corpus]}}
    project = replace(project, encoders={**project.encoders, "small": entry})
    made = {}
    monkeypatch.setattr(Steps, "fetch", lambda *_: None)
    monkeypatch.setattr(Steps, "run", lambda steps, name, recipe, inputs, *_, **__: made.update({name: inputs}))
    Steps(tmp_path).encoder(project, "small")
    assert list(made) == ["build_corpus", "prepare_encoder"]
    assert made["prepare_encoder"]["corpora"] == [graph.corpus_path(project, corpus)]


def test_a_corpus_is_made_of_the_models_of_ones_own_that_its_filters_read(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "lid.ftz").write_bytes(b"model")
    project = cached_project(["scale=quick"], tmp_path)
    corpus = next(name for name, entry in project.corpora.items() if entry["kind"] == "mono" and "source" in entry)
    filters = [{"length": None}, {"language_id": {"model": str(tmp_path / "lid.ftz")}}, {"language_id": {"model": "heliport"}}]
    project = replace(project, corpora={**project.corpora, corpus: {**project.corpora[corpus], "filters": filters}})
    made = {}
    monkeypatch.setattr(Steps, "fetch", lambda *_: None)
    monkeypatch.setattr(Steps, "run", lambda steps, name, *_, **given: made.update(given))
    Steps(tmp_path).corpus(project, corpus)
    assert made == {"copied": [tmp_path / "lid.ftz"], "own": [str(tmp_path / "lid.ftz")]}


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A project with an encoder by its path, at a scale of real encoders; its folder, and what prepares it once more."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "tiny.bin").write_bytes(build_file()[0])
    prepare_encoder("tiny", {"path": str(tmp_path / "tiny.bin"), "format": "e5s1"}, {}, tmp_path / "out")
    shutil.copytree(tmp_path / "out" / "main", tmp_path / "own")
    (tmp_path / "config").mkdir()
    entry = "{path: own, readout: mean_t256, licence: MIT}"
    (tmp_path / "config" / "encoders.yaml").write_text(f"encoders:\n  mine: {entry}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    calls = []
    monkeypatch.setattr("crosslign.stages.prepare_encoder.prepare", lambda *given: (calls.append(1), prepare_encoder(*given))[1])

    def prepared():
        """Return how often the encoder was prepared by one more call, and the sum of what lies there."""
        calls.clear()
        project = cached_project()
        Steps(tmp_path / "work").encoder(project, "mine")
        return len(calls), read_lineage(project.paths.encoder("mine"))["artefact"]["sha256"]

    return tmp_path / "own", prepared


def test_an_encoder_of_ones_own_is_prepared_again_where_its_folder_has_changed_and_nowhere_else(own):
    folder, prepared = own
    assert prepared()[0] == 1
    _, first = prepared()
    weights = folder / "model.safetensors"
    old = weights.stat()
    os.utime(weights)  # touched
    (folder / "optimizer.pt").write_bytes(b"beside it")
    shutil.copytree(folder, folder.with_name("copy"))
    shutil.rmtree(folder)
    folder.with_name("copy").rename(folder)
    assert prepared() == (0, first)
    # Other weights of as many bytes and of an old time, as `cp -p` and `mv` leave them.
    save_file({name: np.flip(tensor).copy() for name, tensor in load_file(weights).items()}, folder / "new", metadata={"format": "pt"})
    os.utime(folder / "new", ns=(old.st_atime_ns, old.st_mtime_ns))
    assert (folder / "new").stat().st_size == old.st_size
    (folder / "new").replace(weights)
    count, second = prepared()
    assert (count, second != first) == (1, True)
    assert prepared() == (0, second)
    (folder / "modules.json").unlink()
    assert prepared()[0] == 1
    shutil.rmtree(folder)  # once prepared, it may go
    assert prepared()[0] == 0
