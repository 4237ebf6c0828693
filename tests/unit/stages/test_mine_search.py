"""A sentence whose vector cannot be used is named by its line in the user's file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crosslign.errors import InputError
from crosslign.files.lineage import Lineage
from crosslign.jobs.job import Job
from crosslign.mining.texts import read_sentences
from crosslign.stages.mine_search import mine_search


@pytest.mark.parametrize("backend", ["exact", "faiss_flat"])
@pytest.mark.parametrize(("side", "line"), [("source", 4), ("target", 5)])
@pytest.mark.parametrize(("value", "what"), [(np.nan, "NaN"), (0.0, "zero")])
def test_the_line_is_named(tmp_path, monkeypatch, backend, side, line, value, what):
    monkeypatch.chdir(tmp_path)  # a rule's paths are relative
    inputs, texts = {}, {"source": "one\n\none\ntwo\nthree\n", "target": "one\n\n\ntwo\nthree\n"}
    for name, text in texts.items():
        file, inputs[name], inputs[f"{name}_texts"] = (Path(f"{name}.{end}") for end in ("txt", "npy", "parquet"))
        file.write_text(text, encoding="utf-8")
        read_sentences([file], "en", inputs[f"{name}_texts"], "text")
        np.save(inputs[name], np.eye(3, 8, dtype=np.float32))
    matrix = np.eye(3, 8, dtype=np.float32)
    matrix[{"source": 1, "target": 2}[side]] = value
    np.save(inputs[side], matrix)
    recipe = {"backend": backend, "k": 2, "search_options": {}, "part": 1, "parts": 1}
    outputs = {"folder": tmp_path / "1-of-1"}
    job = Job("mine_search", inputs, outputs, {"recipe": recipe, "work": "work"}, 1, Lineage("mine_search", recipe, [], tmp_path))
    with pytest.raises(InputError, match=rf"{side}\.npy, row \d \(line {line} of the {side} file\): .*{what}"):
        mine_search(job)
    assert not outputs["folder"].exists()
