"""Every scorer of vectors names file, row and text of a vector that it cannot use."""

from __future__ import annotations

import numpy as np
import pytest
from build_sets import build
from test_write import CONTEXT

from crosslign.corpora.evaluation import EvaluationBuilder
from crosslign.errors import InputError
from crosslign.paths import EVALUATION_FILES
from crosslign.tasks import SCORERS
from crosslign.tasks.score import score_run

OF_LOGITS = {"classification", "multi_label", "multiple_choice"}
RAW = {"language_probe", "linear_classification"}
"""Scorers that take vectors as long as they come: one of zeros is a vector like others."""
PAIRS = {
    "average_precision": ({}, ("query", "candidate"), {"metric": "map_at_20", "subset": "s"}),
    "bitext_mining": ({"protocols": ["train_oracle"]}, ("source", "target"), {"metric": "f1", "subset": "s", "protocol": "train_oracle"}),
    "nearest_sentences": ({}, ("query", "candidate"), {"metric": "cosine", "subset": "query1_rank1"}),
    "pair_classification": ({}, ("first", "second"), {"metric": "accuracy", "subset": "s"}),
    "retrieval": ({}, ("source", "target"), {"metric": "accuracy", "subset": "s", "direction": "mean"}),
    "xsim": ({}, ("source", "target"), {"metric": "error_rate", "subset": "s", "direction": "xx2en"}),
    "sts": ({}, ("first", "second"), {"metric": "spearman", "subset": "s"}),
}
ITEMS = {
    "clustering_purity": ({}, {"metric": "purity", "subset": "s"}),
    "geometry": ({"languages": {"all": ["de", "en"]}}, {"metric": "isotropy", "subset": "all"}),
    "language_probe": ({"languages": {"all": ["de", "en"]}}, {"metric": "accuracy", "subset": "all"}),
    "linear_classification": ({}, {"metric": "accuracy", "subset": "s"}),
}


def evaluation_of(scorer):
    if scorer in PAIRS:
        return build({"s": ("abc", "xyz", [(0, 0), (1, 1), (2, 2)])}, PAIRS[scorer][1], {"s": [1.0, 0.0, 1.0]})
    builder = EvaluationBuilder("tiny")
    for number in range(8):
        split = "train" if number < 4 else "test"
        lang = "de" if number % 2 else "en"
        builder.item(f"i{number}", "s", "sentence", lang, f"text {number}", split=split, label=[number % 2], group=str(number // 2))
    return builder.build()


def run(folder, scorer, matrix):
    evaluation = evaluation_of(scorer)
    files = {part: folder / f"{part}.parquet" for part in EVALUATION_FILES}
    evaluation.write(files)
    np.save(folder / "x.npy", matrix[: evaluation.texts.num_rows])
    options, main = PAIRS[scorer][::2] if scorer in PAIRS else ITEMS[scorer]
    task = {"scorer": scorer, "texts": {"test": "tiny"}, "main": main, "output": "vectors", **options}
    score_run("tiny", task, {"test": folder / "x.npy"}, {"test": files}, folder / "scores.json", {**CONTEXT, "task": "tiny"})
    return evaluation.texts["text_id"].to_pylist()


def test_all_scorers_of_vectors_are_looked_at():
    assert {*PAIRS, *ITEMS} == set(SCORERS.names()) - OF_LOGITS


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scorer", [*PAIRS, *ITEMS])
def test_file_row_and_text_are_named(tmp_path, scorer):
    good = np.random.default_rng(3).standard_normal((8, 4)).astype(np.float32)
    text = run(tmp_path, scorer, good)[4]
    for value, message in (
        (np.nan, ".*NaN"),
        (-np.inf, ".*NaN"),
        (0.0, "zero"),
    ):
        bad = good.copy()
        bad[4] = value
        if value == 0 and scorer in RAW:
            run(tmp_path, scorer, bad)
            continue
        with pytest.raises(InputError, match=rf"{tmp_path}/x\.npy, row 4 \(text '{text}'\): {message}"):
            run(tmp_path, scorer, bad)
