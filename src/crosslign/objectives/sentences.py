"""What objectives read off a batch: the sentences of each side as inputs, and which of them are equal strings."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from crosslign.errors import InputError
from crosslign.objectives.contract import Batch, Input


def side(batch: Batch, name: str, pooling: str | None = None, layer: int | None = None) -> Input:
    """Return one side (`a`, `b` or `c`) of all rows.

    Where b is null the row is a dropout pair: its b is the a sentence once more (PROTOCOLS A1.4).
    """
    columns = batch.columns
    texts, langs = columns[f"{name}_text"], columns[f"{name}_lang"]
    if name == "b":
        langs = [own if text is not None else lang for text, own, lang in zip(texts, langs, columns["a_lang"], strict=True)]
        texts = [own if own is not None else text for own, text in zip(texts, columns["a_text"], strict=True)]
    return Input(list(texts), list(langs), pooling=pooling, layer=layer)


def both_sides(batch: Batch, pooling: str | None = None, layer: int | None = None) -> dict[str, Input]:
    """Return sides a and b; a set without b columns holds dropout pairs only."""
    if "b_text" not in batch.columns:
        again = side(batch, "a", pooling, layer)
        return {"a": again, "b": again}
    return {"a": side(batch, "a", pooling, layer), "b": side(batch, "b", pooling, layer)}


def hard_negatives(batch: Batch, pooling: str | None = None, layer: int | None = None) -> tuple[Input, list[int]] | None:
    """Return the hard negatives c of the rows that have one, and these rows' numbers; None where no row has any."""
    texts = batch.columns.get("c_text") or []
    rows = [i for i, text in enumerate(texts) if text is not None]
    if not rows:
        return None
    langs = batch.columns["c_lang"]
    return Input([texts[i] for i in rows], [langs[i] for i in rows], pooling=pooling, layer=layer), rows


def labels_of(batch: Batch) -> Sequence[list[float] | None]:
    """Return the label of every row.

    Raises:
        InputError: the training set has none.
    """
    labels = batch.columns.get("label")
    if labels is None:
        do = "Name a set of labelled rows (builder labelled_rows)"
        raise InputError("these examples have no labels", where=f"row {batch.ids[0]}", why=f"columns {sorted(batch.columns)}", do=do)
    return labels


def class_of(batch: Batch, device: torch.device | None = None) -> Tensor:
    """Return the class number of every row, int64 [B].

    Raises:
        InputError: the set has no labels, or a row none or several.
    """
    labels = labels_of(batch)
    for row, label in zip(batch.ids, labels, strict=True):
        if label is None or len(label) != 1:
            raise InputError("one class per row is needed", where=f"row {row}", why=f"its label is {label}")
    return torch.tensor([int(label[0]) for label in labels if label], dtype=torch.int64, device=device)


def supervised(batch: Batch, device: torch.device | None = None) -> Tensor:
    """Return bool [B]: which rows' labels may be learnt from; rows that do not say so may."""
    flags = batch.columns.get("supervised") or [None] * len(batch)
    return torch.tensor([flag is not False for flag in flags], dtype=torch.bool, device=device)


def text_codes(*lists: Sequence[str], device: torch.device | None = None) -> list[Tensor]:
    """Return int64 numbers, one per text of each list, that are equal where the texts are."""
    codes: dict[str, int] = {}
    return [torch.tensor([codes.setdefault(text, len(codes)) for text in texts], dtype=torch.int64, device=device) for texts in lists]


def equal(a: Tensor, b: Tensor) -> Tensor:
    """Return bool [n, m]: whether code i of a [n] equals code j of b [m]."""
    return a.unsqueeze(1) == b.unsqueeze(0)
