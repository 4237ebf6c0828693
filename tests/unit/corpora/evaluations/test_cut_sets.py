"""Sets cut from a multiway corpus: gold is gold, distractors have no partner, order carries nothing."""

from __future__ import annotations

import statistics

import pyarrow as pa
import pytest

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluations._aligned import evenly
from crosslign.corpora.evaluations.planted_bitext import planted_sizes
from crosslign.errors import InputError
from crosslign.files.rows import SCHEMAS


def multiway(count, langs=("en", "de", "zh"), extra=()):
    rows = [
        {"id": f"m:f:{lang}{number}", "group": f"g{number}", "lang": lang, "text": f"{lang} sentence {number}", "version": "a"}
        for number in range(count)
        for lang in langs
    ]
    return {"bible": pa.Table.from_pylist([*rows, *extra], schema=SCHEMAS["multiway"])}


def planted(corpora, limit=None, seed=3, **options):
    options = {"pairs": ["de-en"], "gold": 10, "distractors": 25} | options
    return EVALUATIONS.get("planted_bitext")(Given({}, corpora, "mined", ["de", "en", "zh"], limit, seed), **options)


def sides(evaluation, subset):
    """Items by role: list of (item id, group, text), in order."""
    text = dict(zip(evaluation.texts["text_id"].to_pylist(), evaluation.texts["text"].to_pylist(), strict=True))
    found = {"source": [], "target": []}
    for item in evaluation.items.to_pylist():
        if item["subset"] == subset:
            found[item["role"]].append((item["item_id"], item["group"], text[item["text_id"]]))
    return found


def test_planted_bitext_is_what_it_says():
    evaluation = planted(multiway(200), pairs=["de-en", "zh-en"])
    for subset in ("de-en", "zh-en"):
        both = sides(evaluation, subset)
        lang = subset[:2]
        groups = {role: {group for _, group, _ in items} for role, items in both.items()}
        assert [len(items) for items in both.values()] == [35, 35]
        assert len(groups["source"] & groups["target"]) == 10
        assert all(text.startswith(f"{lang} sentence") for _, _, text in both["source"])
        assert all(text.startswith("en sentence") for _, _, text in both["target"])
        group_of = {item: group for items in both.values() for item, group, _ in items}
        gold = [(row["left"], row["right"], row["score"]) for row in evaluation.gold.to_pylist() if row["subset"] == subset]
        assert len({left for left, _, _ in gold}) == len({right for _, right, _ in gold}) == 10
        assert all(
            group_of[left] == group_of[right] and left.startswith(lang) and right.startswith("en") and score == 1
            for left, right, score in gold
        )
    assert evaluation.items["split"].unique().to_pylist() == ["test"]


def test_planted_order_and_ids_carry_nothing():
    evaluation = planted(multiway(500), gold=100, distractors=50)
    both = sides(evaluation, "de-en")
    assert [item for item, _, _ in both["source"]] == [f"de-{number:06d}" for number in range(1, 151)]
    assert [item for item, _, _ in both["target"]] == [f"en-{number:06d}" for number in range(1, 151)]
    place = {item: number for items in both.values() for number, (item, _, _) in enumerate(items)}
    pairs = [(place[row["left"]], place[row["right"]]) for row in evaluation.gold.to_pylist()]
    assert abs(statistics.correlation(*map(list, zip(*pairs, strict=True)))) < 0.35
    corpus_places = [int(group[1:]) for _, group, _ in both["source"]]
    assert abs(statistics.correlation(corpus_places, list(range(150)))) < 0.35


def test_planted_sets_hang_on_the_seed_and_on_nothing_else():
    first, again, other = planted(multiway(200)), planted(multiway(200)), planted(multiway(200), seed=4)
    assert first.items.equals(again.items)
    assert first.gold.equals(again.gold)
    assert not first.items.equals(other.items)


@pytest.mark.parametrize(("available", "limit", "expected"), [
    (1000, None, (10, 25)), (60, None, (10, 25)), (30, None, (5, 12)), (59, None, (9, 24)),
    (1000, 4, (4, 10)), (30, 8, (5, 12)), (3, None, (0, 1)),
])  # fmt: skip
def test_planted_sizes_shrink_alike(available, limit, expected):
    assert planted_sizes(available, 10, 25, limit) == expected


def test_a_sentence_stands_in_one_group_only():
    german = ("und der Herr redete mit Mose", "Und der HERR redete mit Mose:")
    twice = [
        {"id": f"m:f:{lang}x{number}", "group": f"x{number}", "lang": lang, "text": text, "version": None}
        for number in range(40)
        for lang, text in (("de", german[number % 2]), ("en", f"en other {number}"))
    ]
    evaluation = planted(multiway(30, extra=twice), gold=11, distractors=10)
    texts = [text for _, _, text in sides(evaluation, "de-en")["source"]]
    assert sum("Mose" in text for text in texts) <= 1
    assert len(texts) == 21


def test_versions_are_preferred_in_order():
    extra = [
        {"id": f"m:f:b{number}", "group": f"g{number}", "lang": "en", "text": f"better {number}", "version": "b"} for number in range(100)
    ]
    english = [text for _, _, text in sides(planted(multiway(200, extra=extra), versions={"en": ["b", "a"]}), "de-en")["target"]]
    assert all(text.startswith(("better", "en sentence 1")) for text in english)
    assert any(text.startswith("better") for text in english)
    plain = [text for _, _, text in sides(planted(multiway(200, extra=extra)), "de-en")["target"]]
    assert all(text.startswith("en sentence") for text in plain)


def test_planted_mistakes():
    with pytest.raises(InputError, match=r"mined: .*'fr-en'"):
        planted(multiway(100), pairs=["fr-en"])
    with pytest.raises(InputError, match=r"mined: .*'zh-en'.* 0 "):
        planted(multiway(100, langs=("de", "en")), pairs=["zh-en"])
    with pytest.raises(InputError, match=r"mined: .*multiway.*\[\]"):
        planted({})


def retrieval(corpora, langs, limit=None, seed=1, **options):
    return EVALUATIONS.get("parallel_retrieval")(Given({}, corpora, "ret", langs, limit, seed), **({"size": 20} | options))


def test_parallel_retrieval_has_the_same_groups_in_every_subset():
    lacking = multiway(40)["bible"].to_pylist()
    corpora = {
        "bible": pa.Table.from_pylist(
            [row for row in lacking if not (row["lang"] == "zh" and int(row["group"][1:]) >= 30)], schema=SCHEMAS["multiway"]
        )
    }
    evaluation = retrieval(corpora, ["de", "en", "zh"], size=100)
    assert evaluation.items["subset"].unique().to_pylist() == ["de", "zh"]
    groups = []
    for subset in ("de", "zh"):
        both = sides(evaluation, subset)
        assert [group for _, group, _ in both["source"]] == [group for _, group, _ in both["target"]]
        assert all(text.startswith(subset) for _, _, text in both["source"])
        assert all(text.startswith("en") for _, _, text in both["target"])
        groups.append({group for _, group, _ in both["source"]})
    assert groups[0] == groups[1] == {f"g{number}" for number in range(30)}
    assert evaluation.texts.num_rows == 90
    assert evaluation.gold.num_rows == 60
    assert {(row["left"][3:], row["subset"]) for row in evaluation.gold.to_pylist()} == {
        (row["right"][3:], row["subset"]) for row in evaluation.gold.to_pylist()
    }


def test_parallel_retrieval_sizes_seeds_and_mistakes():
    assert retrieval(multiway(50), ["de", "en"]).gold.num_rows == 20
    assert retrieval(multiway(50), ["de"], limit=7).gold.num_rows == 7
    assert retrieval(multiway(50), ["de"], seed=1).items.equals(retrieval(multiway(50), ["de", "en"], seed=1).items)
    assert not retrieval(multiway(50), ["de"], seed=1).items.equals(retrieval(multiway(50), ["de"], seed=2).items)
    with pytest.raises(InputError, match=r"ret: .*\['de', 'fr'\].*'en'.*50"):
        retrieval(multiway(50), ["de", "fr"])
    with pytest.raises(InputError, match=r"ret: .*\['en'\].*'en'.*50"):
        retrieval(multiway(50), ["en"])


def test_parallel_retrieval_of_the_first_groups_and_of_named_sentences():
    def groups(evaluation):
        return [group for _, group, _ in sides(evaluation, "de")["source"]]

    assert groups(retrieval(multiway(50), ["de", "en"], size=3, order="corpus")) == ["g0", "g1", "g2"]
    named = ["EN: sentence 7!", "en sentence 3"]
    assert groups(retrieval(multiway(50), ["de", "en"], sentences=named)) == ["g7", "g3"]
    with pytest.raises(InputError, match=r"ret: .*'nobody said it'"):
        retrieval(multiway(50), ["de", "en"], sentences=["nobody said it"])


def test_parallel_retrieval_takes_the_first_sentences_of_labelled_pairs():
    rows = [
        {"id": f"{lang}{number}", "group": f"p{number}", "a_lang": lang, "a_text": f"{lang} {number}", "b_lang": lang, "b_text": "no"}
        for lang in ("en", "de")
        for number in (4, 2, 9)
    ]
    corpora = {"nli": pa.Table.from_pylist(rows, schema=SCHEMAS["labelled"])}
    both = sides(retrieval(corpora, ["de", "en"], order="corpus"), "de")
    assert [(group, text) for _, group, text in both["source"]] == [("p4", "de 4"), ("p2", "de 2"), ("p9", "de 9")]
    assert [text for _, _, text in both["target"]] == ["en 4", "en 2", "en 9"]


def test_evenly_spread():
    assert evenly(5, None) == evenly(5, 9) == [0, 1, 2, 3, 4]
    assert evenly(10, 4) == [0, 2, 5, 7]
