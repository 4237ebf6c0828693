"""Order of candidates: higher score first, then lower index, as one int64 key; and running best lists made of such keys."""

from __future__ import annotations

import torch
from torch import Tensor

EMPTY = torch.iinfo(torch.int64).min
_INDEX_BITS, _INDEX_MASK, _MAGNITUDE = 32, 0xFFFFFFFF, 0x7FFFFFFF


def to_keys(scores: Tensor, indices: Tensor) -> Tensor:
    """Return int64 keys of which the larger one is the better candidate.

    Args:
        scores: float32, no NaN and no -0.0.
        indices: int64 in [0, 2^32); of equal scores the lower index has the larger key. Broadcast against `scores`.
    """
    bits = scores.contiguous().view(torch.int32)
    # The bits of negative floats count downwards; turning their magnitude makes integer order equal float order.
    ordered = torch.where(bits < 0, bits ^ _MAGNITUDE, bits).long()
    return (ordered << _INDEX_BITS) + (_INDEX_MASK - indices)


def key_scores(keys: Tensor) -> Tensor:
    """Return the float32 scores of keys; an `EMPTY` key gives -inf."""
    ordered = (keys >> _INDEX_BITS).int()
    scores = torch.where(ordered < 0, ordered ^ _MAGNITUDE, ordered).view(torch.float32)
    return scores.masked_fill(keys == EMPTY, -torch.inf)


def key_indices(keys: Tensor) -> Tensor:
    """Return the int64 indices of keys."""
    return _INDEX_MASK - (keys & _INDEX_MASK)


def listed_scores(lists: Tensor, indices: Tensor) -> Tensor:
    """Return the score that each index has in its list of keys, -inf where it does not stand there: int64 [n, k] and [n] to float32 [n]."""
    found = key_indices(lists) == indices[:, None]
    return key_scores(lists).masked_fill(~found, -torch.inf).amax(1)


def ranks_in_groups(groups: Tensor) -> Tensor:
    """Return each element's position within its group; `groups` int64 [n], equal groups adjacent."""
    if not len(groups):
        return groups
    _, counts = torch.unique_consecutive(groups, return_counts=True)
    starts = counts.cumsum(0) - counts
    # Where the length is given, a GPU need not be waited for.
    return torch.arange(len(groups), device=groups.device) - torch.repeat_interleave(starts, counts, output_size=len(groups))


def order_in_groups(groups: Tensor, values: Tensor) -> Tensor:
    """Return the order that sorts by group, then by value from large to small."""
    by_value = values.argsort(descending=True, stable=True)
    return by_value[groups[by_value].argsort(stable=True)]


def merge(best: Tensor, groups: Tensor, keys: Tensor) -> None:
    """Enter candidates into running best lists, in place.

    Args:
        best: int64 [n, k], keys from large to small, `EMPTY` where there is none yet.
        groups: int64 [c], the list that each candidate belongs to; from small to large.
        keys: int64 [c], no key twice in a group.
    """
    if not len(groups):
        return
    k = best.shape[1]
    rank = ranks_in_groups(groups)
    if int(rank.max()) >= k:  # only the best k of a group can enter
        keys = keys[order_in_groups(groups, keys)]
    kept = rank < k
    touched, row = torch.unique_consecutive(groups, return_inverse=True)
    fresh = torch.full((len(touched), k), EMPTY, device=best.device)
    fresh[row[kept], rank[kept]] = keys[kept]
    best[touched] = torch.cat([best[touched], fresh], 1).topk(k).values
