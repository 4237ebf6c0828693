"""Unknown tokens: counted by hand, warned of in log and lineage, and said beside the scores."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from crosslign.encoders.matrices import embed_texts
from crosslign.encoders.tokens import Tokens, tokenise
from crosslign.encoders.unknown import count_unknown, in_words, joined, shares
from crosslign.files import write_rows

READOUT = {"pooling": "mean", "max_length": 16}


def _tokenizer(unknown=1, special=2, **named):
    return SimpleNamespace(
        is_fast=False, unk_token_id=unknown, num_special_tokens_to_add=lambda pair: special + pair, cls_token_id=2, sep_token_id=3, **named
    )


def _tokens(*ids, segments=None):
    return Tokens([np.array(each, np.int32) for each in ids], segments)


def test_tokens_are_counted_by_language_without_special_ones():
    known = {}
    count_unknown(_tokenizer(), _tokens([2, 7, 1, 3], [2, 1, 1, 9, 3], [2, 3]), ["en", "de", "en"], ["a b", "c d e", " "], known)
    count_unknown(_tokenizer(), _tokens([2, 1, 3], segments=[]), ["en"], ["a"], known)
    assert known == {"en": [2, 1], "de": [3, 2]} | {"en": [2 + 1, 1 + 1]}


def _pairs_of_letters(known, **options):
    """A tokenizer of pairs of letters that has no unknown token, as some published ones."""
    backend = Tokenizer(models.BPE({piece: at for at, piece in enumerate(["[CLS]", "[SEP]", *known])}, [], **options))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [("[CLS]", 0), ("[SEP]", 1)]
    backend.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return PreTrainedTokenizerFast(tokenizer_object=backend, cls_token="[CLS]", sep_token="[SEP]")


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("he читает книгу о собаках", [2 + 4, 4]),
        ("hхe", [2 + 1, 1]),
        ("ሰላም ልዑል", [2, 2]),
        ("eh he\u0301 e", [5, 0]),  # an accent, which a normaliser takes away as well
    ],
)
def test_words_that_a_tokenizer_without_an_unknown_token_drops_are_counted(text, counts):
    tokenizer, known = _pairs_of_letters("he"), {}
    count_unknown(tokenizer, tokenise(tokenizer, [text], None, 16), ["ru"], [text], known)
    assert known == {"ru": counts}


def test_bytes_and_unknown_tokens_drop_nothing(tiny_encoder):
    fallback = _pairs_of_letters(["h", "e", *(f"<0x{byte:02X}>" for byte in range(256))], byte_fallback=True)
    bytes_of = _pairs_of_letters(sorted(pre_tokenizers.ByteLevel.alphabet()))
    bytes_of.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    text = "he читает, 中文 é e\u0301 \U0001f600 \U00012000"
    for tokenizer in (fallback, bytes_of):
        tokens, known = tokenise(tokenizer, [text], None, 99), {}
        count_unknown(tokenizer, tokens, ["ru"], [text], known)
        assert known == {"ru": [len(tokens.ids[0]) - 2, 0]}
    tokenizer, known = AutoTokenizer.from_pretrained(tiny_encoder / "main"), {}
    count_unknown(tokenizer, tokenise(tokenizer, ["\U00012000 \U00016800"], None, 99), ["en"], ["\U00012000 \U00016800"], known)
    assert known == {"en": [2, 2]}


def test_an_unknown_token_that_ends_texts_too_is_not_counted():
    known = {}
    count_unknown(_tokenizer(unknown=3), _tokens([2, 5, 3]), ["en"], ["hello"], known)
    assert known == {"en": [1, 0]}


def test_shares_are_of_all_tokens_and_of_languages_beyond_the_limit():
    known = joined([{"en": [96, 1], "de": [50, 2]}, {"am": [4, 4], "en": [0, 0]}])
    assert shares(known) == {"all": round(7 / 150, 4), "am": 1.0, "de": 0.04}
    assert in_words(shares(known)) == "4.7 % of all tokens are unknown to the encoder (am 100.0 %, de 4.0 %)"
    assert shares({"en": [100, 3], "de": [0, 0]}) == {}
    assert in_words({}) == ""


def _texts(folder, sentences):
    rows = {
        "text_id": [str(n) for n in range(len(sentences))],
        "lang": [lang for lang, _ in sentences],
        "text": [text for _, text in sentences],
    }
    write_rows(folder / "set" / "texts.parquet", pa.table(rows), "texts")
    return folder / "set" / "texts.parquet"


@pytest.mark.parametrize("threads", [1, 2])
def test_a_text_set_that_the_encoder_does_not_know_is_warned_of(tmp_path, tiny_encoder, sentence_pairs, caplog, threads):
    texts = _texts(tmp_path, [("en", sentence_pairs[0][0]), ("am", "ሰላም ልዑል"), ("am", "ሰላም")])
    with caplog.at_level(logging.WARNING):
        facts = embed_texts({"main": tiny_encoder / "main"}, texts, READOUT, tmp_path / "out.npy", processes=threads)
    assert facts["unknown_tokens"]["am"] == 1.0
    assert 0.03 < facts["unknown_tokens"]["all"] < 1
    assert "set: " in caplog.text
    assert "of all tokens are unknown to the encoder (am 100.0 %)" in caplog.text


def test_a_text_set_that_the_encoder_knows_is_not(tmp_path, tiny_encoder, sentence_pairs, caplog):
    texts = _texts(tmp_path, [("en", first) for first, _ in sentence_pairs])
    with caplog.at_level(logging.WARNING):
        facts = embed_texts({"main": tiny_encoder / "main"}, texts, READOUT, tmp_path / "out.npy")
    assert "unknown_tokens" not in facts
    assert not caplog.records
