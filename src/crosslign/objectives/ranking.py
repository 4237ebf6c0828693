"""EMMA-X's E-step: anchors, candidates, and their semantic ranks by both classifiers (docs/papers/emma_x.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor

from crosslign.console import number_of
from crosslign.devices import numbers_on
from crosslign.errors import InputError
from crosslign.objectives.contract import Batch, Input, Part, chosen, mean_of, part_of, side, unit, wide_type
from crosslign.objectives.parts.momentum_queue import MomentumQueue
from crosslign.objectives.parts.rank_scores import RankScores
from crosslign.objectives.rank_classifier import RankClassifier


@dataclass(frozen=True)
class Pool:
    """Anchors with what they are compared to.

    Attributes:
        anchors: [B, d], unit vectors with gradient, float64 on a CPU: keys and anchors lie so close together that the gradients of the
            ranks' terms, which almost cancel, would lose two digits in float32.
        candidates: [M, d], unit vectors of keys: the queue, the batch's own, and those of parallel sentences.
        keep: bool [B, M]; false where an anchor meets its own key.
        forced: bool [B, M]; pairs whose rank is known to be 1.
        cosines: [B, M].
        pairs: how many pairs are kept, and how many of them are not forced.
    """

    anchors: Tensor
    candidates: Tensor
    keep: Tensor
    forced: Tensor
    cosines: Tensor
    pairs: tuple[int, int]

    def kept(self, values: Tensor) -> Tensor:
        """Return those of values [B, M] whose pair is kept."""
        return chosen(values, self.keep, self.pairs[0])

    def free(self, values: Tensor) -> Tensor:
        """Return those of values [B, M] whose pair is kept, and its rank not known."""
        return chosen(values, self.keep & ~self.forced, self.pairs[1])


def scores_of(parts: Mapping[str, Part], name: str | None, classifier: RankClassifier) -> RankScores | None:
    """Return the rank scores that a term names, or None where it names none.

    Raises:
        InputError: they are for another number of ranks than the classifier, whose ranks would then mean other scores.
    """
    if name is None:
        return None
    scores = part_of(parts, name, RankScores)
    if scores.ranks != classifier.ranks:
        why = f"the classifier has {number_of(classifier.ranks, 'rank')}, the scores have {scores.ranks}"
        raise InputError(f"the part {name!r} does not fit the classifier", where="parts", why=why, do="Give both the same `ranks`")
    return scores


class Candidates:
    """Which sentences a step of phase 2 compares; terms on the same examples must agree on it.

    Args:
        queue: name of a `momentum_queue` part.
        anchor_parallel: share of the batch whose parallel sentence b, where the row has one, is a candidate of known rank 1.
        self_positive: the momentum view of the anchor's own sentence is a candidate of known rank 1, instead of none.
    """

    def __init__(self, queue: str, anchor_parallel: float, self_positive: bool) -> None:
        self.queue, self.anchor_parallel, self.self_positive = queue, anchor_parallel, self_positive
        self._rows: list[int] = []

    def parallel_rows(self, batch: Batch, draw: Generator) -> list[int]:
        """Return the rows whose parallel sentence is used: as many of those that have one, drawn by seed and step."""
        texts = batch.columns.get("b_text") or []
        rows = [row for row, text in enumerate(texts) if text is not None]
        order = torch.randperm(len(rows), generator=draw).tolist()
        return sorted(rows[i] for i in order[: round(self.anchor_parallel * len(batch))])

    def inputs(self, batch: Batch, draw: Generator) -> dict[str, Input]:
        """Return the anchors `a`, their keys `a_key`, and the keys `b_key` of parallel sentences where any are drawn, for `pool` too."""
        a = side(batch, "a")
        inputs = {"a": a, "a_key": replace(a, keys=True)}
        self._rows = rows = self.parallel_rows(batch, draw)
        if rows:
            b = side(batch, "b")
            inputs["b_key"] = replace(b, texts=[b.texts[i] for i in rows], langs=[b.langs[i] for i in rows], keys=True)
        return inputs

    def pool(self, vectors: Mapping[str, Tensor], batch: Batch, queue: MomentumQueue) -> Pool:
        """Return the pool of a step whose `inputs` were asked for last, and note the anchors' keys for the queue."""
        wide = wide_type(vectors["a"])
        anchors, own = unit(vectors["a"].to(wide)), unit(vectors["a_key"].detach())
        rows = self._rows
        parallel = [unit(vectors["b_key"].detach())] if rows else []
        earlier = queue.all_keys()
        candidates = torch.cat([earlier.to(own.dtype), own, *parallel]).to(wide)
        itself = torch.zeros(len(anchors), len(candidates), dtype=torch.bool, device=anchors.device)
        forced = itself.clone()
        at = torch.arange(len(own), device=anchors.device)
        itself[at, len(earlier) + at] = True
        forced[numbers_on(anchors.device, rows), len(earlier) + len(own) + torch.arange(len(rows), device=anchors.device)] = True
        queue.stage("a_key", vectors["a_key"], batch.columns["a_lang"])
        keep = torch.ones_like(itself) if self.self_positive else ~itself
        forced = forced | itself if self.self_positive else forced
        pairs = itself.numel() - (0 if self.self_positive else len(own))
        free = pairs - len(rows) - (len(own) if self.self_positive else 0)
        return Pool(anchors, candidates, keep, forced, anchors @ candidates.T, (pairs, free))


def guard_rails(pool: Pool, posteriors: Tensor, scores: RankScores | None) -> dict[str, float | Tensor]:
    """Return what tells whether the ranks still mean something; pairs of known rank are left out.

    Returns:
        `occupancy_g_<r>` and `occupancy_m_<r>`, shares of the pairs by the classifier and by the encoder; `agreement`, the share
        on which both agree; `entropy` of the posteriors; `without_rank_1`, the share of anchors without a candidate of rank 1;
        `s_<r>` and `s_decreasing` (1 or 0).
    """
    count, detached = posteriors.shape[-1], posteriors.detach()
    by_classifier = detached.argmax(-1) + 1
    free = pool.free(by_classifier)
    logged: dict[str, float | Tensor] = {f"occupancy_g_{r}": mean_of(free == r) for r in range(1, count + 1)}
    logged["entropy"] = mean_of(pool.free(-(detached.exp() * detached).sum(-1)))
    first = ((by_classifier == 1) & pool.keep) | pool.forced
    logged["without_rank_1"] = mean_of(~first.any(1))
    if scores is None:
        return logged
    by_encoder = pool.free(scores.nearest(pool.cosines))
    logged |= {f"occupancy_m_{r}": mean_of(by_encoder == r) for r in range(1, count + 1)}
    logged["agreement"] = mean_of(free == by_encoder)
    values = scores.scores.clone()  # as they are now: `commit` moves them
    logged |= {f"s_{r}": value for r, value in enumerate(values.unbind(), start=1)}
    return logged | {"s_decreasing": (values[:-1] > values[1:]).all().float()}
