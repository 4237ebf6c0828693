"""EMMA-X's parts: numbers worked out by hand, slow twins of the classifiers, rank scores, interpolation ranks."""

from __future__ import annotations

import re
from itertools import product

import pytest
import slow_losses
import torch
from torch import nn

from crosslign.config.options import check_call
from crosslign.errors import InputError
from crosslign.objectives.parts import gaussian_mixture, rank_network
from crosslign.objectives.terms.gmm_ranks import interpolation_ranks

DOUBLE = torch.float64
MEANS = torch.tensor([[0, 0], [0.2, -0.1], [0.5, 0.3], [1, -0.5]], dtype=DOUBLE)
VARIANCES = torch.tensor([[0.04, 0.09], [0.09, 0.09], [0.16, 0.25], [0.25, 0.36]], dtype=DOUBLE)
LOGITS = torch.tensor([0.5, 0.0, -0.5, 1.0], dtype=DOUBLE)


@pytest.fixture
def mixture(part):
    """The mixture of the example."""

    def make(dtype=DOUBLE, **options):
        made = part("gaussian_mixture", **options)
        made.means = nn.Parameter(MEANS.to(dtype, copy=True))
        made.log_variances = nn.Parameter(VARIANCES.log().to(dtype))
        made.prior_logits = nn.Parameter(LOGITS.to(dtype, copy=True))
        return made

    return make


def test_posteriors_of_half_precision_are_those_of_float32(part, random_vectors):
    x, y = (vectors.bfloat16() for vectors in random_vectors(x=3, y=4).values())
    for made in (part("gaussian_mixture", dimension=5), part("rank_network", dimension=5)):
        assert torch.equal(made.log_posteriors(x, y), made.log_posteriors(x.float(), y.float()))
        assert torch.equal(made.paired_log_posteriors(x, y[:3]), made.paired_log_posteriors(x.float(), y[:3].float()))


TYPES = pytest.mark.parametrize(("dtype", "tolerance"), [(DOUBLE, 1e-9), (torch.float32, 1e-4)])
GOLDEN = {
    (0.1, 0): ([0.6554717850, 0.2687493174, 0.0415286045, 0.0342502932], 1),
    (0.6, -0.2): ([0.0201100977, 0.3555033717, 0.1466753267, 0.4777112038], 4),
    (1.2, 0.9): ([5.3e-9, 0.0001910530, 0.3672890173, 0.6325199243], 4),
}
DENSITIES = {
    (0.1, 0): [0.8505336504, 0.4589574311, -0.9084391540, -2.6011264843],
    (0.6, -0.2): [-3.7466885719, -0.3743759022, -0.7596891540, -1.0789042621],
}


@TYPES
@pytest.mark.parametrize("delta", list(GOLDEN))
def test_golden_mixture(mixture, delta, dtype, tolerance):
    made, x = mixture(dtype), torch.tensor([delta], dtype=dtype)
    posterior, best = GOLDEN[delta]
    for found in (made.paired_log_posteriors(x, torch.zeros_like(x))[0], made.log_posteriors(x, torch.zeros_like(x))[0, 0]):
        assert found.exp().tolist() == pytest.approx(posterior, abs=tolerance)
        assert int(found.argmax()) + 1 == best
    if delta in DENSITIES:
        distances = ((x - made.means) ** 2 / made.log_variances.exp()).sum(1)
        assert made.log_densities(distances).tolist() == pytest.approx(DENSITIES[delta], abs=tolerance)


@TYPES
def test_golden_nll_and_the_prior_counted_twice(mixture, dtype, tolerance):
    x = torch.tensor([[0.1, 0], [0.6, -0.2]], dtype=dtype)
    zero = torch.zeros_like(x)
    found = -mixture(dtype).paired_log_posteriors(x, zero)
    assert found[0].tolist() == pytest.approx([0.4224000202, 1.3139762395, 3.1813728246, 3.3740601549], abs=tolerance)
    assert found[1].tolist() == pytest.approx([3.9065332149, 1.0342205453, 1.9195337970, 0.7387489051], abs=tolerance)
    twice = mixture(dtype, squared_prior=True).paired_log_posteriors(x, zero)[0].exp()
    assert twice.tolist() == pytest.approx([0.7363005037, 0.1831054304, 0.0171614489, 0.0634326171], abs=tolerance)


@TYPES
def test_golden_one_dimension(part, dtype, tolerance):
    made = part("gaussian_mixture", dimension=1, ranks=2).to(dtype)
    made.means = nn.Parameter(torch.tensor([[0.0], [0.5]], dtype=dtype))
    made.log_variances = nn.Parameter(2 * torch.tensor([[0.2], [0.4]], dtype=dtype).log())
    found = made.paired_log_posteriors(torch.tensor([[0.3]], dtype=dtype), torch.zeros(1, 1, dtype=dtype)).exp()
    assert found[0].tolist() == pytest.approx([0.4238831152, 0.5761168848], abs=tolerance)


@TYPES
def test_golden_start_of_the_mixture(part, dtype, tolerance):
    made = part("gaussian_mixture", dimension=1024)
    assert not made.means.any()
    wanted = [0.0001953125, 0.00078125, 0.00126953125, 0.0017578125]
    assert made.log_variances.exp()[:, 7].tolist() == pytest.approx(wanted, rel=1e-6)
    made = made.to(dtype)
    x = torch.zeros(1, 1024, dtype=dtype)
    x[0, 0] = 1
    cosines = torch.tensor([0.95, 0.82, 0.81, 0.50, 0.49, 0.24, 0.23, -0.2], dtype=dtype)
    y = torch.zeros(8, 1024, dtype=dtype)
    y[:, 0], y[:, 1] = cosines, (1 - cosines**2).sqrt()
    found = made.log_posteriors(x, y)[0]
    assert (found.argmax(1) + 1).tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert found[3].exp().tolist() == pytest.approx([0, 0.9188001718, 0.0811998282, 1.15e-26], abs=max(tolerance, 1e-6))
    for boundary, rank in ((0.8151607519, 1), (0.4950718716, 2), (0.2385115830, 3)):
        for step, expected in ((1e-4, rank), (-1e-4, rank + 1)):
            c = boundary + step
            y[0, 0], y[0, 1] = c, (1 - c * c) ** 0.5
            assert int(made.log_posteriors(x, y)[0, 0].argmax()) + 1 == expected
    assert part("gaussian_mixture", ranks=2).log_variances.exp()[:, 0].tolist() == pytest.approx([0.1, 0.9])
    between = part("gaussian_mixture", dimension=2, ranks=8).log_variances.exp()[:, 0]
    assert torch.all(between[1:] > between[:-1])


def test_target_cosines_set_the_variances_of_the_start(part):
    """σ² = 2 (1 − t) / d, and targets that do not fall are refused."""
    made = part("gaussian_mixture", dimension=4, ranks=3, target_cosines=[0.8, 0.5, 0.2])
    assert made.log_variances.exp()[:, 0].tolist() == pytest.approx([0.1, 0.25, 0.4])
    plain = part("gaussian_mixture", dimension=4).log_variances.exp()[:, 0].tolist()
    assert plain == pytest.approx([0.05, 0.2, 0.325, 0.45])
    for wrong in ([0.5, 0.5], [0.2, 0.6], [1.0, 0.5]):
        with pytest.raises(InputError, match=rf"gaussian_mixture: target_cosines .*{re.escape(str(wrong))}"):
            part("gaussian_mixture", target_cosines=wrong)


def test_variances_are_held_within_bounds(part):
    made = part("gaussian_mixture", dimension=3)
    with torch.no_grad():
        made.log_variances[0] = -50.0
        made.log_variances[1] = 3.0
    made.before_keys()
    assert made.log_variances.exp().min().item() == pytest.approx(1e-6)
    assert made.log_variances.exp().max().item() == pytest.approx(1.0)
    random = part("gaussian_mixture", dimension=3, gmm_init="random", variances=None, seed=1)
    assert random.means.any()
    assert torch.equal(random.means, part("gaussian_mixture", dimension=3, gmm_init="random", variances=None, seed=1).means)


@pytest.mark.parametrize("options", [{}, {"tempered": True}, {"squared_prior": True}])
def test_mixture_agrees_with_the_slow_twin(mixture, random_vectors, options):
    made, vectors = mixture(**options), random_vectors(dimension=2, x=3, y=4)
    weights = random_vectors(dimension=4, seed=5, w=12)["w"].reshape(3, 4, 4)
    (made.log_posteriors(vectors["x"], vectors["y"]) * weights).sum().backward()
    means, spread, logits = (tensor.clone().requires_grad_() for tensor in (MEANS, VARIANCES.log(), LOGITS))
    power, divide = 2 if options.get("squared_prior") else 1, 2.0 if options.get("tempered") else 1.0
    total = 0
    for i, k in product(range(3), range(4)):
        delta = vectors["x"][i] - vectors["y"][k]
        found = slow_losses.gaussian_posteriors(delta, means, spread.exp(), logits, power, divide)
        paired = made.paired_log_posteriors(vectors["x"][i : i + 1], vectors["y"][k : k + 1])[0]
        assert paired.exp().tolist() == pytest.approx([float(p.detach()) for p in found], abs=1e-12)
        total = total + sum(torch.log(p) * w for p, w in zip(found, weights[i, k], strict=True))
    total.backward()
    for fast, slow in ((made.means, means), (made.log_variances, spread), (made.prior_logits, logits)):
        assert torch.allclose(fast.grad, slow.grad, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("hidden", [None, 7])
def test_network_agrees_with_the_plain_network(part, random_vectors, monkeypatch, hidden):
    made = part("rank_network", dimension=5, ranks=3, seed=2, hidden=hidden).double()
    assert made.first.weight.shape == (hidden or 5, 10)
    vectors = random_vectors(x=4, y=6)
    pairs = torch.stack([torch.cat([x, y]) for x in vectors["x"] for y in vectors["y"]])
    plain = made.last(torch.relu(made.first(pairs))).log_softmax(1).reshape(4, 6, 3)
    whole = made.log_posteriors(vectors["x"], vectors["y"])
    assert torch.allclose(whole, plain, atol=1e-12)
    slopes = torch.autograd.grad(whole.square().sum(), list(made.parameters()))
    monkeypatch.setattr(rank_network, "HELD", 6 * (hidden or 5))
    blocks = made.log_posteriors(vectors["x"], vectors["y"])
    assert torch.allclose(blocks, plain, atol=1e-12)
    for one, other in zip(slopes, torch.autograd.grad(blocks.square().sum(), list(made.parameters())), strict=True):
        assert torch.allclose(one, other, atol=1e-12)
    assert torch.allclose(made.paired_log_posteriors(vectors["x"], vectors["y"][:4]), torch.stack([plain[i, i] for i in range(4)]))


def test_golden_interpolation_ranks():
    shares = [0, 1e-9, 0.1, 1 / 3, 0.34, 0.5, 2 / 3, 0.67, 1]
    # Shares are float64 always: 1/3 rounded to float32 is above 1/3, and belongs to the next rank.
    assert interpolation_ranks(torch.tensor(shares, dtype=torch.float64), 4, "ceil").tolist() == [1, 2, 2, 2, 3, 3, 3, 4, 4]
    # All others are what they are in float32, too.
    single = [share for share in shares if share not in (1 / 3, 2 / 3)]
    assert interpolation_ranks(torch.tensor(single, dtype=torch.float32), 4, "ceil").tolist() == [1, 2, 2, 3, 3, 4, 4]
    assert interpolation_ranks(torch.tensor([0.4], dtype=torch.float64), 6, "ceil").tolist() == [3]
    equal = torch.tensor([0, 0.1, 0.25, 0.5, 0.75, 1.0], dtype=torch.float64)
    assert interpolation_ranks(equal, 4, "equal_width").tolist() == [1, 1, 2, 3, 4, 4]
    for ranks in range(2, 17):
        exact = torch.arange(ranks, dtype=torch.float64) / (ranks - 1)
        assert interpolation_ranks(exact, ranks, "ceil").tolist() == list(range(1, ranks + 1))


@TYPES
def test_golden_rank_by_the_encoder(part, dtype, tolerance):
    cosines = torch.tensor([0.95, 0.62, 0.55, 0.1, -0.2, 0.625], dtype=dtype)
    assert part("rank_scores").nearest(cosines).tolist() == [1, 3, 3, 4, 4, 2]
    printed = part("rank_scores", s_init="printed")
    assert printed.scores.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert printed.nearest(torch.tensor([0.95, 0.62, 0.1], dtype=dtype)).tolist() == [4, 2, 1]


@TYPES
def test_golden_update_of_the_scores(part, dtype, tolerance):
    scores = part("rank_scores", s_init="linear", epsilon=0.9)
    for value, expected in ((0.8, 0.98), (0.9, 0.972)):
        scores.update(torch.tensor([value], dtype=dtype), torch.tensor([1]))
        scores.commit({})
        assert float(scores.scores[0]) == pytest.approx(expected, abs=1e-6)
    joint = part("rank_scores", s_init="linear", epsilon=0.9)
    joint.update(torch.tensor([0.8, 0.9], dtype=dtype), torch.tensor([1, 1]))
    joint.commit({})
    assert joint.scores.tolist() == pytest.approx([0.985, 0.75, 0.5, 0.25], abs=1e-6)
    joint.commit({})
    assert float(joint.scores[0]) == pytest.approx(0.985, abs=1e-6)


def test_measured_scores_are_means_over_the_last_steps(part):
    scores = part("rank_scores", epsilon=0.5)
    assert scores.scores.tolist() == [1, 0.75, 0.5, 0.25]
    scores.measure(torch.tensor([0.8, 0.6, 0.1]), torch.tensor([1, 1, 4]))
    scores.commit({})
    assert scores.scores.tolist() == pytest.approx([0.7, 0.75, 0.5, 0.1], abs=1e-6)
    scores.measure(torch.tensor([0.5]), torch.tensor([1]))
    scores.commit({})
    assert float(scores.scores[0]) == pytest.approx((0.7 + 0.5) / 2, abs=1e-6)  # 2 old pairs count half
    linear = part("rank_scores", s_init="linear")
    linear.measure(torch.tensor([0.8]), torch.tensor([1]))
    linear.commit({})
    assert linear.scores.tolist() == [1, 0.75, 0.5, 0.25]


@pytest.mark.parametrize(("kind", "options"), [("gaussian_mixture", {"gmm_init": "random", "variances": None}), ("rank_network", {})])
def test_random_weights_come_from_the_seed(part, kind, options):
    one, again, other = (dict(part(kind, seed=seed, **options).named_parameters()) for seed in (3, 3, 4))
    drawn = [name for name, weight in one.items() if weight.any()]
    assert len(drawn) >= 2
    for name in drawn:
        assert torch.equal(one[name], again[name])
        assert not torch.equal(one[name], other[name])


def test_a_frozen_classifier_is_not_trained(part):
    for kind in ("gaussian_mixture", "rank_network"):
        assert not any(p.requires_grad for p in part(kind, frozen=True).parameters())
        assert all(p.requires_grad for p in part(kind).parameters())


@pytest.mark.parametrize("kind", ["gaussian_mixture", "rank_network"])
def test_one_rank_is_no_ranking(kind):
    with pytest.raises(InputError, match=r"here.*ranks: 1 .* 2$"):
        check_call("parts", kind, {"ranks": 1}, "here")


@pytest.mark.parametrize("gmm_init", ["cosine", "random"])
def test_float32_of_a_gpu_gives_the_posteriors_of_float64(part, monkeypatch, gmm_init):
    """At the size of the paper's encoder: squares over σ² ≈ 2/d reach thousands, of which posteriors are small differences."""
    made = part("gaussian_mixture", dimension=1024, gmm_init=gmm_init)
    draw = torch.Generator().manual_seed(4)
    x, noise = (torch.nn.functional.normalize(torch.randn(16, 1024, generator=draw), dim=1) for _ in range(2))
    y = torch.nn.functional.normalize(x + torch.linspace(0, 2, 16).unsqueeze(1) * noise, dim=1)
    exact = made.log_posteriors(x, y), made.paired_log_posteriors(x, y)
    monkeypatch.setattr(gaussian_mixture, "wide_type", lambda vectors: torch.float32)
    for found, expected in zip((made.log_posteriors(x, y), made.paired_log_posteriors(x, y)), exact, strict=True):
        assert torch.allclose(found.exp(), expected.exp(), atol=0.01)
        assert (found.argmax(-1) == expected.argmax(-1)).float().mean() > 0.99
