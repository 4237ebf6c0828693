"""Tokenised training sets: what each depends on, and the name by which all trainings that read alike find the same one."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from crosslign.config.entry_keys import forms
from crosslign.config.project import Project, remembered
from crosslign.config.recipes import shapes
from crosslign.config.resolve import encoders_trained, entry_of, resolve, seeded_id, seeds_of
from crosslign.config.signatures import IMPLEMENTATIONS
from crosslign.entries.resolved import RunRecipe
from crosslign.files.checksums import sha256_text

KEY = 12
"""Characters of the hash in a name."""


def copies(project: Project, recipe: RunRecipe) -> dict[str, dict[str, Any]]:
    """Return the recipe of the tokenised copy of each training set of a run's recipe, by the set's id: all that the copy depends on."""
    found = {}
    for name in dict.fromkeys(term["examples"] for term in recipe["terms"]):
        known = shapes(project, name, IMPLEMENTATIONS["example_builders"])
        terms = [term for term in recipe["terms"] if term["examples"] == name]
        found[name] = {
            "examples": name,
            "encoders": encoders_trained(project, recipe["system"]),
            "max_length": recipe["train"]["max_length"],
            "prefix": recipe["readout"].get("prefix", ""),
            "forms": forms(terms, IMPLEMENTATIONS["objectives"], not known or "labelled" in known),
        }
    return found


def key_of(copy: Mapping[str, Any]) -> str:
    """Return the hash of a copy's recipe that its name ends with."""
    return sha256_text(json.dumps(copy, sort_keys=True))[:KEY]


@remembered
def readers(project: Project) -> Mapping[str, Mapping[str, int]]:
    """Return the systems that read each training set, with a seed that does: which of them, and fine-tunes in between, change no copy."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    bases = [*project.systems, *project.encoders]
    for system in [*project.systems, *(f"{base}+{name}" for name in project.finetunes for base in bases)]:
        named = {term["examples"] for term in entry_of(project, system)["terms"]}
        for seed in seeds_of(project, system):
            drawn = {name: seeded_id(name, seed) for name in named}
            for name in named:
                found[drawn[name] if drawn[name] in project.examples else name].setdefault(system, seed)
    return found


@remembered
def _copies_of(project: Project, examples: str) -> Mapping[str, dict[str, Any]]:
    """Return the recipes of all copies of a training set, by their hashes."""
    found = (copies(project, resolve(project, *reader))[examples] for reader in readers(project)[examples].items())
    return {key_of(copy): copy for copy in found}


def copy_of(project: Project, examples: str, key: str) -> dict[str, Any]:
    """Return the recipe of a copy by its name: the id of the training set, and the hash."""
    return _copies_of(project, examples)[key]
