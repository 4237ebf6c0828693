"""Input that is wrong, or strange: each has its defined outcome.

Unequal lengths, blank grades, ids and tr-en are the readers' business (tests/unit/corpora/evaluations); unknown gold ids, empty sides and
missing grades have their tests beside the scorers. Here: vectors, k, and ids that stand twice.
"""

from __future__ import annotations

import numpy as np
import pytest
from build_sets import build

from crosslign.corpora.evaluation import EvaluationBuilder
from crosslign.errors import InputError
from crosslign.tasks.score import score

TEXTS = (["a", "b", "c"], ["x", "y", "z"])
LINKS = [(0, 0), (1, 1), (2, 2)]
AVERAGES = {"avg": ["s"]}
TASKS = {
    "sts": {"scorer": "sts", "main": {"metric": "spearman", "subset": "avg"}},
    "retrieval": {"scorer": "retrieval", "main": {"metric": "accuracy", "subset": "avg", "direction": "xx2en"}},
    "bitext_mining": {
        "scorer": "bitext_mining",
        "protocols": ["sample_oracle"],
        "main": {"metric": "f1", "subset": "avg", "protocol": "sample_oracle"},
    },
    "pair_classification": {"scorer": "pair_classification", "main": {"metric": "accuracy", "subset": "avg"}},
}
ROLES = {"sts": ("first", "second"), "pair_classification": ("first", "second")}
SET = {"bitext_mining": "sample"}


def run(name, matrix, dtype=np.float32, **options):
    grades = {"s": [1.0, 0.0, 1.0]} if name == "pair_classification" else {"s": [1.0, 2.0, 3.0]}
    evaluation = build({"s": (*TEXTS, LINKS)}, ROLES.get(name, ("source", "target")), grades)
    role = SET.get(name, "test")
    task = {**TASKS[name], "texts": {role: "tiny"}, "output": "vectors", "averages": AVERAGES, **options}
    return score(name, task, {role: np.asarray(matrix, dtype=dtype)}, {role: evaluation})


def vectors():
    return np.random.default_rng(3).standard_normal((6, 4))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("scorer", TASKS)
@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, ".*NaN"), (np.inf, ".*NaN"), (0.0, "zero")],
)
def test_vectors_without_direction_are_refused_by_row(scorer, value, message, dtype):
    broken = vectors()
    broken[4] = value
    with pytest.raises(InputError, match=rf"row \d+: {message}"):
        run(scorer, broken, dtype)


def test_a_k_larger_than_a_side_is_cut_to_it():
    close = np.concatenate([np.eye(3, 4), np.eye(3, 4) + 0.1])
    many, all_there = (run("bitext_mining", close, k=k) for k in (1000, 3))
    assert many == all_there
    assert next(r.value for r in many if r.main) == 1.0


@pytest.mark.parametrize("scorer", TASKS)
def test_an_id_that_stands_twice_is_refused(scorer):
    roles = ROLES.get(scorer, ("source", "target"))
    builder = EvaluationBuilder("tiny")
    for number, text in enumerate(TEXTS[0]):
        builder.item(f"i{min(number, 1)}", "s", roles[0], "xx", text)
        builder.item(f"j{number}", "s", roles[1], "en", TEXTS[1][number])
        builder.link("s", f"i{min(number, 1)}", f"j{number}", score=float(number == 0))
    role = SET.get(scorer, "test")
    task = {**TASKS[scorer], "texts": {role: "tiny"}, "output": "vectors", "averages": AVERAGES}
    with pytest.raises(InputError, match=r"tiny, subset 's': .*'i1'"):
        score(scorer, task, {role: vectors().astype(np.float32)}, {role: builder.build()})
