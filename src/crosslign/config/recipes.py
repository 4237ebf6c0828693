"""Checks of a system's recipe before any data is made: required keys, references inside it, shapes of its training sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from crosslign.config.borrowed import check_loss
from crosslign.config.budgets import check_budgets
from crosslign.config.cells import is_scored, row_systems, setting_of, system_of
from crosslign.config.entry_keys import head_of
from crosslign.config.project import Project
from crosslign.config.resolve import entry_of, is_untrained
from crosslign.config.signatures import IMPLEMENTATIONS, Implementations
from crosslign.config.yaml_files import YamlFile, where_of
from crosslign.entries.papers import Recipe
from crosslign.errors import InputError
from crosslign.languages import normalise
from crosslign.registry import nearest, options_of

Place = tuple[str | int, ...]
NEEDED: Final = {"systems": ("base", "terms", "train", "readout"), "finetunes": ("terms", "train", "readout")}
"""Keys that a recipe has, of its own or by `like`: a fine-tune stands on whatever it is put on."""
BORROWING: Final = ("sentence_transformers_loss", "loss_weights")
"""The objective and the part that are losses of sentence-transformers."""
VIEW_KINDS: Final = {"full_translation": "full", "partial_translation": "partial"}
"""What the views of a builder are called, where not by its own name."""


class _Recipe:
    """One system or fine-tune, with what it takes over by `like`."""

    def __init__(self, project: Project, section: str, name: str, files: Mapping[str, YamlFile]) -> None:
        self.project, self.section, self.name, self.files = project, section, name, files
        self.entry: Recipe = entry_of(project, name) if section == "systems" else project.finetunes[name]
        self.parts: Mapping[str, Mapping[str, Any]] = self.entry.get("parts", {})
        self.terms: Sequence[Mapping[str, Any]] = self.entry.get("terms", [])

    def where(self, place: Place) -> str:
        """Return one place of the recipe, which may stand in the recipe that it is `like`, as messages name it."""
        return where_of(self.files, self.project.file_of(self.name), (self.section, self.name, *place))

    def refuse(self, what: str, place: Place, why: str = "", do: str = "") -> InputError:
        """Return the error of one place of the recipe."""
        return InputError(what, where=self.where(place), why=why, do=do)

    def look_up(self, kind: str, name: str, allowed: Collection[str], place: Place) -> None:
        """Refuse a name that stands for nothing."""
        if name not in allowed:
            raise self.refuse(f"unknown {kind} {name!r}", place, nearest(name, list(allowed)))


def _check_keys(recipe: _Recipe) -> None:
    if recipe.section == "finetunes" and (given := sorted({"base", "like", "tune"} & set(recipe.entry))):
        raise recipe.refuse(f"a fine-tune has no {given[0]!r}", (given[0],), "it starts from any system: <system>+<fine-tune>")
    missing: list[tuple[str, ...]] = [(key,) for key in NEEDED[recipe.section] if key not in recipe.entry]
    train = recipe.entry.get("train")
    missing += [("train", "learning_rate")] if train is not None and "learning_rate" not in train else []
    missing += [("train", "steps")] if train is not None and not {"steps", "epochs", "budget"} & set(train) else []
    if missing:
        do = "Write it, or start from a recipe that has it: `like:`" if recipe.section == "systems" else "Write it"
        why = "nor `epochs` or `budget`" if missing[0][-1] == "steps" else ""
        raise recipe.refuse(f"{recipe.name} has no `{': '.join(missing[0])}`", (), why, do)


def _named_parts(recipe: _Recipe, objectives: Implementations) -> Iterator[tuple[str, list[str], Place]]:
    """Yield each part that a term names, the kinds that will do (none: any), and where it does."""
    for index, term in enumerate(recipe.entry["terms"]):
        options = objectives[term["objective"]].options
        for option, value in options_of("terms", term).items():
            if "part" in options[option]:
                yield str(value), options[option]["part"], ("terms", index, option)


def _check_parts(recipe: _Recipe, objectives: Implementations) -> None:
    used = set()
    for name, kinds, place in _named_parts(recipe, objectives):
        recipe.look_up(f"part of {recipe.name}", name, recipe.parts, place)
        if kinds and recipe.parts[name]["kind"] not in kinds:
            raise recipe.refuse(f"the part {name!r} has the wrong kind", place, f"{recipe.parts[name]['kind']}, not {' or '.join(kinds)}")
        used.add(name)
    for name in sorted(set(recipe.parts) - used):
        do = "Name it in a term, such as `projection:` or `part:`, or remove it"
        raise recipe.refuse(f"no term uses the part {name!r}", ("parts", name), do=do)
    queues = [name for name, part in recipe.parts.items() if part["kind"] == "momentum_queue"]
    if len(queues) > 1:
        why = f"only the momentum copies of {queues[0]!r} encode keys"
        do = "Share one queue: it keeps separate keys for each member, or for each of `langs`"
        raise recipe.refuse("a recipe can have only one momentum queue", ("parts", queues[1]), why, do)


def shapes(project: Project, examples: str, builders: Implementations) -> set[str]:
    """Return the shapes of a training set's rows; a union has those of its sets."""
    entry = project.examples[examples]
    own = builders[entry["builder"]].facts.get("shape")
    return {own} if own else set().union(*(shapes(project, other, builders) for other in entry.get("of", [])))


def _check_shapes(recipe: _Recipe, objectives: Implementations, builders: Implementations) -> None:
    """Refuse a term on examples that it cannot read: without labels where it needs them, or of groups where it reads two sides."""
    for index, term in enumerate(recipe.entry["terms"]):
        reads, found = objectives[term["objective"]].facts.get("shape"), shapes(recipe.project, term["examples"], builders)
        if not reads or not found:
            continue  # of one's own, and nothing is known of it here
        if (reads == "labelled" and found != {reads}) or (reads != "groups" and "groups" in found):
            what = f"{term['objective']} cannot read the examples {term['examples']!r}"
            why = f"it reads {reads}, and their rows are {' and '.join(sorted(found))}"
            fit = [name for name, builder in builders.items() if builder.facts.get("shape") == reads]
            raise recipe.refuse(what, ("terms", index, "examples"), why, f"Builders of {reads}: {', '.join(fit)}")


def _check_losses(recipe: _Recipe) -> None:
    """Refuse what sentence-transformers has no loss or option for, and its losses that have no place here."""
    terms: list[tuple[Place, Mapping[str, Any]]] = [(("terms", index), term) for index, term in enumerate(recipe.terms)]
    for place, entry in [*terms, *((("parts", name), part) for name, part in recipe.parts.items())]:
        if "loss" in entry and entry.get("objective", entry.get("kind")) in BORROWING:
            check_loss(entry["loss"], entry.get("options") or {}, recipe.where((*place, "loss")))


def _check_ranks(recipe: _Recipe, kinds: Implementations) -> None:
    """Refuse rank scores for another number of ranks than their term's classifier has."""
    for index, term in enumerate(recipe.terms):
        named = [recipe.parts[term[key]] for key in ("classifier", "scores") if key in term]
        ranks = [part.get("ranks", kinds[part["kind"]].options["ranks"]["default"]) for part in named]
        if len(set(ranks)) > 1:
            why = f"the classifier has {ranks[0]} ranks, the scores have {ranks[1]}"
            raise recipe.refuse(f"the part {term['scores']!r} does not fit the classifier", ("terms", index, "scores"), why)


def _check_views(recipe: _Recipe, objectives: Implementations) -> None:
    """Refuse a term on views that its labelled rows are built without: it would train on nothing, in silence where it names kinds."""
    for index, term in enumerate(recipe.terms):
        entry = recipe.project.examples[term["examples"]]
        if entry["builder"] != "labelled_rows" or "kinds" not in objectives[term["objective"]].options:
            continue
        builders = [recipe.project.views[name]["builder"] for name in entry["from"] if name in recipe.project.views]
        held = sorted({VIEW_KINDS.get(builder, builder) for builder in builders})
        missing = sorted(set(term.get("kinds", held)) - set(held))
        if missing or not held:
            what = f"the examples {term['examples']!r} have no views" + (f" of the kind {missing[0]!r}" if missing else "")
            raise recipe.refuse(what, ("terms", index), f"views in their `from`: {', '.join(held) or 'none'}")


def _check_logits(recipe: _Recipe) -> None:
    for name, select in recipe.entry.get("select", {}).items():
        if recipe.project.tasks[select["task"]]["output"] == "logits" and head_of(recipe.entry) is None:
            what = f"{select['task']} needs a classification head"
            raise recipe.refuse(what, ("select", name, "task"), "no term is a cross_entropy over whole rows")


def _check_base(recipe: _Recipe) -> None:
    base = recipe.entry.get("base", {})
    if "system" in base and is_untrained(recipe.project, base["system"]):
        do = f"Write base: {{encoder: {base['system']}}}"
        raise recipe.refuse(f"{base['system']!r} is an encoder, not a trained system", ("base", "system"), do=do)
    codes = Counter(normalise(lang) for lang in base.get("encoders", {}))
    if twice := [lang for lang, count in codes.items() if count > 1]:
        raise recipe.refuse(f"two encoders read {twice[0]!r}", ("base", "encoders"), f"found {', '.join(base['encoders'])}")
    if recipe.section == "systems":
        _check_started(recipe, base.get("system"))


def _check_started(recipe: _Recipe, base: str | None) -> None:
    """Refuse parts to start from that the system below, or the encoder (None), does not have."""
    under = entry_of(recipe.project, base).get("parts", {}) if base is not None else {}
    for name, part in recipe.parts.items():
        if part.get("start_from") == "encoder" and base is not None:
            do = "Write start_from: base, or leave it out"
            raise recipe.refuse("the base is a system, not an encoder", ("parts", name, "start_from"), f"base: {base}", do)
        if part.get("start_from") != "base":
            continue
        if base is None:
            raise recipe.refuse("the base has no parts to start from", ("parts", name, "start_from"), "it is an encoder, not a system")
        recipe.look_up(f"part of {base}", name, under, ("parts", name, "start_from"))


def _chains(project: Project) -> set[str]:
    """Return every system with fine-tunes that a table or a recipe names, and those below it (`X+siqa` of `X+siqa+copa`)."""
    tables = [(row, column) for t in project.tables.values() for row in t["rows"] if "system" in row for column in t["columns"]]
    named = {system_of(row, column) for row, column in tables if is_scored(column)}
    named |= {entry_of(project, name)["base"].get("system", "") for name in project.systems}
    return {"+".join(parts[: count + 1]) for parts in (name.split("+") for name in named) for count in range(1, len(parts))}


def _check_batches(recipe: _Recipe) -> None:
    sizes: dict[str, int] = {}
    for index, term in enumerate(recipe.entry["terms"]):
        if sizes.setdefault(term["examples"], term["batch"]) != term["batch"]:
            why = f"{sizes[term['examples']]} and {term['batch']}"
            raise recipe.refuse(f"terms on the examples {term['examples']!r} share one batch", ("terms", index, "batch"), why)


def _check_kinds(project: Project, files: Mapping[str, YamlFile], builders: Implementations) -> None:
    """Refuse a training set of corpora of another kind than its builder reads."""
    for name, entry in project.examples.items():
        wanted = builders[entry["builder"]].facts.get("reads")
        for corpus in entry.get("from", []) if wanted else ():
            if corpus in project.corpora and project.corpora[corpus]["kind"] != wanted:
                what, why = f"the corpus {corpus!r} is {project.corpora[corpus]['kind']}", f"{entry['builder']} reads {wanted} ones"
                raise InputError(what, where=where_of(files, project.file_of(name), ("examples", name, "from")), why=why)


def check_recipes(project: Project, files: Mapping[str, YamlFile]) -> None:
    """Check every recipe of the papers that were read, its entries looked up already.

    Args:
        project: the configuration.
        files: what was read, for messages.

    Raises:
        InputError: file, key, what is wrong and what there is instead.
    """
    objectives, kinds, builders = (IMPLEMENTATIONS[point] for point in ("objectives", "parts", "example_builders"))
    _check_kinds(project, files, builders)
    for section in ("systems", "finetunes"):
        for name in getattr(project, section):
            recipe = _Recipe(project, section, name, files)
            _check_keys(recipe)
            _check_shapes(recipe, objectives, builders)
            _check_parts(recipe, objectives)
            _check_losses(recipe)
            _check_ranks(recipe, kinds)
            _check_views(recipe, objectives)
            _check_logits(recipe)
            _check_base(recipe)
            _check_batches(recipe)
    for chain in sorted(_chains(project)):
        base, finetune = chain.rsplit("+", 1)
        _check_started(_Recipe(project, "finetunes", finetune, files), None if is_untrained(project, base) else base)
    _check_settings(project, files)
    check_budgets(project, files, {name: row_systems(project, table) for name, table in project.tables.items() if "budget" in table})


def _check_settings(project: Project, files: Mapping[str, YamlFile]) -> None:
    """Refuse a row of settings that the recipe of its column's system lacks."""
    for name, table in project.tables.items():
        columns = [column for column in table["columns"] if "setting_of" in column]
        for index, row in enumerate(table["rows"]):
            for column in columns if "setting" in row else ():
                try:
                    setting_of(project, column["setting_of"], row["setting"])
                except InputError as error:
                    where = where_of(files, project.file_of(name), ("tables", name, "rows", index, "setting"))
                    raise InputError(error.what, where=where, why=error.why) from error
