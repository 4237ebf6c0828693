"""Evaluation corpora: read, cut from corpora or joined from others, written as three tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from crosslign.config.catalog import reader_of
from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.columns import SIDES, kind_of
from crosslign.corpora.evaluation import Evaluation
from crosslign.corpora.pipeline import PIVOT
from crosslign.entries.catalog import Corpus
from crosslign.errors import InputError
from crosslign.files import iter_rows

SEED = 42


class Tables(Mapping[str, pa.Table]):
    """Rows of the corpora that a set is cut from: each is read when it is asked for, and only rows with one of the languages.

    Args:
        paths: rows by id.
        langs: languages of which a row has at least one; all rows, when empty.
    """

    def __init__(self, paths: Mapping[str, Path], langs: Iterable[str]) -> None:
        self._paths = paths
        self._langs = pa.array(sorted(set(langs)), pa.string())

    def __getitem__(self, corpus: str) -> pa.Table:
        return pa.concat_tables([self._wanted(batch) for batch in iter_rows(self._paths[corpus])])

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def _wanted(self, batch: pa.Table) -> pa.Table:
        if not len(self._langs):
            return batch
        masks = [pc.is_in(batch[lang], self._langs) for lang, _ in SIDES[kind_of(batch.column_names)]]
        return batch.filter(reduce(pc.or_, masks))


def build_evaluation(
    name: str,
    entry: Corpus,
    files: Mapping[str, Path],
    corpora: Mapping[str, Path],
    parts: Mapping[str, Mapping[str, Path]],
    out: Mapping[str, Path],
    limit: int | None = None,
) -> dict[str, Any]:
    """Write `texts`, `items` and `gold` of one evaluation corpus.

    Args:
        name: id of the evaluation corpus.
        entry: its entry in the catalog: reader, options, langs, seed; or of, langs.
        files: source files by name.
        corpora: rows of the corpora that it is cut from, by id.
        parts: the three tables of each evaluation corpus that it is made of (`of`), by id.
        out: the three Parquet files, by name.
        limit: upper bound on the items of a subset.

    Returns:
        Counts of texts (`rows`), items, gold links, items by subset, texts by language, white-space words by language (`words`), and
        `sizes`: by subset, the items of each role (`source_items`), groups of items (`item_groups`) and gold links (`gold_links`).

    Raises:
        InputError: the reader's own; no text or no item is there.
    """
    langs, options = entry.get("langs", ()), entry.get("options", {})
    read = EVALUATIONS.get(reader_of(entry), where=name)
    tables = Tables(corpora, {*langs, options.get("pivot", PIVOT)} if langs else ())
    others = {part: Evaluation.read(paths) for part, paths in parts.items()}
    evaluation = read(Given(files, tables, name, langs, limit, entry.get("seed", SEED), others), **options)
    if not evaluation.texts.num_rows or not evaluation.items.num_rows:
        raise InputError("the evaluation corpus is empty", where=name, do="Check the files, the languages (of both sides) and the options")
    evaluation.write(out)
    return {
        "rows": evaluation.texts.num_rows,
        "items": evaluation.items.num_rows,
        "gold": evaluation.gold.num_rows,
        "subsets": dict(sorted(Counter(evaluation.items["subset"].to_pylist()).items())),
        "per_language": dict(sorted(Counter(evaluation.texts["lang"].to_pylist()).items())),
        "words": _words(evaluation.texts),
        "sizes": _sizes(evaluation),
    }


def _words(texts: pa.Table) -> dict[str, int]:
    """Return the words between white space of each language's texts."""
    words = pc.list_value_length(pc.utf8_split_whitespace(texts["text"]))
    summed = pa.table({"lang": texts["lang"], "words": words}).group_by("lang").aggregate([("words", "sum")])
    return {row["lang"]: row["words_sum"] for row in summed.sort_by("lang").to_pylist()}


def _sizes(evaluation: Evaluation) -> dict[str, dict[str, int]]:
    """Return, by subset, how many items of each role, groups and gold links there are."""
    sizes: dict[str, dict[str, int]] = {}
    roles = evaluation.items.group_by(["role", "subset"]).aggregate([("group", "count_distinct"), ([], "count_all")])
    for row in roles.sort_by([("role", "ascending"), ("subset", "ascending")]).to_pylist():
        sizes.setdefault(f"{row['role']}_items", {})[row["subset"]] = row["count_all"]
        sizes.setdefault("item_groups", {})[row["subset"]] = row["group_count_distinct"]
    links = evaluation.gold.group_by("subset").aggregate([([], "count_all")]).sort_by("subset")
    return {**sizes, **({"gold_links": {row["subset"]: row["count_all"] for row in links.to_pylist()}} if links.num_rows else {})}
