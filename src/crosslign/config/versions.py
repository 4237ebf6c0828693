"""Which code a job's result depends on, and its versions: what of the code counts when it is asked whether a result still holds.

A version is a number that a person raises where the implementation is registered (docs/trust.md). A hash of the code says no such thing:
it changes with every rename, and half of the library stands behind a training.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from crosslign.config.catalog import SOURCE_KINDS, reader_of
from crosslign.config.project import translator_of
from crosslign.registry import version_of

Named = Iterator[tuple[str, str]]
"""Implementations as their extension point's package, below `crosslign`, and their name."""


def _filters(entry: Mapping[str, Any]) -> Named:
    yield from (("corpora.filters", rule) for step in entry.get("filters", []) for rule in step)


def _training(recipe: Mapping[str, Any], tasks: Mapping[str, Any]) -> Named:
    yield "stages", "tokenise"  # whose output lineage does not name: it is gone when the last training has read it
    yield from (("objectives.terms", term["objective"]) for term in recipe["terms"])
    yield from (("objectives.parts", part["kind"]) for part in recipe["parts"].values())
    yield from (("tasks.scorers", tasks[select["task"]]["scorer"]) for select in recipe["select"].values())


def _implementations(rule: str, recipe: Any, tasks: Mapping[str, Any]) -> Named:
    """Yield what a stage finds by the names that its recipe holds."""
    entry = recipe.get("entry", {}) if isinstance(recipe, Mapping) else {}
    match rule:
        case "fetch":
            yield from [("corpora.sources", kind) for kind in SOURCE_KINDS if kind in entry][:1]
        case "write_stand_in":
            yield "corpora.stand_ins", entry["stand_in"]
        case "prepare_encoder":
            yield "encoders.formats", entry.get("format", "transformers_folder")
        case "build_corpus" | "filter_shards" | "build_evaluation":
            point = "evaluations" if rule == "build_evaluation" else "readers"
            yield from ((f"corpora.{point}", reader) for reader in filter(None, [reader_of(entry)]))
            yield from _filters(entry)
        case "build_view":
            yield "views.builders", entry["builder"]
            yield from (("views.translators", name) for name in translator_of(entry))
        case "build_examples":
            yield "examples.builders", entry["builder"]
        case "train_system":
            yield from _training(recipe, tasks)
        case "embed":
            yield from (("objectives.parts", head["entry"]["kind"]) for head in [recipe.get("head")] if head)
        case "score":
            yield "tasks.scorers", recipe["task_entry"]["scorer"]
        case "mine_search":
            yield "mining.backends", recipe["backend"]
        case "mine_join":
            yield "stages", "mine_search"  # whose output lineage does not name: it is gone when the ranges are joined
            yield "mining.backends", recipe["backend"]
        case "draw_figure":
            yield "reporting.figures", recipe["kind"]


def code_behind(rule: str, recipe: Any, tasks: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return the modules behind a job's result, the stage's first, by the name that each is called by.

    Args:
        rule: the rule, which is called as its stage is.
        recipe: of the job, as its lineage holds it.
        tasks: entries of the tasks that a training selects by.

    Returns:
        dotted modules by name: as YAML calls them; with the extension point before it where a job uses two of one name.
    """
    found = dict.fromkeys(_implementations(rule, recipe, tasks or {}))
    often = Counter(name for _, name in found)
    named = {(f"{point.split('.')[-1]}.{name}" if often[name] > 1 else name): f"crosslign.{point}.{name}" for point, name in found}
    return {rule: f"crosslign.stages.{rule}", **named}


def versions_text(modules: Mapping[str, str]) -> str:
    """Return the versions of modules as `code_behind` gives them, in words: `train_system@1 infonce@1 momentum_queue@2`."""
    return " ".join(f"{name}@{version_of(module)}" for name, module in modules.items())


def job_versions(rule: str, recipe: Any, tasks: Mapping[str, Any] | None = None) -> str:
    """Return the versions behind a job's result, in words; arguments as those of `code_behind`."""
    return versions_text(code_behind(rule, recipe, tasks))


def raised(before: str, now: str) -> list[tuple[str, str]]:
    """Return, of versions in words, each that differs now, and what it was.

    What was made before there were versions, or before a stage named one of them, has version 1 of it; what is named no longer is asked
    about by nobody.
    """
    old = dict(_split(before))
    return [(f"{name}@{old.get(name, '1')}", f"{name}@{version}") for name, version in _split(now) if old.get(name, "1") != version]


def _split(text: str) -> Iterable[tuple[str, str]]:
    return ((name, version) for name, _, version in (one.rpartition("@") for one in text.split()))
