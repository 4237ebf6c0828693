"""A writer of tiny `E5S1` files, field by field from the description of the format."""

from __future__ import annotations

import struct

import numpy as np

HIDDEN, LAYERS, HEADS, WIDE, POSITIONS = 32, 2, 4, 64, 24
TYPES = 1
"""Unlike BERT's own 2, so that a config that leaves it out is wrong."""

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
WORDS = ["▁", "a", "b", "c", "d", "▁a", "ab", "bc", "▁ab", "abc", "cd", "ß", "é", "▁cd", "dd", "ddd", "日", "本", "日本"]
PIECES = [*SPECIALS, *WORDS, "<mask>"]
SCORES = [0.0] * 4 + [-2.0 - 0.37 * i - 0.011 * i * i for i in range(len(WORDS))] + [0.0]
REPLACEMENTS = {"\t": " ", "\u3000": " ", "Ａ": "a", "ﬀ": "dd", "\x01": "", "½": "1/2", "A": "a", "𝐛": "b"}
SPARE = 3
"""Word embeddings behind the last piece, as the published file has them."""


def quantise(values):
    """Return the bytes of 4-bit blocks and what they hold, weight by weight."""
    packed, held = b"", []
    for block in values.reshape(-1, 32):
        scale = np.float16(max(abs(block).max() / 7, 1e-3))
        nibbles = [int(min(15, max(0, round(float(v) / float(scale)) + 8))) for v in block]
        packed += scale.tobytes() + bytes(nibbles[j] | nibbles[j + 16] << 4 for j in range(16))
        held += [(n - 8) * float(scale) for n in nibbles]
    return packed, np.array(held).reshape(values.shape)


def tensor_shapes():
    """Yield (name, packed or not, shape) of every tensor."""
    yield "emb.word", True, (len(PIECES) + SPARE, HIDDEN)
    yield "emb.pos", False, (POSITIONS, HIDDEN)
    yield "emb.type", False, (TYPES, HIDDEN)
    yield from ((f"emb.ln.{part}", False, (HIDDEN,)) for part in "wb")
    for layer in range(LAYERS):
        for name, shape in {"q": (32, 32), "k": (32, 32), "v": (32, 32), "ao": (32, 32), "fi": (64, 32), "fo": (32, 64)}.items():
            yield f"l{layer}.{name}.w", True, shape
            yield f"l{layer}.{name}.b", False, shape[:1]
        yield from ((f"l{layer}.{name}.{part}", False, (HIDDEN,)) for name in ("aln", "oln") for part in "wb")


def tokenizer_bytes(pieces, scores, replacements):
    """Return the tokenizer's part of a file."""
    encoded = [piece.encode() for piece in pieces]
    offsets = np.cumsum([0, *map(len, encoded)]).astype("<u4")
    mapped = b""
    for character, text in sorted(replacements.items()):
        mapped += struct.pack("<IB", ord(character), len(text)) + b"".join(struct.pack("<I", ord(c)) for c in text)
    head = struct.pack("<5iQ", len(pieces), 0, 2, 1, 3, int(offsets[-1]))
    table = offsets.tobytes() + np.array(scores, "<f4").tobytes() + b"".join(encoded)
    return head + table + struct.pack("<iI", len(replacements), len(mapped)) + mapped


def build_file(seed=0, pieces=PIECES, scores=SCORES, replacements=REPLACEMENTS):
    """Return the bytes of a file and what each tensor holds."""
    rng = np.random.default_rng(seed)
    head = b"E5S1" + struct.pack("<I7ifi", 1, HIDDEN, LAYERS, HEADS, WIDE, len(PIECES) + SPARE, POSITIONS, TYPES, 1e-12, 32)
    head += tokenizer_bytes(pieces, scores, replacements)
    packed, held = {}, {}
    for name, blocks, shape in tensor_shapes():
        values = rng.normal(size=shape) * 0.2 + (1.0 if name.endswith("ln.w") else 0.0)
        packed[name], held[name] = quantise(values) if blocks else (values.astype("<f4").tobytes(), values.astype("<f4"))
    start = len(head) + 4 + sum(2 + len(name) + 21 for name in packed)
    start += -start % 64
    directory, body = struct.pack("<i", len(packed)), b""
    for name, blocks, shape in tensor_shapes():
        offset = start + len(body)
        entry = struct.pack("<BIQQ", int(blocks), int(np.prod(shape)), offset, len(packed[name]))
        directory += struct.pack("<H", len(name)) + name.encode() + entry
        body += packed[name] + b"\0" * (-len(packed[name]) % 64)
    whole = head + directory
    return whole + b"\0" * (start - len(whole)) + body, held
