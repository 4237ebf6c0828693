"""What a view's translator needs beside text: models of the hub, fetched before any view is made, and a GPU."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslign.config.project import translator_of
from crosslign.errors import InputError
from crosslign.files import atomic_folder
from crosslign.files.own import MODEL_FILES
from crosslign.files.walk import files_below
from crosslign.views import DEFAULT_LANGS, TRANSLATORS


@dataclass(frozen=True)
class HubModel:
    """A model of the hub.

    Attributes:
        name: `organisation/name`.
        revision: commit, branch or tag; None is `main`.
    """

    name: str
    revision: str | None = None

    @property
    def folder(self) -> str:
        """Name of the folder that it is fetched into; the hub allows no name with two hyphens."""
        return f"{self.name}@{self.revision or 'main'}".replace("/", "--")


def is_folder(name: str) -> bool:
    """Tell whether a model's name is a place on this machine."""
    return name.startswith((".", "/", "~")) or Path(name).is_dir()


def model_name(model: str, codes: Mapping[str, str], source: str, target: str) -> str:
    """Return the name of the model of a pair: `{source}` and `{target}` stand for the model's codes of the languages."""
    return model.replace("{source}", codes.get(source, source)).replace("{target}", codes.get(target, target))


def names_of_pairs(options: Mapping[str, Any], langs: Sequence[str], targets: Sequence[str]) -> list[str]:
    """Return the models that options with `model` and `codes` name for every pair of languages, hub ids or folders, each once."""
    codes, pairs = options.get("codes") or {}, [(source, target) for source in langs for target in targets if source != target]
    return list(dict.fromkeys(model_name(str(options["model"]), codes, source, target) for source, target in pairs))


def models_of_pairs(options: Mapping[str, Any], langs: Sequence[str], targets: Sequence[str]) -> list[HubModel]:
    """Return the models of the hub that options with `model`, `revision` and `codes` name for every pair of languages."""
    return [HubModel(name, options.get("revision")) for name in names_of_pairs(options, langs, targets) if not is_folder(name)]


def _translators(entry: Mapping[str, Any]) -> Iterable[tuple[Any, Mapping[str, Any]]]:
    return [(TRANSLATORS.get(name), options or {}) for name, options in translator_of(entry).items()]


def _languages(entry: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    return sorted(set(entry.get("langs", DEFAULT_LANGS))), sorted(set(entry.get("targets", ())))


def hub_models(entry: Mapping[str, Any]) -> list[HubModel]:
    """Return the models of the hub that a view's entry needs, as its translator says for the view's languages."""
    asked = [(translator, options) for translator, options in _translators(entry) if hasattr(translator, "hub_models")]
    return [model for translator, options in asked for model in translator.hub_models(options, *_languages(entry))]


def own_models(entry: Mapping[str, Any]) -> list[Path]:
    """Return the files of the folders of this machine that a view's translator takes its models from."""
    asked = [options for _, options in _translators(entry) if "model" in options]
    names = [name for options in asked for name in names_of_pairs(options, *_languages(entry)) if is_folder(name)]
    return [file for name in names for file in files_below(Path(name).expanduser())]


def uses_gpu(entry: Mapping[str, Any]) -> bool:
    """Tell whether a view's translator computes on a GPU where it is given one."""
    return any(translator.uses_gpu(options) for translator, options in _translators(entry) if hasattr(translator, "uses_gpu"))


def fetch_model(model: HubModel, out: Path) -> dict[str, Any]:
    """Write a folder of a model of the hub, whole or not at all.

    Returns:
        the commit that its revision meant, the bytes of its files, and the licence that its card names.

    Raises:
        NetworkError: neither the hub's cache nor the hub gave it.
        InputError: it has no safetensors weights.
    """
    from crosslign.corpora.sources._snapshot import snapshot  # not with each start of Snakemake

    found = snapshot("the translation model", model.name, model.revision, [f"*{suffix}" for suffix in MODEL_FILES])
    if not list(found.glob("*.safetensors")):
        raise InputError(
            f"the model {model.name!r} has no safetensors weights",
            where=f"hub:{model.name}@{model.revision or 'main'}",
            do="Name a `revision` that has them: the hub made one for many OPUS-MT models (`refs/pr/<number>`)",
        )
    with atomic_folder(out) as temporary:
        for file in sorted(found.iterdir()):
            if file.is_file() and file.suffix in MODEL_FILES:
                shutil.copyfile(file, temporary / file.name)
        size = sum(file.stat().st_size for file in temporary.iterdir())
    return {"commit": found.name, "bytes": size, "licence": _licence(found / "README.md")}


def _licence(card: Path) -> str:
    """Return the licence that a model's card names."""
    from huggingface_hub import ModelCard

    named = ModelCard.load(card, ignore_metadata_errors=True).data.license if card.exists() else None
    return str(named or "not named by the model's card")
