"""Aligned sentences: one text a language and group, the groups that can be told apart, and sets cut from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from crosslign.console import number_of
from crosslign.corpora.columns import SIDES, kind_of
from crosslign.corpora.dedup import bare
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.sampling import generator
from crosslign.errors import InputError
from crosslign.files.rows import pieces

Groups = dict[str, dict[str, str]]
"""Text by language, by group."""


def from_multiway(corpora: Mapping[str, pa.Table], versions: Mapping[str, Sequence[str]], where: str) -> Groups:
    """Return the texts of the one corpus, in its order; of labelled pairs the first sentences, by the pairs' groups.

    Each row of bitext is a group of its own.

    Args:
        corpora: one corpus in the `multiway`, the `labelled` or the `bitext` columns.
        versions: versions to prefer, best first, by language; without any, a group's first row of the language counts.
        where: id of the evaluation corpus, for messages.
    """
    if len(corpora) != 1:
        raise InputError("this reader needs exactly one multiway corpus or bitext", where=where, why=f"found {sorted(corpora)}")
    (table,) = corpora.values()
    if kind_of(table.column_names) == "bitext":
        return {
            row: {a_lang: a_text, b_lang: b_text}
            for batch in pieces(table)
            for row, a_lang, a_text, b_lang, b_text in zip(
                *(batch[column].to_pylist() for column in ("id", "a_lang", "a_text", "b_lang", "b_text")), strict=True
            )
        }
    if "group" not in table.column_names:
        do = "Read line-aligned files by the evaluation reader aligned_lines (docs/add-a-task.md), or use a multiway corpus"
        raise InputError(f"{next(iter(corpora))!r} has no groups of translations", where=where, why="it is plain text", do=do)
    rank: dict[tuple[str, str | None], int] = {
        (lang, version): place for lang, letters in versions.items() for place, version in enumerate(letters)
    }
    best: dict[tuple[str, str], int] = {}
    groups: Groups = {}
    for batch in pieces(table):
        for group, lang, text, version in _rows(batch):
            texts = groups.setdefault(group, {})
            place = rank.get((lang, version), len(rank))
            if lang not in texts or (rank and place < best[group, lang]):
                texts[lang] = text
                if rank:
                    best[group, lang] = place
    return groups


def _rows(table: pa.Table) -> Iterator[tuple[str, str, str, str | None]]:
    """Yield group, language, text and version of each row."""
    lang, text = SIDES[kind_of(table.column_names)][0]
    versions = table["version"].to_pylist() if "version" in table.column_names else [None] * table.num_rows
    yield from zip(*(table[column].to_pylist() for column in ("group", lang, text)), versions, strict=True)


def distinct(groups: Groups, order: Iterable[str], langs: Sequence[str]) -> list[str]:
    """Return the groups that have all languages and share no sentence (docs/filters-and-views.md) with an earlier one in any of them.

    A sentence that stands in two groups would make a wrong answer of a right one.
    """
    seen: dict[str, set[str]] = {lang: set() for lang in langs}
    chosen = []
    for group in order:
        keys = {lang: bare(groups[group][lang]) for lang in langs if lang in groups[group]}
        if len(keys) == len(langs) and not any(keys[lang] in seen[lang] for lang in langs):
            chosen.append(group)
            for lang, key in keys.items():
                seen[lang].add(key)
    return chosen


def shuffled(items: Iterable[str], seed: int, name: str) -> list[str]:
    """Return items in an order drawn from (seed, name); equal on every machine."""
    order = list(items)
    generator(seed, name).shuffle(order)
    return order


def evenly(count: int, limit: int | None) -> list[int]:
    """Return at most `limit` indices below `count`, evenly spread, so that a sorted file is not cut to one end."""
    return list(range(count)) if limit is None or count <= limit else [number * count // limit for number in range(limit)]


def saying(groups: Groups, sentences: Sequence[str], langs: Sequence[str], lang: str, where: str) -> list[str]:
    """Return the groups that say these sentences in `lang`, in the order of the sentences; the first that has all languages.

    Letters count, not case, punctuation or spaces (docs/filters-and-views.md).

    Raises:
        InputError: one of the sentences is not there in all languages.
    """
    group_of: dict[str, str] = {}
    for group, texts in groups.items():
        if {lang, *langs} <= texts.keys():
            group_of.setdefault(bare(texts[lang]), group)
    for sentence in sentences:
        if bare(sentence) not in group_of:
            why = f"{number_of(len(group_of), 'sentence')} exist in all of {', '.join(langs)}; this one does not"
            raise InputError(f"no sentence {sentence!r}", where=where, why=why, do="Name sentences of the corpus under `sentences`")
    return [group_of[bare(sentence)] for sentence in sentences]


def retrieval(
    name: str,
    groups: Groups,
    langs: Sequence[str],
    pivot: str,
    size: int | None,
    seed: int,
    split: str,
    order: Iterable[str] | None = None,
) -> Evaluation:
    """Return a set in Tatoeba's form: for each language, its sentences (source) and those of the pivot (target), linked by group.

    All subsets hold the same groups: those that have every language, at most `size`: the first in `order`, else drawn by `seed`.
    """
    order = shuffled(groups, seed, "retrieval") if order is None else order
    chosen = distinct(groups, order, [pivot, *(lang for lang in langs if lang != pivot)])[:size]
    builder = EvaluationBuilder(name)
    for lang in langs:
        if lang == pivot:
            continue
        for role, side in (("source", lang), ("target", pivot)):
            for group in chosen:
                builder.item(f"{side}-{group}", lang, role, side, groups[group][side], split=split, group=group)
        for group in chosen:
            builder.link(lang, f"{lang}-{group}", f"{pivot}-{group}", split=split)
    if not chosen or set(langs) <= {pivot}:
        raise InputError(
            "no sentence exists in all languages",
            where=name,
            why=f"languages {list(langs)}, pivot {pivot!r}, {number_of(len(groups), 'group')}",
        )
    return builder.build()
