"""What a dev evaluation leaves unread changes no score that it selects by."""

import numpy as np
import pytest

from crosslign.corpora.evaluation import EvaluationBuilder
from crosslign.tasks.score import score
from crosslign.tasks.subsets import cut, deciding_subsets

LANGS = ("de", "fr", "ru", "sw", "th")
TASK = {
    "scorer": "retrieval",
    "texts": {"test": "tatoeba"},
    "averages": {"avg": "all", "two": ["de", "sw"], "rest": {"all_but": ["two"]}},
    "main": {"subset": "avg", "metric": "accuracy", "direction": "xx2en"},
    "resamples": 0,
}


@pytest.fixture
def tatoeba():
    builder = EvaluationBuilder("tatoeba")
    for lang in LANGS:
        for i in range(30):
            builder.item(f"{lang}{i}", lang, "source", lang, f"{lang} sentence {i}")
            builder.item(f"en{i}", lang, "target", "en", f"English sentence {i}")
            builder.link(lang, f"{lang}{i}", f"en{i}")
    return builder.build()


@pytest.mark.parametrize(
    ("asked", "read"),
    [(["two"], {"de", "sw"}), (["rest"], {"fr", "ru", "th"}), (["de", "fr"], {"de", "fr"}), (["avg"], set(LANGS)), ([None], set(LANGS))],
)
def test_the_subsets_of_a_score_are_those_of_its_average(asked, read):
    assert deciding_subsets(TASK, LANGS, asked) == read


def test_a_main_score_of_its_own_subset_keeps_that_subset_and_a_list_keeps_one_of_it():
    assert deciding_subsets({**TASK, "main": {"subset": "th"}}, LANGS, ["de"]) == {"de", "th"}
    listed = {**TASK, "averages": {"some": ["ru", "th"]}, "main": {"subset": "some"}}
    assert deciding_subsets(listed, LANGS, ["de"]) == {"de", "ru"}


def test_a_scorer_that_joins_subsets_reads_all_of_them():
    assert deciding_subsets({**TASK, "scorer": "average_precision"}, LANGS, ["two"]) == set(LANGS)


@pytest.mark.parametrize("asked", ["two", "rest", "fr"])
def test_scores_of_the_cut_corpus_are_those_of_the_whole(tatoeba, asked):
    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(tatoeba.texts.num_rows, 4)).astype(np.float32)
    row = dict(zip(tatoeba.texts["text_id"].to_pylist(), matrix, strict=True))
    part = cut(tatoeba, deciding_subsets(TASK, LANGS, [asked]))
    assert part.texts.num_rows < tatoeba.texts.num_rows
    cut_matrix = np.stack([row[text] for text in part.texts["text_id"].to_pylist()])
    whole, less = ({(r.subset, r.direction, r.protocol): r.value for r in score("t", TASK, {"test": m}, {"test": e})}
                   for m, e in ((matrix, tatoeba), (cut_matrix, part)))  # fmt: skip
    shown = {key for key in whole if key[0] == asked}
    assert shown
    assert {key: whole[key] for key in shown} == {key: less[key] for key in shown}
