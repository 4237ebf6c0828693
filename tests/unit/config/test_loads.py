"""How large the text of a corpus is taken to be, by the catalog alone."""

from pathlib import Path

import pytest

from crosslign.config.load import load_project
from crosslign.config.loads import corpus_mb
from crosslign.config.resources import uncapped_need

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("corpus", "pairs"),
    [
        ("snli_train", 550_152),
        ("multinli_train", 392_702),
        ("xnli_dev", 15 * 2490),
        ("xnli_test_rows", 15 * 5010),
        ("paws_x_dev_rows", 7 * 2000),
        ("paws_x_test_rows", 7 * 2000),
    ],
)
def test_a_part_of_an_archive_counts_its_own_sentences(corpus, pairs):
    """Golden, pairs as published: each text is taken for a sentence of 100 bytes, and may be half as long or twice."""
    paper = load_project(ROOT, {"scale": "paper", "papers": ["msimcse", "scl", "mpcl"], "targets": ["all"]})
    assert 2 * pairs * 50 / 1e6 < corpus_mb(paper, corpus) < 2 * pairs * 200 / 1e6


def test_a_part_of_a_joined_set_counts_its_own_languages():
    """Golden: BUCC's training parts of four pairs have some 2.7 million sentences, Chinese and English 183,497 of them."""
    paper = load_project(ROOT, {"scale": "paper", "papers": ["moco_bert", "mpcl"], "targets": ["all"]})
    one, four = (corpus_mb(paper, name) for name in ("bucc2018_training_zh", "bucc2018_training"))
    assert 18.3 < one < four / 3


def test_a_score_of_logits_asks_for_no_vectors():
    """XNLI's 75,150 pairs with three numbers each take 290 MB (docs/archive/measurements.md)."""
    paper = load_project(ROOT, {"scale": "paper", "papers": ["scl"], "targets": ["all"]})
    run = next(f"{name}-s42" for name in paper.systems)
    needed = 290
    assert 1.2 * needed < uncapped_need(paper, "score", {"run": run, "task": "xnli"}).mem_mb < needed + 4000


BUCC_SENTENCES = 2_657_541
"""Of its training parts."""


@pytest.mark.parametrize(
    ("encoder", "gpus", "seconds"),
    [
        ("xlm-r", 1, 1 / 1742),  # float32 on one H200 (docs/archive/measurements.md)
        ("me5_small", 0, 95 / 10_417),  # float32 on two cores, all of their time (docs/calibration.md)
    ],
)
def test_an_encoding_asks_for_the_time_of_its_device(encoder, gpus, seconds):
    """Golden: sentences a second as measured."""
    papers = ["mpcl", "calibration"]
    paper = load_project(ROOT, {"scale": "paper", "papers": papers, "targets": ["all"], "gpus": gpus})
    wildcards = {"run": encoder, "checkpoint": "base", "readout": "mean", "text_set": "bucc2018_training"}
    needed = BUCC_SENTENCES * seconds / 60
    assert 1.2 * needed < uncapped_need(paper, "embed", wildcards).runtime < 10 * needed
