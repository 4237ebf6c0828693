"""EMMA-X's losses: numbers worked out by hand, slow twins, the E-step's candidates, guard rails."""

from __future__ import annotations

import pytest
import slow_losses
import torch

from crosslign.config.options import check_call
from crosslign.errors import InputError
from crosslign.objectives.terms.gmm_ranks import smoothed_nll
from crosslign.objectives.terms.rank_infonce import rank_temperatures, rank_terms

DOUBLE = torch.float64
QUERY = torch.tensor([[3, 4]], dtype=torch.float64)
KEYS = torch.tensor([[4, 3], [5, 12], [1, 0], [0, 1], [15, 8], [-3, 4], [12, 5], [8, 15]], dtype=torch.float64)
RANKS = [1, 1, 2, 2, 3, 4, 2, 3]


def unit(rows):
    return rows / rows.norm(dim=-1, keepdim=True)


def terms_of(ranks, temperatures, mean=False, dtype=DOUBLE):
    keep = torch.ones(1, 8, dtype=torch.bool)
    return rank_terms(unit(QUERY.to(dtype)) @ unit(KEYS.to(dtype)).T, torch.tensor([ranks]), keep, temperatures, mean)


@pytest.mark.parametrize(("dtype", "tolerance"), [(DOUBLE, 1e-9), (torch.float32, 1e-4)])
@pytest.mark.parametrize(
    ("ranks", "temperatures", "mean", "expected", "total"),
    [
        (RANKS, [0.05, 0.075, 0.10], False, [0.7102615057, 1.7767291776, 0.0005834746], 2.4875741579),
        (RANKS, [0.05, 0.075, 0.10], True, [1.4034086863, 2.8753414663, 0.6937306551], 4.9724808077),
        (RANKS, [0.04, 0.04, 0.04], False, [0.7211390700, 3.1362372505, 0.0000000181], 3.8573763387),
        ([1, 1, 4, 4, 4, 4, 4, 4], [0.05, 0.075, 0.10], False, [0.7102615057, 0, 0], 0.7102615057),
        ([1, 1, 2, 2, 2, 2, 2, 2], [0.05], False, [0.7102615057], 0.7102615057),
    ],
)
def test_golden_rank_terms(ranks, temperatures, mean, expected, total, dtype, tolerance):
    found = torch.stack(terms_of(ranks, temperatures, mean, dtype))
    assert found.tolist() == pytest.approx(expected, abs=tolerance)
    assert float(found.sum()) == pytest.approx(total, abs=tolerance)


@pytest.mark.parametrize("dtype", [DOUBLE, torch.float32])
def test_a_rank_that_no_anchor_has_is_skipped(dtype):
    terms = terms_of([2, 2, 2, 3, 3, 4, 4, 4], [0.05, 0.075, 0.10], dtype=dtype)
    assert float(terms[0]) == 0
    assert all(torch.isfinite(term) for term in terms)


def test_golden_temperatures():
    assert rank_temperatures(4, 0.05, 0.10) == pytest.approx([0.05, 0.075, 0.10])
    eight = [0.05, 0.0583333333, 0.0666666667, 0.075, 0.0833333333, 0.0916666667, 0.10]
    assert rank_temperatures(8, 0.05, 0.10) == pytest.approx(eight)
    assert rank_temperatures(2, 0.05, 0.10) == [0.05]


@pytest.fixture
def parts(part, random_vectors):
    """Queue of five keys, a mixture and rank scores, in 2 dimensions."""

    def make(**options):
        queue = part("momentum_queue", size=5)
        queue.ring = unit(random_vectors(dimension=2, seed=9, k=5)["k"]).unsqueeze(0)
        queue.filled[:] = 5
        return {"queue": queue, "gmm": part("gaussian_mixture", **options), "scores": part("rank_scores", s_init="linear")}

    return make


NAMES = {"queue": "queue", "classifier": "gmm", "scores": "scores"}


def step(made, rows, options):
    """Return candidates, ranks by the mixture and by the encoder, and which pairs count, by loops."""
    queries, own = unit(made["a"]), unit(made["a_key"])
    others = [*unit(torch.tensor(options["queue"], dtype=DOUBLE)), *own, *([*unit(made["b_key"])] if "b_key" in made else [])]
    keep = {(i, k) for i in range(len(queries)) for k in range(len(others)) if k != 5 + i or options["self_positive"]}
    forced = {(row, 5 + len(own) + n) for n, row in enumerate(options["rows"])}
    forced |= {(i, 5 + i) for i in range(len(queries))} if options["self_positive"] else set()
    s = [1.0, 0.75, 0.5, 0.25]
    by_mixture, by_encoder = [], []
    for i, query in enumerate(queries):
        cosine = [float(query @ other) for other in others]
        squares = [float(((query - other) ** 2).sum()) for other in others]
        variances = [0.1, 0.4, 0.65, 0.9]
        score = [[-0.5 * (2 * torch.log(torch.tensor(v)).item() + q / v) for v in variances] for q in squares]
        by_mixture.append([1 if (i, k) in forced else 1 + row.index(max(row)) for k, row in enumerate(score)])
        distance = [[abs(c - value) for value in s] for c in cosine]
        by_encoder.append([1 if (i, k) in forced else 1 + row.index(min(row)) for k, row in enumerate(distance)])
    return others, by_mixture, by_encoder, keep


def test_the_mean_of_a_rank_is_over_all_anchors_or_over_those_that_have_it():
    """Anchors of the second rank alone, and one of both: by the definition, terms of rank 1 differ by the share of anchors."""
    cosines = unit(torch.tensor([[3, 4], [4, 3], [5, 12]], dtype=DOUBLE)) @ unit(KEYS).T
    ranks = torch.tensor([RANKS, [2, 2, 2, 3, 3, 4, 4, 4], [2, 2, 2, 3, 3, 4, 4, 4]])
    keep = torch.ones_like(ranks, dtype=torch.bool)
    over_all, having = (rank_terms(cosines, ranks, keep, [0.05, 0.075, 0.10], mean_over=over) for over in ("all", "having"))
    assert float(having[0]) == pytest.approx(0.7102615057, abs=1e-9)
    assert float(over_all[0]) == pytest.approx(0.7102615057 / 3, abs=1e-9)
    assert float(over_all[1]) == pytest.approx(float(having[1]), abs=1e-12)


@pytest.mark.parametrize("over", ["all", "having"])
@pytest.mark.parametrize("aggregate", ["sum", "mean"])
@pytest.mark.parametrize("self_positive", [False, True])
def test_rank_infonce_agrees_with_the_slow_twin(term, batch, parts, agree, random_vectors, self_positive, aggregate, over):
    rows = batch(4, "ab", b_text=[None, "b1", None, "b3"])
    options = {"self_positive": self_positive, "rank_loss_aggregate": aggregate, "mean_over": over}
    objective = term("rank_infonce", **NAMES, anchor_parallel=0.5, **options)
    assert list(objective.inputs(rows, torch.Generator())["b_key"].texts) == ["b1", "b3"]
    made, ready = random_vectors(dimension=2, seed=3, a=4, a_key=4, b_key=2), parts()
    options = {"queue": ready["queue"].ring[0].tolist(), "rows": [1, 3], "self_positive": self_positive}
    others, by_mixture, _, keep = step(made, rows, options)

    def slow(v):
        return slow_losses.ranking(
            v["a"], others, by_mixture, 4, [0.05, 0.075, 0.10], aggregate == "mean", lambda i, k: (i, k) in keep, over
        )

    agree(lambda v: objective.loss(v, rows, ready).total, slow, made)


@pytest.mark.parametrize("parallel", [[], [0, 2]])
def test_step_of_phase_2(term, batch, parts, random_vectors, parallel):
    """What is logged is of pairs whose rank is not known; an anchor with a parallel sentence is never without rank 1."""
    rows, ready = batch(4, "ab" if parallel else "a", **({"b_text": ["b0", None, "b2", None]} if parallel else {})), parts()
    made = random_vectors(dimension=2, seed=3, a=4, a_key=4, **({"b_key": 2} if parallel else {}))
    options = {"queue": ready["queue"].ring[0].tolist(), "rows": parallel, "self_positive": False}
    others, by_mixture, by_encoder, keep = step(made, rows, options)
    objective = term("rank_infonce", **NAMES, anchor_parallel=0.5)
    objective.inputs(rows, torch.Generator())
    loss = objective.loss(made, rows, ready)
    flat = sorted(keep)
    free = [(i, k) for i, k in flat if (i, k) not in {(row, 9 + n) for n, row in enumerate(parallel)}]
    for r in range(1, 5):
        assert loss.logged[f"occupancy_g_{r}"] == pytest.approx(sum(by_mixture[i][k] == r for i, k in free) / len(free))
        assert loss.logged[f"occupancy_m_{r}"] == pytest.approx(sum(by_encoder[i][k] == r for i, k in free) / len(free))
    assert loss.logged["agreement"] == pytest.approx(sum(by_mixture[i][k] == by_encoder[i][k] for i, k in free) / len(free))
    lonely = [all(by_mixture[i][k] != 1 for k in range(len(others)) if (i, k) in keep) for i in range(4)]
    assert loss.logged["without_rank_1"] == pytest.approx(sum(lonely) / 4)
    assert loss.logged["s_decreasing"] == 1
    means, variances = torch.zeros(4, 2, dtype=DOUBLE), torch.tensor([[0.1] * 2, [0.4] * 2, [0.65] * 2, [0.9] * 2], dtype=DOUBLE)
    deltas = [unit(made["a"])[i] - others[k] for i, k in free]
    posteriors = [slow_losses.gaussian_posteriors(delta, means, variances, means[:, 0]) for delta in deltas]
    entropies = [-sum(float(p * torch.log(p)) for p in posterior) for posterior in posteriors]
    assert loss.logged["entropy"] == pytest.approx(slow_losses.mean(entropies), abs=1e-6)
    ready["scores"].commit({})
    queries = unit(made["a"])
    for r, start in enumerate([1.0, 0.75, 0.5, 0.25], start=1):
        cosines = [float(queries[i] @ others[k]) for i, k in flat if by_mixture[i][k] == r]
        wanted = 0.999 * start + 0.001 * sum(cosines) / len(cosines) if cosines else start
        assert float(ready["scores"].scores[r - 1]) == pytest.approx(wanted, abs=1e-6)
    ready["queue"].store = torch.float64
    ready["queue"].commit({})
    assert torch.allclose(ready["queue"].ring[0, :4], unit(made["a_key"]), atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_gmm_ranks_by_the_encoder_agree_with_the_slow_twin(term, batch, parts, random_vectors, smoothing):
    rows, ready = batch(3, "ab", b_text=["b0", None, None]), parts()
    made = random_vectors(dimension=2, seed=4, a=3, a_key=3)
    made["b_key"] = -made["a"][:1]  # as far from its anchor as can be: that its rank is 1 is known, not found
    options = {"queue": ready["queue"].ring[0].tolist(), "rows": [0], "self_positive": False}
    others, _, by_encoder, keep = step(made, rows, options)
    made["a"].requires_grad_()
    objective = term("gmm_ranks", **NAMES, labels="encoder", anchor_parallel=0.34, label_smoothing=smoothing)
    assert list(objective.inputs(rows, torch.Generator())["b_key"].texts) == ["b0"]
    loss = objective.loss(made, rows, ready).total
    loss.backward()
    assert made["a"].grad is None
    gmm = ready["gmm"]
    means, spread = gmm.means.detach().double().requires_grad_(), gmm.log_variances.detach().double().requires_grad_()
    losses = []
    for i, k in sorted(keep):
        delta = unit(made["a"].detach())[i] - others[k]
        posterior = slow_losses.gaussian_posteriors(delta, means, spread.exp(), torch.zeros(4, dtype=torch.float64))
        own = -torch.log(posterior[by_encoder[i][k] - 1])
        losses.append((1 - smoothing) * own - smoothing * slow_losses.mean(torch.log(p) for p in posterior))
    expected = slow_losses.mean(losses)
    expected.backward()
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), abs=1e-9)
    assert torch.allclose(gmm.means.grad.double(), means.grad, rtol=1e-5, atol=1e-6)
    assert torch.allclose(gmm.log_variances.grad.double(), spread.grad, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("keys", [False, True])
@pytest.mark.parametrize(("again", "smoothing"), [(False, 0.0), (True, 0.3)])
def test_gmm_ranks_by_interpolation(term, batch, parts, random_vectors, keys, again, smoothing):
    rows, ready, right = batch(5), parts(), "b_key" if keys else "b"
    options = {"queue": "queue" if keys else None, "interpolations": 3, "normalise_interpolated": again, "label_smoothing": smoothing}
    objective = term("gmm_ranks", classifier="gmm", scores="scores", **options)
    assert list(objective.inputs(rows, torch.Generator())) == ["a", right]
    made = random_vectors(dimension=2, seed=6, **{"a": 5, right: 5})
    made["a"].requires_grad_()
    torch.manual_seed(8)
    loss = objective.loss(made, rows, ready)
    torch.manual_seed(8)
    shift = int(torch.randint(1, 5, ()))
    shares = torch.rand(15, dtype=torch.float64)
    x, y = unit(made["a"].detach()), unit(made[right])
    leaves = [torch.zeros(4, 2, dtype=torch.float64).requires_grad_(), torch.zeros(4, dtype=torch.float64).requires_grad_()]
    losses, cosines, right_ranks = [0.0] * 5, {1: [], 2: [], 3: [], 4: []}, []
    variances = torch.tensor([[0.1] * 2, [0.4] * 2, [0.65] * 2, [0.9] * 2], dtype=torch.float64)
    for i in range(5):
        outlier = y[(i - shift) % 5]
        assert not torch.equal(outlier, y[i])
        items = [(y[i], 1), (outlier, 4)]
        for n in range(3):
            share = float(shares[5 * n + i])
            between = (1 - share) * y[i] + share * outlier
            items.append((unit(between) if again else between, -int(-(1 + 3 * share - 1e-12) // 1)))
        for other, rank in items:
            found = slow_losses.gaussian_posteriors(x[i] - other, leaves[0], variances, leaves[1])
            spread = slow_losses.mean(torch.log(p) for p in found)
            losses[i] = losses[i] - (1 - smoothing) * torch.log(found[rank - 1]) - smoothing * spread
            right_ranks.append(1 + found.index(max(found)) == rank)
            cosines[rank].append(float(x[i] @ unit(other)))
    slow = sum(losses) / 5
    slow.backward()
    assert float(loss.total.detach()) == pytest.approx(float(slow.detach()), abs=1e-6)
    assert loss.logged == {"accuracy": pytest.approx(sum(right_ranks) / 25)}
    loss.total.backward()
    assert made["a"].grad is None
    for leaf, own in zip(leaves, (ready["gmm"].means, ready["gmm"].prior_logits), strict=True):
        assert own.grad.double().flatten().tolist() == pytest.approx(leaf.grad.flatten().tolist(), rel=1e-5, abs=1e-5)
    measured = ready["scores"]
    measured.s_init = "measured"
    measured.commit({})
    assert measured.scores.tolist() == pytest.approx([sum(c) / len(c) for c in cosines.values()], abs=1e-6)


def test_a_single_pair_has_no_random_sentence(term, batch, parts, random_vectors):
    vectors = random_vectors(dimension=2, a=1, b=1)
    loss = term("gmm_ranks", classifier="gmm").loss(vectors, batch(1), parts())
    x = unit(vectors["a"]) - unit(vectors["b"])
    wanted = -parts()["gmm"].paired_log_posteriors(x, torch.zeros_like(x))[0, 0]
    assert float(loss.total.detach()) == pytest.approx(float(wanted.detach()), abs=1e-9)


def test_smoothing_keeps_the_sum_of_labels():
    log_posteriors = torch.tensor([[0.7, 0.2, 0.1]], dtype=torch.float64).log()
    wanted = -(0.7 + 0.1) * log_posteriors[0, 0] - 0.1 * log_posteriors[0, 1:].sum()
    assert float(smoothed_nll(log_posteriors, torch.tensor([1]), 0.3)) == pytest.approx(float(wanted), abs=1e-12)


def test_parallel_anchors_are_a_share_of_the_batch(term, batch):
    objective = term("rank_infonce", **NAMES, anchor_parallel=0.25)

    def rows_of(seed, rows):
        return objective.candidates.parallel_rows(rows, torch.Generator().manual_seed(seed))

    chosen = [rows_of(seed, batch(8, step=1)) for seed in range(60)]  # of one step in the runs of many seeds
    assert {len(rows) for rows in chosen} == {2}
    assert {row for rows in chosen for row in rows} == set(range(8))
    assert rows_of(5, batch(8, step=2)) == chosen[5]
    assert rows_of(0, batch(8, "ab", b_text=[None] * 7 + ["b7"])) == [7]
    strict = term("rank_infonce", **NAMES, anchor_parallel=0.0)
    assert list(strict.inputs(batch(8), torch.Generator())) == ["a", "a_key"]
    again = term("gmm_ranks", **NAMES, labels="encoder", anchor_parallel=0.25)
    assert again.inputs(batch(8, step=3), torch.Generator()) == objective.inputs(batch(8, step=3), torch.Generator())


def test_nothing_to_compare_is_zero(term, batch, part, random_vectors):
    vectors = random_vectors(dimension=2, a=1, a_key=1)
    ready = {"queue": part("momentum_queue", size=4), "gmm": part("gaussian_mixture"), "scores": part("rank_scores")}
    for name, options in (("rank_infonce", {}), ("gmm_ranks", {"labels": "encoder"})):
        leaves = {key: v.clone().requires_grad_() for key, v in vectors.items()}
        total = term(name, **NAMES, **options).loss(leaves, batch(1, "a"), ready).total
        total.backward()
        assert float(total.detach()) == 0


def test_does_not_depend_on_the_order_of_the_batch(term, batch, parts, random_vectors):
    made, ready = random_vectors(dimension=2, seed=3, a=6, a_key=6), parts()
    order = torch.randperm(6, generator=torch.Generator().manual_seed(2))
    for name, options in (("rank_infonce", {}), ("gmm_ranks", {"labels": "encoder"})):
        objective = term(name, **NAMES, **options)
        first = objective.loss(made, batch(6, "a"), ready).total
        second = objective.loss({key: v[order] for key, v in made.items()}, batch(6, "a"), ready).total
        assert torch.allclose(first, second, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gmm_ranks", {"classifier": "gmm", "labels": "encoder"}),
        ("gmm_ranks", {"classifier": "gmm", "binning": "floor"}),
        ("rank_infonce", {**NAMES, "rank_loss_aggregate": "max"}),
    ],
)
def test_options_that_do_not_fit(name, options):
    with pytest.raises(InputError):
        check_call("objectives", name, options, "here")
