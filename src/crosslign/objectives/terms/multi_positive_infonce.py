"""MPCL: one anchor, several positives, their sum inside the logarithm (docs/papers/mpcl.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from crosslign.devices import numbers_on
from crosslign.errors import InputError
from crosslign.objectives import OBJECTIVES
from crosslign.objectives.contract import (
    Batch,
    Input,
    Loss,
    Part,
    Shape,
    both_sides,
    chosen,
    cosines,
    equal,
    hard_negatives,
    kept_logsumexp,
    mean_of,
    part_of,
    text_codes,
)
from crosslign.options import AboveZero, AnyPart, Layer, Pooling

Rescale = Literal["global", "row", "none"]
Denominator = Literal["all", "positives_only"]
HardNegatives = Literal["all", "own"]


@OBJECTIVES.register(
    version=1,
    rules={
        "if": {"required": ["all_anchors"], "properties": {"all_anchors": {"const": True}}},
        "then": {"properties": {"denominator": {"const": "all"}}},
    },
)
class MultiPositiveInfoNCE:
    """MPCL: `L_i = −log [ Σ_{k positive of i} e^{s(i,k)} ] / [ Σ_{j ≠ i} e^{s(i,j)} ]`, mean over the anchors.

    The denominator holds the positives too, so L ≥ 0, and the closest positive gets the largest pull. Scores are cosines
    brought into [−1/τ, 1/τ] by `s = 2/τ · (cos − lo)/(hi − lo) − 1/τ`, with lo and hi over the cosines in the denominators, or
    cos/τ. Source: MPCL, equation 2 and section 3; released code does not exist.

    Groups: a group is one meaning in several languages, one member of it, drawn for each batch, is the anchor, each as likely.
    Pairs (the paper's Single, equation 1): a is the anchor, b its one positive, `denominator: positives_only` is equation 1.

    Inputs: `group` [M, d], the members of all groups one after another, the anchor of each first (pairs: `a`, `b` [B, d]);
    `c` [C, d], hard negatives.

    Args:
        temperature: τ, above 0, by which cosines are divided.
        rescale: lo and hi over the batch (`global`), over each anchor's row (`row`), or no rescaling (`none`).
        rescale_gradient: whether gradients pass lo and hi (the paper does not say).
        denominator: `all`: all sentences of all groups except the anchor; `positives_only`: other groups' anchors left out.
        hard_negatives: `all`: those of all rows stand in every denominator; `own`: an anchor's own alone.
        all_anchors: every member of a group is an anchor.
        mask_same_text: groups that share a string are one meaning: neither is a negative for the other. Hard negatives equal
            to a member of the anchor's group are left out.
        projection: name of a part that is applied to all vectors first.
        pooling: a pooling other than the readout's, which is the default.
        layer: layer to read; None: the last if `pooling` is given, else the readout's.
    """

    shape: Shape = "groups"

    def __init__(
        self,
        temperature: AboveZero = 0.05,
        rescale: Rescale = "global",
        denominator: Denominator = "all",
        all_anchors: bool = False,
        mask_same_text: bool = True,
        rescale_gradient: bool = False,
        hard_negatives: HardNegatives = "all",
        projection: AnyPart | None = None,
        pooling: Pooling | None = None,
        layer: Layer | None = None,
    ) -> None:
        self.temperature, self.all_anchors, self.mask_same_text = temperature, all_anchors, mask_same_text
        self.rescale_gradient, self.hard_negatives = rescale_gradient, hard_negatives
        self.rescale, self.denominator = rescale, denominator
        self.projection, self.pooling, self.layer = projection, pooling, layer

    def inputs(self, batch: Batch, draw: Generator) -> dict[str, Input]:
        """Return `group` with each group's drawn anchor first, or `a` and `b`; and `c` where rows have hard negatives."""
        if "texts" in batch.columns:
            texts: list[str] = []
            langs: list[str] = []
            for members, codes in zip(batch.columns["texts"], batch.columns["langs"], strict=True):
                anchor = int(torch.randint(len(members), (), generator=draw))
                order = [anchor, *(i for i in range(len(members)) if i != anchor)]
                texts += [members[i] for i in order]
                langs += [codes[i] for i in order]
            inputs = {"group": Input(texts, langs)}
        else:
            inputs = both_sides(batch)
        return inputs | hard_negatives(batch)

    def loss(self, vectors: dict[str, Tensor], batch: Batch, parts: Mapping[str, Part]) -> Loss:
        """Return the mean over the anchors."""
        project = part_of(parts, self.projection, Part) if self.projection else nn.Identity()
        members, sizes = self._members(vectors, batch)
        known = np.arange(len(sizes)).repeat(sizes)  # the group of each member
        groups, first = numbers_on(members.device, known), numbers_on(members.device, np.diff(known, prepend=-1) > 0)
        found = batch.with_negative
        vector = project(torch.cat([members, vectors["c"]]) if found else members)
        wanted = np.arange(len(known)) if self.all_anchors else sizes.cumsum() - sizes
        anchors = numbers_on(members.device, wanted)
        similarities = cosines(vector[anchors], vector)
        itself = equal(anchors, torch.arange(len(vector), device=members.device))
        own = torch.zeros_like(itself)
        own[:, : len(members)] = equal(groups[anchors], groups) & ~itself[:, : len(members)]
        keep = ~itself
        if self.denominator == "positives_only":
            keep[:, : len(members)] &= ~first
        if self.hard_negatives == "own" and found:
            keep[:, len(members) :] &= equal(groups[anchors], numbers_on(members.device, found))
        if self.mask_same_text:
            keep &= own | ~self._same_meaning(batch, [batch.columns["c_text"][row] for row in found], groups)[groups[anchors]]
        scores = self._scores(similarities, keep)
        losses = kept_logsumexp(scores, keep) - kept_logsumexp(scores, own)
        return Loss(losses.mean(), {"positive_cosine": mean_of(chosen(similarities.detach(), own, int((sizes[known[wanted]] - 1).sum())))})

    def _members(self, vectors: Mapping[str, Tensor], batch: Batch) -> tuple[Tensor, NDArray[np.int64]]:
        """Return all members [M, d], those of a group one behind another, its drawn anchor first, and the sizes of the groups."""
        if "texts" in batch.columns:
            sizes = np.array([len(texts) for texts in batch.columns["texts"]])
            if sizes.min() < 2:
                raise InputError("a group needs at least two sentences", where=f"row {batch.ids[int(sizes.argmin())]}")
            return vectors["group"], sizes
        return torch.stack([vectors["a"], vectors["b"]], 1).flatten(0, 1), np.full(len(batch), 2)

    def _same_meaning(self, batch: Batch, hard: Sequence[str], groups: Tensor) -> Tensor:
        """Return bool [B, M + C]: which members and hard negatives share a string with a group, that is, mean the same."""
        if "texts" in batch.columns:
            texts = [list(members) for members in batch.columns["texts"]]
        else:
            sides = both_sides(batch)
            texts = [list(pair) for pair in zip(sides["a"].texts, sides["b"].texts, strict=True)]
        said = [text for group in texts for text in group]
        member_codes, hard_codes = text_codes(said, hard, device=groups.device)
        holds = torch.zeros(len(texts), len({*said, *hard}), device=groups.device)
        holds[groups, member_codes] = 1.0
        return torch.cat([(holds @ holds.T > 0)[:, groups], holds[:, hard_codes] > 0], 1)

    def _scores(self, similarities: Tensor, keep: Tensor) -> Tensor:
        if self.rescale == "none":
            return similarities / self.temperature
        seen = similarities if self.rescale_gradient else similarities.detach()
        low, high = seen.masked_fill(~keep, 2.0).amin(1), seen.masked_fill(~keep, -2.0).amax(1)
        if self.rescale == "global":
            low, high = low.min(), high.max()
        low, high = low.reshape(-1, 1), high.reshape(-1, 1)
        return (2 * (similarities - low) / (high - low).clamp(min=1e-6) - 1) / self.temperature
