"""Samples are drawn when evaluation sentences are out: as large as asked for, nested, and without any of them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosslign.corpora.sampling import priorities
from crosslign.examples.build import build_examples
from crosslign.examples.draws import bounded, drawable, smoothed
from crosslign.examples.shapes import shaped
from crosslign.files import read_rows
from crosslign.files.rows import SCHEMAS, write_rows

LANGS = ("de", "fr", "ru")
GROUPS = 20
ENTRIES = {
    "parallel_pairs": {"builder": "parallel_pairs", "pairs": ["en-de", "en-fr"]},
    "parallel_groups": {"builder": "parallel_groups", "langs": ["en", *LANGS]},
    "monolingual": {"builder": "monolingual", "langs": ["ru"], "exponent": 1.0},
}
BOUNDS = {"parallel_pairs": "max_per_pair", "parallel_groups": "max_groups", "monolingual": "rows"}
PER_BOUND = {"parallel_pairs": 2, "parallel_groups": 1, "monolingual": 1}


@pytest.fixture(scope="module")
def verses(tmp_path_factory):
    """Twenty groups in four languages."""
    content = [
        {"id": f"m:{group}:{lang}", "group": str(group), "lang": lang, "text": f"{group} {lang}", "version": "0"}
        for group in range(GROUPS)
        for lang in ("en", *LANGS)
    ]
    path = tmp_path_factory.mktemp("draws") / "verses.parquet"
    write_rows(path, pa.Table.from_pylist(content, schema=SCHEMAS["multiway"]), "multiway")
    return path


def build(verses, builder, bound, held_out):
    """Return the texts of each example that is drawn when groups are held out by a sentence of each of their languages."""
    with tempfile.TemporaryDirectory() as folder:
        texts = [f"{group} {lang}".upper() for group in sorted(held_out) for lang in ("en", "ru")]
        table = pa.table({"text_id": [f"t:{n}" for n in range(len(texts))], "lang": ["en"] * len(texts), "text": texts})
        write_rows(Path(folder, "test.parquet"), table.cast(pa.schema([(name, pa.string()) for name in table.column_names])), "texts")
        entry = {**ENTRIES[builder], "from": ["verses"], "decontaminate": ["test"], BOUNDS[builder]: bound}
        counts = build_examples("x", entry, {"verses": verses}, {"test": Path(folder, "test.parquet")}, {}, Path(folder, "out.parquet"))
        rows = read_rows(Path(folder, "out.parquet")).to_pylist()
    assert counts["rows"] == len(rows)
    assert counts["built"] - counts["decontamination"]["after"] == PER_BOUND[builder] * len(held_out)
    return [tuple(row["texts"]) if "texts" in row else (row["a_text"], row["b_text"]) for row in rows]


@pytest.mark.parametrize("builder", ENTRIES)
@settings(max_examples=12)
@given(held_out=st.sets(st.integers(0, GROUPS - 1), max_size=GROUPS - 1), bounds=st.tuples(st.integers(1, 15), st.integers(1, 15)))
def test_a_sample_has_its_size_where_enough_is_clean(verses, builder, held_out, bounds):
    small, large = sorted(bounds)
    found = {bound: build(verses, builder, bound, held_out) for bound in (small, large)}
    clean = GROUPS - len(held_out)
    for bound, rows in found.items():
        repeated = builder == "monolingual"  # what is too small comes again
        assert len(rows) == PER_BOUND[builder] * (bound if repeated else min(bound, clean))
        assert not {int(text.split()[0]) for row in rows for text in row if text} & held_out
    assert set(found[small]) <= set(found[large])


@settings(max_examples=30)
@given(
    rows=st.lists(st.tuples(st.text(min_size=1, max_size=3), st.sampled_from("ab")), min_size=1, max_size=40, unique=True),
    most=st.integers(1, 12),
    part=st.integers(1, 9),
)
def test_bounded_takes_the_least_of_each_stratum(rows, most, part):
    keys = ["".join(row) for row in rows]
    values = priorities(keys, 7)
    table = drawable(shaped("pairs", a_text=pa.array(keys)), values, pa.chunked_array([[stratum for _, stratum in rows]]))
    found = pa.concat_tables(list(bounded((table.slice(start, part) for start in range(0, len(rows), part)), most)))
    assert found.column_names == SCHEMAS["pairs"].names
    wanted = set()
    for stratum in "ab":
        own = sorted((value, number) for number, value in enumerate(values.tolist()) if rows[number][1] == stratum)
        wanted |= {number for _, number in own[:most]}
    assert found["a_text"].to_pylist() == [keys[number] for number in sorted(wanted)]


@settings(max_examples=30)
@given(
    sizes=st.tuples(st.integers(1, 30), st.integers(1, 9)),
    most=st.one_of(st.none(), st.integers(1, 20)),
    exponent=st.floats(0, 1),
    part=st.integers(1, 9),
)
def test_smoothed_strata_have_their_shares(sizes, most, exponent, part):
    keys = [f"{stratum}{n}" for stratum, size in zip("ab", sizes, strict=True) for n in range(size)]
    values = priorities(keys, 7)
    table = drawable(shaped("pairs", a_text=pa.array(keys)), values, pa.chunked_array([[key[0] for key in keys]]))
    parts = (table.slice(start, part) for start in range(0, len(keys), part))
    found = [text for made in smoothed(parts, exponent, most) for text in made["a_text"].to_pylist()]
    kept = {stratum: size if most is None else min(most, size) for stratum, size in zip("ab", sizes, strict=True)}
    total = sum(kept.values())
    assert len(found) == total
    for stratum, size in kept.items():
        own = [key for key in found if key[0] == stratum]
        exact = total * size**exponent / sum(other**exponent for other in kept.values())
        assert abs(len(own) - exact) < 1
        assert own == sorted(own, key=keys.index), "source order, copies together"
        least = sorted((key for key in keys if key[0] == stratum), key=lambda key: values[keys.index(key)])[:size]
        times = [own.count(key) for key in least]
        assert set(own) <= set(least)
        assert times == sorted(times, reverse=True)
        assert max(times) - min(times) <= 1, "each as often as the others, or once more"


def test_pairs_of_small_languages_come_again(run, rows):
    content = [{"id": f"b:{n}", "a_lang": "en", "a_text": f"{n} en", "b_lang": ("de", "fr")[n < 4], "b_text": f"{n} xx"} for n in range(40)]
    found = run("parallel_pairs", [rows("bitext", content)], exponent=0.0, max_per_pair=16)
    french = [row["rows"][0] for row in found if "fr" in (row["a_lang"], row["b_lang"])]
    assert (len(found), len(french), len(set(french))) == (20, 10, 4)
    assert run("parallel_pairs", [rows("bitext", content)], exponent=1.0) == run("parallel_pairs", [rows("bitext", content)])
