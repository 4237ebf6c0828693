"""Evaluation corpora: distinct texts, the items that point at them, and gold links between items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from crosslign.errors import InputError
from crosslign.files import read_rows, write_rows
from crosslign.files.rows import SCHEMAS
from crosslign.paths import EVALUATION_FILES

ROLES = ("source", "target", "query", "candidate", "first", "second", "sentence", "pair", "choice")


CLUSTER = "cluster"


def items_schema(clustered: bool) -> pa.Schema:
    """Return the schema of items, with the column `cluster` where a set declares some: those without keep their bytes."""
    return SCHEMAS["items"].append(pa.field(CLUSTER, pa.string())) if clustered else SCHEMAS["items"]


@dataclass(frozen=True)
class Evaluation:
    """One evaluation corpus.

    Attributes:
        texts: the evaluation corpus: text_id, lang, text, pair_text; distinct (lang, text, pair_text), so that an equal
            string is encoded once; row i of an embeddings matrix is row i here.
        items: item_id, subset, split, role, text_id, label, group; and cluster, where the set has some.
        gold: subset, split, left, right (item_id), score.
    """

    texts: pa.Table
    items: pa.Table
    gold: pa.Table

    def write(self, paths: Mapping[str, Path]) -> None:
        """Write the three tables, `texts` last, so that it stands for the whole."""
        for part in ("gold", "items", "texts"):
            schema = items_schema(CLUSTER in self.items.column_names) if part == "items" else part
            write_rows(paths[part], getattr(self, part), schema)

    @classmethod
    def read(cls, paths: Mapping[str, Path]) -> Evaluation:
        """Read and check the three tables; an item that points at no text is an `InputError`."""
        texts, items, gold = (read_rows(paths[part], part) for part in EVALUATION_FILES)
        known = set(texts["text_id"].to_pylist())
        for item, text in zip(items["item_id"].to_pylist(), items["text_id"].to_pylist(), strict=True):
            if text not in known:
                raise InputError(f"item {item!r} points to text {text!r}, which does not exist", where=str(paths["items"]))
        return cls(texts, items, gold)

    def one_split(self, split: str) -> Evaluation:
        """Return the set with the items and gold of one split alone; the texts stay, so that rows of a matrix keep their places."""
        return Evaluation(self.texts, *(table.filter(pc.equal(table["split"], split)) for table in (self.items, self.gold)))


@dataclass
class EvaluationBuilder:
    """Collects items and gold; gives equal strings one text.

    Args:
        name: id of the evaluation corpus; text ids are `<name>:<number>`.
    """

    name: str
    _texts: dict[tuple[str, str, str | None], str] = field(default_factory=dict)
    _items: list[dict[str, object]] = field(default_factory=list)
    _gold: list[dict[str, object]] = field(default_factory=list)

    def text(self, lang: str, text: str, pair_text: str | None = None) -> str:
        """Return the text id of a string, giving it one when it is new."""
        if not text or not isinstance(text, str):
            raise InputError("empty text in an evaluation corpus" if isinstance(text, str) else f"{text!r} is not text", where=self.name)
        return self._texts.setdefault((lang, text, pair_text), f"{self.name}:{len(self._texts)}")

    def item(
        self,
        item_id: str,
        subset: str,
        role: str,
        lang: str,
        text: str,
        *,
        split: str = "test",
        pair_text: str | None = None,
        label: Sequence[float] | None = None,
        group: str | None = None,
        cluster: str | None = None,
    ) -> str:
        """Add one item and return its id; ids are unique within a subset, split and role.

        Items of one `cluster` were sampled together, such as questions of a paragraph: intervals resample them as one.
        """
        if role not in ROLES:
            raise ValueError(f"role {role!r} is not one of {ROLES}")
        row = {"item_id": item_id, "subset": subset, "split": split, "role": role, "text_id": self.text(lang, text, pair_text)}
        self._items.append(
            {**row, "label": None if label is None else [float(value) for value in label], "group": group, "cluster": cluster}
        )
        return item_id

    def link(self, subset: str, left: str, right: str, *, split: str = "test", score: float = 1.0) -> None:
        """Add one gold link between two items."""
        self._gold.append({"subset": subset, "split": split, "left": left, "right": right, "score": score})

    def build(self) -> Evaluation:
        """Return the evaluation corpus.

        Raises:
            InputError: half a character (an escaped surrogate in JSON), which no file of text can hold; two items of one id.
        """
        texts = [{"text_id": i, "lang": lang, "text": text, "pair_text": pair} for (lang, text, pair), i in self._texts.items()]
        try:
            evaluation = Evaluation(
                pa.Table.from_pylist(texts, schema=SCHEMAS["texts"]),
                pa.Table.from_pylist(self._items, schema=items_schema(any(item["cluster"] for item in self._items))),
                pa.Table.from_pylist(self._gold, schema=SCHEMAS["gold"]),
            )
        except UnicodeEncodeError as error:
            raise InputError(
                "a text contains half of a surrogate pair", where=self.name, why=f"found {ascii(error.object)[:80]}"
            ) from error
        counts = evaluation.items.group_by(["subset", "split", "role", "item_id"]).aggregate([([], "count_all")])
        for twice in counts.filter(pc.greater(counts["count_all"], 1)).slice(0, 1).to_pylist():
            do = "Name each file once, and the files of only one split"
            raise InputError(f"two items have the id {twice['item_id']!r}", where=f"{self.name}, subset {twice['subset']!r}", do=do)
        return evaluation
