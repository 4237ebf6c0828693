"""Small trainings without dropout, so that a GPU and a CPU compute one function."""

from __future__ import annotations

import json
from copy import deepcopy
from types import SimpleNamespace

import methods
import pytest
import trial
from tokenise import tokenised


@pytest.fixture(scope="session")
def examples(tmp_path_factory, sentence_pairs, pairs_file, groups_file):
    """Training sets of all shapes, by name."""
    return methods.write_examples(tmp_path_factory.mktemp("examples"), sentence_pairs, pairs_file, groups_file)


@pytest.fixture
def fitted(examples, tiny_loaded, tmp_path, one_thread):
    """Train a system, by its name or as terms and parts; return its summary, losses, and the folder of the run."""
    from torch import nn

    from crosslign.training.fit import fit
    from crosslign.training.terms import build_parts

    def train(system, name, steps=4, dropout=None, dev=None, select=(), **changes):
        terms, state = methods.SYSTEMS[system] if isinstance(system, str) else system
        recipe = methods.recipe(name, terms, state, steps=steps, **changes) | {"select": dict(select)}
        model = deepcopy(tiny_loaded)
        parts = build_parts(recipe, model)
        for module in (module for part in (model, *parts.values()) for module in part.modules()):
            if isinstance(module, nn.Dropout) and dropout is None:
                module.p = 0.0
        used = {term["examples"]: examples[term["examples"]] for term in recipe["terms"]}
        sets = tokenised(recipe, used, model, tmp_path / f"{name}-sets")
        summary = fit(recipe, sets, model, parts, dev and trial.Evaluations(dev), tmp_path / name, tmp_path / f"{name}-work")
        curve = [json.loads(line) for line in (tmp_path / name / "curve.jsonl").read_text().splitlines()]
        return SimpleNamespace(summary=summary, losses=[line["loss"] for line in curve], folder=tmp_path / name, model=model)

    return train
