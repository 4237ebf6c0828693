"""Tokenised training sets, made as the rule before a training makes them."""

from __future__ import annotations

import inspect
from pathlib import Path

from crosslign.config.entry_keys import forms
from crosslign.config.signatures import Declared
from crosslign.encoders.model import Model
from crosslign.files import head_of
from crosslign.objectives import OBJECTIVES
from crosslign.training.tokenised import tokenise_examples


def _declared(objective):
    """Return what an objective declares, one that a test registers among them: its module would not be found by its name."""
    parameters = inspect.signature(OBJECTIVES.get(objective, "terms")).parameters
    return Declared({"properties": {name: {"default": parameter.default} for name, parameter in parameters.items()}}, {})


def tokenised(recipe, examples, model, folder):
    """Tokenise the training sets that a recipe names; return their folders by name.

    Args:
        recipe: of the training.
        examples: `<examples>.parquet` by the names that the terms use.
        model: whose tokenizers are used, or the folders of its members.
        folder: where they go.
    """
    model = model if isinstance(model, Model) else Model.load(model, weights=False)
    objectives, found = {term["objective"]: _declared(term["objective"]) for term in recipe["terms"]}, {}
    for name, path in examples.items():
        terms = [term for term in recipe["terms"] if term["examples"] == name]
        settings = {"max_length": recipe["train"]["max_length"], "prefix": recipe["readout"].get("prefix", "")}
        settings["forms"] = forms(terms, objectives, "views" in head_of(path)[0])
        found[name] = Path(folder) / name
        tokenise_examples(path, found[name], Path(folder) / f"{name}.work", model, settings)
    return found
