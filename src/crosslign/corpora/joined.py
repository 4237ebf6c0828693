"""Evaluation corpora made of others: several joined into one evaluation corpus, or one cut to some languages (docs/add-a-task.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from crosslign.corpora.evaluation import Evaluation
from crosslign.files.rows import SCHEMAS


def join(name: str, parts: Mapping[str, Evaluation], langs: Sequence[str] = ()) -> Evaluation:
    """Return one evaluation corpus that holds the items of all `parts`, with equal strings stored, and so encoded, once.

    Joined sets are told apart by the split of their items and gold, which becomes the id of the part; a task takes one of them
    by naming that split. The splits of a single part stay as they are.

    Args:
        name: id of the new set; text ids are `<name>:<number>`.
        parts: the sets by id, in the order in which their texts are numbered.
        langs: languages to keep; all, when empty. Items in other languages go, and with them the gold links that name them.
    """
    numbers: dict[tuple[str, str, str | None], int] = {}
    items, gold = [], []
    for part, evaluation in parts.items():
        split = part if len(parts) > 1 else None
        kept, links = _cut(evaluation, set(langs))
        strings = dict(zip(evaluation.texts["text_id"].to_pylist(), _strings(evaluation.texts), strict=True))
        texts = [f"{name}:{numbers.setdefault(strings[text], len(numbers))}" for text in kept["text_id"].to_pylist()]
        items.append(_replace(kept, "text_id", texts) if split is None else _replace(_replace(kept, "text_id", texts), "split", split))
        gold.append(links if split is None else _replace(links, "split", split))
    columns = zip(*numbers, strict=True) if numbers else ((), (), ())
    rows = dict(zip(("lang", "text", "pair_text"), map(list, columns), strict=True))
    texts_table = pa.Table.from_pydict({"text_id": [f"{name}:{n}" for n in range(len(numbers))], **rows}, schema=SCHEMAS["texts"])
    return Evaluation(texts_table, pa.concat_tables(items, promote_options="default"), pa.concat_tables(gold))


def one_split(evaluation: Evaluation, split: str) -> Evaluation:
    """Return the set with the items and gold of one split alone; the texts stay, so that rows of a matrix keep their places."""
    return Evaluation(evaluation.texts, *(table.filter(pc.equal(table["split"], split)) for table in (evaluation.items, evaluation.gold)))


def _strings(texts: pa.Table) -> Iterable[tuple[str, str, str | None]]:
    return zip(*(texts[column].to_pylist() for column in ("lang", "text", "pair_text")), strict=True)


def _cut(evaluation: Evaluation, langs: set[str]) -> tuple[pa.Table, pa.Table]:
    """Return the items of these languages, and the gold links of which both ends are left."""
    if not langs:
        return evaluation.items, evaluation.gold
    texts = evaluation.texts.filter(pc.is_in(evaluation.texts["lang"], value_set=pa.array(sorted(langs))))
    items = evaluation.items.filter(pc.is_in(evaluation.items["text_id"], value_set=texts["text_id"].combine_chunks()))
    ends = set(zip(*(items[c].to_pylist() for c in ("subset", "split", "item_id")), strict=True))
    rows = evaluation.gold.to_pylist()
    left = [all((row["subset"], row["split"], row[side]) in ends for side in ("left", "right")) for row in rows]
    return items, evaluation.gold.filter(pa.array(left, pa.bool_()))


def _replace(table: pa.Table, column: str, values: Sequence[str] | str) -> pa.Table:
    at = table.schema.get_field_index(column)
    filled = [values] * table.num_rows if isinstance(values, str) else list(values)
    return table.set_column(at, table.schema.field(at), pa.array(filled, pa.string()))
