"""Nothing is tokenised while a run trains, whatever its terms read; a run that is stopped before it trains goes on, too."""

import os
import signal

import pytest
import trial
from methods import SYSTEMS, recipe, write_examples

from crosslign.encoders.model import Member, Model
from crosslign.errors import StoppedError
from crosslign.training import tokenised
from crosslign.training.fit import fit
from crosslign.training.step import Stepper
from crosslign.training.store import Store
from crosslign.training.terms import build_parts


@pytest.fixture
def run(tiny_encoder, tmp_path, sentence_pairs, pairs_file, groups_file):
    """Train a method for three steps; return its files, and what it counted of its examples."""
    examples = write_examples(tmp_path, sentence_pairs, pairs_file, groups_file)

    def train(method, name):
        terms, parts = SYSTEMS[method]
        settings, model = recipe(method, terms, parts, 3), Model.load({"main": tiny_encoder / "main"})
        used = {entry["examples"]: examples[entry["examples"]] for entry in terms}
        summary = fit(settings, used, model, build_parts(settings, model), None, tmp_path / name, tmp_path / f"{name}-work")
        return trial.weights(tmp_path / name), summary["examples"]

    return train


@pytest.mark.parametrize("method", ["SCL", "MVA", "SCL retrieval", "MPCL"])
def test_no_step_tokenises_and_the_bytes_are_those_of_one_that_does(run, monkeypatch, method):
    asked, inside, real_run, real_tokenise, real_batch = [], [], Stepper.run, Member.tokenise, Store.batch

    def step(self, *given):
        inside.append(True)
        result = real_run(self, *given)
        inside.pop()
        return result

    def tokenise(self, texts, *rest):
        asked.extend(texts if inside else ())
        return real_tokenise(self, texts, *rest)

    monkeypatch.setattr(Stepper, "run", step)
    monkeypatch.setattr(Member, "tokenise", tokenise)
    stored, _ = run(method, "stored")
    assert asked == []
    monkeypatch.setattr(Store, "batch", lambda self, *given: (real_batch(self, *given)[0], {}))
    assert run(method, "on_the_spot")[0] == stored
    assert asked


def test_a_signal_while_tokenising_stops_the_run_and_keeps_the_finished_chunks(run, monkeypatch, tmp_path):
    monkeypatch.setattr(tokenised, "CHUNK", 7)
    whole, counts = run("mSimCSE", "whole")
    added, real = [], tokenised._Writer.add

    def add(self, chunk):
        added.append(len(chunk.texts))
        real(self, chunk)
        if len(added) == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(tokenised._Writer, "add", add)
    with pytest.raises(StoppedError, match=r"examples of .* are tokenised"):
        run("mSimCSE", "stopped")
    assert len(added) == 1
    assert (tmp_path / "stopped-work" / "examples" / "triplets.partial" / "progress.json").exists()
    assert run("mSimCSE", "stopped") == (whole, counts)
    assert sum(added) == counts["triplets"]["rows"]
