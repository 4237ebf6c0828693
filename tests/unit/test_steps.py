"""What is made in the user's cache, in the order in which it is made."""

from dataclasses import replace

from crosslign.config import graph
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
