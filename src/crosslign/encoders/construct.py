"""A small BERT with random weights and word pieces from given sentences: the same bytes on every machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from crosslign.encoders.model import Member
from crosslign.errors import InputError
from crosslign.files import write_text

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def _words(sentences: Iterable[str]) -> Counter[str]:
    """Count words as BERT cuts them: lower case, no accents, Han characters apart."""
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    normalizer, cutter = BertNormalizer(lowercase=True), BertPreTokenizer()
    return Counter(word for text in sentences for word, _ in cutter.pre_tokenize_str(normalizer.normalize_str(text)))


def _ranked(counts: Mapping[str, int]) -> list[str]:
    return sorted(counts, key=lambda piece: (-counts[piece], piece))


def word_pieces(sentences: Iterable[str], size: int) -> list[str]:
    """Return a WordPiece vocabulary: special tokens, every character (also as a continuation), then the most frequent words.

    Ranked by count, then alphabet; trainers of subword models are not reproducible from run to run, this is.

    Args:
        sentences: text to count in.
        size: upper bound on the number of pieces; the rarest characters give way first.
    """
    words = _words(sentences)
    characters: Counter[str] = Counter()
    for word, count in words.items():
        characters[word[0]] += count
        for character in word[1:]:
            characters[f"##{character}"] += count
    pieces = dict.fromkeys([*SPECIALS, *_ranked(characters), *_ranked(words)])
    return list(pieces)[:size]


def read_sentences(files: Iterable[Path]) -> list[str]:
    """Read every cell of tab-separated text files, sorted and distinct.

    Raises:
        InputError: a file is no UTF-8.
    """
    cells: set[str] = set()
    for path in files:
        try:
            lines = Path(path).read_text(encoding="utf-8").split("\n")
        except UnicodeDecodeError as error:
            raise InputError("not UTF-8", where=str(path), why=str(error)) from error
        cells.update(cell.strip() for line in lines for cell in line.split("\t"))
    return sorted(cells - {""})


def construct_bert(options: Mapping[str, Any], files: Iterable[Path], folder: Path) -> None:
    """Write a transformers folder with a random BERT.

    Args:
        options: layers, hidden, heads, intermediate, vocabulary (upper bound), seed.
        files: tab-separated text files whose cells give the word pieces.
        folder: where config, weights and tokenizer go.
    """
    from transformers import BertConfig, BertModel, BertTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    pieces = word_pieces(read_sentences(files), options["vocabulary"])
    write_text(folder / "vocab.txt", "\n".join(pieces) + "\n")
    tokenizer = BertTokenizer.from_pretrained(folder, do_lower_case=True, model_max_length=512, local_files_only=True)
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=options["hidden"],
        num_hidden_layers=options["layers"],
        num_attention_heads=options["heads"],
        intermediate_size=options["intermediate"],
        max_position_embeddings=512,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options["seed"])
        backbone = BertModel(config)
    Member(backbone, tokenizer).save(folder)
