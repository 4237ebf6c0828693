"""Monolingual sentences of many languages, small languages raised by p ∝ n^0.3 (EMMA-X, PROTOCOLS A.6.4, A.6.5)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from crosslign.corpora.sampling import sample
from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.sentences import sentences
from crosslign.examples.shapes import joined, pick, row_lists, shaped


@BUILDERS.register
def build(material: Material, *, exponent: float = 0.3, rows: int | None = None) -> pa.Table:
    """Return `pairs` without second sides, shuffled by the seed; of a language with n sentences a share p ∝ n^exponent.

    A language gets sentences drawn without replacement, and where its share asks for more than it has, all of them as often
    as they fit and a draw for the rest. An exponent of 1 keeps the sizes, 0 makes all languages equal.

    Args:
        material: corpora of any kind; sentences of `langs`, or of all languages.
        exponent: smoothing of the sizes, 0.3 in XLM-R.
        rows: number of rows; that of the sentences where it is not given.

    Raises:
        InputError: there is no sentence, or fewer rows than languages are asked for.
    """
    table = joined([sentences(corpus, material.langs) for corpus in material.corpora.values()], ("id", "lang", "text"), material.name)
    by_lang: dict[str, list[int]] = {}
    for row, lang in enumerate(table["lang"].to_pylist()):
        by_lang.setdefault(lang, []).append(row)
    if not by_lang:
        raise InputError("no sentence is in these languages", where=material.name, why=f"langs: {list(material.langs)}")
    quotas = shares({lang: len(found) for lang, found in by_lang.items()}, exponent, table.num_rows if rows is None else rows)
    if not min(quotas.values()):
        raise InputError(
            "fewer rows than languages", where=material.name, why=f"rows: {rows}, languages: {len(by_lang)}", do="Raise `rows`"
        )
    ids = np.array(table["id"].to_pylist(), dtype=object)
    chosen = [np.array(by_lang[lang])[_cycled(ids[by_lang[lang]].tolist(), quotas[lang], material.seed)] for lang in sorted(by_lang)]
    order = np.random.default_rng(material.seed).permutation(np.concatenate(chosen))
    table = pick(table, order)
    return shaped("pairs", rows=row_lists(table["id"]), a_text=table["text"], a_lang=table["lang"])


def shares(sizes: Mapping[str, int], exponent: float, rows: int) -> dict[str, int]:
    """Return how many of `rows` each language gets: n^exponent in proportion, largest remainders rounded up."""
    weights = {lang: size**exponent for lang, size in sizes.items()}
    exact = {lang: rows * weight / sum(weights.values()) for lang, weight in weights.items()}
    counts = {lang: int(value) for lang, value in exact.items()}
    by_remainder = sorted(exact, key=lambda lang: (counts[lang] - exact[lang], lang))
    for lang in by_remainder[: rows - sum(counts.values())]:
        counts[lang] += 1
    return counts


def _cycled(keys: list[str], size: int, seed: int) -> np.ndarray:
    whole, rest = divmod(size, len(keys))
    return np.concatenate([*[np.arange(len(keys))] * whole, sample(keys, rest, seed)]).astype(np.int64)
