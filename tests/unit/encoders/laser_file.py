"""A tiny LASER2 in its published files: a random BiLSTM that torch saved, and a SentencePiece model trained on a few words."""

from __future__ import annotations

import io
from functools import cache

import sentencepiece
import torch

SPECIALS = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
LINES = [
    "the dog sleeps on the roof of the old house",
    "zwei vögel sitzen auf dem dach, und der hund schläft.",
    "a dog and two birds: 12 or 13?",
    'sie sagte: "die vögel sind alt"',
    "les oiseaux dorment sur le toit de la maison",
]
EMBEDDING, CELL, LAYERS = 8, 6, 2
FORGOTTEN = 5
"""Every fifth piece is not in the dictionary, so that it is unknown to the encoder alone."""


@cache
def train_pieces(kind):
    """Return a SentencePiece model as bytes."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES * 4), model_writer=written, model_type=kind, vocab_size=70, hard_vocab_limit=False, minloglevel=2
    )
    return written.getvalue()


def build_content(pieces, layers=LAYERS, bidirectional=True):
    """Return what the `.pt` file holds for a SentencePiece model."""
    cutter = sentencepiece.SentencePieceProcessor(model_proto=pieces)
    names = [cutter.id_to_piece(i) for i in range(len(cutter))]
    kept = [name for i, name in enumerate(names) if i % FORGOTTEN and name not in SPECIALS]
    dictionary = SPECIALS | {name: 4 + i for i, name in enumerate([*kept, "never", "cut"])}
    torch.manual_seed(3)
    rows = len(dictionary) + 3  # word embeddings that no piece has
    lstm = torch.nn.LSTM(EMBEDDING, CELL, layers, bidirectional=bidirectional)
    weights = {"embed_tokens.weight": torch.randn(rows, EMBEDDING)}
    weights |= {f"lstm.{name}": value.data * 2 for name, value in lstm.named_parameters()}
    params = {
        "num_embeddings": rows,
        "padding_idx": 1,
        "embed_dim": EMBEDDING,
        "hidden_size": CELL,
        "num_layers": layers,
        "bidirectional": bidirectional,
        "left_pad": True,
        "padding_value": 0.0,
    }
    return {"params": params, "model": weights, "dictionary": dictionary}


def write_files(folder, content, pieces):
    """Write both files and return them by name."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(content, folder / "tiny.pt")
    (folder / "tiny.spm").write_bytes(pieces)
    return {name: folder / name for name in ("tiny.pt", "tiny.spm")}
