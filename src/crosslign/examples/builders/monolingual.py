"""Monolingual sentences of many languages, small languages raised by p ∝ n^0.3 (EMMA-X, docs/papers/emma_x.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crosslign.corpora.sampling import lowest, priorities
from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.draws import shares
from crosslign.examples.rows import gathered
from crosslign.examples.sentences import sentences
from crosslign.examples.shapes import row_lists, shaped
from crosslign.options import Positive, Share

NUMBER = "number"


@BUILDERS.register(version=1, shape="pairs")
def build(material: Material, *, exponent: Share = 0.3, rows: Positive | None = None) -> Iterator[pa.Table]:
    """Yield `pairs` without second sides, shuffled by the seed; of a language with n sentences a share p ∝ n^exponent.

    A language gets sentences drawn without replacement, and where its share asks for more than it has, all of them as often
    as they fit and a draw for the rest. An exponent of 1 keeps the sizes, 0 makes all languages equal. Sizes are those without
    evaluation sentences.

    Args:
        material: corpora of any kind; sentences of `langs`, or of all languages.
        exponent: smoothing of the sizes, 0.3 in XLM-R.
        rows: number of rows (default: that of the sentences).

    Raises:
        InputError: there is no sentence, or fewer rows than languages are asked for.
    """
    corpora = list(material.corpora.values())
    langs, drawn = _drawn(material.clean(_numbered(sentences(corpora, material.langs, material.name))), material.seed)
    if not langs:
        raise InputError("no sentence is in these languages", where=material.name, why=f"langs: {list(material.langs)}")
    total = sum(map(len, drawn.values()))
    quotas = shares({lang: len(found) for lang, found in drawn.items()}, exponent, total if rows is None else rows)
    if not min(quotas.values()):
        raise InputError("fewer rows than languages", where=material.name, why=f"rows: {rows}, languages: {len(drawn)}", do="Raise `rows`")
    chosen = [langs[lang][_cycled(drawn[lang], quotas[lang])] for lang in sorted(langs)]
    order = np.random.default_rng(material.seed).permutation(np.concatenate(chosen))
    yield from map(_shaped, gathered(sentences(corpora, material.langs, material.name), order))


def _shaped(part: pa.Table) -> pa.Table:
    return shaped("pairs", rows=row_lists(part["id"]), a_text=part["text"], a_lang=part["lang"])


def _numbered(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield sentences as examples, each with its number."""
    start = 0
    for part in parts:
        yield _shaped(part).append_column(NUMBER, pa.array(np.arange(start, start + part.num_rows)))
        start += part.num_rows


def _drawn(parts: Iterable[pa.Table], seed: int) -> tuple[dict[str, NDArray[np.int64]], dict[str, NDArray[np.uint64]]]:
    """Return the numbers of each language's sentences, and the priority of each of them."""
    numbers: dict[str, list[NDArray[np.int64]]] = {}
    drawn: dict[str, list[NDArray[np.uint64]]] = {}
    for part in parts:
        keys, places = priorities(pc.list_flatten(part["rows"]).to_pylist(), seed), part[NUMBER].to_numpy()
        for lang in part["a_lang"].unique().to_pylist():
            found = pc.equal(part["a_lang"], lang).to_numpy()
            numbers.setdefault(lang, []).append(places[found])
            drawn.setdefault(lang, []).append(keys[found])
    return {k: np.concatenate(v) for k, v in numbers.items()}, {k: np.concatenate(v) for k, v in drawn.items()}


def _cycled(keys: NDArray[np.uint64], size: int) -> NDArray[np.int64]:
    whole, rest = divmod(size, len(keys))
    return np.concatenate([*[np.arange(len(keys))] * whole, lowest(keys, rest)])
