"""Keys of recipes that are read in several places: those of `train:`, the head of a cross-encoder, the forms in which rows are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crosslign.config.signatures import Declared

PACE = ("checkpoint_minutes", "checkpoint_every")
"""Keys of `train:` that say when a run is saved: they change no bytes, so no recipe has them and no change reruns a training."""
KERNELS = "kernels"
"""Job resource that switches the project's own GPU kernels; in no recipe, since none names a device."""
SENTENCES, VIEWS, PAIRS, PAIR_VIEWS = "sentences", "views", "pairs", "pairs of views"
"""Forms in which a row is read: each sentence alone, those of its views; its two sentences as one text, those of its views, too."""
CHECKPOINT_MINUTES = 10
TRAIN_DEFAULTS: dict[str, Any] = {
    "schedule": "linear",
    "warmup_steps": 0,
    "weight_decay": 0.0,
    "decayed": "matrices",
    "clip": 1.0,
    "precision": "bf16",
    "max_length": 32,
    "betas": [0.9, 0.999],
    "epsilon": 1e-8,
    "threads": 1,
}
"""Values of `train:` that a recipe may leave out (docs/papers/msimcse.md)."""


def without_pace(train: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of `train:` that bytes depend on."""
    return {key: value for key, value in train.items() if key not in (*PACE, KERNELS)}


def completed(before: Mapping[str, Any], now: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of an earlier run with the keys that have come up since, at their defaults: these are what it was made with."""
    return {**{key: defaults[key] for key in now if key in defaults}, **before}


def head_of(recipe: Mapping[str, Any]) -> str | None:
    """Return the part whose logits a cross-encoder gives: that of its first cross-entropy over whole rows; None without one."""
    terms = [term for term in recipe["terms"] if term["objective"] == "cross_entropy" and term.get("encode", "pair") == "pair"]
    return str(terms[0]["part"]) if terms else None


def _forms_of(term: Mapping[str, Any], options: Mapping[str, Any]) -> set[str]:
    """Return what a term reads of labelled rows; what is not named is tokenised in the step that asks for it."""
    if "encode" not in options:
        return {SENTENCES}
    own = "sentences" if term.get("form") == "retrieval" else options["encode"].get("default")
    alone = (term.get("encode") or own) == "sentences"
    if "kinds" in options:
        return {SENTENCES, VIEWS} if alone else {PAIR_VIEWS}
    return {SENTENCES} if alone else {PAIRS}


def forms(terms: Sequence[Mapping[str, Any]], objectives: Mapping[str, Declared], labelled: bool = True) -> list[str]:
    """Return the forms in which terms on one training set read its rows.

    Args:
        terms: entries of a recipe.
        objectives: what each objective declares, by name.
        labelled: whether rows may have labels and views; sides of any other are views of each other.
    """
    if not labelled:
        return [SENTENCES]
    return sorted(set[str]().union(*(_forms_of(term, objectives[term["objective"]].options) for term in terms)))
