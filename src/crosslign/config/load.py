"""Reading the configuration: every file of the catalog and under config/ checked against its schema, joined, and its names looked up."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from crosslign.config import options
from crosslign.config.asked import check_asked
from crosslign.config.checkpoints import check_checkpoints
from crosslign.config.claims import check_claims
from crosslign.config.file_heads import with_heads
from crosslign.config.file_lists import with_listed_files
from crosslign.config.layers import OWN, as_read, file_called, load_layers, names_of, unchecked
from crosslign.config.mining import check_mining
from crosslign.config.names import check_names
from crosslign.config.pairs import FOLDER, expand_pair, target_of
from crosslign.config.plugins import Plugin, note_of, papers_of, use_plugins, with_rows
from crosslign.config.project import SECTIONS, Project, without_models
from crosslign.config.recipes import check_recipes
from crosslign.config.references import check_references
from crosslign.config.resources import check_shares
from crosslign.config.schema import check
from crosslign.config.seeded import with_seeded_examples
from crosslign.config.settings import DEFAULTS, SETTINGS, own_file, parsed, read_settings
from crosslign.config.sizes import renamed, sized, with_dependants
from crosslign.config.templates import expand
from crosslign.config.trial_checks import check_tuning
from crosslign.config.trials import with_trials
from crosslign.config.yaml_files import YamlFile
from crosslign.entries.papers import Settings
from crosslign.errors import InputError
from crosslign.files.home import with_home
from crosslign.paths import Paths


@functools.cache
def _checks_of(schema: str) -> Callable[[YamlFile], None]:
    """Return what checks one layer of a file, with the entries that stand for many written out."""

    def run(file: YamlFile) -> None:
        if schema != "scale":
            check(file, schema)
        checker = options.OptionChecker(file)
        if schema == "corpora":
            options.check_corpora(checker, file.content.get("corpora", {}))
        elif schema == "encoders":
            options.check_encoders(file, file.content.get("encoders", {}))
        elif schema == "tasks":
            options.check_tasks(checker, file.content.get("tasks", {}))
        elif schema == "paper":
            options.check_paper(checker, file.content)

    return run


class _Loader:
    """Reads the files of one project folder, and checks them unless that was done."""

    def __init__(self, root: Path, checks: bool) -> None:
        self.root, self.checks = root, checks
        self.files: dict[str, YamlFile] = {}

    def load(self, relative: str, schema: str) -> Any:
        prepare = expand if schema == "corpora" else as_read
        file = load_layers(self.root, relative.removeprefix("config/"), prepare, _checks_of(schema) if self.checks else unchecked)
        if self.checks and schema == "scale":  # what one layer lacks another may have
            check(file, schema)
        self.files[relative] = file
        return file.content

    def checker(self, relative: str) -> options.OptionChecker:
        return options.OptionChecker(self.files[relative])


def _settings(loader: _Loader, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the settings, checked and filled up; those of the project's config.yaml where none are given."""
    if given is None:
        return read_settings([loader.root / "config" / "config.yaml"], {})
    if loader.checks:
        check(YamlFile(Path(SETTINGS), dict(given), {}), "config")
    return {**DEFAULTS, **given}


def _reading(section: str, paper: Mapping[str, Any]) -> dict[str, Any]:
    """Return the length that a paper's file gives all of its tables and figures."""
    return {"length": paper["length"]} if section in ("tables", "figures") and "length" in paper else {}


def _join_papers(
    loader: _Loader, settings: Mapping[str, Any], corpora: dict[str, Any]
) -> tuple[dict[str, dict[str, Any]], dict[str, str], dict[str, Any]]:
    """Return the sections of all papers, the paper of each entry, and the corpora with those of the chosen sizes."""
    for paper in settings["sizes"]:
        file_called(loader.root, "papers", paper, f"{SETTINGS}: sizes")
    joined: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    paper_of: dict[str, str] = {}
    ids: dict[str, str] = {}
    for paper in settings["papers"]:
        relative = f"config/{file_called(loader.root, 'papers', paper, f'{SETTINGS}: papers')}"
        content = loader.load(relative, "paper")
        content, cut, own = sized(content, corpora, settings["sizes"].get(paper), f"{SETTINGS}: sizes.{paper}")
        corpora, ids = {**corpora, **cut}, {**ids, **own}
        if loader.checks and paper in settings["sizes"]:
            options.check_paper(loader.checker(relative), content)
        for section in SECTIONS:
            for name, entry in content.get(section, {}).items():
                if name in joined[section]:
                    raise InputError(
                        f"{section[:-1]} {name!r} is defined in two papers",
                        where=loader.files[relative].where([section, name]),
                        why=f"also in {paper_of[name]}",
                    )
                joined[section][name] = {**_reading(section, content), **entry}
                paper_of[name] = paper
    if ids := with_dependants(joined, ids):
        joined, paper_of = renamed(joined, ids), {ids.get(name, name): paper for name, paper in paper_of.items()}
    return joined, paper_of, corpora


def _join_pairs(
    loader: _Loader, joined: dict[str, dict[str, Any]], paper_of: dict[str, str], known: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """Add what the files of `config/pairs/` stand for to the entries of papers and of the catalog, in place; return their minings."""
    mine: dict[str, Any] = {}
    for name in names_of(loader.root, FOLDER):
        relative, target = f"config/{FOLDER}/{name}.yaml", target_of(name)
        loader.load(relative, "pair")
        found = expand_pair(name, loader.files[relative], known)
        for kind in ("sources", "corpora", "tasks"):
            known[kind].update(getattr(found, kind))
        if loader.checks:
            options.check_corpora(loader.checker(relative), found.corpora)
        for section, entries in found.paper.items():
            joined[section].update(entries)
            paper_of.update(dict.fromkeys(entries, target))
        mine |= found.mine
        paper_of.update(dict.fromkeys(found.mine, target))
    return mine


def _own_folders(root: Path, sources: Mapping[str, Any]) -> dict[str, Any]:
    """Return sources with their `local` folders: the one of the working directory, or the project's where that has none."""
    found = {}
    for name, entry in sources.items():
        found[name], own = dict(entry), entry.get("local", ".")
        if not Path(own).exists() and (root / own).exists():
            found[name]["local"] = os.path.relpath(root / own)
    return found


def _results(settings: Mapping[str, Any]) -> Path:
    """Return the folder of results.

    Raises:
        InputError: it, or a folder that it would lie in, is a file, or cannot be.
    """
    folder = Path(settings["results"])
    what, where = "a folder cannot be created here", f"results: {folder}"
    try:
        there = next((place for place in (folder / settings["scale"], folder, *folder.parents) if place.exists()), folder)
    except OSError as error:
        raise InputError(what, where=where, why=str(error.strerror)) from error
    if there.exists() and not there.is_dir():
        raise InputError(what, where=where, why=f"{there} is a file")
    return folder


def _mirrors(settings: Mapping[str, Any]) -> tuple[Path, ...]:
    named = settings["mirror"]
    folders = [named] if isinstance(named, str) else list(named)
    folders += [part for part in os.environ.get("CROSSLIGN_MIRROR", "").split(os.pathsep) if part]
    return tuple(with_home(folder) for folder in folders)


def _lacking(loader: _Loader, settings: Mapping[str, Any], plugin: Plugin) -> list[str]:
    """Return the systems that those of an installed plugin are like and no paper of the run has; none of a plugin that the run names."""
    if not plugin.installed or plugin.name in settings["papers"]:
        return []
    files = [file_called(loader.root, "papers", paper, f"{SETTINGS}: papers") for paper in settings["papers"]]
    return plugin.lacks(system for file in files for system in loader.load(f"config/{file}", "paper").get("systems", {}))


def load_project(root: Path, given: Mapping[str, Any] | None = None, *, checks: bool = True) -> Project:
    """Read and check a whole configuration.

    Args:
        root: folder that holds `config/` and `workflow/`.
        given: settings as `read_settings` gives them, missing ones left to their defaults; None reads the project's config.yaml.
        checks: False only where another process of the run has checked it, as for each of its jobs.

    Raises:
        InputError: the first thing wrong, in one line: file, key, what was found, what is allowed.
    """
    loader = _Loader(Path(root), checks)
    settings = _settings(loader, given)
    plugins = use_plugins(loader.root, settings["plugins"])
    lacking = {plugin.name: _lacking(loader, settings, plugin) for plugin in plugins}
    taking_part = [plugin for plugin in plugins if not lacking[plugin.name]]
    settings["papers"] = list(dict.fromkeys([*settings["papers"], *papers_of(taking_part)]))
    scale = loader.load(f"config/{file_called(loader.root, 'scales', settings['scale'], f'{SETTINGS}: scale')}", "scale")
    corpora = loader.load("config/corpora.yaml", "corpora")
    encoders = loader.load("config/encoders.yaml", "encoders")
    tasks = loader.load("config/tasks.yaml", "tasks")
    joined, paper_of, entries = _join_papers(loader, settings, corpora["corpora"])
    joined["tables"] = with_rows(taking_part, joined, encoders["encoders"])
    stand_in = scale["sources"] == "stand_in"
    sources = with_listed_files(loader.root, {**corpora["sources"], **encoders["sources"]}, checks=checks)
    known = {"sources": dict(sources), "corpora": dict(entries), "encoders": encoders["encoders"], "tasks": dict(tasks["tasks"])}
    settings["mine"] = {**_join_pairs(loader, joined, paper_of, known), **settings["mine"]}
    sources, entries = with_heads(_own_folders(loader.root, known["sources"]), known["corpora"], stand_in=stand_in)
    entries = {name: without_models(entry, sources) for name, entry in entries.items()} if stand_in else entries
    project = Project(
        root=loader.root,
        settings=cast(Settings, settings),
        scale=scale,
        sources=sources,
        corpora=entries,
        encoders=encoders["encoders"],
        readouts=encoders["readouts"],
        tasks=known["tasks"],
        **joined,
        paper_of=paper_of,
        paths=Paths(_results(settings), settings["scale"], stand_in=stand_in),
        mirrors=_mirrors(settings),
        replaced={name: path for file in loader.files.values() for name, path in file.replaced.items()},
        plugins=tuple(note_of(plugin, lacking[plugin.name]) for plugin in plugins),
        added={name: path for file in loader.files.values() for name, path in file.added.items() if path.is_relative_to(OWN)},
        pair_files={target_of(Path(place).stem): place for place in loader.files if place.startswith(f"config/{FOLDER}/")},
    )
    if checks:
        check_names(project, loader.files)
        check_references(project, loader.files)
        check_recipes(project, loader.files)
        check_tuning(project, loader.files)
        check_checkpoints(project, loader.files)
        check_asked(project, loader.files)
        check_claims(project, loader.files)
        check_mining(project)
        check_shares(project)
    return with_seeded_examples(with_trials(project))


def settings_in(folder: Path, overrides: Sequence[str] = (), configfile: Path | None = None) -> dict[str, Any]:
    """Return the settings of a folder as the workflow reads them there; arguments as of `project_in`.

    Raises:
        InputError: a word that is no `KEY=VALUE`, or an unknown setting.
    """
    pairs = [override.partition("=") for override in overrides]
    for key, equals, _ in pairs:
        if not equals:
            do = "Write KEY=VALUE; put targets and files before --config, or after `--`"
            raise InputError(f"--config {key!r} has no value", do=do)
    files = [*filter(Path.exists, [own_file(folder, folder)]), *([configfile] if configfile else [])]
    return read_settings(files, parsed([(key, value) for key, _, value in pairs]))


def project_in(folder: Path, overrides: Sequence[str] = (), configfile: Path | None = None, *, checks: bool = True) -> Project:
    """Return the project of a folder as the workflow reads it there; without a configuration of its own, the catalog.

    Args:
        folder: working directory of the workflow; a relative folder of results lies below it.
        overrides: `KEY=VALUE`, as Snakemake takes them.
        configfile: configuration file to lay over the folder's own.
        checks: as `load_project` takes it.

    Raises:
        InputError: what `settings_in` raises, or a wrong entry.
    """
    settings = settings_in(folder, overrides, configfile)
    if folder.resolve() != Path.cwd():
        settings["results"] = str(folder / settings["results"])
    return load_project(folder, settings, checks=checks)


def project_at(directory: Path, config: Sequence[str], configfile: Path | None) -> Project:
    """Load the project of a folder, as the workflow does.

    Args:
        directory: its folder.
        config: `KEY=VALUE`, as for Snakemake.
        configfile: a file that overrides its configuration, or None.

    Raises:
        InputError: no configuration there, or a wrong one.
    """
    file = own_file(directory, directory)
    if not file.exists():
        do = "Run it in a checkout of crosslign, or give its folder: --directory"
        raise InputError("no project here", where=str(file), why="the command needs a project's configuration", do=do)
    return project_in(directory, config, configfile)
