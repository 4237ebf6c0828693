"""Paraphrases from versions of one text, with translations as views: SCL's retrieval data where no PAWS-X is (PROTOCOLS A.4.3)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from crosslign.corpora.sampling import generator
from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.sentences import Groups, groups_of
from crosslign.examples.shapes import shaped
from crosslign.files.rows import ROW_GROUP, SCHEMAS

Versions = dict[str, list[int]]


@BUILDERS.register
def build(material: Material, *, anchor: str = "en", negatives: float = 0.5, views: int = 1) -> Iterator[pa.Table]:
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
    usable = [versions for versions in groups.members.values() if len(versions.get(anchor, ())) > 1 and len(versions) > 1]
    if len(usable) < 2:
        what = f"too few groups have two versions in {anchor!r} and a translation"
        raise InputError(what, where=material.name, do="Name a corpus with several versions")
    rows = _rows(groups, [{lang: list(v) for lang, v in g.items()} for g in usable], anchor, negatives, views, material.seed)
    part = list(islice(rows, ROW_GROUP))
    if not part:
        raise InputError("no two neighbouring groups share a language", where=material.name)
    names = SCHEMAS["labelled_examples"].names
    while part:
        table = pa.Table.from_pylist(part, schema=SCHEMAS["labelled_examples"])
        yield shaped("labelled_examples", **{name: table[name] for name in names if name != "id"})
        part = list(islice(rows, ROW_GROUP))


def _rows(groups: Groups, usable: list[Versions], anchor: str, negatives: float, views: int, seed: int) -> Iterator[dict[str, Any]]:
    ids, texts = groups.table["id"].to_pylist(), groups.table["text"].to_pylist()
    for place, own in enumerate(usable):
        draw = generator(seed, ids[own[anchor][0]])
        a, b = draw.sample(own[anchor], 2)
        alike = draw.random() >= negatives
        other = own if alike else usable[(place + 1) % len(usable)]
        b = b if alike else draw.choice(other[anchor])
        langs = sorted((set(own) & set(other)) - {anchor})
        if not langs:
            continue
        made = [_view(own, other, draw.choice(langs), texts, draw) for _ in range(views)]
        yield {
            "rows": [ids[a], ids[b]],
            "a_text": texts[a],
            "a_lang": anchor,
            "b_text": texts[b],
            "b_lang": anchor,
            "label": [float(alike)],
            "supervised": False,
            "views": made,
        }


def _view(own: Versions, other: Versions, lang: str, texts: Sequence[str], draw: random.Random) -> dict[str, str]:
    a = draw.choice(own[lang])
    rest = [row for row in other[lang] if row != a] or other[lang]
    return {"kind": "full", "lang": lang, "a_text": texts[a], "b_text": texts[draw.choice(rest)]}
