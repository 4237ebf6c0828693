"""The training loop: what it writes, its order of calls, selection, and what stops it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
import trial
from safetensors.torch import save_file

from crosslign.encoders.model import Model
from crosslign.errors import CrosslignError, InputError
from crosslign.objectives.contract import Input
from crosslign.training import accelerator, fit
from crosslign.training.run import pick_score
from crosslign.training.step import Stepper
from crosslign.training.terms import build_parts

HEAD = {"head": {"kind": "trial_head"}}


def _curve(folder):
    return [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]


def test_two_runs_give_the_same_bytes_and_another_seed_does_not(train):
    recipe = trial.recipe(parts=HEAD, terms=[{"objective": "trial_paired", "examples": "pairs", "batch": 8, "head": "head"}])
    summary, first = train(recipe, "first")
    again, second = train(recipe, "second")
    _, third = train(recipe | {"seed": 2}, "third")
    own = {"working_bytes": 0}  # of the disk, where a state tells the time that steps took
    assert summary | own == again | own
    assert trial.weights(first) == trial.weights(second)
    assert trial.weights(first)["last/main/model.safetensors"] != trial.weights(third)["last/main/model.safetensors"]
    assert sorted(p.name for p in first.parent.iterdir() if not p.name.endswith("-sets")) == ["first", "second", "third"]


def test_training_learns_and_logs_each_step(train):
    summary, folder = train(trial.recipe(train={"steps": 40, "learning_rate": 3e-3}))
    curve = _curve(folder)
    assert [line["step"] for line in curve] == list(range(1, 41))
    assert np.mean([line["loss"] for line in curve[-5:]]) < 0.5 * np.mean([line["loss"] for line in curve[:5]])
    assert curve[0]["learning_rate"] == 3e-3
    assert curve[20]["learning_rate"] == pytest.approx(1.5e-3)
    assert curve[2]["epoch"] == 1.0
    assert curve[0]["terms"]["trial_paired"]["loss"] == pytest.approx(curve[0]["loss"])
    assert curve[0]["grad_norm"] > 0
    assert summary["steps"] == 40
    assert summary["last_loss"] == curve[-1]["loss"]


def test_first_update_is_that_of_a_hand_written_adamw(train, tiny_model, tiny_encoder, sentence_pairs):
    """Full batch, no dropout, one step: every parameter moves as AdamW with clipping and decay says."""
    for module in tiny_model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    twin = Model.load({"main": tiny_encoder / "main"}).eval()
    member = twin.member("main")
    vectors = [
        member(dict(member.tokenizer(list(texts), return_tensors="pt", padding=True)), "mean")
        for texts in zip(*sentence_pairs, strict=True)
    ]
    a, b = (torch.nn.functional.normalize(v, dim=1) for v in vectors)
    torch.nn.functional.cross_entropy(a @ b.T / 0.05, torch.arange(20)).backward()
    named = {name: p for name, p in twin.named_parameters() if p.grad is not None}
    norm = sum(float((p.grad**2).sum()) for p in named.values()) ** 0.5
    terms = [{"objective": "trial_paired", "examples": "pairs", "batch": 20}]
    _, folder = train(trial.recipe(terms=terms, train={"steps": 1, "max_length": 64, "clip": 0.1, "weight_decay": 0.1}), model=tiny_model)
    assert _curve(folder)[0]["grad_norm"] == pytest.approx(norm, rel=1e-4)
    trained = dict(tiny_model.named_parameters())
    for name, p in named.items():
        gradient = p.grad * 0.1 / norm
        expected = p.detach() * (1 - 1e-3 * (0.1 if p.ndim > 1 else 0.0)) - 1e-3 * gradient / (gradient.abs() + 1e-8)
        large = gradient.abs() > 1e-6  # a gradient near zero moves by its rounding
        assert torch.allclose(trained[name][large], expected[large], atol=2e-6), name
    (pooler,) = (name for name in trained if name.endswith("pooler.dense.weight"))
    assert torch.equal(trained[pooler], dict(twin.named_parameters())[pooler])


def test_part_has_its_own_learning_rate(train, tiny_encoder):
    terms = [{"objective": "trial_paired", "examples": "pairs", "batch": 8, "head": "head"}]
    moved = []
    for rate in (1e-5, 1e-1):
        recipe = trial.recipe(parts={"head": HEAD["head"] | {"learning_rate": rate, "clip": 5.0}}, terms=terms, train={"steps": 1})
        model = Model.load({"main": tiny_encoder / "main"})
        parts = build_parts(recipe, model)
        before = parts["head"].dense.weight.detach().clone()
        train(recipe, f"r{rate}", model=model, parts=parts)
        moved.append(float((parts["head"].dense.weight.detach() - before).abs().max()))
        assert int(parts["head"].commits) == 1
    assert moved[1] > 100 * moved[0]


def test_terms_on_one_set_share_the_batch_and_weights_add_up(train):
    both = [
        {"objective": "trial_paired", "examples": "pairs", "batch": 8, "weight": 0.25},
        {"objective": "trial_paired", "examples": "pairs", "batch": 8, "weight": 2.0, "temperature": 1.0},
        {"objective": "trial_grouped", "examples": "groups", "batch": 4, "weight": 3.0},
    ]
    summary, folder = train(trial.recipe(terms=both, train={"steps": 3}))
    for line in _curve(folder):
        one, two, three = (line["terms"][name]["loss"] for name in ("trial_paired", "trial_paired_2", "trial_grouped"))
        assert line["loss"] == pytest.approx(0.25 * one + 2 * two + 3 * three, rel=1e-6)
        assert line["terms"]["trial_paired"]["similarity"] == line["terms"]["trial_paired_2"]["similarity"]
    assert summary["examples"].keys() == {"pairs", "groups"}
    assert [line["epoch"] for line in _curve(folder)] == pytest.approx([1 / 3, 2 / 3, 1])  # of the first set: batches of 8, 8 and 4 rows
    with pytest.raises(InputError, match=r"terms: .*'pairs'.*\[4, 8\]"):
        train(trial.recipe(terms=[both[0], both[1] | {"batch": 4}]))


def test_each_step_and_each_term_draws_anew_from_the_seed(train, monkeypatch):
    """What terms draw for their inputs, and the dropout of their parts, is another at each step and another for another seed."""
    real_inputs, real_loss, asked, dropped = trial.Paired.inputs, trial.Paired.loss, [], []

    def inputs(self, batch, draw):
        found = real_inputs(self, batch, draw)
        asked.append(self.seen[-1][1])
        return found

    def loss(self, vectors, batch, parts):
        dropped.append(float(torch.rand(())))
        return real_loss(self, vectors, batch, parts)

    monkeypatch.setattr(trial.Paired, "inputs", inputs)
    monkeypatch.setattr(trial.Paired, "loss", loss)
    terms, found = [{"objective": "trial_paired", "examples": "pairs", "batch": 20}] * 2, {}
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        train(trial.recipe(terms=terms, train={"steps": 3}, seed=seed), name)
        found[name] = (list(asked), list(dropped))
        asked.clear()
        dropped.clear()
    assert found["one"] == found["again"]
    assert len(set(found["one"][0])) == 3  # terms on one set share a step's draw
    assert len(set(found["one"][1])) == 6
    for one, other in zip(found["one"], found["other"], strict=True):
        assert not set(one) & set(other)


def test_terms_on_two_sets_draw_apart(train, monkeypatch):
    drawn = []
    for kind in (trial.Paired, trial.Grouped):
        monkeypatch.setattr(kind, "inputs", _noting_the_draw(kind.inputs, drawn))
    sets = {"trial_paired": "pairs", "trial_grouped": "groups"}
    terms = [{"objective": name, "examples": examples, "batch": 8} for name, examples in sets.items()]
    train(trial.recipe(terms=terms, train={"steps": 2}))
    assert len(drawn) == len(set(drawn)) == 4


def _noting_the_draw(real, drawn):
    def inputs(self, batch, draw):
        drawn.append(int(torch.randint(1 << 30, (1,), generator=draw)))
        return real(self, batch, draw)

    return inputs


def test_keys_draw_another_dropout_than_queries(train, monkeypatch):
    """A momentum copy starts as the encoder: with the same dropout the key of a sentence would be its query."""

    def inputs(self, batch, draw):
        item = Input(batch.columns["a_text"], batch.columns["a_lang"])
        return {"query": item, "key": replace(item, keys=True)}

    real, seen = trial.Keyed.loss, []
    monkeypatch.setattr(trial.Keyed, "inputs", inputs)
    monkeypatch.setattr(trial.Keyed, "loss", lambda self, vectors, *rest: (seen.append(dict(vectors)), real(self, vectors, *rest))[1])
    terms = [{"objective": "trial_keyed", "examples": "pairs", "batch": 8}]
    train(trial.recipe(terms=terms, parts={"momentum": {"kind": "trial_momentum"}}, train={"steps": 1}))
    assert not torch.isclose(seen[0]["query"], seen[0]["key"], atol=1e-3).all(1).any()


def test_terms_that_want_different_inputs_of_one_set_are_both_named(train, monkeypatch):
    monkeypatch.setattr(trial.Keyed, "inputs", lambda self, batch, draw: {"a": Input(batch.columns["b_text"], batch.columns["b_lang"])})
    terms = [{"objective": name, "examples": "pairs", "batch": 8} for name in ("trial_paired", "trial_keyed")]
    with pytest.raises(InputError, match=r"terms: trial_paired .*trial_keyed: .* pairs .*'a'"):
        train(trial.recipe(terms=terms, parts={"momentum": {"kind": "trial_momentum"}}))


def test_step_order_is_queries_average_keys_loss_commit(train, tiny_encoder):
    """Step 1 averages with the weights before its own update: the copy equals them; step 2 moves it half way to those after it."""
    weights, copies = [list(Model.load({"main": tiny_encoder / "main"}).parameters())], []
    for steps in (1, 2):
        recipe = trial.recipe(
            parts={"momentum": {"kind": "trial_momentum", "momentum": 0.5}},
            terms=[{"objective": "trial_keyed", "examples": "pairs", "batch": 8}],
            train={"steps": steps, "schedule": "constant"},
        )
        model = Model.load({"main": tiny_encoder / "main"})
        parts = build_parts(recipe, model)
        train(recipe, f"{steps} steps", model=model, parts=parts)
        assert parts["momentum"].calls == ["before_keys", "key", "loss", "commit"] * steps
        weights.append(list(model.parameters()))
        copies.append(list(parts["momentum"].copies.parameters()))
    assert all(p.grad is None for p in copies[1])
    assert all(torch.equal(start, copied) for start, copied in zip(weights[0], copies[0], strict=True))
    for start, after, copied in zip(weights[0], weights[1], copies[1], strict=True):
        assert torch.allclose(copied, (start + after) / 2, rtol=0, atol=1e-7)
    assert max(float((start - after).detach().abs().max()) for start, after in zip(weights[0], weights[1], strict=True)) > 1e-4


def test_selection_keeps_the_best_and_looks_at_the_last_step(train):
    scores = iter([0.2, 0.7, 0.7, None, 0.1])
    recipe = trial.recipe(train={"steps": 9}, select={"best": {"task": "t", "subset": "s", "metric": "m", "every": 2}})
    seen = []

    def dev(model):
        seen.append({name: p.detach().clone() for name, p in model.state_dict().items()})
        return {"best": next(scores)}

    summary, folder = train(recipe, dev=dev)
    found = json.loads((folder / "selection.json").read_text())
    assert [evaluation["step"] for evaluation in found["looks"]] == [2, 4, 6, 8, 9]
    assert found["best"] == summary["best"] == {"best": {"step": 4, "value": 0.7}}
    assert [evaluation["kept"] for evaluation in found["looks"]] == [["best"], ["best"], [], [], []]
    kept = Model.load({"main": folder / "best" / "main"}).state_dict()
    assert all(torch.equal(kept[name], seen[1][name]) for name in kept)
    assert (folder / "last/main/model.safetensors").read_bytes() != (folder / "best/main/model.safetensors").read_bytes()


def test_an_evaluation_that_is_only_watched_is_looked_at_each_epoch_and_keeps_nothing(train):
    watched = {"task": "t", "subset": "s", "metric": "m", "every": "epoch", "keep": False}
    recipe = trial.recipe(train={"steps": 7}, select={"seen": watched, "best": watched | {"every": 5, "keep": True}})
    scores = iter([{"seen": 0.1}, {"seen": 0.2, "best": 0.3}, {"seen": 0.4}, {"seen": 0.5, "best": 0.6}])
    summary, folder = train(recipe, dev=lambda model: next(scores))
    found = json.loads((folder / "selection.json").read_text())
    # an epoch is three batches: 8, 8 and 4 of 20 rows; the last step is looked at for every name
    assert [(evaluation["step"], evaluation["scores"]) for evaluation in found["looks"]] == [
        (3, {"seen": 0.1}),
        (5, {"best": 0.3}),
        (6, {"seen": 0.4}),
        (7, {"best": 0.6, "seen": 0.5}),
    ]
    assert summary["best"].keys() == {"best"}
    assert found["without_score"] == []
    assert sorted(path.name for path in folder.iterdir()) == ["best", "curve.jsonl", "last", "selection.json"]


def test_selection_without_any_score_falls_back_to_the_last_model(train):
    recipe = trial.recipe(select={"best": {"task": "t", "subset": "s", "metric": "m", "every": 100}})
    _, folder = train(recipe, dev=lambda model: {"best": float("nan")})
    assert (folder / "last/main/model.safetensors").read_bytes() == (folder / "best/main/model.safetensors").read_bytes()
    assert json.loads((folder / "selection.json").read_text())["without_score"] == ["best"]


def test_nan_loss_stops_with_step_examples_and_rate_and_keeps_the_checkpoint(train, tmp_path):
    terms = [{"objective": "trial_paired", "examples": "pairs", "batch": 8, "poison_at": 4}]
    with pytest.raises(CrosslignError, match=r"step 5: .*loss.*0\.000333.*sentences:sentences\.tsv:\d+") as caught:
        train(trial.recipe(terms=terms))
    assert "last good state is kept" in str(caught.value)
    assert (tmp_path / "run-work" / "current").read_text() == "step-00000004\n"
    assert not (tmp_path / "run").exists()


def test_gradient_that_is_not_finite_stops_before_the_update(train, tiny_model, monkeypatch):
    from crosslign.training.encoding import Encoding

    real = Encoding.backward

    def backward(self, *last):
        real(self, *last)
        next(p for p in tiny_model.parameters() if p.ndim < 2).grad[0] = float("inf")

    monkeypatch.setattr(Encoding, "backward", backward)
    before = [p.detach().clone() for p in tiny_model.parameters()]
    with pytest.raises(CrosslignError, match=r"step 1: .*gradient.*0\.001; "):
        train(trial.recipe(), model=tiny_model)
    assert all(torch.equal(a, b) for a, b in zip(before, tiny_model.parameters(), strict=True))


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_low_precision_trains_with_float32_losses(train, precision, monkeypatch):
    monkeypatch.setattr(accelerator, "computed_in", lambda precision, device: precision)  # on any CPU, however slow it is
    summary, folder = train(trial.recipe(train={"precision": precision}))
    _, full = train(trial.recipe(), "full")
    assert summary["precision"] == "bf16"  # of a CPU
    assert _curve(folder)[0]["loss"] == pytest.approx(_curve(full)[0]["loss"], rel=0.05)
    assert _curve(folder)[0]["loss"] != _curve(full)[0]["loss"]


def test_unknown_objectives_and_parts_are_named(train):
    with pytest.raises(InputError, match=r"terms: .*'paired'; .*alignment"):
        train(trial.recipe(terms=[{"objective": "paired", "examples": "pairs", "batch": 8}]))
    with pytest.raises(InputError, match=r"part x: .*'mlp'"):
        train(trial.recipe(parts={"x": {"kind": "mlp"}}))


def test_part_starts_from_the_base_system(train, tiny_encoder):
    terms = [{"objective": "trial_paired", "examples": "pairs", "batch": 8, "head": "head"}]
    _, folder = train(trial.recipe(parts=HEAD, terms=terms, train={"steps": 2}))
    model = Model.load({"main": folder / "last" / "main"})
    taken = build_parts(trial.recipe(parts={"head": HEAD["head"] | {"start_from": "base"}}, seed=9), model, folder / "last")
    fresh = build_parts(trial.recipe(parts=HEAD, seed=9), model)
    assert int(taken["head"].commits) == 2
    assert not torch.equal(taken["head"].dense.weight, fresh["head"].dense.weight)
    with pytest.raises(InputError, match=r"part head: .*parts\.safetensors"):
        build_parts(trial.recipe(parts={"head": HEAD["head"] | {"start_from": "base"}}), model, tiny_encoder)


def test_a_part_starts_from_what_the_encoder_was_published_with(tiny_encoder, tmp_path, caplog):
    model, folder = Model.load({"main": tiny_encoder / "main"}), tmp_path / "encoder" / "main"
    folder.mkdir(parents=True)
    entry = {"mlp": {"kind": "mlp_train_only", "start_from": "encoder"}}
    weight = torch.arange(model.dimension**2, dtype=torch.float32).view(model.dimension, -1)
    save_file({"roberta.x": weight}, folder / "model.safetensors")
    fresh = build_parts(trial.recipe(parts=entry, seed=9), model, folder.parent)["mlp"]
    assert "has no dense.bias, dense.weight; the part starts from new weights" in caplog.text
    save_file({"mlp.dense.weight": weight, "mlp.dense.bias": weight[0].clone()}, folder / "model.safetensors")
    taken = build_parts(trial.recipe(parts=entry, seed=9), model, folder.parent)["mlp"]
    assert torch.equal(taken.dense.weight, weight)
    assert torch.equal(taken.dense.bias, weight[0])
    assert not torch.equal(fresh.dense.weight, weight)
    save_file({"mlp.dense.weight": weight[:2].clone(), "mlp.dense.bias": weight[0].clone()}, folder / "model.safetensors")
    with pytest.raises(InputError, match=r"part mlp: .*Error\(s\) in loading state_dict for TrainOnlyMLP"):
        build_parts(trial.recipe(parts=entry, seed=9), model, folder.parent)
    with pytest.raises(InputError, match=r"part head: .*Head\. .*start_from"):
        build_parts(trial.recipe(parts={"head": HEAD["head"] | {"start_from": "encoder"}}), model, folder.parent)


def test_selection_goes_by_the_record_that_fits():
    from crosslign.tasks.records import Record

    records = [
        Record("t", "de", "accuracy", 0.1, 5, direction="en2xx"),
        Record("t", "de", "accuracy", 0.2, 5, direction="xx2en", main=True),
        Record("t", "fr", "accuracy", 0.3, 5, direction="xx2en"),
    ]
    assert pick_score(records, "best", {"subset": "de", "metric": "accuracy"}) == 0.2
    assert pick_score(records, "best", {"subset": "de", "metric": "accuracy", "direction": "en2xx"}) == 0.1
    with pytest.raises(InputError, match=r"select: best: .*\{'subset': 'it', 'metric': 'accuracy'\}"):
        pick_score(records, "best", {"subset": "it", "metric": "accuracy"})


def test_batches_drawn_ahead_are_those_that_the_step_would_draw(train, monkeypatch):
    """As a GPU has it; one draw a step, and the same weights."""
    real_update, real_draw, drawn = fit._Run._update, Stepper._draw, []

    def draw(self, stream, step):
        drawn.append(step)
        return real_draw(self, stream, step)

    def ahead(run, launched):
        if run.done + 1 < run.steps:
            run.stepper.prepare(run.done + 1)
        return real_update(run, launched)

    recipe = trial.recipe(train={"steps": 4})
    _, plain = train(recipe, "plain")
    monkeypatch.setattr(Stepper, "_draw", draw)
    monkeypatch.setattr(fit._Run, "_update", ahead)
    _, prepared = train(recipe, "prepared")
    assert trial.weights(prepared) == trial.weights(plain)
    assert drawn == sorted(drawn)
    assert {drawn.count(step) for step in range(4)} == {drawn.count(0)}


def budget(flops, **more):
    """Return a recipe with a budget in place of steps."""
    recipe = trial.recipe(**more)
    del recipe["train"]["steps"]
    recipe["train"]["budget"] = flops
    return recipe


def test_training_ends_at_the_step_nearest_to_its_budget_and_the_schedule_with_it(train):
    plain, _ = train(trial.recipe(train={"steps": 9}), "plain")
    whole = plain["encoded"]["flops"]
    summary, folder = train(budget(whole * 1.01), "budget")
    assert (summary["steps"], summary["encoded"]) == (9, plain["encoded"])
    assert trial.weights(folder) == trial.weights(folder.parent / "plain")  # nothing but the length's name differs
    fewer, folder = train(budget(whole * 0.6), "less")
    lines = _curve(folder)
    assert abs(fewer["encoded"]["flops"] / (whole * 0.6) - 1) < 0.5 / len(lines) * 1.5
    assert len(lines) == fewer["steps"] < 9
