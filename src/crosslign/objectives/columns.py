"""Columns of another trainer's data set: the batch that they stand for, whether terms read them, their vectors by text."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from crosslign.devices import numbers_on
from crosslign.errors import InputError
from crosslign.objectives.contract import Batch, Input

VIEW = re.compile(r"(view.*?)(?:_([ab]))?")
WHERE = "ObjectiveLoss"


def plain_columns(names: Sequence[str]) -> list[int]:
    """Return the places of the columns that are sentences of a row: neither hard negatives nor views."""
    return [at for at, name in enumerate(names) if not name.startswith(("negative", "view"))]


def batch_of(
    names: Sequence[str], texts: Sequence[Sequence[str]], labels: Sequence[Any] | None, langs: Mapping[str, str], groups: bool, step: int
) -> Batch:
    """Return the columns of a training set (docs/training.md) that the columns of a data set stand for.

    Args:
        names, texts: of each column its name and its sentences.
        labels: a number or several for each row, or None.
        langs: language of each column; `und` where it says nothing.
        groups: whether all terms read groups of any number of sentences.
        step: optimiser step.

    Raises:
        InputError: a column that no term could read, or a row with too few sentences.
    """
    plain, rows = plain_columns(names), len(texts[0])
    negatives = [at for at, name in enumerate(names) if name.startswith("negative")]
    codes = [langs.get(name, "und") for name in names]
    if not plain:
        do = "Name the first column otherwise than negative… or view…"
        raise InputError("the data set has no column of sentences", where=WHERE, why=f"columns: {', '.join(names)}", do=do)
    for rest in [*([] if groups else plain[2:]), *negatives[1:]]:
        do = "Remove it, or name it negative… (hard negatives) or view… (views); only objectives on groups read more sentences"
        raise _unread(names[rest], "rows have two sides, one negative", do)
    members = [[at for at in plain if texts[at][row]] for row in range(rows)]
    for row, own in enumerate(members):
        where = f"row {row} of the batch"
        if groups and len(own) < 2:
            why = "its other cells are empty" if len(plain) > 1 else "the data set has one column of sentences"
            raise InputError("a group needs at least two sentences", where=where, why=why)
        if empty := [] if groups else [names[at] for at in plain if at not in own]:
            raise InputError("a sentence is missing", where=where, why=f"the cell of the column {empty[0]!r} is empty")
    columns: dict[str, Any] = {}
    if groups and len(plain) > 2:
        columns["texts"] = [[texts[at][row] for at in own] for row, own in enumerate(members)]
        columns["langs"] = [[codes[at] for at in own] for own in members]
    else:
        for side, at in zip("ab", plain, strict=False):
            columns |= {f"{side}_text": list(texts[at]), f"{side}_lang": [codes[at]] * rows}
    for at in negatives:
        columns |= {"c_text": [text or None for text in texts[at]], "c_lang": [codes[at]] * rows}
    if any(name.startswith("view") for name in names):
        columns["views"] = [_views(names, codes, row, len(plain)) for row in zip(*texts, strict=True)]
    if labels is not None:
        columns["label"] = [[float(value) for value in (label if isinstance(label, list) else [label])] for label in labels]
    return Batch([str(row) for row in range(rows)], columns, step)


def _views(names: Sequence[str], langs: Sequence[str], row: Sequence[str], sides: int) -> list[dict[str, Any]]:
    """Return the views of one row of one or two sides; an empty cell is none."""
    views: dict[str, dict[str, Any]] = {}
    for name, lang, text in zip(names, langs, row, strict=True):
        found = VIEW.fullmatch(name)
        if found and found[2] == "b" and sides < 2:
            raise _unread(name, "rows have one sentence", "Name it view…")
        if found and text:
            view = views.setdefault(found[1], {"kind": "full", "lang": lang, "a_text": None, "b_text": None})
            view[f"{found[2] or 'a'}_text"] = text
    for name, view in views.items():
        if view["a_text"] is None:
            raise InputError(f"{name}_b has no {name}_a", where=WHERE, why="a view of a pair has both sentences", do="Fill both cells")
    return list(views.values())


def _unread(column: str, why: str, do: str = "Remove it, or choose an objective that reads it") -> InputError:
    return InputError(f"the column {column!r} is not used", where=WHERE, why=why, do=do)


def encoded_twice(names: Sequence[str], batch: Batch, shapes: Mapping[str, str], plans: Iterable[Iterable[str]]) -> bool:
    """Tell whether terms read the rows' one sentence as a dropout pair: encoded twice, each time with its own dropout.

    Args:
        names: of all columns.
        batch: that they stand for.
        shapes: of each term, by name, the shape of the rows that its objective is made for.
        plans: of each term the names of the inputs that it asks for.

    Raises:
        InputError: no term reads a column, which would be encoded for nothing; or a term compares two sentences, and the rows have one.
    """
    asked = {term: {name.partition("_")[0] for name in plan} for term, plan in zip(shapes, plans, strict=True)}
    on_views = [term for term, own in asked.items() if "view" in own]
    if batch.with_negative and all("c" not in own or "view" in own for own in asked.values()):
        why = "no term compares hard negatives" + ("; terms on views do not" if "views" in batch.columns else "")
        raise _unread(next(name for name in names if name.startswith("negative")), why)
    if any(batch.columns.get("views", ())) and not on_views:
        raise _unread(next(name for name in names if name.startswith("view")), "no term compares views")
    if "b_text" in batch.columns:
        if len(on_views) == len(asked) and not any((found := VIEW.fullmatch(name)) and found[2] == "b" for name in names):
            why = "terms on views compare each sentence with its own views, and this one has none"
            do = "Remove it, or name the views of both sentences view…_a and view…_b"
            raise _unread(names[plain_columns(names)[1]], why, do)
        return False
    of_two = [term for term, own in asked.items() if "b" in own]
    if wrong := [term for term in of_two if shapes[term] != "pairs"]:
        do = "Add a column with the second sentence, or choose infonce, which learns from one (SimCSE)"
        raise InputError(f"{wrong[0]} compares two sentences", where=WHERE, why="the data set has one column of sentences", do=do)
    return bool(of_two)


class Given:
    """Vectors by column and row, handed out by text: an objective asks for texts, wherever they stand.

    A text that stands in several places, such as both sides of a dropout pair, is handed out from one place after another.
    """

    def __init__(self, texts: Sequence[Sequence[str]], vectors: Sequence[Tensor]) -> None:
        self._vectors, self.width = torch.cat(list(vectors)), vectors[0].shape[1]
        self._places: dict[str, deque[int]] = defaultdict(deque)
        for place, text in enumerate(text for column in texts for text in column):
            self._places[text].append(place)
        self._handed: dict[str, tuple[list[str], Tensor]] = {}  # the very tensors: terms that read one input get one

    def of(self, name: str, item: Input) -> Tensor:
        """Return the vectors [n, d] of an input; the same ones again for the same name.

        Raises:
            InputError: two terms ask for different texts by one name.
        """
        if name not in self._handed:
            places = []
            for text in item.texts:
                places.append(self._places[text][0])
                self._places[text].rotate(-1)
            self._handed[name] = list(item.texts), self._vectors[numbers_on(self._vectors.device, places)]
        texts, vectors = self._handed[name]
        if texts != list(item.texts):
            do = "Give both the same anchor_parallel"
            raise InputError(f"two terms need different inputs with the name {name!r}", where="terms", do=do)
        return vectors
