"""Trainings on a GPU go like those on a CPU."""

from __future__ import annotations

import json

import methods
import pytest


@pytest.fixture(scope="session")
def examples(tmp_path_factory, sentence_pairs, pairs_file, groups_file):
    return methods.write_examples(tmp_path_factory.mktemp("examples"), sentence_pairs, pairs_file, groups_file)


@pytest.fixture
def trained(examples, tiny_encoder, tmp_path, one_thread):
    """Train a system without dropout; return the run's folder."""
    from torch import nn

    from crosslign.encoders.model import Model
    from crosslign.training.fit import fit
    from crosslign.training.terms import build_parts

    def train(recipe, name):
        model = Model.load({"main": tiny_encoder / "main"})
        parts = build_parts(recipe, model)
        for module in (module for part in (model, *parts.values()) for module in part.modules()):
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        used = {term["examples"]: examples[term["examples"]] for term in recipe["terms"]}
        fit(recipe, used, model, parts, None, tmp_path / name, tmp_path / f"{name}-work")
        return tmp_path / name

    return train


def losses(folder):
    return [json.loads(line)["loss"] for line in (folder / "curve.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("system", methods.SYSTEMS)
def test_every_method_trains_as_on_a_cpu(cuda, on_a_cpu, trained, system):
    terms, parts = methods.SYSTEMS[system]
    recipe = methods.recipe(system, terms, parts, steps=4)
    with on_a_cpu():
        expected = losses(trained(recipe, "cpu"))
    assert losses(trained(recipe, "gpu")) == pytest.approx(expected, abs=1e-3)
