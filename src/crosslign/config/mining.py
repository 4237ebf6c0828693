"""A user's own mining (`mine:` of config.yaml), resolved: which run encodes, how pairs are chosen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from crosslign.config.graph import Node, run_folder, run_members
from crosslign.config.members import reads
from crosslign.config.project import Project, remembered
from crosslign.config.readouts import readout
from crosslign.config.resolve import (
    checkpoint_name,
    encoder_at_scale,
    encoders_trained,
    entry_of,
    is_untrained,
    kept_checkpoints,
    runs_of,
    split_run,
)
from crosslign.config.switched_off import switched_off
from crosslign.config.targets import GROUPS
from crosslign.config.uses import why_missing
from crosslign.console import number_of
from crosslign.entries.papers import Mining
from crosslign.errors import InputError
from crosslign.files.atomic import require_replaceable
from crosslign.paths import MINED_SIDES, PLANT_SIDES
from crosslign.registry import nearest

DEFAULTS: dict[str, Any] = {
    "system": "me5_small",
    "allow_tiny": False,
    "dedup": "text",
    "k": 4,
    "margin": "ratio",
    "retrieval": "max",
    "threshold": None,
    "output": "all",
    "embeddings": "float32",
    "backend": "exact",
    "search_options": {},
    "shards": 1,
    "threads": 2,
    "licence": "not stated",
}
"""Values of an entry that may be left out; the schema names the same, and a test holds the two together."""


class SwitchedOffError(InputError):
    """A system of a paper that this run does not name."""


def _run(project: Project, named: str, where: str) -> tuple[str, str]:
    """Return run id and system of what `system:` names: a system, one of its runs, or a base encoder.

    Raises:
        InputError: there is no such system, fine-tune or seed.
    """
    known = [*project.systems, *project.encoders]
    stem, _, seed = named.rpartition("-s")
    system = stem if stem and seed.isdigit() and named not in known else named
    base, *finetunes = system.split("+")
    if base not in known:
        if do := switched_off(project, "systems", base):
            raise SwitchedOffError(f"the system {named!r} is not part of this run", where=where, do=do)
        raise InputError(f"unknown system {named!r}", where=where, why=nearest(base, known))
    for finetune in finetunes:
        if finetune not in project.finetunes:
            raise InputError(f"unknown fine-tune {finetune!r}", where=where, why=nearest(finetune, list(project.finetunes)))
    runs = runs_of(project, system)
    if system != named and named not in runs:
        raise InputError(f"run {named!r} does not exist at this scale", where=where, why=nearest(named, runs))
    return (named if system != named else runs[0]), system


def _checkpoint(project: Project, system: str, entry: Mining, where: str) -> str:
    """Return the checkpoint that is read, the entry's or the system's own.

    Raises:
        InputError: the system keeps none of that name.
    """
    own = checkpoint_name(project, system, "mine")
    chosen = str(entry.get("checkpoint", own))
    kept = [own] if is_untrained(project, system) else kept_checkpoints(entry_of(project, system))
    if chosen not in kept:
        raise InputError(f"{system} keeps no checkpoint {chosen!r}", where=f"{where}.checkpoint", why=nearest(chosen, kept))
    return chosen


def _encoders(project: Project, run: str, entry: Mining, where: str) -> list[str]:
    """Return the base encoders that compute: of a base encoder itself, whatever the scale; of a trained run those that it was trained from.

    Raises:
        InputError: a base encoder at a scale of synthetic data, whose encoders are tiny, and nobody allowed it.
    """
    if not is_untrained(project, run):
        return sorted(set(encoders_trained(project, split_run(project, run)[0]).values()))
    tiny = encoder_at_scale(project, run) if project.stand_in else run
    if tiny != run and not entry["allow_tiny"]:
        scale = project.settings["scale"]
        what, why = f"the scale {scale} does not read with {run}", f"{tiny}, which has random weights, would replace it"
        do = "Choose another scale (--config scale=laptop), or set `allow_tiny: true` (--allow-tiny) to try out the workflow"
        raise InputError(what, where=where, why=why, do=do)
    return [tiny]


def mined_folder(project: Project, recipe: Mapping[str, Any]) -> Path:
    """Return the declared folder of what encodes: the run's own, or that of the base encoder that was named."""
    if is_untrained(project, recipe["run"]):
        return project.paths.encoder(recipe["encoders"][0])
    return run_folder(project, recipe["run"])


def mined_members(project: Project, recipe: Mapping[str, Any]) -> dict[str, Path]:
    """Return the folder of each member of what encodes."""
    if is_untrained(project, recipe["run"]):
        return {"main": mined_folder(project, recipe) / "main"}
    return run_members(project, recipe["run"], recipe["checkpoint"])


def _check_languages(members: Mapping[str, Path], run: str, entry: Mapping[str, Any], where: str) -> None:
    """Refuse a side in a language that the model has no member for."""
    for side in MINED_SIDES:
        lang = entry[side]["lang"]
        if not reads(members, lang):
            why = f"it has encoders for {', '.join(members)}"
            raise InputError(f"no encoder of {run} reads the language {lang!r}", where=f"{where}.{side}.lang", why=why)


def _check_calibration(entry: Mining, where: str) -> None:
    """Refuse more than one way to a threshold, and one by planted pairs without these."""
    given = [key for key in ("threshold", "precision", "recall") if entry.get(key) is not None]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} are both set", where=where, why="each sets the threshold", do="Keep one")
    if given and given != ["threshold"] and "plants" not in entry:
        do = "Name two files of known translations that are in neither side: `plants: {source: dev.de, target: dev.en}`"
        raise InputError(f"{given[0]} without plants", where=where, why="it is estimated from planted pairs", do=do)


def _plants(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the two sides of an entry's planted pairs, as the user's own are written."""
    if "plants" not in entry:
        return {}
    return {f"plant_{side}": {"file": entry["plants"][side], "lang": entry[side]["lang"]} for side in MINED_SIDES}


def sides_of(recipe: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the sides that are read and encoded: the user's two, and the plants', if any."""
    return (*MINED_SIDES, *(PLANT_SIDES if "plants" in recipe else ()))


def _place(project: Project, name: str) -> str:
    """Return where an entry stands, as messages name it: config.yaml, or the file of a pair of languages."""
    own = project.paper_of.get(name) in project.pair_files
    return f"{project.file_of(name)}: mine" if own else f"config/config.yaml: mine.{name}"


@remembered
def mine_recipe(project: Project, name: str) -> dict[str, Any]:
    """Return the resolved recipe of one mining: what enters `params:` and lineage.

    Returns:
        mine, run, system, checkpoint, encoders (base encoders that compute), readout, readout_entry, source and target (file, lang),
        limit (lines of a side that this scale reads, or None), all of `DEFAULTS`, and with plants plant_source and plant_target.

    Raises:
        InputError: no such entry, a system, seed, checkpoint or readout that does not exist, or a language that the system does not
            read; names key and value.
    """
    if name not in project.settings["mine"]:
        raise InputError(f"unknown mining {name!r}", where="config/config.yaml: mine", why=nearest(name, list(project.settings["mine"])))
    where = _place(project, name)
    given = project.settings["mine"][name]
    entry = cast(Mining, {**DEFAULTS, **{key: value for key, value in given.items() if value is not None}})
    if entry["search_options"] and entry["backend"] != "faiss_ivf_pq":
        do = "Remove them, or set backend: faiss_ivf_pq"
        raise InputError(f"the backend {entry['backend']} has no options", where=f"{where}.search_options", do=do)
    if entry["shards"] > 1 and entry["backend"] != "exact":
        why = "results of an approximate search would depend on the number of shards, and faiss_flat is only a cross-check for small sides"
        raise InputError(f"the backend {entry['backend']} cannot search in shards", where=f"{where}.shards", why=why, do="Remove `shards`")
    _check_calibration(entry, where)
    run, system = _run(project, entry["system"], f"{where}.system")
    untrained = is_untrained(project, system)
    own = project.encoders[system]["readout"] if untrained else entry_of(project, system)["readout"]
    chosen = entry.get("readout", own)
    checkpoint = _checkpoint(project, system, entry, where)
    recipe = {"run": run, "checkpoint": checkpoint, "encoders": _encoders(project, run, entry, f"{where}.system")}
    _check_languages(mined_members(project, recipe), run, entry, where)
    return {
        **entry,
        **_plants(entry),
        **recipe,
        "mine": name,
        "system": system,
        "readout": chosen,
        "readout_entry": readout(project, chosen),
        "limit": project.scale["limits"].get("corpus_rows"),
    }


def _step(recipe: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return what one step takes of a recipe, so that a changed threshold searches nothing again."""
    return {"mine": recipe["mine"], **{key: recipe[key] for key in keys}}


def texts_recipe(recipe: Mapping[str, Any], side: str) -> dict[str, Any]:
    """Return what reading one side takes of a mining's recipe."""
    own = {"dedup": "id"} if side in PLANT_SIDES else {}  # line n of the one belongs to line n of the other
    return {**_step(recipe, "dedup", "limit", "licence"), **own, "side": side, **recipe[side]}


def vectors_recipe(recipe: Mapping[str, Any], side: str) -> dict[str, Any]:
    """Return what encoding one side takes of a mining's recipe."""
    return {**_step(recipe, "run", "checkpoint", "encoders", "readout", "readout_entry", "embeddings"), "side": side}


def sides(project: Project) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield entry, side and recipe of every side of `mine:`, in order; entries of papers that this run does not name are passed over."""
    for name in project.settings["mine"]:
        with suppress(SwitchedOffError):
            recipe = mine_recipe(project, name)
            yield from ((name, side, recipe) for side in sides_of(recipe))


def _sentences(recipe: Mapping[str, Any], side: str) -> dict[str, Any]:
    """Return what the sentences of a side depend on, whoever mines them."""
    return {**texts_recipe(recipe, side), "mine": "", "side": ""}


def _vectors(recipe: Mapping[str, Any], side: str) -> dict[str, Any]:
    """Return what the vectors of a side depend on, whoever mines them."""
    return {**_sentences(recipe, side), **vectors_recipe(recipe, side), "mine": "", "side": "", "threads": recipe["threads"]}


@remembered
def texts_path(project: Project, name: str, side: str) -> Path:
    """Return the sentences of a side: those of the first side of `mine:` that reads the same files in the same way."""
    own = _sentences(mine_recipe(project, name), side)
    found = ((other, one) for other, one, recipe in sides(project) if _sentences(recipe, one) == own)
    return project.paths.mined_texts(*next(found))


@remembered
def vectors_path(project: Project, name: str, side: str) -> Path:
    """Return the vectors of a side: those of the first side of `mine:` whose same sentences are encoded in the same way."""
    own = _vectors(mine_recipe(project, name), side)
    found = ((other, one) for other, one, recipe in sides(project) if _vectors(recipe, one) == own)
    return project.paths.mined_embeddings(*next(found))


def search_recipe(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the neighbours of a mining depend on, and so what joining the ranges takes of its recipe."""
    return _step(recipe, "k", "backend", "search_options")


def parts_of(recipe: Mapping[str, Any]) -> list[str]:
    """Return the names of the ranges of sources that are searched, a job each: `1-of-2`, `2-of-2`."""
    return [f"{part}-of-{recipe['shards']}" for part in range(1, recipe["shards"] + 1)]


def range_recipe(recipe: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return what searching one range takes of a mining's recipe, with `part` and `parts`; their number is part of no result's recipe."""
    part, parts = map(int, name.split("-of-"))
    return {**search_recipe(recipe), "part": part, "parts": parts}


def pairs_recipe(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return what choosing pairs takes of a mining's recipe."""
    keys = ("run", "checkpoint", "readout", "embeddings", "dedup", "k", "margin", "encoders", "retrieval", "threshold", "output", "backend")
    return _step(recipe, *keys, *(key for key in ("precision", "recall") if key in recipe))


def calibration_recipe(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return what hiding and finding plants takes of a mining's recipe."""
    return _step(recipe, "margin", "retrieval")


def reading(recipe: Mapping[str, Any]) -> str:
    """Return in words what reads the sentences, and how."""
    encoders = ", ".join(recipe["encoders"])
    trained = "" if [recipe["run"]] == recipe["encoders"] else f"{recipe['run']} ({recipe['checkpoint']}), "
    return (
        f"{trained}{encoders}, embedding settings {recipe['readout']}, at most {number_of(recipe['readout_entry']['max_length'], 'token')}"
    )


def side_files(project: Project, recipe: Mapping[str, Any], side: str) -> list[Path]:
    """Return the user's files of one side, in order; a pattern stands for those that it fits, by name, or for itself where there are none.

    Relative ones are relative to the project, `~` is the home folder.

    Raises:
        InputError: the name of one is not UTF-8, as those of lineage are.
    """
    given, found = recipe[side]["file"], []
    for name in [given] if isinstance(given, str) else given:
        path = project.root / Path(name).expanduser()
        fitting = [] if path.exists() else sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
        found += fitting or [path]
    _require_utf8(found)
    return found


def _require_utf8(files: Iterable[Path]) -> None:
    for file in files:
        try:
            str(file).encode()
        except UnicodeEncodeError as error:
            raise InputError("the name of a file is not UTF-8", where=ascii(str(file)), do="Rename it, or its folder") from error


def _key(side: str) -> str:
    """Return the key of an entry under which the file of a side stands."""
    return side.replace("plant_", "plants.") if side in PLANT_SIDES else f"{side}.file"


def encoding_node(project: Project, recipe: Mapping[str, Any]) -> Node:
    """Return what encodes the sentences of a mining, as a node of the graph."""
    return ("encoder", recipe["encoders"][0]) if is_untrained(project, recipe["system"]) else ("system", recipe["system"])


def require_there(project: Project, name: str) -> None:
    """Check that what an entry of `mine:` reads is there: its two files, and the data and encoders of its system.

    Raises:
        InputError: names what is not.
    """
    recipe, where = mine_recipe(project, name), _place(project, name)
    for side in sides_of(recipe):
        for file in side_files(project, recipe, side):
            if not file.is_file():
                what = "a folder, not a file of sentences" if file.is_dir() else "file is missing"
                raise InputError(what, where=f"{where}.{_key(side)}", why=str(file))
    if reason := why_missing(project, *encoding_node(project, recipe)):
        raise InputError(f"{recipe['system']} is not available", where=f"{where}.system", why=reason)


def require_apart(outputs: Iterable[Path], read: Iterable[Path]) -> None:
    """Check that no output takes the place of a file that is read, of a folder, or of what is no file.

    Raises:
        InputError: names the file, folder or device, or a name that is not UTF-8.
    """
    outputs = list(outputs)
    _require_utf8(outputs)
    for path in outputs:
        require_replaceable(path)
    taken = {path.resolve() for path in outputs}
    for folder in filter(Path.is_dir, taken):
        raise InputError("the output is a folder", where=str(folder), do="Name a file in it: -o FILE")
    for file in read:
        if file.resolve() in taken:
            raise InputError("the output is one of the input files", where=str(file), do="Choose another output: -o FILE")


def check_mining(project: Project) -> None:
    """Check every entry of `mine:` before anything runs.

    Raises:
        InputError: a name that another target has, or what `mine_recipe` raises.
    """
    for name in project.settings["mine"]:
        taken = {"word of targets": GROUPS, "table": project.tables, "figure": project.figures, "paper": project.settings["papers"]}
        for kind, other in taken.items():
            if name in other:
                raise InputError(f"{name!r} is also a {kind}", where="config/config.yaml: mine", do="Give the mining another name")
        with suppress(SwitchedOffError):  # told when it is asked for: another run names the paper
            mine_recipe(project, name)
