"""Small corpora for the example builders."""

from __future__ import annotations

import pyarrow as pa
import pytest
from held_rows import held

from crosslign.examples import BUILDERS, Material
from crosslign.files.rows import SCHEMAS


@pytest.fixture
def rows():
    """Return a function that makes a corpus table of a kind."""

    def make(kind, content):
        return pa.Table.from_pylist(content, schema=SCHEMAS[kind])

    return make


@pytest.fixture
def run():
    """Return a function that runs a builder and gives the rows as dictionaries."""

    def build(builder, corpora=(), langs=(), seed=42, others=(), teach=None, **options):
        corpora = dict(corpora) if isinstance(corpora, dict) else {f"c{n}": table for n, table in enumerate(corpora)}
        corpora, others = ({name: held(table) for name, table in dict(found).items()} for found in (corpora, others))
        parts = BUILDERS.get(builder)(Material("x", corpora, others, langs, seed, teach=teach), **options)
        return [row for part in parts for row in part.to_pylist()]

    return build


@pytest.fixture
def nli(rows):
    """Labelled rows in three languages: premise p1 has two contradictions, p2 one, p3 none; every text names its language."""
    items = [
        ("p1", "e1", 0),
        ("p1", "k1", 2),
        ("p2", "e2", 0),
        ("p1", "k2", 2),
        ("p2", "n2", 1),
        ("p3", "e3", 0),
        ("p2", "k3", 2),
        ("p1", "e4", 0),
    ]
    return rows(
        "labelled",
        [
            {
                "id": f"n:{lang}:{n}",
                "a_lang": lang,
                "a_text": f"{p}-{lang}",
                "b_lang": lang,
                "b_text": f"{h}-{lang}",
                "label": [float(label)],
                "group": str(n),
            }
            for lang in ("de", "en", "fr")
            for n, (p, h, label) in enumerate(items)
        ],
    )


@pytest.fixture
def multiway(rows):
    """Thirty groups: English in three versions, German in two, French in every second group."""
    return rows(
        "multiway",
        [
            {"id": f"m:{g}:{lang}{v}", "group": str(g), "lang": lang, "text": f"{g} {lang} {v}", "version": str(v)}
            for g in range(30)
            for lang, versions in (("en", 3), ("de", 2), ("fr", 1 - g % 2))
            for v in range(versions)
        ],
    )
