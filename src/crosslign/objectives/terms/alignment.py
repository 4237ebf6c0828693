"""Multi-view alignment: a sentence and its augmented views pulled together, nothing pushed apart (docs/papers/scl.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from torch import Generator, Tensor

from crosslign.objectives import OBJECTIVES
from crosslign.objectives.contract import Batch, Input, Loss, Part, Shape, part_of, unit, widened
from crosslign.objectives.parts.classification import Classification
from crosslign.objectives.views import Compared, Encode, OverViews, ViewKinds, Views
from crosslign.options import Layer, Pooling, Schema

Similarity = Literal["cosine", "mse", "kl", "symmetric_kl"]
Distributions = Literal["classes", "embedding"]


def divergence(p: Tensor, q: Tensor) -> Tensor:
    """Return KL(p‖q) [n] of distributions given as log-probabilities [n, c]."""
    return (p.exp() * (p - q)).sum(1)


@OBJECTIVES.register(
    version=1,
    rules={  # KL between class posteriors needs a part that has classes
        "anyOf": [
            {"required": ["part"]},
            {"required": ["similarity"], "properties": {"similarity": {"enum": ["cosine", "mse"]}}},
            {"required": ["distributions"], "properties": {"distributions": {"const": "embedding"}}},
        ]
    },
)
class Alignment:
    """MVA: `L_i = −sim(φ(x_i), φ(x̂_i))`, mean over i, mean or sum over the views.

    sim is the cosine; minus the squared Euclidean distance of the unit vectors (2 − 2cos; the paper prints it without the
    minus); minus KL(p(x)‖p(x̂)); or minus the sum of the two KL. The distributions p are the class posteriors of a
    classification part or, as an option, the softmax over the dimensions of the unit vector, which is nearly uniform. The
    paper does not say how an embedding becomes a distribution; its gain at λ = 1 speaks for the posteriors. Nothing keeps the
    representations apart: trained alone, for retrieval, they collapse, as the paper's tables 6 and 7 show.

    Inputs: `row` [B, d] with `view_0` … [≤ B, d], or the sentences by themselves (see `Views`); pairs: `a`, `b`. Source: the
    comparator of the SCL paper, section 3.2; released code does not exist.

    Args:
        similarity: `cosine`, `mse`, `kl` (the values of tables 1–3 are those of KL) or `symmetric_kl`.
        part: a classification part, for KL between posteriors.
        distributions: of the two KL: the posteriors of `part` (`classes`), or the softmax over a vector's dimensions (`embedding`).
        encode: a row's two sentences together (`pair`), or each by itself (`sentences`).
        kinds: kinds of views to use (`full`, `partial`, `code_switch`); all by default.
        pooling: a pooling other than the readout's, which is the default.
        layer: layer to read; None: the last if `pooling` is given, else the readout's.
        over_views: mean or sum of the views' losses.
    """

    shape: Shape = "labelled"

    def __init__(
        self,
        similarity: Similarity = "kl",
        part: Annotated[str, Schema(part=["classification"])] | None = None,
        distributions: Distributions = "classes",
        encode: Encode = "pair",
        kinds: ViewKinds | None = None,
        pooling: Pooling | None = None,
        layer: Layer | None = None,
        over_views: OverViews = "mean",
    ) -> None:
        self.similarity, self.distributions, self.part = similarity, distributions, part
        self.pooling, self.layer = pooling, layer
        self.views = Views(encode, kinds, over_views)

    def inputs(self, batch: Batch, draw: Generator) -> dict[str, Input]:
        """Return anchors and views."""
        return self.views.inputs(batch)

    def loss(self, vectors: dict[str, Tensor], batch: Batch, parts: Mapping[str, Part]) -> Loss:
        """Return the mean over the anchors, mean or sum over the views."""
        losses = [self._distances(pair, parts).mean() for pair in self.views.compared(vectors, batch)]
        if not losses:
            return Loss(0 * self.views.anchors(vectors, batch).sum())
        return Loss(self.views.joined(losses))

    def _distances(self, pair: Compared, parts: Mapping[str, Part]) -> Tensor:
        """Return −sim [m]."""
        anchors, views = unit(pair.anchors), unit(pair.views)
        if self.similarity == "cosine":
            return -(anchors * views).sum(1)
        if self.similarity == "mse":
            return (anchors - views).square().sum(1)
        if self.distributions == "classes":
            head = part_of(parts, self.part or "", Classification)
            p, q = (widened(head(vectors)).log_softmax(1) for vectors in (pair.anchors, pair.views))
        else:
            p, q = anchors.log_softmax(1), views.log_softmax(1)
        return divergence(p, q) + divergence(q, p) if self.similarity == "symmetric_kl" else divergence(p, q)
