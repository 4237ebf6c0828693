"""Golden numbers of single anchors and cosines: of the slow twins that the objectives agree with, and of single rows."""

from __future__ import annotations

import pytest
import slow_losses
import torch
from test_infonce import Z1, Z2, Z3
from test_momentum_contrast import QUEUE_DE, QUEUE_EN, VECTORS
from test_multi_positive_infonce import GROUPS, HARD
from test_supervised_contrastive import ANCHORS, LABELS, PARAPHRASES, VIEWS

from crosslign.objectives.contract import cosines
from crosslign.objectives.terms import infonce, multi_positive_infonce, supervised_contrastive

TYPES = [torch.float64, torch.float32]
A_KEY, B_KEY, A, B = (VECTORS[name] for name in ("a_key", "b_key", "a", "b"))

COSINES = {
    "infonce pairs": (Z1, Z2, [[0.96, 0.8615384615, 0.9692307692], [0.8, 0.9230769231, 0.3846153846], [0.6, 0.3846153846, 0.9230769231]]),
    "infonce hard": (Z1, Z3, [[0.8, 1, 0.9882352941], [0, 0.6, 0.4705882353], [1, 0.8, 0.8823529412]]),
    "momentum x": (A, QUEUE_DE, [[0.8, 0.9692307692, -0.6, -0.8], [0, 0.3846153846, -1, 0]]),
    "momentum y": (B, QUEUE_EN, [[0.8, 0.6, 0, -0.1529411765], [0.9230769231, 0.3846153846, -0.2461538462, 0.0950226244]]),
    "momentum own keys": (torch.stack([A[0], A[1]]), B_KEY, [[0.96, 0.8615384615], [0.8, 0.9230769231]]),
    "momentum own keys, y": (B, A_KEY, [[0.8615384615, 0.9882352941], [0.7100591716, 0.9954751131]]),
    "views": (
        ANCHORS,
        VIEWS,
        [
            [0.9230769231, 0.8, 0.8823529412, 0.3846153846],
            [0.8615384615, 0.96, 0.9058823529, 0.9692307692],
            [0.9692307692, 1, 0.9882352941, 0.8615384615],
            [0.3846153846, 0.6, 0.4705882353, 0.9230769231],
        ],
    ),
    "groups": (
        GROUPS[::3],
        GROUPS,
        [
            [1, 0.96, 0.9692307692, 0.6, 0.8615384615, 0.9058823529, 0.8, 0.9882352941, 0.28],
            [0.6, 0.8, 0.3846153846, 1, 0.9230769231, 0.8823529412, 0, 0.4705882353, -0.6],
            [0.8, 0.6, 0.9230769231, 0, 0.3846153846, 0.4705882353, 1, 0.8823529412, 0.8],
        ],
    ),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("case", COSINES)
def test_cosines(case, dtype):
    left, right, expected = COSINES[case]
    found = cosines(left.to(dtype), right.to(dtype))
    assert found.double() == pytest.approx(torch.tensor(expected, dtype=torch.float64), abs=1e-9 if dtype is torch.float64 else 1e-6)


GROUP = [0, 0, 0, 1, 1, 1, 2, 2, 2]
FIRST = [0, 3, 6]
PAIRS = torch.stack([GROUPS[at] for at in (0, 1, 3, 4, 6, 7)])


def other_anchors(i, j):
    return j in FIRST and j != i


def others(t, temperature, same_class):
    return slow_losses.scl(t(ANCHORS), t(VIEWS), LABELS, temperature, same_class)


def each_its_own(t, temperature):
    return slow_losses.scl(t(ANCHORS), t(VIEWS), range(4), temperature)


ANCHOR_LOSSES = {
    "infonce τ 0.05": (lambda t: slow_losses.info_nce(t(Z1), t(Z2)), [0.8511418591, 0.0818791594, 0.0015821748]),
    "infonce hard": (lambda t: slow_losses.info_nce(t(Z1), t(Z2), 0.05, t(Z3), range(3)), [1.8512153191, 0.0834257185, 1.8224788043]),
    "infonce own column + 1": (
        lambda t: slow_losses.info_nce(t(Z1), t(Z2), 0.05, t(Z3), range(3), 1.0),
        [1.8621549278, 0.0858924213, 1.9384756168],
    ),
    "infonce other direction": (lambda t: slow_losses.info_nce(t(Z2), t(Z1)), [0.0406704212, 0.2562601806, 1.2576209240]),
    "infonce τ 1": (lambda t: slow_losses.info_nce(t(Z1), t(Z2), 1.0), [1.0700427212, 0.9033437292, 0.8361922685]),
    "momentum x, τ 0.04": (lambda t: slow_losses.moco_direction(t(A), t(B_KEY), [t(QUEUE_DE)] * 2, 0.04), [0.8232470188, 0.0000014249]),
    "momentum y, τ 0.04": (lambda t: slow_losses.moco_direction(t(B), t(A_KEY), [t(QUEUE_EN)] * 2, 0.04), [0.1956966150, 0.1515717362]),
    "momentum x, τ 0.5": (lambda t: slow_losses.moco_direction(t(A), t(B_KEY), [t(QUEUE_DE)] * 2, 0.5), [1.0362185403, 0.5174178243]),
    "momentum y, τ 0.5": (lambda t: slow_losses.moco_direction(t(B), t(A_KEY), [t(QUEUE_EN)] * 2, 0.5), [1.0249219759, 0.8790214272]),
    "views CL, τ 1": (lambda t: each_its_own(t, 1.0), [1.2319581032, 1.3513987038, 1.3542901018, 1.0796356701]),
    "views SCL, τ 1": (lambda t: others(t, 1.0, False), [0.9033437292, 1.3513987038, 1.0622369573, 1.0796356701]),
    "views same class, τ 1": (lambda t: others(t, 1.0, True), [1.2523200941, 1.3513987038, 1.3637923642, 1.0796356701]),
    "views CL, τ 0.1": (lambda t: each_its_own(t, 0.1), [0.6740352063, 1.1159111867, 1.1735506238, 0.0534930178]),
    "views SCL, τ 0.1": (lambda t: others(t, 0.1, False), [0.2597874302, 1.1159111867, 0.8781864328, 0.0534930178]),
    "views same class, τ 0.1": (lambda t: others(t, 0.1, True), [0.8776551158, 1.1159111867, 1.2685732482, 0.0534930178]),
    "views retrieval, τ 1": (
        lambda t: slow_losses.scl_retrieval(t(ANCHORS), t(VIEWS), PARAPHRASES, 1.0),
        [1.9437533873, 2.2343083162, 1.3542901018, 1.0796356701],
    ),
    "views retrieval, τ 0.1": (
        lambda t: slow_losses.scl_retrieval(t(ANCHORS), t(VIEWS), PARAPHRASES, 0.1),
        [1.7050391337, 2.6889559460, 1.1735506238, 0.0534930178],
    ),
    "groups none": (lambda t: slow_losses.mpcl(t(GROUPS), GROUP, FIRST), [0.7102615057, 0.0585515103, 1.1177758103]),
    "groups global": (lambda t: slow_losses.mpcl(t(GROUPS), GROUP, FIRST, rescale="global"), [0.7219299506, 0.0328479491, 1.2781308997]),
    "groups row": (lambda t: slow_losses.mpcl(t(GROUPS), GROUP, FIRST, rescale="row"), [1.0488693981, 0.0291139478, 1.9031731812]),
    "groups positives only": (
        lambda t: slow_losses.mpcl(t(GROUPS), GROUP, FIRST, left_out=other_anchors),
        [0.7009562111, 0.0575297282, 1.0635162614],
    ),
    "groups hard": (lambda t: slow_losses.mpcl(t(GROUPS), GROUP, FIRST, t(HARD)), [1.2577075982, 0.1137779090, 2.4882747529]),
    "groups single positive": (lambda t: slow_losses.info_nce(t(PAIRS[::2]), t(PAIRS[1::2])), [1.0641914802, 0.0819679589, 0.0035690026]),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("case", ANCHOR_LOSSES)
def test_losses_of_single_anchors(case, dtype):
    losses, expected = ANCHOR_LOSSES[case]
    tolerance = 1e-9 if dtype is torch.float64 else 1e-4
    assert [float(value) for value in losses(lambda vectors: vectors.to(dtype))] == pytest.approx(expected, abs=tolerance)


@pytest.fixture
def rows_of(monkeypatch):
    """What an objective's sums over its rows gave, and what stood in them, as it computed them."""

    def watch(module):
        sums = []

        def watched(logits, keep):
            found = kept_logsumexp(logits, keep)
            sums.append((logits.detach(), keep, found.detach()))
            return found

        kept_logsumexp = module.kept_logsumexp
        monkeypatch.setattr(module, "kept_logsumexp", watched)
        return sums

    return watch


THROUGH_INFONCE = {
    "infonce": ({"a": Z1, "b": Z2}, {}, ANCHOR_LOSSES["infonce τ 0.05"][1]),
    "infonce hard": ({"a": Z1, "b": Z2, "c": Z3}, {}, ANCHOR_LOSSES["infonce hard"][1]),
    "infonce own column + 1": ({"a": Z1, "b": Z2, "c": Z3}, {"hard_negative_weight": 1.0}, ANCHOR_LOSSES["infonce own column + 1"][1]),
    "infonce other direction": ({"a": Z2, "b": Z1}, {}, ANCHOR_LOSSES["infonce other direction"][1]),
    "infonce τ 1": ({"a": Z1, "b": Z2}, {"temperature": 1.0}, ANCHOR_LOSSES["infonce τ 1"][1]),
}


@pytest.mark.parametrize("case", THROUGH_INFONCE)
def test_anchors_of_infonce_itself(case, term, batch, typed, rows_of):
    vectors, options, expected = THROUGH_INFONCE[case]
    sums = rows_of(infonce)
    term("infonce", **options).loss(typed(vectors), batch(3, "abc" if "c" in vectors else "ab"), {})
    ((logits, _, found),) = sums
    assert (found - logits.diagonal()).tolist() == typed.near(expected)


@pytest.mark.parametrize(("temperature", "name"), [(1.0, "views SCL, τ 1"), (0.1, "views SCL, τ 0.1")])
def test_anchors_and_mask_of_scl_itself(temperature, name, term, batch, typed, rows_of):
    views = [[{"kind": "full", "lang": "de", "a_text": f"view {i}", "b_text": None}] for i in range(4)]
    labels = [[float(label)] for label in LABELS]
    rows = batch(4, "a", b_text=[None] * 4, b_lang=[None] * 4, label=labels, views=views)
    sums = rows_of(supervised_contrastive)
    term("supervised_contrastive", temperature=temperature).loss(typed({"row": ANCHORS, "view_0": VIEWS}), rows, {})
    ((logits, keep, found),) = sums
    assert [row.nonzero().flatten().tolist() for row in keep] == [[0, 1, 3], [0, 1, 2, 3], [1, 2, 3], [0, 1, 2, 3]]
    assert (found - logits.diagonal()).tolist() == typed.near(ANCHOR_LOSSES[name][1])


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"rescale": "none"}, "groups none"),
        ({"rescale": "global"}, "groups global"),
        ({"rescale": "row"}, "groups row"),
        ({"rescale": "none", "denominator": "positives_only"}, "groups positives only"),
    ],
)
def test_anchors_of_mpcl_itself(options, name, term, batch, typed, rows_of):
    rows = batch(3, "", texts=[[f"g{i} {k}" for k in range(3)] for i in range(3)], langs=[["en", "de", "fr"]] * 3)
    sums = rows_of(multi_positive_infonce)
    term("multi_positive_infonce", **options).loss(typed({"group": GROUPS}), rows, {})
    (_, _, below), (_, own, above) = sums
    assert [row.nonzero().flatten().tolist() for row in own] == [[1, 2], [4, 5], [7, 8]]
    assert (below - above).tolist() == typed.near(ANCHOR_LOSSES[name][1])


def test_averaging_outside_the_logarithm_is_another_loss():
    # The variant that must not be what is implemented; the test of the objective holds 0.6288629421.
    rows = []
    for i in FIRST:
        scores = {j: float(slow_losses.cosine(GROUPS[i], GROUPS[j])) / 0.05 for j in range(9) if j != i}
        below = torch.logsumexp(torch.tensor(list(scores.values()), dtype=torch.float64), 0).item()
        rows.append(sum(below - scores[j] for j in scores if GROUP[j] == GROUP[i]) / 2)
    assert rows == pytest.approx([1.4076630048, 0.8324253209, 2.1174540942], abs=1e-9)
    assert sum(rows) / 3 == pytest.approx(1.4525141400, abs=1e-9)


@pytest.mark.parametrize("dtype", TYPES)
def test_squared_distances_and_class_posteriors(dtype):
    unit = [rows.to(dtype) / rows.to(dtype).norm(dim=1, keepdim=True) for rows in (ANCHORS, VIEWS)]
    squared = ((unit[0] - unit[1]) ** 2).sum(1)
    assert squared.tolist() == pytest.approx([0.1538461538, 0.08, 0.0235294118, 0.1538461538], abs=1e-6)
    assert float(squared.mean()) == pytest.approx(0.1028054299, abs=1e-6)
    p, q = (torch.tensor(logits, dtype=dtype).softmax(0) for logits in ((2, 0.5, -1), (1, 1, -0.5)))
    assert p.tolist() == pytest.approx([0.7855970346, 0.1752903921, 0.0391125733], abs=1e-6)
    assert q.tolist() == pytest.approx([0.4498162177, 0.4498162177, 0.1003675647], abs=1e-6)
    assert float(slow_losses.kl(p, q) + slow_losses.kl(q, p)) == pytest.approx(0.5036712254, abs=1e-6)


@pytest.mark.parametrize("dtype", TYPES)
def test_weights_of_the_mixture(dtype):
    weights = torch.tensor([0.5, 0, -0.5, 1], dtype=dtype).softmax(0).tolist()
    assert weights == pytest.approx([0.2760043447, 0.1674050973, 0.1015363241, 0.4550542339], abs=1e-6)
