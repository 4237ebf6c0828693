"""Thresholds that a clean sample sets: rows stay that look like it in length, letters, script and language."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np

from crosslign.corpora.borders import Border, Values, lower_border, require_enough
from crosslign.corpora.columns import SIDES, kind_of
from crosslign.corpora.filters import FILTERS, Column, Filter, Mask, Setting, Sides
from crosslign.corpora.filters.alphabet_ratio import AlphabetRatio
from crosslign.corpora.filters.character_script import CharacterScript
from crosslign.corpora.filters.language_id import LanguageId
from crosslign.errors import InputError
from crosslign.files import read_rows
from crosslign.options import Gt, Ids, Lt


@FILTERS.register(version=2)
class AsClean(Filter):
    """Keep rows within the thresholds of a clean sample of the same languages: of each measure the share `keep` of the sample stays.

    Measured are, of each language, the share of letters among the characters that are not white space, that of letters in its own
    scripts, and the probability of the language (lingua, as in `language_id`; -1 where another is more probable), each with a lower
    threshold; and of each pair of languages the ratio of the sides' characters, in the order of their codes, with a lower and an upper one.
    Of each threshold the rows on both sides are counted, and the nearest 20 of each stand in the corpus' lineage and in the report.

    Args:
        setting: the corpus; its references hold the clean rows.
        corpora: the clean corpora, pairs or single sentences: the evaluation's dev part, or a person's own.
        keep: share of the clean sample that stays, by each measure.

    Raises:
        InputError: a clean corpus is not there, or has too few sentences of a language or pair.
    """

    remembers = True

    def __init__(self, setting: Setting, *, corpora: Ids, keep: Annotated[float, Gt(0), Lt(1)] = 0.98) -> None:
        super().__init__(setting)
        self._letters, self._scripts = AlphabetRatio(setting, exclude_whitespace=True), CharacterScript(setting)
        self._language = LanguageId(setting)
        self._where, self._seen = f"{setting.where}: as_clean", 0
        values: dict[str, list[Values]] = {}
        for corpus in corpora:
            if corpus not in setting.references:
                raise InputError(f"corpus {corpus!r} is not among the references", where=self._where)
            for name, found in self._measured(_sides(setting, corpus)):
                values.setdefault(name, []).append(found[~np.isnan(found)])
        self._borders: dict[str, list[Border]] = {}
        for name, parts in sorted(values.items()):
            self._borders[name] = _borders(name, np.concatenate(parts), 1 - keep, self._where)

    def _measured(self, batch: Sides) -> Iterator[tuple[str, Values]]:
        """Yield each measure of a batch with its values, NaN where a row has none."""
        sides = [side for side in batch.own_columns if side.there.any()]
        for side in sides:
            language = self._language.score(side.texts, side.langs).round(6)  # lingua adds up in any order: the last bits are chance
            found = {"letters": self._letters.share(side), "script": self._scripts.share(side), "language": language}
            for lang in sorted({lang for lang in side.langs if lang is not None}):
                mine = side.there & side.by_language(lang.__eq__)
                for kind, values in found.items():
                    yield f"{kind} of {lang}", np.where(mine, values, np.nan)
        yield from _ratios(batch.left, batch.right)

    def keep(self, batch: Sides) -> Mask:
        """Return which rows look like the sample."""
        mask = np.ones(len(batch), bool)
        for name, values in self._measured(batch):
            borders = self._borders.get(name)
            if borders is None and not np.isnan(values).all():
                do = "Add such sentences to it, or remove the filter"
                raise InputError(f"the clean sample has no sentences to measure the {name}", where=self._where, do=do)
            for border in borders or ():
                mask &= border.keep(values, batch, self._seen)
        self._seen += len(batch)
        return mask

    def learned(self) -> list[dict[str, Any]]:
        """Return the thresholds with what lies on both sides of each."""
        return [border.told() for borders in self._borders.values() for border in borders]


def _ratios(left: Column, right: Column) -> Iterator[tuple[str, Values]]:
    """Yield the ratio of the sides' characters for each pair of languages, in the order of their codes."""
    both = left.there & right.there & (left.lengths > 0) & (right.lengths > 0)
    langs = list(zip(left.langs, right.langs, strict=True))
    ratios = np.maximum(left.lengths, 1) / np.maximum(right.lengths, 1)
    for pair in sorted({tuple(sorted(map(str, pair))) for pair, there in zip(langs, both, strict=True) if there}):
        as_named = np.fromiter((one == pair for one in langs), bool, len(langs))
        turned = np.fromiter((one == pair[::-1] for one in langs), bool, len(langs)) & ~as_named
        yield f"length ratio of {pair[0]} to {pair[1]}", np.where(both & as_named, ratios, np.where(both & turned, 1 / ratios, np.nan))


def _sides(setting: Setting, corpus: str) -> Sides:
    """Return the sentences of a clean corpus.

    Raises:
        InputError: it is neither pairs nor single sentences.
    """
    rows = read_rows(setting.references[corpus])
    if (kind := kind_of(rows.column_names)) not in ("mono", "bitext"):
        raise InputError(
            f"the corpus {corpus!r} has the kind {kind}", where=f"{setting.where}: as_clean", do="Name a bitext or a monolingual corpus"
        )
    columns = [rows[name].to_pylist() for side in SIDES[kind] for name in reversed(side)]
    return Sides(*(columns if kind == "bitext" else [*columns, [None] * len(rows), [None] * len(rows)]))


def _borders(name: str, values: Values, alpha: float, where: str) -> list[Border]:
    """Return the thresholds of a measure."""
    require_enough(values, "sentences", name, where)
    if name.startswith("length"):
        low, high = np.quantile(values, alpha / 2, method="lower"), np.quantile(values, 1 - alpha / 2, method="higher")
        return [Border(name, float(low), 1), Border(name, float(high), -1)]
    return [lower_border(name, values, alpha)]
