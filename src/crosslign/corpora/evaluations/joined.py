"""Evaluation corpora made of others (`of`): several joined into one, or one cut to some languages (docs/add-a-task.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import Evaluation
from crosslign.errors import InputError
from crosslign.files.rows import SCHEMAS


@EVALUATIONS.register(version=2)
def read(given: Given) -> Evaluation:
    """Return one evaluation corpus that holds the items of all parts, with equal strings stored, and so encoded, once.

    Joined sets are told apart by the split of their items and gold, which becomes the id of the part; a task takes one of them
    by naming that split. The splits of a single part stay as they are.

    Args:
        given.parts: the sets by id, in the order in which their texts are numbered.
        given.langs: languages to keep, with `-` or `_` before a script (`deu-Latn`); all, when empty. Items in other languages go, gold
            links that name them, and items whose links all go; a subset that loses all items of a role goes whole.

    Raises:
        InputError: no part; a part of which nothing is left.
    """
    if not given.parts:
        raise InputError("no corpus to join", where=given.name, do="Name evaluation corpora under `of`, and no reader")
    numbers: dict[tuple[str, str, str | None], int] = {}
    items, gold = [], []
    for part, evaluation in given.parts.items():
        split = part if len(given.parts) > 1 else None
        kept, links = _cut(evaluation, given.langs)
        if evaluation.items.num_rows and not kept.num_rows:
            why = f"its languages: {', '.join(sorted(set(evaluation.texts['lang'].to_pylist())))}"
            raise InputError(
                f"{part} has no items in these languages", where=given.name, why=why, do="Name both sides of a pair in `langs`"
            )
        strings = dict(zip(evaluation.texts["text_id"].to_pylist(), _strings(evaluation.texts), strict=True))
        texts = [f"{given.name}:{numbers.setdefault(strings[text], len(numbers))}" for text in kept["text_id"].to_pylist()]
        items.append(_replace(kept, "text_id", texts) if split is None else _replace(_replace(kept, "text_id", texts), "split", split))
        gold.append(links if split is None else _replace(links, "split", split))
    columns = zip(*numbers, strict=True) if numbers else ((), (), ())
    rows = dict(zip(("lang", "text", "pair_text"), map(list, columns), strict=True))
    texts_table = pa.Table.from_pydict({"text_id": [f"{given.name}:{n}" for n in range(len(numbers))], **rows}, schema=SCHEMAS["texts"])
    return Evaluation(texts_table, pa.concat_tables(items, promote_options="default"), pa.concat_tables(gold))


def _strings(texts: pa.Table) -> Iterable[tuple[str, str, str | None]]:
    return zip(*(texts[column].to_pylist() for column in ("lang", "text", "pair_text")), strict=True)


def _cut(evaluation: Evaluation, langs: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """Return the items of these languages in subsets that keep all their roles, and the gold links of which both ends are left."""
    if not langs:
        return evaluation.items, evaluation.gold
    written = pc.replace_substring(evaluation.texts["lang"], "_", "-")  # FLORES-200 writes deu_Latn
    texts = evaluation.texts.filter(pc.is_in(written, value_set=pa.array(sorted({lang.replace("_", "-") for lang in langs}))))
    items = evaluation.items.filter(pc.is_in(evaluation.items["text_id"], value_set=texts["text_id"].combine_chunks()))
    torn = {(subset, split) for subset, split, _ in _roles(evaluation.items) - _roles(items)}
    items = items.filter(pa.array([place[:2] not in torn for place in _places(items)], pa.bool_()))
    cut = set(_places(evaluation.items)) - set(_places(items))
    links = [[(row["subset"], row["split"], row[side]) for side in ("left", "right")] for row in evaluation.gold.to_pylist()]
    left = [cut.isdisjoint(ends) for ends in links]
    alone = {end for ends in links for end in ends} - {end for ends, stays in zip(links, left, strict=True) if stays for end in ends}
    items = items.filter(pa.array([place not in alone for place in _places(items)], pa.bool_()))
    return items, evaluation.gold.filter(pa.array(left, pa.bool_()))


def _places(items: pa.Table) -> list[tuple[str, str, str]]:
    return list(zip(*(items[column].to_pylist() for column in ("subset", "split", "item_id")), strict=True))


def _roles(items: pa.Table) -> set[tuple[str, str, str]]:
    columns = ("subset", "split", "role")
    return set(zip(*(items.group_by(columns).aggregate([])[column].to_pylist() for column in columns), strict=True))


def _replace(table: pa.Table, column: str, values: Sequence[str] | str) -> pa.Table:
    at = table.schema.get_field_index(column)
    filled = [values] * table.num_rows if isinstance(values, str) else list(values)
    return table.set_column(at, table.schema.field(at), pa.array(filled, pa.string()))
