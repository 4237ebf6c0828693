"""Guards: runs that really collapse, numbers that are not finite, and what is kept of it."""

from __future__ import annotations

import json

import pytest
import torch
import trial

from crosslign.errors import CrosslignError
from crosslign.training.guards import SAMPLE, Guards, closeness, spread

WATCH = {"every": 2, "patience": 3, "after": 4}
ALIGNED = [{"objective": "alignment", "similarity": "cosine", "encode": "sentences", "examples": "pairs", "batch": 10}]


def _curve(folder):
    return [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]


def _recipe(terms, guards, steps=40, **train):
    settings = {"steps": steps, "learning_rate": 5e-3, "schedule": "constant", "guards": WATCH | guards}
    return trial.recipe(terms=terms, train=settings | train)


def test_closeness_of_known_vectors():
    assert closeness(*spread(torch.eye(4))) == pytest.approx((0.0, 4.0))
    assert closeness(*spread(torch.ones(5, 3))) == pytest.approx((1.0, 1.0))
    assert closeness(*spread(torch.tensor([[2.0, 0], [0, 1], [-3, 0], [0, -1]]))) == pytest.approx((-1 / 3, 2.0))
    assert closeness(*spread(torch.cat([torch.eye(SAMPLE), torch.ones(40, SAMPLE)]))) == pytest.approx(
        (0.0, SAMPLE)
    )  # of a large batch a sample
    two = torch.tensor([[1.0, 0], [0.6, 0.8]])  # eigenvalues 0.8 and 0.2
    assert closeness(*spread(two)) == pytest.approx((0.6, 0.8**-0.8 * 0.2**-0.2), abs=1e-6)


def test_mva_collapses_and_is_marked_and_infonce_is_not(train):
    summary, folder = train(_recipe(ALIGNED, {}))
    assert summary["collapsed"]["last"].startswith("embeddings have collapsed: mean cosine 0.9")
    assert [event["guard"] for event in summary["guards"]] == ["embedding_collapse"]
    assert summary["steps"] == 40
    seen = [line["guards"]["mean_cosine"] for line in _curve(folder) if "guards" in line]
    assert len(seen) == 19
    assert seen[-1] > 0.99
    kept, _ = train(_recipe(trial.recipe()["terms"], {}), "infonce")
    assert kept["collapsed"] == {}
    assert kept["guards"] == []


def test_a_collapse_ends_the_run_where_it_is_to_stop(train):
    summary, folder = train(_recipe(ALIGNED, {"embedding_collapse": "stop"}, steps=200))
    event = summary["guards"][0]
    assert summary["steps"] == event["from"] + 4 == len(_curve(folder)) < 60
    assert summary["collapsed"].keys() == {"last"}
    assert (folder / "last" / "main" / "model.safetensors").is_file()


def test_a_collapse_is_an_error_where_it_is_to_fail(train, tmp_path):
    with pytest.raises(CrosslignError, match=r"step 8: .*step 4\b.*embedding_collapse"):
        train(_recipe(ALIGNED, {"embedding_collapse": "fail"}))
    assert not (tmp_path / "run").exists()
    summary, folder = train(_recipe(ALIGNED, {"embedding_collapse": "off"}), "off")
    assert summary["collapsed"] == {}
    assert not any("guards" in line for line in _curve(folder))


@pytest.mark.parametrize(
    ("collapsed", "why"),
    [
        (torch.ones(8, 8), "mean cosine 1.0000, effective rank 1.00"),
        (torch.tensor([[1.0] + [0.0] * 7, [-1.0] + [0.0] * 7]).repeat(4, 1), "mean cosine 0.0000, effective rank 1.00"),
    ],
    ids=["one point", "one line, whose cosines cancel"],
)
def test_one_collapsed_input_beside_a_sound_one_is_seen(collapsed, why):
    sound = torch.eye(8)  # cosines of 0, rank 8
    for inputs in ([sound, collapsed], [collapsed, sound]):
        guards = Guards({"every": 1, "patience": 1, "after": 0})
        guards.check(1, guards.wanted(1, inputs), {})
        assert guards.mark() == f"embeddings have collapsed: {why} (since step 1)"
    guards.check(2, guards.wanted(2, [sound, sound]), {})
    assert guards.mark() == ""


def test_a_single_vector_is_close_to_nothing():
    guards = Guards({"every": 1, "patience": 1, "after": 0})
    assert guards.check(1, guards.wanted(1, [torch.ones(1, 8)]), {}) == {}
    assert guards.check(2, guards.wanted(2, [torch.ones(1, 8), torch.eye(8)]), {}) == pytest.approx(
        {"mean_cosine": 0.0, "effective_rank": 8.0}
    )


def test_only_checkpoints_made_after_a_collapse_are_marked(train):
    recipe = _recipe(ALIGNED, {}) | {"select": {"best": {"task": "t", "subset": "s", "metric": "m", "every": 2}}}
    scores = iter(range(100, 0, -1))
    summary, _ = train(recipe, dev=lambda model: {"best": float(next(scores))})
    assert summary["best"]["best"]["step"] == 2
    assert summary["collapsed"].keys() == {"last"}


@pytest.mark.parametrize("action", ["mark", "stop"])
def test_a_step_that_is_not_finite_updates_nothing(train, tiny_model, action):
    terms = [{"objective": "trial_paired", "examples": "pairs", "batch": 8, "poison_at": 4}]
    summary, folder = train(trial.recipe(terms=terms, train={"guards": {"not_finite": action}}), model=tiny_model)
    losses = [line["loss"] for line in _curve(folder)]
    assert losses[4:] == [None] * (2 if action == "mark" else 1)
    assert None not in losses[:4]
    assert summary["collapsed"] == {"last": "step 5: the loss is not finite, its update was left out (since step 5)"}
    assert all(torch.isfinite(p).all() for p in tiny_model.parameters())


def test_the_examples_of_a_step_that_is_not_finite_stand_in_its_line(train, tmp_path):
    terms = [{"objective": "trial_paired", "examples": "pairs", "batch": 8, "poison_at": 4}]
    _, folder = train(trial.recipe(terms=terms, train={"guards": {"not_finite": "mark"}}), "marked")
    assert [len(line.get("examples", ())) for line in _curve(folder)] == [0, 0, 0, 0, 8, 4]
    with pytest.raises(CrosslignError, match=r"examples .*curve\.jsonl"):
        train(trial.recipe(terms=terms), "failed")
    last = _curve(tmp_path / "failed-work")[-1]
    assert (last["step"], last["loss"], last["examples"]) == (5, None, _curve(folder)[4]["examples"])


def test_so_many_updates_in_a_row_that_are_not_finite_end_training(train):
    terms = [{"objective": "trial_paired", "examples": "pairs", "batch": 8, "poison_at": 2}]
    guards = {"not_finite": "mark", "left_out": 3}
    summary, _ = train(trial.recipe(terms=terms, train={"steps": 12, "guards": guards}))
    assert summary["steps"] == 5
    assert "last" in summary["collapsed"]
    counted = Guards(guards)
    for done in range(1, 12):
        counted.not_finite(done, None if done % 3 == 0 else CrosslignError("lost"))
    assert counted.stopped == ""
    assert [event["from"] for event in counted.events] == [1]  # one mark, since the first that was left out
    again, ended = Guards(guards), Guards(guards)
    again.restore(json.loads(json.dumps(counted.state())))
    again.not_finite(12, CrosslignError("lost"))
    assert again.stopped == "step 12: lost, its update was left out"  # the third in a row, two of them before the run went on
    ended.restore(json.loads(json.dumps(again.state())))
    assert ended.stopped == again.stopped


def test_constant_predictions_of_a_term_are_seen_and_pass():
    guards = Guards({"every": 1, "patience": 2, "after": 0})
    for done, constant in enumerate([1.0, 0.0, 1.0, 1.0, 1.0], start=1):
        guards.check(done, [], {"cross_entropy": {"constant": constant}})
    assert guards.mark() == "cross_entropy gives one prediction for all rows (since step 3)"
    again = Guards({"every": 1, "patience": 2, "after": 0})
    again.restore(json.loads(json.dumps(guards.state())))
    again.check(6, [], {"cross_entropy": {"constant": 0.0}})
    assert again.mark() == ""
    assert [bool(again.mark(step)) for step in range(1, 8)] == [False, False, True, True, True, False, False]
    assert again.mark(5) == guards.mark()
    assert again.events[0]["to"] == 6


def test_each_term_that_predicts_is_watched_by_itself():
    watched, silent = (Guards({"every": 1, "patience": 2, "after": 0, "constant_prediction": action}) for action in ("mark", "off"))
    for done in (1, 2, 3):
        for guards in (watched, silent):
            guards.check(done, [], {"a": {"constant": 1.0}, "b": {"constant": 0.5}})
    assert [event["guard"] for event in watched.events] == ["constant_prediction a"]
    assert silent.events == []


BAD = {
    "embedding_collapse": (spread(torch.ones(8, 8)), {}),
    "constant_prediction": ([], {"head": {"constant": 1.0}}),
    "rank_1_empty": ([], {"ranks": {"without_rank_1": 1.0}}),
}


@pytest.mark.parametrize("guard", BAD)
def test_every_guard_looks_while_another_is_off_and_does_what_its_own_action_says(guard):
    """That of the guard, of whichever term it watches."""
    once = {"every": 1, "patience": 1, "after": 0, "rank_1_steps": 0}
    (other,) = [name for name in BAD if name != guard][:1]
    marked, ended, failed = (Guards(once | {other: "off", guard: action}) for action in ("mark", "stop", "fail"))
    marked.check(1, *BAD[guard])
    assert marked.mark()
    assert not marked.stopped
    ended.check(1, *BAD[guard])
    assert ended.stopped == ended.events[0]["reason"]
    with pytest.raises(CrosslignError, match=rf"step 1: .*guards: {guard} "):
        failed.check(1, *BAD[guard])


def test_a_run_that_collapses_again_after_it_recovered_is_marked_again():
    guards = Guards({"every": 1, "patience": 1, "after": 0})
    for done, vectors in enumerate([torch.ones(8, 8), torch.eye(8), torch.ones(8, 8)], start=1):
        guards.check(done, guards.wanted(done, [vectors]), {})
    assert [(event["from"], event["to"]) for event in guards.events] == [(1, 2), (3, None)]
    assert guards.mark().endswith("(since step 3)")
    assert [bool(guards.mark(step)) for step in (1, 2, 3)] == [True, False, True]


def test_an_empty_first_rank_for_500_steps_is_marked():
    guards = Guards({})
    terms = {"rank_infonce": {"without_rank_1": 0.951}}
    for done in range(1, 600):  # checks at 100, 110, …: the 51st, at 600, ends 500 steps
        guards.check(done, [], terms)
    assert guards.mark() == ""
    guards.check(600, [], terms)
    assert guards.mark() == "rank_infonce finds no candidate of rank 1 for 95.1% of the anchors (since step 100)"
    guards.check(610, [], {"rank_infonce": {"without_rank_1": 0.95}})  # not more than 95 %
    assert guards.mark() == ""
    silent = Guards({"rank_1_empty": "off", "rank_1_steps": 1})
    silent.check(100, [], terms)
    assert silent.mark() == ""


def test_the_mark_of_a_checkpoint_reaches_its_embeddings(tmp_path):
    from crosslign.files.lineage import Lineage
    from crosslign.stages.embed import collapse_mark

    Lineage("train_system", {}, [], tmp_path, counts={"collapsed": {"last": "because"}}).write(tmp_path, "system")
    assert (collapse_mark(tmp_path, "last"), collapse_mark(tmp_path, "best")) == ("because", "")
    Lineage("prepare_encoder", {}, [], tmp_path, counts={"files": 3}).write(tmp_path, "encoder")
    assert collapse_mark(tmp_path, "main") == ""
    assert collapse_mark(tmp_path / "none", "main") == ""


def test_marks_survive_a_stop(train, stopped_before):
    recipe = _recipe(ALIGNED, {}, checkpoint_every=5)
    undisturbed, whole = train(recipe, "whole")
    with stopped_before(29):
        train(recipe, "again")
    summary, again = train(recipe, "again")
    assert summary["collapsed"].keys() == {"last"}
    assert summary["guards"] == undisturbed["guards"]  # since which step is known from before the stop
    assert trial.weights(whole) == trial.weights(again)
