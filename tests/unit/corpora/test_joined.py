"""Joined and cut evaluation sets: same items, same links, each string once."""

import pytest

from crosslign.corpora.evaluation import EvaluationBuilder
from crosslign.corpora.joined import join, one_split


def small(name, pairs, lang="de", split="test"):
    builder = EvaluationBuilder(name)
    for number, (left, right) in enumerate(pairs):
        builder.item(f"l{number}", lang, "source", lang, left, split=split)
        builder.item(f"r{number}", lang, "target", "en", right, split=split)
        builder.link(lang, f"l{number}", f"r{number}", split=split, score=number)
    return builder.build()


def spelled(evaluation, split=None):
    """Items and links with their strings in place of ids."""
    text = {row["text_id"]: (row["lang"], row["text"]) for row in evaluation.texts.to_pylist()}
    chosen = evaluation if split is None else one_split(evaluation, split)
    items = [(row["item_id"], row["subset"], row["role"], text[row["text_id"]]) for row in chosen.items.to_pylist()]
    links = [(row["subset"], row["left"], row["right"], row["score"]) for row in chosen.gold.to_pylist()]
    return items, links


FIRST = small("first", [("eins", "one"), ("zwei", "two")])
SECOND = small("second", [("zwei", "two"), ("drei", "three")])


def test_a_joined_set_holds_each_part_whole_and_each_string_once():
    both = join("both", {"first": FIRST, "second": SECOND})
    assert both.texts.num_rows == 6
    assert len(set(zip(both.texts["lang"].to_pylist(), both.texts["text"].to_pylist(), strict=True))) == 6
    assert spelled(both, "first") == spelled(FIRST)
    assert spelled(both, "second") == spelled(SECOND)


def test_one_split_keeps_the_rows_of_the_matrix():
    both = join("both", {"first": FIRST, "second": SECOND})
    assert one_split(both, "second").texts.equals(both.texts)


def test_a_cut_set_keeps_its_splits_and_loses_links_without_an_end():
    mixed = EvaluationBuilder("mixed")
    for lang in ("de", "fr"):
        mixed.item("l", lang, "source", lang, f"{lang} eins", split="dev")
        mixed.item("r", lang, "target", "en", "one", split="dev")
        mixed.link(lang, "l", "r", split="dev")
    cut = join("cut", {"mixed": mixed.build()}, ["de", "en"])
    items, links = spelled(cut, "dev")
    assert [(subset, role) for _, subset, role, _ in items] == [("de", "source"), ("de", "target"), ("fr", "target")]
    assert links == [("de", "l", "r", 1.0)]
    assert sorted(cut.texts["lang"].to_pylist()) == ["de", "en"]


@pytest.mark.parametrize("order", [("first", "second"), ("second", "first")])
def test_text_ids_are_numbered_in_the_order_of_the_parts(order):
    parts = {"first": FIRST, "second": SECOND}
    both = join("both", {name: parts[name] for name in order})
    assert both.texts["text_id"].to_pylist() == [f"both:{number}" for number in range(6)]
    assert both.texts["text"][0].as_py() == {"first": "eins", "second": "zwei"}[order[0]]
