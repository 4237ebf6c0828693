"""The stage of examples with a teacher: labels are its vectors, by transformers' own forward pass."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from crosslign.examples.build import build_examples
from crosslign.files.rows import write_rows
from crosslign.stages.build_examples import teacher_of

SENTENCES = ["The dog sleeps.", "We bought bread and cheese."]


def test_labels_are_the_teachers_vectors_as_long_as_they_come(tiny_encoder, tmp_path):
    from transformers import AutoModel, AutoTokenizer

    pairs = pa.table(
        {
            "id": ["p:0", "p:1"],
            "rows": [["c:0"], ["c:1"]],
            "a_text": [SENTENCES[0], "Wir kauften Brot und Käse."],
            "a_lang": ["en", "de"],
            "b_text": ["Der Hund schläft.", SENTENCES[1]],
            "b_lang": ["de", "en"],
        }
    )
    write_rows(tmp_path / "pairs.parquet", pairs, "pairs")
    teach = teacher_of(
        tiny_encoder, {"pooling": "mean", "layer": -1, "max_length": 16, "normalise": False, "precision": "fp32", "prefix": ""}
    )
    entry = {"builder": "taught_pairs", "of": ["p"], "teacher": "tiny"}
    counts = build_examples("t", entry, {}, {}, {"p": tmp_path / "pairs.parquet"}, tmp_path / "out.parquet", teach=teach)
    assert (counts["shape"], counts["rows"]) == ("labelled_examples", 2)
    tokenizer, judge = AutoTokenizer.from_pretrained(tiny_encoder / "main"), AutoModel.from_pretrained(tiny_encoder / "main").eval()
    for sentence, label in zip(SENTENCES, pq.read_table(tmp_path / "out.parquet")["label"].to_pylist(), strict=True):
        with torch.inference_mode():
            states = judge(**tokenizer(sentence, return_tensors="pt")).last_hidden_state
        assert label == pytest.approx(states[0].mean(0).tolist(), abs=2e-5)
