"""How many tokens of a vocabulary fit how many rows of embeddings."""

from __future__ import annotations

import pytest

from crosslign.encoders.soundness import fits

# XLM-R and InfoXLM, mBERT, BERT, BERT of Chinese, LaBSE, Qwen3-Embedding; T5, mT5, Qwen3, multilingual MiniLM, DeBERTa v3, nomic
EQUAL = [250002, 119547, 105879, 30522, 21128, 501153, 151669]
PADDED = [(32100, 32128), (250100, 250112), (151669, 151936), (250002, 250037), (128001, 128100), (30522, 30528)]


@pytest.mark.parametrize(("tokens", "rows"), [*zip(EQUAL, EQUAL, strict=True), *PADDED])
def test_vocabularies_of_published_encoders_fit_their_embeddings(tokens, rows):
    assert fits(tokens, rows)


@pytest.mark.parametrize(("tokens", "rows"), [(250001, 250002), (119546, 119547), (30521, 30522), (250001, 250037), (30523, 30522)])
def test_a_piece_too_few_or_too_many_does_not(tokens, rows):
    assert not fits(tokens, rows)
