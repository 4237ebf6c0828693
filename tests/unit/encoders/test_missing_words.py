"""Whatever file, or key of a file, an encoder's folder lacks: it is refused, warned of, or the vectors are the same."""

from __future__ import annotations

import json
import shutil

import numpy as np

from crosslign.encoders.encode import encode
from crosslign.encoders.model import Model
from crosslign.encoders.prepare import prepare_encoder
from crosslign.errors import InputError

READOUT = {"pooling": "mean", "layer": -1, "max_length": 32, "normalise": True, "precision": "fp32", "prefix": ""}


def _vectors(folder, texts):
    return encode(Model.load({"main": folder / "main"}), texts, ["en"] * len(texts), READOUT)


def _without(folder):
    """Yield the name of each file and of each key, with what takes it away."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield f"{path.relative_to(folder)}", path, None
            content = json.loads(path.read_text(encoding="utf-8")) if path.suffix == ".json" else None
            for key in sorted(content) if isinstance(content, dict) else ():
                yield f"{path.relative_to(folder)}: {key}", path, {name: value for name, value in content.items() if name != key}


def test_what_is_missing_is_refused_or_said_or_changes_nothing(tmp_path, tiny_encoder, sentence_pairs):
    source, texts = tmp_path / "mine", [pair[0] for pair in sentence_pairs[:8]]
    shutil.copytree(tiny_encoder / "main", source)
    prepare_encoder("mine", {"path": str(source)}, {}, tmp_path / "whole")
    whole, silent, tried = _vectors(tmp_path / "whole", texts), [], 0
    for name, path, rest in _without(source):
        kept = path.read_bytes()
        path.unlink()
        if rest is not None:
            path.write_text(json.dumps(rest), encoding="utf-8")
        try:
            facts = prepare_encoder("mine", {"path": str(source)}, {}, tmp_path / "out")
        except InputError as error:
            told = bool(error.do)
        else:
            told = "doubts" in facts or np.allclose(_vectors(tmp_path / "out", texts), whole, atol=1e-6)
        path.write_bytes(kept)
        tried += 1
        silent += [] if told else [name]
    assert not silent
    assert tried > 40
