"""Keys order candidates by score, then by index, and best lists keep the best of what enters."""

from __future__ import annotations

import torch

from crosslign.mining.tiles import EMPTY, key_indices, key_scores, merge, to_keys


def test_keys_are_ordered_by_score_then_by_lower_index_and_give_both_back() -> None:
    scores = torch.tensor([1.0, 0.5, 0.5, 1e-30, 0.0, -1e-30, -0.5, -0.5, -1.0])
    indices = torch.tensor([7, 0, (1 << 32) - 1, 3, 9, 4, 1, 2, 0])
    keys = to_keys(scores, indices)
    assert (keys.diff() < 0).all()
    assert torch.equal(key_scores(keys), scores)
    assert torch.equal(key_indices(keys), indices)
    assert key_scores(torch.tensor([EMPTY])).tolist() == [-torch.inf]


def test_the_best_enter_in_whatever_order_they_come() -> None:
    best = torch.tensor([[5, EMPTY], [9, 8], [4, 3]])
    merge(best, torch.tensor([0, 0, 0, 2]), torch.tensor([1, 2, 6, 7]))  # one more than a list holds, the best last
    assert best.tolist() == [[6, 5], [9, 8], [7, 4]]
