"""The parts of an `E5S1` file: header, unigram pieces, normalisation map, tensor directory. Little-endian throughout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crosslign.encoders.formats._cursor import Cursor

MAGIC = b"E5S1"
VERSION = 1
BLOCK = 32
"""Weights of a block: one fp16 scale, then 16 bytes; byte j holds weight j in its low nibble and weight j + 16 in its high one."""

BLOCK_BYTES = 2 + BLOCK // 2
FP32, BLOCKS = 0, 1
"""Kinds of a tensor: plain float32, or 4-bit blocks."""


@dataclass(frozen=True)
class Header:
    """Shape of the transformer, and how its numbers are packed."""

    hidden: int
    layers: int
    heads: int
    intermediate: int
    vocabulary: int
    positions: int
    types: int
    epsilon: float


@dataclass(frozen=True)
class Vocabulary:
    """Unigram pieces with their scores (log probabilities), ids of the special ones, and the replacement of single characters."""

    pieces: list[str]
    scores: NDArray[np.float32]
    bos: int
    eos: int
    pad: int
    unk: int
    replacements: dict[str, str]


@dataclass(frozen=True)
class Tensor:
    """Where a tensor lies: kind `FP32` or `BLOCKS`, number of weights, first byte."""

    kind: int
    count: int
    offset: int


def read_header(cursor: Cursor) -> Header:
    """Read magic, version and shape; refuse shapes that no tensor of this file could have."""
    magic = cursor.take(4, "the magic number").tobytes()
    if magic != MAGIC:
        raise cursor.error("not an E5S1 file", f"it begins with {magic!r}")
    (version,) = cursor.fields("I", "the version")
    if version != VERSION:
        raise cursor.error("unknown version of E5S1", f"found {version}, known: {VERSION}")
    hidden, layers, heads, intermediate, vocabulary, positions, types, epsilon, block = cursor.fields("7ifi", "the header")
    header = Header(hidden, layers, heads, intermediate, vocabulary, positions, types, epsilon)
    shape = (hidden, layers, heads, intermediate, vocabulary, positions, types)
    if min(shape) < 1 or max(shape) > len(cursor.data) or header.hidden % header.heads:
        raise cursor.error("the header has an impossible shape", f"found {header}")
    if block != BLOCK or header.hidden % BLOCK or header.intermediate % BLOCK:
        raise cursor.error(f"weights must be in blocks of {BLOCK}", f"found blocks of {block}, {header}")
    if not 0 < epsilon < 1:
        raise cursor.error("the header has an impossible epsilon", f"found {epsilon}")
    return header


def _pieces(cursor: Cursor, count: int, size: int) -> tuple[list[str], NDArray[np.float32]]:
    offsets = cursor.array("<u4", count + 1, "the table of pieces").astype(np.int64)
    scores = cursor.array("<f4", count, "the scores of the pieces")
    text = cursor.take(size, "the text of the pieces").tobytes()
    if offsets[0] != 0 or offsets[-1] != size or (np.diff(offsets) < 1).any():
        raise cursor.error("the table of pieces is damaged", "its offsets do not increase from 0 to the end of the text")
    if not np.isfinite(scores).all():
        raise cursor.error("the scores of the pieces are damaged", "NaN or infinity")
    try:
        pieces = [text[start:end].decode("utf-8") for start, end in pairwise(offsets.tolist())]
    except UnicodeDecodeError as error:
        raise cursor.error("a piece is not UTF-8", str(error)) from error
    if len(set(pieces)) != len(pieces):
        raise cursor.error("a piece occurs twice", f"{len(pieces) - len(set(pieces)):,} such pieces")
    return pieces, scores


def _character(cursor: Cursor, code: int) -> str:
    """Return a character; the map neither replaces nor makes NUL."""
    if not 0 < code < 0x110000 or 0xD800 <= code < 0xE000:
        raise cursor.error("the normalisation map is damaged", f"{code} is not the code of a character")
    return chr(code)


def _replacements(cursor: Cursor) -> dict[str, str]:
    count, size = cursor.fields("iI", "the size of the normalisation map")
    end = cursor.at + len(cursor.span(cursor.at, size, "the normalisation map"))
    found: dict[str, str] = {}
    for _ in range(count):
        code, length = cursor.fields("IB", "the normalisation map")
        codes = cursor.array("<u4", length, "the normalisation map")
        found[_character(cursor, code)] = "".join(_character(cursor, int(other)) for other in codes)
        if cursor.at > end:
            break
    if cursor.at != end or len(found) != count:
        raise cursor.error("the normalisation map is damaged", f"{len(found):,} of {count:,} entries, {size:,} bytes declared")
    return found


def read_vocabulary(cursor: Cursor, rows: int) -> Vocabulary:
    """Read the tokenizer; `rows` is the number of word embeddings, at least one for each piece."""
    count, bos, eos, pad, unk, size = cursor.fields("5iQ", "the tokenizer's header")
    specials = [bos, eos, pad, unk]
    if not 0 < count <= rows:
        raise cursor.error("impossible number of pieces", f"{count:,} pieces, {rows:,} word embeddings")
    if len(set(specials)) != 4 or not all(0 <= special < count for special in specials):
        raise cursor.error("impossible special pieces", f"ids {specials} of {count:,}")
    pieces, scores = _pieces(cursor, count, size)
    return Vocabulary(pieces, scores, bos, eos, pad, unk, _replacements(cursor))


def read_directory(cursor: Cursor) -> dict[str, Tensor]:
    """Read the tensor directory; every tensor lies behind it and within the file."""
    (count,) = cursor.fields("i", "the size of the tensor directory")
    found: dict[str, Tensor] = {}
    for _ in range(count):
        (length,) = cursor.fields("H", "the tensor directory")
        name = cursor.take(length, "the tensor directory").tobytes().decode("utf-8", "replace")
        kind, weights, offset, size = cursor.fields("BIQQ", "the tensor directory")
        expected = {FP32: weights * 4, BLOCKS: weights // BLOCK * BLOCK_BYTES}.get(kind)
        if expected is None or size != expected or (kind == BLOCKS and weights % BLOCK) or name in found:
            raise cursor.error(f"tensor {name!r} has an impossible size", f"kind {kind}, {weights:,} weights in {size:,} bytes")
        cursor.span(offset, size, f"tensor {name!r}")
        found[name] = Tensor(kind, weights, offset)
    if early := [name for name, tensor in found.items() if tensor.offset < cursor.at]:
        raise cursor.error(f"tensor {early[0]!r} overlaps the directory", f"byte {found[early[0]].offset:,}")
    return found


def expected_tensors(header: Header) -> Iterator[tuple[str, str, int, tuple[int, ...]]]:
    """Yield (name in the file, name in transformers' BertModel, kind, shape) of every tensor that the shape asks for."""
    hidden, wide = header.hidden, header.intermediate
    yield "emb.word", "embeddings.word_embeddings.weight", BLOCKS, (header.vocabulary, hidden)
    yield "emb.pos", "embeddings.position_embeddings.weight", FP32, (header.positions, hidden)
    yield "emb.type", "embeddings.token_type_embeddings.weight", FP32, (header.types, hidden)
    yield "emb.ln.w", "embeddings.LayerNorm.weight", FP32, (hidden,)
    yield "emb.ln.b", "embeddings.LayerNorm.bias", FP32, (hidden,)
    parts = {
        "q": ("attention.self.query", (hidden, hidden)),
        "k": ("attention.self.key", (hidden, hidden)),
        "v": ("attention.self.value", (hidden, hidden)),
        "ao": ("attention.output.dense", (hidden, hidden)),
        "aln": ("attention.output.LayerNorm", (hidden,)),
        "fi": ("intermediate.dense", (wide, hidden)),
        "fo": ("output.dense", (hidden, wide)),
        "oln": ("output.LayerNorm", (hidden,)),
    }
    for layer in range(header.layers):
        for short, (long, shape) in parts.items():
            yield f"l{layer}.{short}.w", f"encoder.layer.{layer}.{long}.weight", BLOCKS if len(shape) == 2 else FP32, shape
            yield f"l{layer}.{short}.b", f"encoder.layer.{layer}.{long}.bias", FP32, shape[:1]


def unpack(cursor: Cursor, tensor: Tensor) -> NDArray[np.float32]:
    """Return the weights of a tensor, float32 [count]: `(nibble - 8) * scale` for blocks.

    Raises:
        InputError: a weight is NaN or infinite.
    """
    if tensor.kind == FP32:
        values = np.frombuffer(cursor.span(tensor.offset, tensor.count * 4, "a tensor").tobytes(), "<f4")
    else:
        blocks = cursor.span(tensor.offset, tensor.count // BLOCK * BLOCK_BYTES, "a tensor").reshape(-1, BLOCK_BYTES)
        scales = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
        nibbles = np.concatenate([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], axis=1).astype(np.int8) - 8
        values = (nibbles * scales).ravel()
    if not np.isfinite(values).all():
        raise cursor.error("a weight is NaN or infinite", f"the tensor at byte {tensor.offset:,}")
    return values


def open_file(path: Path) -> tuple[Cursor, Header, Vocabulary, dict[str, Tensor]]:
    """Read all of a file but its weights.

    Raises:
        InputError: anything is missing, damaged or impossible; names the byte and what was found there.
    """
    cursor = Cursor.open(path)
    header = read_header(cursor)
    vocabulary = read_vocabulary(cursor, header.vocabulary)
    tensors = read_directory(cursor)
    for name, _, kind, shape in expected_tensors(header):
        count = int(np.prod(shape, dtype=object))
        found = tensors.get(name)
        if found is None or (found.kind, found.count) != (kind, count):
            raise cursor.error(f"tensor {name!r} has the wrong shape", f"expected {shape}, found {found}")
    return cursor, header, vocabulary, tensors
