"""Terms of a recipe (objectives with weights), its parts, and the training sets that terms draw batches from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslign.encoders.model import MAIN, Model
from crosslign.entries.resolved import RunRecipe
from crosslign.errors import InputError
from crosslign.objectives import OBJECTIVES
from crosslign.objectives.contract import Objective, Part
from crosslign.objectives.saved_parts import make_part, take_over, take_published
from crosslign.registry import options_of
from crosslign.training.draws import Order, derive
from crosslign.training.tokenised import Store


@dataclass(frozen=True)
class Term:
    """One weighted objective; `name` is unique in its recipe and names it in the curve."""

    name: str
    objective: Objective
    weight: float


@dataclass(frozen=True)
class Stream:
    """Terms that share the batches of one training set.

    Attributes:
        micro_batch: examples encoded at a time, or None for the whole batch.
    """

    name: str
    store: Store
    order: Order
    terms: list[Term]
    micro_batch: int | None


def named_terms(entries: Iterable[Mapping[str, Any]], where: str) -> list[tuple[Term, Mapping[str, Any]]]:
    """Build the objectives of terms; the second term of an objective is called `<objective>_2`.

    Args:
        entries: `terms` of a recipe.
        where: what messages call them.

    Raises:
        InputError: an unknown objective.
    """
    terms: list[tuple[Term, Mapping[str, Any]]] = []
    names: Counter[str] = Counter()
    for entry in entries:
        names[name := str(entry.get("objective", ""))] += 1
        unique = name if names[name] == 1 else f"{name}_{names[name]}"
        objective = OBJECTIVES.get(name, f"{where}: terms")(**options_of("terms", entry))
        terms.append((Term(unique, objective, float(entry.get("weight", 1.0))), entry))
    return terms


def _check_shape(term: Term, columns: Sequence[str], examples: str, where: str) -> None:
    """Refuse an objective that reads rows with sides on a set whose rows are groups; labels and views are looked for by the objective."""
    if "texts" in columns and term.objective.shape != "groups":
        why = f"its rows are groups of sentences, but {term.name} reads {term.objective.shape}"
        do = "Name a training set of pairs, triplets or labelled rows, or split the groups with the builder disjoint_pairs"
        raise InputError(f"the examples {examples!r} do not fit the term {term.name}", where=where, why=why, do=do)


def open_streams(recipe: RunRecipe, examples: Mapping[str, Path], model: Model) -> list[Stream]:
    """Build the recipe's terms and open their training sets; the first term's comes first.

    Args:
        recipe: its terms and `train`.
        examples: folders of tokenised training sets by the names that the terms use.
        model: its tokenizers made them.

    Raises:
        InputError: an unknown objective, terms on the same examples with different batch sizes, examples of another encoder,
            or whose rows are not what a term reads.
    """
    train = recipe["train"]
    grouped: dict[str, list[tuple[Term, Mapping[str, Any]]]] = {}
    for term, entry in named_terms(recipe["terms"], recipe["system"]):
        grouped.setdefault(entry["examples"], []).append((term, entry))
    streams = []
    for name, members in grouped.items():
        sizes = {entry["batch"] for _, entry in members}
        if len(sizes) > 1:
            what = f"terms on the examples {name!r} share one batch"
            raise InputError(what, where=f"{recipe['system']}: terms", why=f"batch: {sorted(sizes)}")
        store = Store(examples[name], model)
        for term, _ in members:
            _check_shape(term, store.columns, name, f"{recipe['system']}: terms")
        budget = train.get("batch_tokens")
        lengths = store.lengths if train.get("group_by_length") or budget else None
        whole = any(getattr(term.objective, "whole_groups", False) for term, _ in members)
        order = Order(name, store.rows, sizes.pop(), recipe["seed"], lengths, store.column("group") if whole else None, budget)
        micro = [entry["micro_batch"] for _, entry in members if entry.get("micro_batch")]
        streams.append(Stream(name, store, order, [term for term, _ in members], min(micro, default=None)))
    return streams


def build_parts(recipe: RunRecipe, model: Model, base: Path | None = None) -> dict[str, Part]:
    """Build the recipe's parts and attach them to the model.

    Args:
        recipe: its `parts` and `seed`.
        model: what they attach to.
        base: folder of the base system's checkpoint, for parts with `start_from: base`, or the base encoder's (`encoder`).

    Raises:
        InputError: an unknown kind, a part that the base system does not have, or one that its term's vectors do not fit.
    """
    parts: dict[str, Part] = {}
    for name, entry in sorted(recipe["parts"].items()):
        where = f"{recipe['system']}: part {name}"
        part = make_part(name, entry, model, derive(recipe["seed"], "part", name), where)
        if entry.get("start_from") == "base":
            take_over(part, name, base, where)
        if entry.get("start_from") == "encoder" and base is not None:
            take_published(part, base / MAIN, where)
        parts[name] = part
    _check_widths(recipe, model, parts)
    return parts


def _check_widths(recipe: RunRecipe, model: Model, parts: Mapping[str, Part]) -> None:
    """Refuse a part under vectors of another length than the encoder's states: parts that hold a matrix are made for those."""
    sized = {name for name, part in parts.items() if any(tensor.ndim > 1 for tensor in part.state_dict().values())}
    terms: Sequence[Mapping[str, Any]] = recipe["terms"]
    for entry in terms:
        pooling = entry.get("pooling") or recipe["readout"]["pooling"]
        named = [value for value in entry.values() if isinstance(value, str) and value in sized]
        if named and model.width(pooling) != model.dimension:
            raise InputError(
                f"the part {named[0]!r} does not fit the vectors of {entry['objective']}",
                where=f"{recipe['system']}: terms",
                why=f"pooling {pooling} returns {model.width(pooling)} numbers, but the encoder's states have {model.dimension}",
                do="Choose another pooling for the term, such as mean",
            )
