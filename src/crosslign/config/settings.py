"""Settings of a run: config.yaml, the files laid over it, and what the command line says, each read and checked by ourselves.

Snakemake's own reader of such files runs code that they may hold and takes `no` for False; so its `configfile:` is not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.config.schema import check
from crosslign.config.yaml_files import YamlFile, load_yaml, parse_yaml, plain_value
from crosslign.files.home import with_home
from crosslign.files.text import mapped

DEFAULTS: Mapping[str, Any] = {
    "scale": "laptop",
    "results": "results",
    "mirror": [],
    "papers": ["quickstart"],
    "plugins": [],
    "targets": ["all"],
    "mine": {},
    "sizes": {},
    "corpus_shards": {},
}
SETTINGS = "config/config.yaml or --config"
"""Where a setting may stand, for messages about its value."""
PAGES = ("overview", "overlap", "report", "claims")
"""Pages over many tables: they cover what else `targets:` names, or everything where it names pages alone."""


def own_file(root: Path, directory: Path) -> Path:
    """Return the config.yaml of the folder that Snakemake works in, or the project's where that has none."""
    own = directory / "config" / "config.yaml"
    return own if own.exists() else root / "config" / "config.yaml"


def parsed(overrides: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return keys and values of a command line, the values read as YAML."""
    return {key: parse_yaml(value, Path(f"--config {key}")).content for key, value in overrides}


def _typed(value: Any) -> Any:
    """Return a number or truth value that Snakemake's command line gives as text."""
    plain = plain_value(value) if isinstance(value, str) else value
    return plain if isinstance(plain, bool | int | float) else value


def _laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return both, `above` where they meet; mappings are joined key by key, as Snakemake joins them."""
    joined = dict(below)
    for key, value in above.items():
        both = isinstance(value, Mapping) and isinstance(below.get(key), Mapping)
        joined[key] = _laid_over(below[key], value) if both else value
    return joined


def read_settings(files: Sequence[Path], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run.

    Where `papers` is chosen above what chose `targets`, as by `--config papers=[mpcl]`, these papers are the targets, with the pages
    among the targets before; `all` stays.

    Args:
        files: configuration files, each laid over those before it.
        given: keys of the command line, over all files.

    Raises:
        InputError: the first thing wrong, in one line: file, key, what was found, what is allowed.
    """
    layers: list[Mapping[str, Any]] = []
    for path in files:
        shown = path.relative_to(Path.cwd()) if path.is_absolute() and path.is_relative_to(Path.cwd()) else path
        file = load_yaml(path, shown)
        check(file, "config")
        layers.append(file.content)
    command_line = {key: mapped(value, _typed) if isinstance(value, list | Mapping) else value for key, value in given.items()}
    check(YamlFile(Path("--config"), command_line, {}), "config")
    settings: dict[str, Any] = dict(DEFAULTS)
    for layer in [*layers, command_line]:
        settings = _laid_over(settings, layer)
        if "papers" in layer and "targets" not in layer and layer is not next(iter(layers), None) and "all" not in settings["targets"]:
            settings["targets"] = [*layer["papers"], *(target for target in settings["targets"] if target in PAGES)]
    settings["results"] = str(with_home(settings["results"]))
    return settings
