"""MoCo-BERT: numbers worked out by hand, a slow twin, the rings, the moving average, and the order of a step."""

from __future__ import annotations

import copy

import pytest
import slow_losses
import torch

from crosslign.errors import InputError
from crosslign.objectives import queue_scores
from crosslign.objectives.queue_scores import queue_logsumexp

TENSOR = {"dtype": torch.float64}
VECTORS = {
    "a": torch.tensor([[3, 4], [1, 0]], **TENSOR),
    "b": torch.tensor([[4, 3], [12, 5]], **TENSOR),
    "a_key": torch.tensor([[5, 12], [15, 8]], **TENSOR),
    "b_key": torch.tensor([[4, 3], [12, 5]], **TENSOR),
}
QUEUE_EN = torch.tensor([[1, 0], [0, 1], [-3, 4], [8, -15]], **TENSOR)
QUEUE_DE = torch.tensor([[0, 1], [5, 12], [-1, 0], [0, -1]], **TENSOR)


def unit(rows):
    return rows / rows.norm(dim=1, keepdim=True)


def fill(queue, *rings):
    """Put keys into the rings, in float64."""
    queue.ring = torch.stack([unit(ring) for ring in rings])
    queue.filled[:] = queue.size
    return queue


@pytest.fixture
def queue(part):
    return lambda size, members=("de", "en"), **options: part("momentum_queue", members=members, size=size, **options)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-4)])
@pytest.mark.parametrize(
    ("temperature", "ab", "ba", "total"),
    [(0.04, 0.4116242218, 0.1736341756, 0.5852583974), (0.5, 0.7768181823, 0.9519717015, 1.7287898839)],
)
def test_golden(term, batch, queue, temperature, ab, ba, total, dtype, tolerance):
    filled = fill(queue(4), QUEUE_DE.to(dtype), QUEUE_EN.to(dtype))
    vectors = {name: rows.to(dtype) for name, rows in VECTORS.items()}
    loss = term("momentum_contrast", queue="q", temperature=temperature).loss(vectors, batch(2), {"q": filled})
    assert loss.logged["loss_ab"] == pytest.approx(ab, abs=max(tolerance, 1e-7))
    assert loss.logged["loss_ba"] == pytest.approx(ba, abs=max(tolerance, 1e-7))
    assert float(loss.total) == pytest.approx(total, abs=tolerance)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_empty_queue_is_exactly_zero_without_gradient(term, batch, queue, dtype):
    vectors = {name: v.to(dtype, copy=True).requires_grad_(not name.endswith("_key")) for name, v in VECTORS.items()}
    loss = term("momentum_contrast", queue="q").loss(vectors, batch(2), {"q": queue(4)})
    loss.total.backward()
    assert float(loss.total.detach()) == 0
    assert not vectors["a"].grad.any()
    assert not vectors["b"].grad.any()


@pytest.mark.parametrize("options", [{}, {"in_batch_keys": True}, {"in_batch_keys": True, "own_side_keys": True}])
def test_agrees_with_the_slow_twin(term, batch, queue, agree, random_vectors, options, monkeypatch):
    monkeypatch.setattr(queue_scores, "BLOCK", 2)
    made = random_vectors(a=3, b=3, a_key=3, b_key=3, en=5, de=5)
    en, de = made.pop("en"), made.pop("de")
    part = fill(queue(5), de, en)
    rows = batch(3, b_lang=["de", "de", "en"])  # the last row's positive is scored against the other queue
    objective = term("momentum_contrast", queue="q", temperature=0.3, **options)

    def fast(v):
        part.ring = part.ring.to(v["a"].dtype)
        return objective.loss(v, rows, {"q": part}).total

    def slow(v):
        def extra(keys, own):
            def negatives(i):
                found = [keys[j] for j in range(3) if j != i] if options.get("in_batch_keys") else []
                return found + ([own[j] for j in range(3) if j != i] if options.get("own_side_keys") else [])

            return negatives

        a, b, ka, kb = v["a"], v["b"], v["a_key"].detach(), v["b_key"].detach()
        ab = slow_losses.moco_direction(a, kb, [de, de, en], 0.3, extra(kb, ka))
        ba = slow_losses.moco_direction(b, ka, [en, en, en], 0.3, extra(ka, kb))
        return slow_losses.mean(ab) + slow_losses.mean(ba)

    agree(fast, slow, made, single=False)


@pytest.mark.parametrize("block", [1, 3, 100])
def test_log_sum_over_a_queue_in_blocks(random_vectors, monkeypatch, block):
    monkeypatch.setattr(queue_scores, "BLOCK", block)
    made = random_vectors(q=4, k=7)
    queries = made["q"].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda q: queue_logsumexp(q, made["k"], 0.5), queries)
    expected = (made["q"] @ made["k"].T / 0.5).logsumexp(1)
    assert torch.allclose(queue_logsumexp(queries, made["k"], 0.5), expected, atol=1e-12)


def test_writing_to_the_queue_before_backward_does_not_change_the_gradient(term, batch, queue):
    slopes = []
    for commit in (False, True):
        part = fill(queue(4), QUEUE_DE, QUEUE_EN)
        vectors = {name: v.clone().requires_grad_() for name, v in VECTORS.items()}
        total = term("momentum_contrast", queue="q", temperature=0.5).loss(vectors, batch(2), {"q": part}).total
        if commit:
            part.store = torch.float64
            part.commit({})
        total.backward()
        slopes.append(vectors["a"].grad)
        assert vectors["b_key"].grad is None
    assert torch.equal(*slopes)


def test_keys_are_never_negatives_of_their_own_step(term, batch, queue):
    part = queue(4)
    objective = term("momentum_contrast", queue="q", temperature=0.5)
    single = {name: v.float() for name, v in VECTORS.items()}
    assert float(objective.loss(single, batch(2), {"q": part}).total) == 0
    part.commit({})
    assert part.filled.tolist() == [2, 2]
    assert torch.allclose(part.keys(0), unit(VECTORS["b_key"]).float())
    assert torch.allclose(part.keys(1), unit(VECTORS["a_key"]).float())
    assert float(objective.loss(single, batch(2), {"q": part}).total) > 0


def letters(ring, names="abcdefgh"):
    """Read back which key lies where; keys are unit vectors at angles of their own."""
    angles = torch.atan2(ring[:, 1], ring[:, 0])
    return "".join(names[round(float(angle) * 10)] if vector.any() else "." for angle, vector in zip(angles, ring, strict=True))


def keys(text, names="abcdefgh"):
    angles = torch.tensor([names.index(letter) / 10 for letter in text])
    return torch.stack([angles.cos(), angles.sin()], 1)


def put(part, text):
    part.stage("key", keys(text), ["en"] * len(text))
    part.commit({})
    return letters(part.ring[0]), int(part.pointer[0]), int(part.filled[0])


def test_ring_is_first_in_first_out(queue):
    part = queue(6, ("main",))
    assert put(part, "ab") == ("ab....", 2, 2)
    assert put(part, "cd") == ("abcd..", 4, 4)
    assert put(part, "ef") == ("abcdef", 0, 6)
    assert put(part, "gh") == ("ghcdef", 2, 6)


def test_of_a_batch_larger_than_the_ring_the_newest_stay(queue):
    assert put(queue(4, ("main",)), "abcdef") == ("efcd", 2, 4)


def test_an_incomplete_batch_wraps(queue):
    part = queue(4, ("main",))
    put(part, "abc")
    assert put(part, "gh") == ("hbcg", 1, 4)


def test_keys_staged_by_two_terms_are_enqueued_once(queue):
    part, given = queue(8, ("main",)), keys("ab")
    part.stage("a_key", given, ["en", "en"])
    part.stage("a_key", given.detach(), ["en", "en"])
    part.stage("b_key", keys("cd"), ["en", "en"])
    part.commit({})
    assert letters(part.keys(0)) == "abcd"
    part.commit({})
    assert int(part.filled[0]) == 4


def test_keys_of_a_step_that_failed_are_dropped(queue):
    """Its loss was not finite, so nothing was committed; the next step's keys alone go into the ring."""
    part = queue(4, ("main",))
    part.stage("a_key", keys("ab"), ["en", "en"])
    part.before_keys()
    assert put(part, "cd") == ("cd..", 2, 2)


def test_rings_per_language(queue):
    part = queue(4, ("main",), langs=["en", "zh"])
    part.stage("a_key", keys("abc"), ["en", "zh-CN", "en"])
    part.commit({})
    assert letters(part.keys(0)) == "ac"
    assert letters(part.keys(1)) == "b"
    assert letters(part.all_keys()) == "acb"
    with pytest.raises(InputError, match=r"momentum_queue: langs: .*'fr'; .*en"):
        part.rings_of(["fr"])


def test_a_random_queue_is_full_of_unit_vectors(queue):
    part, same, other = (queue(50, queue_init="random"), queue(50, queue_init="random"), queue(50))
    assert part.filled.tolist() == [50, 50]
    assert torch.allclose(part.ring.norm(dim=-1), torch.ones(2, 50))
    assert torch.equal(part.ring, same.ring)
    assert not torch.equal(part.ring, queue(50, queue_init="random", seed=1).ring)
    assert other.filled.tolist() == [0, 0]
    assert queue(3, store="float16").ring.dtype == torch.float16


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
@pytest.mark.parametrize(("momentum", "expected"), [(0.999, [1.001, 1.002999, 1.005996001]), (0.5, [1.5, 2.25, 3.125]), (0.0, [2, 3, 4])])
def test_moving_average(queue, momentum, expected, dtype, tolerance):
    part = queue(2, ("main",), momentum=momentum)
    online, key = part._model[0].member("main"), part.key_member("main")
    for p in (*online.parameters(), *key.parameters()):
        p.data = torch.ones_like(p, dtype=dtype)
    for query, wanted in zip((2, 3, 4), expected, strict=True):
        for p in online.parameters():
            p.data.fill_(query)
        online.backbone.seen.fill_(query)
        part.before_keys()
        for p in key.parameters():
            assert torch.allclose(p, torch.full_like(p, wanted), rtol=0, atol=tolerance)
            assert not p.requires_grad
        assert float(key.backbone.seen) == query


def test_without_momentum_the_copies_are_the_members(queue):
    part = queue(2, ("main",), momentum=0.0)
    online = part._model[0].member("main")
    for p in online.parameters():
        p.data.normal_()
    part.before_keys()
    assert all(torch.equal(p, q) for p, q in zip(online.parameters(), part.key_member("main").parameters(), strict=True))


def test_key_dropout(queue):
    on, off = queue(2, ("main",)), queue(2, ("main",), key_dropout=False)
    assert on.train().key_member("main").training
    assert not off.train().key_member("main").training
    assert off.training
    assert not any(name.startswith("_model") for name, _ in off.named_modules())
    assert off.key_member("other") is None


def test_members_may_be_called_as_a_method_of_torch(queue):
    """`to` is Tongan."""
    part = queue(2, ("en", "to"))
    assert part.key_member("to") is not part.key_member("en")
    assert len(list(part.parameters())) == 2 * len(list(part.key_member("to").parameters()))


def test_a_state_is_taken_over(queue):
    part = queue(4, ("main",))
    put(part, "abcdef")
    same = queue(4, ("main",))
    same.load_state_dict(copy.deepcopy(part.state_dict()))
    assert put(same, "g") == put(part, "g") == ("efgd", 3, 4)


def test_inputs_are_queries_and_keys(term, batch):
    inputs = term("momentum_contrast", queue="q").inputs(batch(2), torch.Generator())
    assert {name: item.keys for name, item in inputs.items()} == {"a": False, "b": False, "a_key": True, "b_key": True}
    assert list(inputs["b_key"].texts) == ["b0", "b1"]


def test_does_not_depend_on_the_order_of_the_batch(term, batch, queue, random_vectors):
    part, made = fill(queue(4), QUEUE_DE, QUEUE_EN), random_vectors(dimension=2, a=5, b=5, a_key=5, b_key=5)
    order = torch.randperm(5, generator=torch.Generator().manual_seed(1))
    objective = term("momentum_contrast", queue="q", in_batch_keys=True)
    first = objective.loss(made, batch(5), {"q": part}).total
    second = objective.loss({name: v[order] for name, v in made.items()}, batch(5), {"q": part}).total
    assert torch.allclose(first, second, atol=1e-12)


def test_the_queue_must_be_one(term, batch, part):
    with pytest.raises(InputError, match=r"mlp_train_only.*momentum_queue"):
        term("momentum_contrast", queue="mlp").loss(VECTORS, batch(2), {"mlp": part("mlp_train_only")})
