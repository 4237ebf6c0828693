"""NLI triplets, within a language and across languages, against the rules of mSimCSE (section 3)."""

from __future__ import annotations

from collections import Counter

import pytest

from crosslign.errors import InputError

LANGS = ["en", "de", "fr"]


def parts(row):
    """((premise, lang), (positive, lang), (negative, lang)) as the texts themselves say."""
    return tuple(tuple(row[f"{side}_text"].split("-")) for side in "abc")


def test_triplets_of_one_language(run, nli):
    found = run("nli_triplets", [nli], ["en"])
    assert [(row["a_text"], row["b_text"]) for row in found] == [("p1-en", "e1-en"), ("p2-en", "e2-en"), ("p1-en", "e4-en")]
    assert all(row["c_text"] in {"p1-en": {"k1-en", "k2-en"}, "p2-en": {"k3-en"}}[row["a_text"]] for row in found)
    assert found[1]["rows"] == ["n:en:2", "n:en:6"]
    # Every seed draws among the contradictions of the premise; over seeds both occur.
    drawn = {run("nli_triplets", [nli], ["en"], seed=seed)[0]["c_text"] for seed in range(20)}
    assert drawn == {"k1-en", "k2-en"}
    every = run("nli_triplets", [nli])
    assert len(every) == 9
    assert all(row["a_lang"] == row["b_lang"] == row["c_lang"] for row in every)


def test_triplets_need_both_labels(run, nli):
    with pytest.raises(InputError, match=r"x: .*premise"):
        run("nli_triplets", [nli], ["en"], contradiction=7)
    with pytest.raises(InputError, match=r"x: .*entailed"):
        run("crosslingual_triplets", [nli], LANGS, contradiction=7)
    with pytest.raises(InputError, match=r"x: .*labelled.* sw\b"):
        run("crosslingual_triplets", [nli], ["sw"])


@pytest.mark.parametrize("mode", ["enumerate", "random"])
def test_sizes_are_languages_times_entailed_rows(run, nli, mode):
    assert len(run("crosslingual_triplets", [nli], LANGS, anchor_language=mode)) == 3 * 4
    assert len(run("crosslingual_triplets", [nli], ["en", "fr"], anchor_language=mode)) == 2 * 4
    assert len(run("crosslingual_triplets", [nli, nli], LANGS, anchor_language=mode)) == 3 * 8


def test_anchors_are_enumerated(run, nli):
    found = [parts(row) for row in run("crosslingual_triplets", [nli], LANGS)]
    assert [(anchor, positive[0]) for anchor, positive, _ in found] == [
        ((premise, lang), hypothesis) for premise, hypothesis in (("p1", "e1"), ("p2", "e2"), ("p3", "e3"), ("p1", "e4")) for lang in LANGS
    ]


def test_the_last_contradiction_of_the_premise_is_the_hard_negative(run, nli):
    for seed in range(10):
        for anchor, _, negative in map(parts, run("crosslingual_triplets", [nli], LANGS, seed=seed)):
            if anchor[0] != "p3":
                assert negative[0] == {"p1": "k2", "p2": "k3"}[anchor[0]]


def test_a_premise_without_contradiction_gets_one_from_elsewhere(run, nli):
    seen = Counter()
    for seed in range(60):
        of_row = {parts(row)[2][0] for row in run("crosslingual_triplets", [nli], LANGS, seed=seed) if row["a_text"].startswith("p3")}
        assert len(of_row) == 1  # one draw a row, as in the released code
        seen.update(of_row)
    assert set(seen) == {"k2", "k3"}
    assert 15 < seen["k2"] < 45


def test_languages_are_drawn_uniformly_and_apart(run, nli):
    drawn = Counter()
    for seed in range(150):
        for row in run("crosslingual_triplets", [nli], LANGS, seed=seed):
            assert (row["a_lang"], row["b_lang"], row["c_lang"]) == tuple(lang for _, lang in parts(row))
            drawn.update([(row["b_lang"], row["c_lang"])])
    assert len(drawn) == 9
    assert all(count / 1800 == pytest.approx(1 / 9, abs=0.04) for count in drawn.values())


def test_random_anchors_are_drawn(run, nli):
    anchors = Counter(
        row["a_lang"] for seed in range(60) for row in run("crosslingual_triplets", [nli], LANGS, seed=seed, anchor_language="random")
    )
    assert all(count / 720 == pytest.approx(1 / 3, abs=0.08) for count in anchors.values())
    in_order = [row["a_lang"] for row in run("crosslingual_triplets", [nli], LANGS, anchor_language="random")]
    assert in_order != LANGS * 4


def test_rows_are_named(run, nli):
    by_id = {row["id"]: row for row in nli.to_pylist()}
    for row in run("crosslingual_triplets", [nli], LANGS):
        anchor, positive, negative = (by_id[name] for name in row["rows"])
        assert (row["a_text"], row["b_text"], row["c_text"]) == (anchor["a_text"], positive["b_text"], negative["b_text"])
        assert anchor["group"] == positive["group"]
        assert negative["label"] == [2.0]


def test_items_whose_rows_share_one_group(run, rows):
    """The project's own sets give an item one group for its entailed and its contradicting row."""
    content = [
        {
            "id": f"w:{lang}:{item}:{label}",
            "a_lang": lang,
            "a_text": f"p{item}-{lang}",
            "b_lang": lang,
            "b_text": f"{kind}{item}-{lang}",
            "label": [label],
            "group": str(item),
        }
        for lang in ("de", "en")
        for item in range(3)
        for kind, label in (("e", 0.0), ("k", 2.0))
    ]
    for row in run("crosslingual_triplets", [rows("labelled", content)], ["en", "de"]):
        anchor, positive, negative = parts(row)
        assert anchor[0][1:] == positive[0][1:] == negative[0][1:]
        assert (positive[0][0], negative[0][0]) == ("e", "k")


def test_a_language_that_lacks_a_row_has_no_anchor_for_it(run, nli):
    without = nli.filter([row["id"] != "n:fr:2" for row in nli.to_pylist()])
    found = [parts(row) for seed in range(20) for row in run("crosslingual_triplets", [without], LANGS, seed=seed)]
    assert len(found) == 20 * 11
    assert all("fr" not in (anchor[1], positive[1]) for anchor, positive, _ in found if positive[0] == "e2")


def test_legacy_commas(run, rows):
    content = [
        {"id": f"w:{n}", "a_lang": "en", "a_text": 'a, "b"', "b_lang": "en", "b_text": "c,d", "label": [label], "group": str(n)}
        for n, label in enumerate((0.0, 2.0))
    ]
    table = rows("labelled", content)
    (row,) = run("crosslingual_triplets", [table], ["en"], legacy_strip_commas=True)
    assert (row["a_text"], row["b_text"], row["c_text"]) == ("a  b", "c d", "c d")
    (row,) = run("crosslingual_triplets", [table], ["en"])
    assert (row["a_text"], row["b_text"]) == ('a, "b"', "c,d")


def test_a_row_has_one_class(run, rows):
    table = rows(
        "labelled", [{"id": "w:1", "a_lang": "en", "a_text": "a", "b_lang": "en", "b_text": "b", "label": [0.0, 1.0], "group": "1"}]
    )
    for builder in ("nli_triplets", "crosslingual_triplets"):
        with pytest.raises(InputError, match=r": .*class"):
            run(builder, [table], ["en"])


def test_triplets_that_were_read_as_such_come_back(run, rows):
    found = []
    for number, hard in enumerate(["k1", "k2", "k3"]):
        for label, text in ((0, f"e{number}"), (2, hard)):
            found.append({"id": f"t:{number}:{label}", "a_text": "p", "b_text": text, "label": [label], "group": f"g{number}"})
    table = rows("labelled", [{**row, "a_lang": "en", "b_lang": "en"} for row in found])
    for seed in range(5):
        assert [(row["b_text"], row["c_text"]) for row in run("nli_triplets", [table], ["en"], seed=seed)] == [
            ("e0", "k1"),
            ("e1", "k2"),
            ("e2", "k3"),
        ]
