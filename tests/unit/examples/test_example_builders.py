"""Pairs, groups and unions."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from held_rows import held

from crosslign.errors import InputError
from crosslign.examples import BUILDERS, Material
from crosslign.examples.shapes import shape_of, shaped


def meaning(text):
    return text.split()[0]


def test_dropout_pairs_have_one_side(run, multiway, rows, nli):
    found = run("dropout_pairs", [multiway], ["de"])
    assert len(found) == 60
    assert found[0] == {"id": None, "rows": ["m:0:de0"], "a_text": "0 de 0", "a_lang": "de", "b_text": None, "b_lang": None}
    assert len(run("dropout_pairs", [multiway])) == 30 * 5 + 15
    mono = rows("mono", [{"id": "a:1", "lang": "en", "text": "x"}])
    assert len(run("dropout_pairs", [mono, multiway], ["en"])) == 91
    # A labelled row has two sentences.
    assert Counter(row["a_text"] for row in run("dropout_pairs", [nli], ["fr"]))["p1-fr"] == 4
    assert len(run("dropout_pairs", [nli], ["fr"])) == 16


def test_parallel_pairs_of_groups(run, multiway):
    found = run("parallel_pairs", [multiway], pairs=["en-de", "en-fr"])
    assert Counter(frozenset((row["a_lang"], row["b_lang"])) for row in found) == {frozenset(("de", "en")): 30, frozenset(("en", "fr")): 15}
    for row in found:
        assert meaning(row["a_text"]) == meaning(row["b_text"])
        assert row["rows"] == [f"m:{meaning(t)}:{t.split()[1]}{t.split()[2]}" for t in (row["a_text"], row["b_text"])]
    turned = sum(row["a_lang"] == "en" for row in found)
    assert 8 < turned < 37
    assert {row["a_text"].split()[2] for row in found if row["a_lang"] == "en"} == {"0", "1", "2"}
    assert all(row["a_lang"] == "de" for row in run("parallel_pairs", [multiway], pairs=["de-en"], orientation="as_is"))


def test_parallel_pairs_draw_versions_without_replacement(run, multiway):
    found = run("parallel_pairs", [multiway], pairs=["en-de"], per_group=4)
    assert len(found) == 120
    assert len({tuple(sorted(row["rows"])) for row in found}) == 120
    assert len(run("parallel_pairs", [multiway], pairs=["en-de"], per_group=10)) == 30 * 6


def test_parallel_pairs_of_all_languages(run, multiway):
    found = run("parallel_pairs", [multiway])
    assert len(found) == 30 + 15 + 15
    assert len(run("parallel_pairs", [multiway], ["en", "fr"])) == 15


def test_parallel_pairs_do_not_hang_on_what_else_is_there(run, multiway):
    whole = {tuple(row["rows"]) for row in run("parallel_pairs", {"m": multiway}, pairs=["en-de", "en-fr"], per_group=2)}
    part = {tuple(row["rows"]) for row in run("parallel_pairs", {"m": multiway.slice(50)}, pairs=["en-de"], per_group=2)}
    cut = multiway["group"][50].as_py()
    assert {pair for pair in part if f"m:{cut}:" not in pair[0]} < whole
    assert run("parallel_pairs", [multiway]) == run("parallel_pairs", [multiway])
    assert run("parallel_pairs", [multiway]) != run("parallel_pairs", [multiway], seed=7)


@pytest.fixture
def bitext(rows):
    content = [{"id": f"b:{n}", "a_lang": "en", "a_text": f"{n} en", "b_lang": ("de", "fr")[n % 2], "b_text": f"{n} xx"} for n in range(40)]
    return rows("bitext", content)


def test_parallel_pairs_of_bitexts(run, bitext):
    found = run("parallel_pairs", [bitext], pairs=["fr-en"])
    assert len(found) == 20
    assert all(row["rows"][0] == row["rows"][1] and meaning(row["a_text"]) == meaning(row["b_text"]) for row in found)
    assert 2 < sum(row["a_lang"] == "fr" for row in found) < 18
    assert len(run("parallel_pairs", [bitext])) == 40
    assert len(run("parallel_pairs", [bitext], ["en", "de"])) == 20


def test_bounds_of_a_language_pair_nest(run, bitext, multiway):
    small, large = (run("parallel_pairs", [bitext], max_per_pair=n) for n in (4, 12))
    assert Counter(row["rows"][0] for row in small) <= Counter(row["rows"][0] for row in large)
    assert (len(small), len(large)) == (8, 24)
    assert all(row in large for row in small)
    parts = [bitext.slice(0, 15), bitext.slice(15)]  # corpora are cut one by one, and together they are cut as one
    assert run("parallel_pairs", parts, max_per_pair=4) == small
    assert len(run("parallel_pairs", [bitext, multiway], pairs=["en-de"], max_per_pair=25)) == 25


def test_groups_have_distinct_languages(run, multiway):
    found = run("parallel_groups", [multiway], ["en", "de", "fr"])
    assert len(found) == 15
    for row in found:
        assert sorted(row["langs"]) == ["de", "en", "fr"]
        assert len({meaning(text) for text in row["texts"]}) == 1
        assert row["rows"] == [f"m:{t.split()[0]}:{t.split()[1]}{t.split()[2]}" for t in row["texts"]]
    pairs = run("parallel_groups", [multiway], size=2)
    assert len(pairs) == 30
    assert len({tuple(row["langs"]) for row in pairs}) == 3
    with pytest.raises(InputError, match=r"x: .*group .* 4 .*`size`"):
        run("parallel_groups", [multiway], size=4)
    with pytest.raises(InputError, match=r"x: .*two.*`size`"):
        run("parallel_groups", [multiway])


def test_versions_of_a_group_are_drawn(run, multiway):
    seen = {row["rows"][row["langs"].index("en")].split(":")[2] for row in run("parallel_groups", [multiway], ["en", "de"])}
    assert seen == {"en0", "en1", "en2"}


def test_a_smaller_sample_of_groups_is_part_of_a_larger_one(run, multiway):
    small, large, all_groups = (run("parallel_groups", [multiway], ["en", "de"], max_groups=n) for n in (5, 12, None))
    assert (len(small), len(large)) == (5, 12)
    assert [row for row in large if row in small] == small
    assert [row for row in all_groups if row in large] == large


def test_groups_of_two_corpora_never_mix(run, multiway):
    assert len(run("parallel_groups", {"a": multiway, "b": multiway}, ["en", "de"])) == 60


def sets(multiway, nli):
    def make(builder, table, **options):
        return pa.concat_tables(list(BUILDERS.get(builder)(Material("y", {"c": held(table)}, {}, ["en"], 1), **options)))

    return {"texts": make("dropout_pairs", multiway), "nli": make("nli_triplets", nli)}


def test_unions_are_shuffled_and_repeat(run, multiway, nli):
    others = sets(multiway, nli)
    found = run("union", others=others, repeat={"nli": 3})
    assert len(found) == 90 + 3 * 3
    assert Counter(row["c_text"] is None for row in found) == {True: 90, False: 9}
    assert found == run("union", others=others, repeat={"nli": 3})
    assert found != run("union", others=others, repeat={"nli": 3}, seed=7)
    assert [row["a_text"] for row in found[:90]] != others["texts"]["a_text"].to_pylist()
    pairs = run("union", others=others, drop_hard_negatives=True)
    assert len(pairs) == 93
    assert "c_text" not in pairs[0]
    assert Counter(row["b_text"] for row in pairs)["e1-en"] == 1


def test_a_union_of_unique_pairs_has_each_pair_once(run):
    def pairs(name, content):
        columns = [pa.array(column) for column in zip(*content, strict=True)]
        ids = pa.array([[f"{name}:{n}"] * 2 for n in range(len(content))])
        return shaped("pairs", rows=ids, **dict(zip(("a_text", "a_lang", "b_text", "b_lang"), columns, strict=True)))

    first = pairs("f", [("One house.", "en", "一", "zh"), ("two", "en", "二", "zh"), ("two", "en", "两", "zh")])
    second = pairs(
        "s", [("一", "zh", "one HOUSE", "en"), ("three", "en", "三", "zh"), ("three", "en", "三", "zh"), ("一", "en", "one house", "zh")]
    )
    others = {"first": first, "second": second}
    assert Counter(row["rows"][0] for row in run("union", others=others)) == Counter(f"f:{n}" for n in range(3)) + Counter(
        f"s:{n}" for n in range(4)
    )
    found = run("union", others=others, unique=True)
    assert sorted(row["rows"][0] for row in found) == ["f:0", "f:1", "f:2", "s:1", "s:3"]
    assert next(row for row in found if row["rows"][0] == "f:0")["a_text"] == "One house."
    twice = run("union", others=others, unique=True, repeat={"second": 2})
    assert Counter(row["rows"][0] for row in twice) == {"f:0": 1, "f:1": 1, "f:2": 1, "s:1": 2, "s:3": 2}


def test_unions_that_cannot_be(run, multiway, nli):
    others = sets(multiway, nli)
    groups = next(BUILDERS.get("parallel_groups")(Material("y", {"c": held(multiway)}, {}, ["en", "de"], 1)))
    with pytest.raises(InputError, match=r"x: .*mixed"):
        run("union", others={**others, "groups": groups})
    with pytest.raises(InputError, match=r"x: .*`of` has \[\], `repeat` "):
        run("union")
    with pytest.raises(InputError, match="`repeat`"):
        run("union", others=others, repeat={"nil": 2})
    with pytest.raises(InputError, match=r"x: `unique`"):
        run("union", others=others, unique=True)


def view(rows, kind, content):
    table = rows(kind, [{name: value for name, value in row.items() if name != "of"} for row in content])
    return table.append_column("of", [[row["of"] for row in content]])


def test_view_pairs_join_on_the_original(run, rows):
    corpus = rows("mono", [{"id": f"c:{n}", "lang": lang, "text": f"text {n}"} for n, lang in enumerate(["en", "en", "de"])])
    copies = view(rows, "mono", [{"id": f"v:{n}", "lang": "fr", "text": f"copy {n}", "of": f"c:{n}"} for n in (2, 0, 1)])
    found = run("view_pairs", {"v": copies, "c": corpus}, ["en"])
    assert [(row["rows"], row["a_text"], row["b_text"], row["a_lang"], row["b_lang"]) for row in found] == [
        (["c:0", "v:0"], "text 0", "copy 0", "en", "fr"),
        (["c:1", "v:1"], "text 1", "copy 1", "en", "fr"),
    ]
    with pytest.raises(InputError, match=r"x: view_pairs .*\['v'\].*`from`"):
        run("view_pairs", {"v": copies})
    with pytest.raises(InputError, match="'c:2'"):
        run("view_pairs", {"v": copies, "c": corpus.slice(0, 2)})


def test_view_pairs_of_two_sides(run, rows):
    row = {"a_lang": "en", "b_lang": "en", "label": [0.0], "group": "g"}
    corpus = rows("labelled", [{"id": "c:1", **row, "a_text": "a", "b_text": "b"}])
    copies = view(rows, "labelled", [{"id": "v:1", **row, "a_text": "A", "b_text": "B", "of": "c:1"}])
    assert [(row["a_text"], row["b_text"]) for row in run("view_pairs", {"c": corpus, "v": copies})] == [("a", "A"), ("b", "B")]


def test_view_pairs_of_a_sentence_that_a_copy_lacks_are_left_out(run, rows):
    one = {"a_lang": "en", "label": [0.0], "group": "g", "a_text": "a"}
    corpus = rows("labelled", [{"id": "c:1", **one, "b_lang": "en", "b_text": "b"}])
    copies = view(rows, "labelled", [{"id": "v:1", **one, "a_text": "A", "b_lang": None, "b_text": None, "of": "c:1"}])
    assert [(row["a_text"], row["b_text"]) for row in run("view_pairs", {"c": corpus, "v": copies})] == [("a", "A")]


def test_builders_refuse_corpora_of_another_kind(run, multiway):
    with pytest.raises(InputError, match=r"x: .*'a_lang'"):
        run("nli_triplets", [multiway])
    with pytest.raises(InputError, match=r"x: .*`from`"):
        run("dropout_pairs")


def test_shapes_are_known_by_their_columns(multiway, nli):
    others = sets(multiway, nli)
    assert [shape_of(table.column_names) for table in others.values()] == ["pairs", "triplets"]
    assert shape_of(shaped("labelled_examples", a_text=others["texts"]["a_text"]).column_names) == "labelled_examples"
    with pytest.raises(ValueError, match=r"shape.*columns"):
        shape_of(multiway.column_names)
