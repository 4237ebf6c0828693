"""Nothing is tokenised while a run trains, whatever its terms read."""

import pytest
import trial
from methods import SYSTEMS, recipe, write_examples
from tokenise import tokenised

from crosslign.encoders.model import Member, Model
from crosslign.training.fit import fit
from crosslign.training.step import Stepper
from crosslign.training.terms import build_parts
from crosslign.training.tokenised import Store


@pytest.fixture
def run(tiny_encoder, tmp_path, sentence_pairs, pairs_file, groups_file):
    """Train a method for three steps; return its files."""
    examples = write_examples(tmp_path, sentence_pairs, pairs_file, groups_file)

    def train(method, name):
        terms, parts = SYSTEMS[method]
        settings, model = recipe(method, terms, parts, 3), Model.load({"main": tiny_encoder / "main"})
        used = {entry["examples"]: examples[entry["examples"]] for entry in terms}
        sets = tokenised(settings, used, model, tmp_path / f"{name}-sets")
        fit(settings, sets, model, build_parts(settings, model), None, tmp_path / name, tmp_path / f"{name}-work")
        return trial.weights(tmp_path / name)

    return train


@pytest.mark.parametrize("method", ["SCL", "MVA", "SCL retrieval", "MPCL", "MoCo-BERT with NLI"])
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
    stored = run(method, "stored")
    assert asked == []
    monkeypatch.setattr(Store, "batch", lambda self, *given: (real_batch(self, *given)[0], {}))
    assert run(method, "on_the_spot") == stored
    assert asked
