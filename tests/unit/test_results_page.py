"""The lines with which results/README.md opens results in the library datasets, run on files as the stages write them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crosslign.files.rows import SCHEMAS, write_batches, write_rows
from crosslign.mining.knn import neighbours
from crosslign.mining.pairs import write_pairs

ROOT = Path(__file__).resolve().parents[2]
LINES = re.search(r"```python\n(.*?)```", (ROOT / "results" / "README.md").read_text(encoding="utf-8"), re.DOTALL)[1]
FILES = dict(re.findall(r'^(\w+) = .*data_files="([^"]+)"', LINES, re.MULTILINE))
VALUES = {
    pa.string(): "Äpfel",
    pa.float32(): 0.5,
    pa.bool_(): True,
    pa.list_(pa.string()): ["a", "b"],
    pa.list_(pa.float32()): [1.0, 0.0],
    SCHEMAS["labelled_examples"].field("views").type: [{"kind": "k", "lang": "de", "a_text": "A", "b_text": None}],
}


def mined(path: Path) -> None:
    texts = []
    for lang in ("de", "en"):
        texts.append(path.parent / f"{lang}.parquet")
        write_batches(texts[-1], iter([pa.table({"text_id": ["1", "2"], "lang": [lang] * 2, "text": ["one", "two"]})]), "texts")
    vectors = np.eye(2) + 0.1
    write_pairs(neighbours(vectors, vectors, 1), tuple(texts), {"parquet": path}, margin="absolute", retrieval="max", threshold=None)


@pytest.mark.parametrize(
    ("corpus", "examples"),
    [("mono", "pairs"), ("bitext", "triplets"), ("multiway", "groups"), ("labelled", "labelled_examples"), ("texts", "pairs")],
)
def test_one_line_opens_a_corpus_a_training_set_and_mined_pairs(tmp_path, monkeypatch, corpus, examples):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    for name, kind in (("corpus", corpus), ("examples", examples)):
        path = Path(FILES[name])
        path.parent.mkdir(parents=True)
        columns = {field.name: pa.array([VALUES[field.type]] * 3, field.type) for field in SCHEMAS[kind]}
        write_rows(path, pa.table(columns), kind)
    Path(FILES["pairs"]).parent.mkdir(parents=True)
    mined(Path(FILES["pairs"]))
    opened: dict[str, object] = {}
    exec(LINES, opened)
    for name, file in FILES.items():
        assert opened[name].to_list() == pq.read_table(file).to_pylist()
        assert len(opened[name]) > 1
