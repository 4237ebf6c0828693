"""Anchors and their augmented views: what SCL, MVA and vanilla contrastive learning compare (docs/papers/scl.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from crosslign.devices import numbers_on
from crosslign.errors import InputError
from crosslign.objectives.contract import Batch, Input, both_sides, side
from crosslign.options import MinLen, Schema, ViewKind

Encode = Literal["pair", "sentences"]
ViewKinds = Annotated[Sequence[ViewKind], MinLen(1), Schema(uniqueItems=True)]
OverViews = Literal["mean", "sum"]


@dataclass(frozen=True)
class Compared:
    """Anchors, and one set of views of them.

    Attributes:
        anchors: [m, d], the anchors that have such a view.
        views: [m, d], row for row.
        rows: int64 [m], the anchors' numbers among all anchors of the batch.
    """

    anchors: Tensor
    views: Tensor
    rows: Tensor


def row_input(batch: Batch) -> Input:
    """Return every row as one input: its sentence, or its pair of sentences for a cross-encoder.

    Raises:
        InputError: some rows have a second sentence and some have none.
    """
    columns = batch.columns
    seconds = _seconds(columns.get("b_text") or [])
    return Input(list(columns["a_text"]), list(columns["a_lang"]), seconds)


def _seconds(texts: Sequence[str | None]) -> list[str] | None:
    present = [text for text in texts if text is not None]
    if present and len(present) < len(texts):
        raise InputError("a batch mixes rows with and without a second sentence", why=f"{len(present)} of {len(texts)} have one")
    return present or None


class Views:
    """How a term reads anchors and views off a batch.

    Labelled examples carry their views; the first view of every row is compared over the batch, then the second, and so on.
    Pairs have one view: b is the view of a.

    Args:
        encode: `pair`: a row is one anchor, its two sentences go through the encoder together; `sentences`: each sentence is
            an anchor of its own, first those of side a, then those of side b.
        kinds: kinds of views to use (full, partial, code_switch), or None for all.
        over_views: how the losses of the views become one: their mean or their sum.
    """

    def __init__(
        self,
        encode: str = "pair",
        kinds: Sequence[str] | None = None,
        over_views: str = "mean",
    ) -> None:
        self.encode, self.kinds, self.over_views = encode, kinds, over_views
        self._name = "_".join(["view", *(kinds or ())])

    def inputs(self, batch: Batch) -> dict[str, Input]:
        """Return anchors (`row`, or `a` and `b`) and views (`view_0`, or `view_0_a` and `view_0_b`, …) by name."""
        if "views" not in batch.columns:
            return both_sides(batch)
        inputs = {"row": row_input(batch)} if self.encode == "pair" else self._sentences(batch)
        for v, rows in enumerate(self._rows(batch)):
            views = [self._of(batch, row)[v] for row in rows]
            langs, a, b = ([view[key] for view in views] for key in ("lang", "a_text", "b_text"))
            name = f"{self._name}_{v}"
            if self.encode == "pair":
                inputs[name] = Input(a, langs, _seconds(b))
            else:
                inputs[f"{name}_a"] = Input(a, langs)
                if seconds := _seconds(b):
                    inputs[f"{name}_b"] = Input(seconds, langs)
        return inputs

    def _sentences(self, batch: Batch) -> dict[str, Input]:
        first = side(batch, "a")
        if _seconds(batch.columns.get("b_text") or []) is None:
            return {"a": first}
        return {"a": first, "b": side(batch, "b")}

    def _of(self, batch: Batch, row: int) -> list[Mapping[str, Any]]:
        views = batch.columns["views"][row] or []
        return [view for view in views if self.kinds is None or view["kind"] in self.kinds]

    def _rows(self, batch: Batch) -> list[list[int]]:
        """Return the rows that have a first view, those that have a second one, and so on."""
        if all(views is None for views in batch.columns["views"]):
            raise InputError("these examples have no views", where=f"row {batch.ids[0]}", do="Build them with `views`")
        counts = [len(self._of(batch, row)) for row in range(len(batch))]
        return [[row for row, count in enumerate(counts) if count > v] for v in range(max(counts, default=0))]

    def texts(self, batch: Batch) -> list[str]:
        """Return the text of every anchor; a pair's two are joined by a character that no text has."""
        columns = batch.columns
        if "views" not in columns:
            return list(columns["a_text"])
        seconds = _seconds(columns.get("b_text") or [])
        if seconds is None:
            return list(columns["a_text"])
        if self.encode == "sentences":
            return [*columns["a_text"], *seconds]
        return ["\x1f".join(pair) for pair in zip(columns["a_text"], seconds, strict=True)]

    def anchors(self, vectors: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """Return the vectors of all anchors."""
        if "views" not in batch.columns:
            return vectors["a"]
        if self.encode == "pair":
            return vectors["row"]
        seconds = _seconds(batch.columns.get("b_text") or [])
        return vectors["a"] if seconds is None else torch.cat([vectors["a"], vectors["b"]])

    def joined(self, losses: Sequence[Tensor]) -> Tensor:
        """Return the loss over all views from that of each."""
        stacked = torch.stack(list(losses))
        return stacked.sum() if self.over_views == "sum" else stacked.mean()

    def compared(self, vectors: Mapping[str, Tensor], batch: Batch) -> list[Compared]:
        """Return what is to be compared, one set per view; empty where no row has a view."""
        anchors = self.anchors(vectors, batch)
        if "views" not in batch.columns:
            return [Compared(anchors, vectors["b"], torch.arange(len(anchors), device=anchors.device))]
        found = []
        for v, rows in enumerate(self._rows(batch)):
            name, numbers = f"{self._name}_{v}", numbers_on(anchors.device, rows)
            if self.encode == "pair":
                views = vectors[name]
            else:
                views = torch.cat([vectors[f"{name}_{s}"] for s in ("a", "b") if f"{name}_{s}" in vectors])
                numbers = torch.cat([numbers, numbers + len(batch)])[: len(views)]
            found.append(Compared(anchors[numbers], views, numbers))
        return found
