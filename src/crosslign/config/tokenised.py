"""Tokenised training sets: what each depends on, and the name by which all trainings that read alike find the same one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from crosslign.config.entry_keys import forms
from crosslign.config.project import Project
from crosslign.config.recipes import shapes
from crosslign.config.resolve import entry_of, resolve, run_recipe, seeded_id, seeds_of
from crosslign.config.schema import SCHEMAS, schemas_of
from crosslign.files.checksums import sha256_text

KEY = 12
"""Characters of the hash in a name."""


def _encoders(project: Project, recipe: Mapping[str, Any]) -> dict[str, str]:
    """Return the base encoder of each member, whose tokenizer whatever is trained on it keeps."""
    base = recipe["base"]
    return _encoders(project, run_recipe(project, base["run"])) if "run" in base else dict(base["members"])


def copies(project: Project, recipe: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the recipe of the tokenised copy of each training set of a run's recipe, by the set's id: all that the copy depends on."""
    seams = schemas_of(SCHEMAS)["options"]["$defs"]
    found = {}
    for name in dict.fromkeys(term["examples"] for term in recipe["terms"]):
        known = shapes(project, name, seams["example_builders"]["properties"])
        terms = [term for term in recipe["terms"] if term["examples"] == name]
        found[name] = {
            "examples": name,
            "encoders": _encoders(project, recipe),
            "max_length": recipe["train"]["max_length"],
            "prefix": recipe["readout"].get("prefix", ""),
            "forms": forms(terms, seams["objectives"]["properties"], not known or "labelled" in known),
        }
    return found


def key_of(copy: Mapping[str, Any]) -> str:
    """Return the hash of a copy's recipe that its name ends with."""
    return sha256_text(json.dumps(copy, sort_keys=True))[:KEY]


def _recipes(project: Project, examples: str) -> Iterator[dict[str, Any]]:
    """Yield a recipe for every way in which the project reads a training set; seeds and what fine-tunes lie between change none."""
    bases = [*project.systems, *project.encoders]
    for system in [*project.systems, *(f"{base}+{name}" for name in project.finetunes for base in bases)]:
        named = {term["examples"] for term in entry_of(project, system)["terms"]}
        for seed in seeds_of(project, system):
            if examples in {*named, *(seeded_id(name, seed) for name in named)}:
                yield resolve(project, system, seed)
                break


def copy_of(project: Project, examples: str, key: str) -> dict[str, Any]:
    """Return the recipe of a copy by its name: the id of the training set, and the hash."""
    found = (copies(project, recipe).get(examples) for recipe in _recipes(project, examples))
    return next(copy for copy in found if copy and key_of(copy) == key)
