"""Training examples on disk, tokenised once: memory maps that open in no time and take no memory of the process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosslign.encoders.model import Model
from crosslign.encoders.tokens import Ids
from crosslign.errors import InputError
from crosslign.files import read_json
from crosslign.objectives.contract import Batch
from crosslign.training.tokenised import ADDED, FACTS, LONGEST, SEGMENTS, TOKENS, row_texts, shards, tokenizer_key

Lookup = dict[tuple[str, str, str | None], tuple[Ids, Ids | None]]
"""Token ids of a batch's texts, and segment numbers of pairs, by (member, sentence, second sentence of a pair or None)."""


class Store:
    """A training set that is tokenised.

    Args:
        folder: what `tokenise_examples` wrote.
        model: whose members read it.

    Attributes:
        rows: number of examples.
        facts: rows, texts (sentences, and pairs that are read as one), tokens, truncated (texts longer than max_length).
        examples: SHA-256 of the training set.
        columns: names of its columns.

    Raises:
        InputError: it was tokenised for another model.
    """

    def __init__(self, folder: Path, model: Model) -> None:
        facts = read_json(folder / FACTS)
        if facts["tokenizers"] != {name: tokenizer_key(member.tokenizer) for name, member in model.members.items()}:
            raise InputError(
                "examples tokenised for another encoder", where=str(folder), do="Delete the folder; the next run makes it again"
            )
        self._forms: list[str] = facts["forms"]
        self.examples: str = facts["examples"]
        self.facts: dict[str, int] = {name: facts[name] for name in ("rows", "texts", "tokens", "truncated")}
        self.rows = self.facts["rows"]
        self._model = model
        self._data = shards(folder).with_format("arrow")
        self.columns: list[str] = [name for name in self._data.column_names if name not in ADDED]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of the longest text of each example."""
        return np.asarray(self._data.data.column(LONGEST).to_numpy(), np.int64)

    def column(self, name: str) -> list[Any]:
        """Return one column of all examples.

        Raises:
            InputError: they have no such column, or it has nulls.
        """
        values = self._data.data.column(name).to_pylist() if name in self.columns else [None]
        if None in values:
            raise InputError(f"every example needs a {name}", where="examples", do="Build the training set from rows that have one")
        return values

    def batch(self, rows: NDArray[np.int64], step: int) -> tuple[Batch, Lookup]:
        """Return the examples with the given row numbers, and the token ids of their texts."""
        table = self._data[rows.tolist()].combine_chunks()  # each row is a chunk of its own, slow to read
        columns = table.select(self.columns).to_pydict()
        nested = table[TOKENS].chunk(0)
        texts, starts, tokens = nested.offsets.to_numpy(), nested.values.offsets.to_numpy(), nested.values.values.to_numpy()
        segments = table[SEGMENTS].chunk(0).values.values.to_numpy() if SEGMENTS in table.column_names else None
        lookup: Lookup = {}
        for row in range(len(rows)):
            for number, (lang, text, second) in enumerate(row_texts(columns, row, self._forms), start=int(texts[row])):
                span = slice(starts[number], starts[number + 1])
                pair = segments[span].astype(np.int32) if segments is not None and second is not None else None
                lookup[self._model.member_of(lang), text, second] = tokens[span], pair
        return Batch(columns["id"], {name: values for name, values in columns.items() if name != "id"}, step), lookup
