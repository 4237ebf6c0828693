"""From a system's YAML, a scale and a seed to the one resolved recipe; no other place merges settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, cast

from crosslign.config.entry_keys import CHECKPOINT_MINUTES, TRAIN_DEFAULTS, without_pace
from crosslign.config.project import Project, remembered
from crosslign.config.readouts import prefixed, readout, variant
from crosslign.entries.catalog import Readout
from crosslign.entries.papers import Base, DevEvaluation, Recipe
from crosslign.entries.resolved import RunRecipe, Start
from crosslign.errors import InputError
from crosslign.languages import normalise

LENGTHS = ("budget", "steps", "epochs")
"""Keys that say how long a training is: a budget, or steps and epochs."""
LAST = "last"
"""Checkpoint that every trained system has."""
CHOSEN = "chosen"
"""What stands in the recipe of a tuned system for a value that its trials choose; the training puts in what they did."""


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the keys of `over` put in; mappings merge key by key, all else is replaced and shared, so never to be changed."""
    merged = dict(base)
    for key, value in over.items():
        inner = merged.get(key)
        merged[key] = merge(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return merged


def value_at(recipe: Any, path: str) -> Any:
    """Return a setting of a recipe by its place, such as `train.learning_rate` or `terms.0.batch`.

    Raises:
        InputError: there is none; `why` says what there is.
    """
    for key in path.split("."):
        try:
            recipe = recipe[int(key)] if isinstance(recipe, list) else recipe[key]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            known = recipe if isinstance(recipe, Mapping) else range(len(recipe)) if isinstance(recipe, list) else ["nothing"]
            raise InputError(f"no setting {path!r}", why=f"{key!r} is not among {', '.join(map(str, known))}") from error
    return recipe


def put(recipe: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe with other values at some places, which it has."""
    changed = deepcopy(dict(recipe))
    for path, value in values.items():
        above, _, last = path.rpartition(".")
        value_at(changed, above)[last] = value
    return changed


def split_finetune(system: str) -> tuple[str, str | None]:
    """Split `EX-p2-gmm4+xnli_all` into the base system and the last fine-tune of the chain, if any."""
    base, plus, finetune = system.rpartition("+")
    return (base, finetune) if plus else (system, None)


def is_untrained(project: Project, system: str) -> bool:
    """Tell whether a system id is that of a base encoder."""
    return system in project.encoders


def _taken_over(parent: Recipe, entry: Recipe) -> dict[str, Any]:
    """Return what an entry takes over of its parent: no place, and no base, warm-up or part of another kind where it has its own."""
    kept = {key: value for key, value in parent.items() if key not in ("place", *(["base"] if "base" in entry else []))}
    own = entry.get("parts", {})
    kept["parts"] = {name: part for name, part in parent.get("parts", {}).items() if own.get(name, part)["kind"] == part["kind"]}
    train = set(entry.get("train", {}))
    dropped = {key for keys in (("warmup_steps", "warmup_share"), LENGTHS) if train & set(keys) for key in keys}
    if LENGTHS[0] not in train:
        dropped -= {"steps", "epochs"}
    if dropped:
        kept["train"] = {key: value for key, value in parent.get("train", {}).items() if key not in dropped}
    return kept


@remembered
def entry_of(project: Project, system: str) -> Recipe:
    """Return a trained system's entry with its chain of `like` followed; a fine-tune is put on its base system."""
    base, finetune = split_finetune(system)
    if finetune is not None:
        start = {"encoder": base} if is_untrained(project, base) else {"system": base}
        return cast(Recipe, merge(project.finetunes[finetune], {"base": start}))
    if system not in project.systems:
        raise InputError(f"unknown system {system!r}", where="config/papers", do="Name one of the systems of the papers in config.yaml")
    entry = project.systems[system]
    if "like" not in entry:
        return entry
    own = {key: value for key, value in entry.items() if key != "like"}
    return cast(Recipe, merge(_taken_over(entry_of(project, entry["like"]), entry), own))


def encoder_at_scale(project: Project, encoder: str) -> str:
    """Return the base encoder that stands for `encoder` at this scale."""
    mapped = project.scale["encoders"]
    return str(mapped.get(encoder, mapped.get("*", encoder)))


def seeds_of(project: Project, system: str, wanted: Sequence[int] | None = None) -> list[int]:
    """Return the seeds of a trained system: those of config.yaml, else those wanted, else its own, as far as the scale allows."""
    if given := project.settings.get("seeds"):
        return list(given)
    seeds = list(wanted or entry_of(project, system).get("seeds", [42]))
    return seeds[: project.scale["limits"].get("seeds", len(seeds))]


def run_id(system: str, seed: int) -> str:
    """Return the id of one run."""
    return f"{system}-s{seed}"


def seeded_id(examples: str, seed: int) -> str:
    """Return the id of a training set of `seed: run` as a run's seed draws it."""
    return f"{examples}-s{seed}"


def runs_of(project: Project, system: str, seeds: Sequence[int] | None = None) -> list[str]:
    """Return the run ids of a system: itself for an untrained one, one a seed otherwise; `seeds` instead of its own, where given."""
    return [system] if is_untrained(project, system) else [run_id(system, seed) for seed in seeds_of(project, system, seeds)]


def split_run(project: Project, run: str) -> tuple[str, int | None]:
    """Split a run id into system and seed; an untrained system has no seed."""
    if is_untrained(project, run):
        return run, None
    system, _, seed = run.rpartition("-s")
    return system, int(seed)


@remembered
def chain_of(project: Project, system: str) -> tuple[str, ...]:
    """Return a system and all those that it goes on from, itself first: the last starts from encoders, or is one."""
    base: Base = {} if is_untrained(project, system) else entry_of(project, system)["base"]
    return (system, *(chain_of(project, base["system"]) if "system" in base else ()))


def entries_of(project: Project, system: str) -> list[Recipe]:
    """Return the entries of the trained ones of a system and those that it goes on from."""
    return [entry_of(project, one) for one in chain_of(project, system) if not is_untrained(project, one)]


@remembered
def encoders_under(project: Project, system: str) -> Mapping[str, str]:
    """Return the base encoders that a system stands on, by member (`main`, or a language each), as the papers name them."""
    first = chain_of(project, system)[-1]
    base: Base = {"encoder": first} if is_untrained(project, first) else entry_of(project, first)["base"]
    if "encoder" in base:
        return {"main": base["encoder"]}
    return {normalise(lang): encoder for lang, encoder in base["encoders"].items()}


def encoders_trained(project: Project, system: str) -> dict[str, str]:
    """Return the base encoders that a system is trained from at this scale, by member."""
    return {member: encoder_at_scale(project, encoder) for member, encoder in encoders_under(project, system).items()}


def _start(project: Project, system: str, base: Base, seed: int) -> Start:
    if "system" not in base:
        return {"members": encoders_trained(project, system)}
    seeds = seeds_of(project, base["system"])
    return {"run": run_id(base["system"], seed if seed in seeds else seeds[0]), "checkpoint": base_checkpoint(project, base)}


def budget_share(project: Project) -> float:
    """Return the share of every budget that is trained at this scale."""
    return float(project.scale["limits"].get("budget_share", 1.0))


def _limited(recipe: dict[str, Any], project: Project) -> dict[str, Any]:
    scale, limits, train = project.scale, project.scale["limits"], recipe["train"]
    if "budget" in train:
        train["budget"] *= budget_share(project)
    elif "steps" in limits:
        train["steps"] = min(limits["steps"], train.get("steps", limits["steps"]))
        train["warmup_steps"] = min(train["warmup_steps"], limits["steps"] // 4)
    if scale.get("learning_rate"):
        train["learning_rate"] = scale["learning_rate"]
    for term in recipe["terms"]:
        term["batch"] = min(term["batch"], limits.get("batch", term["batch"]))
    for part in recipe["parts"].values():
        if "size" in part:
            part["size"] = min(part["size"], limits.get("queue", part["size"]))
    for select in recipe["select"].values():
        if "every" in limits:
            select["every"] = limits["every"] if select["every"] == "epoch" else min(select["every"], limits["every"])
    return recipe


@remembered
def resolve(project: Project, system: str, seed: int) -> RunRecipe:
    """Return the resolved recipe of one run: what enters `params:`, lineage and the trainer.

    Args:
        project: the configuration.
        system: a trained system or `<system>+<finetune>`.
        seed: one of its seeds.

    Returns:
        system, run_id, paper, scale, seed, base, parts, terms, train, select, readout, dev_readouts.
    """
    entry = entry_of(project, system)
    name = split_finetune(system)[1] or system
    recipe: dict[str, Any] = {
        "system": system,
        "run_id": run_id(system, seed),
        "paper": project.paper_of[name],
        "scale": project.settings["scale"],
        "seed": seed,
        "base": _start(project, system, entry["base"], seed),
        "parts": deepcopy(entry.get("parts", {})),
        "terms": deepcopy(entry["terms"]),
        "train": without_pace(merge(TRAIN_DEFAULTS, entry["train"])),
        "select": deepcopy(entry.get("select", {})),
        "readout": readout(project, entry["readout"]),
        "dev_readouts": dev_readouts(project, system, entry.get("select", {})),
    }
    for term in recipe["terms"]:
        drawn = seeded_id(term["examples"], seed)
        term["examples"] = drawn if drawn in project.examples else term["examples"]
    trial: Mapping[str, Any] = entry
    values = trial.get("trial") or dict.fromkeys(entry.get("tune", {}).get("values", ()), CHOSEN)
    limited = _limited(recipe, project)
    return cast(RunRecipe, put(limited, values) if values else limited)


def run_recipe(project: Project, run: str) -> RunRecipe:
    """Return the resolved recipe of a trained run, by its id."""
    system, seed = split_run(project, run)
    assert seed is not None, f"{run} is a base encoder"
    return resolve(project, system, seed)


def pace_of(project: Project, system: str) -> dict[str, int]:
    """Return when a run is saved: `checkpoint_minutes`, and `checkpoint_every` steps, the least of recipe and scale (0: no bound)."""
    train = entry_of(project, system)["train"]
    steps = [where["checkpoint_every"] for where in (train, project.scale["limits"]) if where.get("checkpoint_every")]
    return {"checkpoint_minutes": train.get("checkpoint_minutes", CHECKPOINT_MINUTES), "checkpoint_every": min(steps, default=0)}


@remembered
def _read_as(project: Project, system: str, name: str, length: int | None, raw: bool) -> str:
    """Return the readout under its name for this length; no system reads more than its encoders were published with."""
    encoders = [project.encoders[encoder] for encoder in encoders_under(project, system).values()]
    limits = [encoder["longest"] for encoder in encoders if "longest" in encoder]
    scaled = all(encoder.get("normalises", False) for encoder in encoders)
    return variant(project, name, min([length or readout(project, name)["max_length"], *limits]), raw and not scaled)


def readout_name(project: Project, system: str, task: str, named: Mapping[str, Any] | None = None) -> str:
    """Return the readout of a cell.

    Args:
        project: the configuration.
        system: a system, trained or not.
        task: its evaluation; one that has no entry changes nothing.
        named: `readout` and `length` that the cell's column, row or table names, or a figure.

    Returns:
        The readout is the named one, else the task's, else the system's. The length is the one that the task fixes for all its texts, else
        the named one, else the readout's. Where a task fixes several lengths, `role_readout` tells them, and the prefixes that it fixes.
    """
    named = named or {}
    entry: Mapping[str, Any] = project.tasks.get(task, {})
    own = project.encoders[system] if is_untrained(project, system) else entry_of(project, system)
    lengths = {entry.get("lengths", {}).get(role) for role in entry.get("texts", {})}
    fixed = lengths.pop() if len(lengths) == 1 else None
    length = fixed or (None if entry.get("lengths") else named.get("length"))
    chosen = named.get("readout") or entry.get("readout") or own["readout"]
    return _read_as(project, system, str(chosen), length, not entry.get("normalise", True))


@remembered
def role_readout(project: Project, system: str, name: str, task: str, role: str) -> str:
    """Return the readout of one evaluation corpus of a task: that of the cell, with length and prefix that the task fixes for it."""
    entry = project.tasks[task]
    length, prefix = entry.get("lengths", {}).get(role), entry.get("prefixes", {}).get(role)
    name = name if prefix is None else prefixed(project, name, prefix)
    return name if length is None else _read_as(project, system, name, length, False)


def dev_readouts(project: Project, system: str, select: Mapping[str, DevEvaluation]) -> dict[str, dict[str, Readout]]:
    """Return, for each task of the dev evaluations, the readout's entry of each of its evaluation corpora."""
    found = {}
    for task in sorted({entry["task"] for entry in select.values()}):
        name = readout_name(project, system, task)
        found[task] = {role: readout(project, role_readout(project, system, name, task, role)) for role in project.tasks[task]["texts"]}
    return found


def kept_checkpoints(entry: Recipe | RunRecipe) -> list[str]:
    """Return the checkpoints that a run of a recipe keeps."""
    return [LAST, *(name for name, select in entry.get("select", {}).items() if select.get("keep", True))]


def checkpoint_name(project: Project, system: str, task: str, column: Mapping[str, Any] | None = None) -> str:
    """Return the checkpoint of a cell: the column's, else the system's for that task, else `last`; `base` when untrained."""
    if is_untrained(project, system):
        return "base"
    if column and "checkpoint" in column:
        return str(column["checkpoint"])
    named = entry_of(project, system).get("checkpoint", LAST)
    return str(named.get(task, named.get("default", LAST))) if isinstance(named, Mapping) else str(named)


def base_checkpoint(project: Project, base: Base) -> str:
    """Return the checkpoint of a base system that a recipe starts from: the one it names, else the one that is scored."""
    return str(base.get("checkpoint") or checkpoint_name(project, base["system"], "default"))


def scored_entry(project: Project, task: str) -> dict[str, Any]:
    """Return what a score depends on of a task's entry: all but the footnote, which tables alone print."""
    return {key: value for key, value in project.tasks[task].items() if key != "footnote"}
