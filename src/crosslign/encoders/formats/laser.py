"""LASER2 as it is published: one `*.pt` that torch saved (shape, weights, dictionary) and one `*.spm` of SentencePiece."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from crosslign.encoders.formats import FORMATS
from crosslign.encoders.formats._torch_file import read_torch_file
from crosslign.encoders.laser import LaserConfig, LaserModel, LaserTokenizer
from crosslign.encoders.sentence_transformers_folder import write_modules
from crosslign.encoders.weights import open_to_readers
from crosslign.errors import InputError

SPECIAL = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
"""Ids that LASER gives its special pieces, whatever the dictionary says."""

PARTS = ("params", "model", "dictionary")
UNBOUNDED = 1 << 30
"""Tokens that an LSTM reads at most."""


def _only(source: Path, suffix: str) -> Path:
    """Return the one file of a folder that has a suffix."""
    found = sorted(source.glob(f"*{suffix}"))
    if len(found) != 1:
        names = sorted(path.name for path in source.iterdir())
        raise InputError(f"the encoder must have exactly one *{suffix} file", why=f"found {', '.join(names)}")
    return found[0].resolve()


def _read(path: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor], dict[str, int]]:
    """Return shape, weights and dictionary of a file.

    Raises:
        InputError: it lacks one of them, holds anything but plain values, or is damaged.
    """
    content = read_torch_file(path)
    parts = [content[key] for key in PARTS if isinstance(content, dict) and isinstance(content.get(key), dict)]
    if len(parts) != len(PARTS):
        raise InputError("not a LASER file", where=str(path), why=f"it lacks one of {', '.join(PARTS)}")
    params, weights, dictionary = parts
    if not all(isinstance(value, torch.Tensor) and value.is_floating_point() for value in weights.values()):
        raise InputError("not a LASER file", where=str(path), why="`model` contains a value that is not a tensor")
    return params, weights, dictionary


def _config(params: Mapping[str, Any], path: Path) -> LaserConfig:
    """Return the shape; what only training looks at is left out."""
    numbers = [params.get(key, default) for key, default in (("num_embeddings", 0), ("embed_dim", 320), ("hidden_size", 512))]
    layers, both, pad = params.get("num_layers", 1), params.get("bidirectional", False), params.get("padding_idx")
    if not all(type(number) is int and 0 < number < 1 << 24 for number in (*numbers, layers)) or pad != SPECIAL["<pad>"]:
        raise InputError("`params` has an impossible shape", where=str(path), why=str(dict(params))[:200])
    vocabulary, embedding, cell = numbers
    return LaserConfig(
        vocab_size=vocabulary,
        embedding_size=embedding,
        cell_size=cell,
        hidden_size=cell * (2 if both else 1),
        num_hidden_layers=layers,
        bidirectional=bool(both),
        pad_token_id=pad,
        architectures=["LaserModel"],
        dtype="float32",
    )


def _check(weights: Mapping[str, torch.Tensor], config: LaserConfig, path: Path) -> None:
    """Refuse weights that are not those of the shape, finite each; before anything of their size is made."""
    with torch.device("meta"):
        expected = {name: tuple(value.shape) for name, value in LaserModel(config).state_dict().items()}
    found = {name: tuple(value.shape) for name, value in weights.items()}
    wrong = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    if wrong:
        why = f"{wrong[0]}: expected {expected.get(wrong[0])}, found {found.get(wrong[0])}"
        raise InputError("the weights do not have the shape in `params`", where=str(path), why=why)
    if sum(value.numel() for value in weights.values()) > path.stat().st_size:
        raise InputError("the weights are larger than the file", where=str(path), why="tensors repeat stored numbers")
    if bad := [name for name, value in weights.items() if not bool(torch.isfinite(value).all())]:
        raise InputError("a weight is NaN or infinite", where=str(path), why=bad[0])


def _tokenizer(dictionary: Mapping[Any, Any], rows: int, pieces: Path, path: Path) -> LaserTokenizer:
    """Return the tokenizer: pieces to the ids of the dictionary, the end token behind each text."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    vocabulary = {**dictionary, **SPECIAL}
    ids = [number for piece, number in vocabulary.items() if isinstance(piece, str) and type(number) is int and 0 <= number < rows]
    if len(ids) != len(vocabulary) or len(set(ids)) != len(ids):
        raise InputError(
            "the dictionary is damaged", where=str(path), why=f"{len(vocabulary):,} pieces; each id up to {rows:,} must occur once"
        )
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))  # noqa: S106 (no password)
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B:1 </s>:1", special_tokens=[("</s>", SPECIAL["</s>"])]
    )
    named = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    return LaserTokenizer(tokenizer_object=tokenizer, pieces_file=str(pieces), **named)


@FORMATS.register(version=1)
def convert(source: Path, dest: Path) -> None:
    """Write config, weights (float32), tokenizer and SentencePiece model of a folder with one `*.pt` and one `*.spm`.

    Raises:
        InputError: one is missing, damaged or of another kind, or they are of two models.
    """
    from safetensors.torch import save_file

    if not source.is_dir():
        raise InputError("not a folder", where=str(source), why="a LASER encoder is a folder with one *.pt and one *.spm file")
    path, pieces = _only(source, ".pt"), _only(source, ".spm")
    params, weights, dictionary = _read(path)
    config = _config(params, path)
    _check(weights, config, path)
    tokenizer = _tokenizer(dictionary, config.vocab_size, pieces, path)
    cutter = tokenizer.cutter
    known = sum(cutter.id_to_piece(number) in dictionary for number in range(len(cutter)))
    if 2 * known < len(cutter):
        why = f"the dictionary has {known:,} of {len(cutter):,} pieces"
        raise InputError("the weights and the pieces are from different models", where=f"{path.name}, {pieces.name}", why=why)
    config.save_pretrained(dest)
    tokenizer.save_pretrained(dest)
    tensors = {name: value.float().clone(memory_format=torch.contiguous_format) for name, value in weights.items()}
    save_file(tensors, dest / "model.safetensors", metadata={"format": "pt"})
    write_modules(dest, config.hidden_size, config.num_hidden_layers, UNBOUNDED, {"pooling": "max"})
    open_to_readers(dest)
