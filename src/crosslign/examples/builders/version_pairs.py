"""Paraphrases from versions of one text, with translations as views: SCL's retrieval data where no PAWS-X is (docs/papers/scl.md)."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crosslign.corpora.sampling import generator
from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.rows import in_steps
from crosslign.examples.sentences import Groups, groups_of
from crosslign.examples.shapes import shaped
from crosslign.files.rows import SCHEMAS
from crosslign.options import Lang, Positive, Share

Versions = dict[str, list[int]]


@BUILDERS.register(version=1, shape="labelled")
def build(material: Material, *, anchor: Lang = "en", negatives: Share = 0.5, views: Positive = 1) -> Iterator[pa.Table]:
    """Yield `labelled` examples: two sentences of the anchor language, label 1 where they are versions of one group.

    Of every group with two versions in the anchor language, two are drawn. With probability `negatives` the second one is
    instead a sentence of the next such group, which speaks of like things, and the label is 0. Each view is a full
    translation: for each row and view a language is drawn that both sentences' groups have, then a version of each, two
    different ones where a group gives both. No label is for cross-entropy (`supervised` is false).

    Args:
        material: multiway corpora whose groups hold several versions of a language.
        anchor: language of the originals.
        negatives: share of rows of label 0.
        views: views of each row.

    Raises:
        InputError: no group has two versions in the anchor language and a translation.
    """
    groups = groups_of(material.corpora, material.langs, material.name)
    usable = np.array([number for number in range(len(groups)) if _usable(groups.versions(number), anchor)], np.int64)
    if len(usable) < 2:
        what = f"too few groups have two versions in {anchor!r} and a translation"
        raise InputError(what, where=material.name, do="Name a corpus with several versions")
    rows, alike, langs = array("q"), bytearray(), list[str]()
    for drawn in _drawn(groups, usable, anchor, negatives, views, material.seed):
        rows.extend(drawn.rows)
        alike.append(drawn.alike)
        langs.extend(drawn.langs)
    if not alike:
        raise InputError("no two neighbouring groups share a language", where=material.name)
    labels, view_langs = iter(alike), iter(langs)
    for part in in_steps(groups.gathered(["id", "text"], np.frombuffer(rows, np.int64)), len(rows), 2 + 2 * views):
        ids, texts = part["id"].to_pylist(), part["text"].to_pylist()
        starts = range(0, len(ids), 2 + 2 * views)
        yield _table([_example(ids[at : at + 2], texts[at : at + 2 + 2 * views], anchor, next(labels), view_langs) for at in starts])


@dataclass(frozen=True)
class _Drawn:
    """One example: row numbers of its two sentences, then of those of each view; whether they say the same; the views' languages."""

    rows: Sequence[int]
    alike: bool
    langs: Sequence[str]


def _usable(versions: Versions, anchor: str) -> bool:
    return len(versions.get(anchor, ())) > 1 and len(versions) > 1


def _drawn(groups: Groups, usable: NDArray[np.int64], anchor: str, negatives: float, views: int, seed: int) -> Iterator[_Drawn]:
    first = np.fromiter((groups.versions(number)[anchor][0] for number in usable.tolist()), np.int64, len(usable))
    ids = (name for part in groups.gathered(["id"], first) for name in part["id"].to_pylist())
    for place, name in enumerate(ids):
        own, draw = groups.versions(int(usable[place])), generator(seed, name)
        a, b = draw.sample(own[anchor], 2)
        alike = draw.random() >= negatives
        other = own if alike else groups.versions(int(usable[(place + 1) % len(usable)]))
        b = b if alike else draw.choice(other[anchor])
        langs = sorted((set(own) & set(other)) - {anchor})
        if langs:
            made = [_view(own, other, draw.choice(langs), draw) for _ in range(views)]
            yield _Drawn([a, b, *(row for _, *pair in made for row in pair)], alike, [lang for lang, *_ in made])


def _view(own: Versions, other: Versions, lang: str, draw: random.Random) -> tuple[str, int, int]:
    a = draw.choice(own[lang])
    rest = [row for row in other[lang] if row != a] or other[lang]
    return lang, a, draw.choice(rest)


def _example(ids: Sequence[str], texts: Sequence[str], anchor: str, alike: int, langs: Iterator[str]) -> dict[str, Any]:
    views = zip(texts[2::2], texts[3::2], strict=True)
    return {
        "rows": list(ids),
        "a_text": texts[0],
        "a_lang": anchor,
        "b_text": texts[1],
        "b_lang": anchor,
        "label": [float(alike)],
        "supervised": False,
        "views": [{"kind": "full", "lang": next(langs), "a_text": a, "b_text": b} for a, b in views],
    }


def _table(examples: Sequence[dict[str, Any]]) -> pa.Table:
    names = [name for name in SCHEMAS["labelled_examples"].names if name != "id"]
    table = pa.Table.from_pylist(list(examples), schema=SCHEMAS["labelled_examples"])
    return shaped("labelled_examples", **{name: table[name] for name in names})
