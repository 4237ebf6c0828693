"""Joined and cut evaluation corpora: same items, same links, each string once."""

import pytest

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import EvaluationBuilder
from crosslign.errors import InputError


def join(name, parts, langs=()):
    return EVALUATIONS.get("joined")(Given({}, {}, name, langs, parts=parts))


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
    chosen = evaluation if split is None else evaluation.one_split(split)
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
    assert both.one_split("second").texts.equals(both.texts)


def test_a_cut_set_keeps_its_splits_and_loses_links_without_an_end():
    mixed = EvaluationBuilder("mixed")
    for lang in ("de", "fr"):
        mixed.item("l", lang, "source", lang, f"{lang} eins", split="dev")
        mixed.item("r", lang, "target", "en", "one", split="dev")
        mixed.link(lang, "l", "r", split="dev")
    cut = join("cut", {"mixed": mixed.build()}, ["de", "en"])
    items, links = spelled(cut, "dev")
    assert [(subset, role) for _, subset, role, _ in items] == [("de", "source"), ("de", "target")]
    assert links == [("de", "l", "r", 1.0)]
    assert sorted(cut.texts["lang"].to_pylist()) == ["de", "en"]


def test_a_cut_set_has_no_text_of_the_other_side_of_subsets_that_it_leaves_out():
    parts = {lang: [(f"{lang} {n}", f"en of {lang} {n}") for n in range(3)] for lang in ("de", "fr")}
    mixed = join("all", {lang: small(lang, pairs, lang) for lang, pairs in parts.items()})
    cut = join("cut", {"all": mixed}, ["de", "en"])
    assert sorted(cut.texts["text"].to_pylist()) == sorted(text for pair in parts["de"] for text in pair)


def test_a_subset_of_one_role_is_cut_to_its_items_in_the_languages():
    builder = EvaluationBuilder("labelled")
    for lang in ("de", "en", "fr"):
        builder.item(lang, "topics", "sentence", lang, f"a sentence in {lang}", label=[1])
    assert sorted(join("cut", {"labelled": builder.build()}, ["de", "fr"]).texts["lang"].to_pylist()) == ["de", "fr"]


@pytest.mark.parametrize("named", ["deu-Latn", "deu_Latn"])
def test_languages_with_a_script_are_found_however_they_are_written(named):
    of_scripts = small("flores", [("eins", "one")], lang="deu_Latn")
    assert [row["text"] for row in join("cut", {"flores": of_scripts}, [named, "en"]).texts.to_pylist()] == ["eins", "one"]
    with pytest.raises(InputError, match=r"cut: flores .*deu_Latn, en\b.*`langs`"):
        join("cut", {"flores": of_scripts}, ["deu-Cyrl", "en"])
    with pytest.raises(InputError, match=r"cut: .*`of`"):
        join("cut", {})


def test_a_cut_of_a_subset_of_several_languages_keeps_no_half_pair_and_what_was_never_linked():
    builder = EvaluationBuilder("all")
    for lang in ("de", "fr"):
        builder.item(f"{lang} l", "all", "first", lang, f"{lang} eins")
        builder.item(f"{lang} r", "all", "second", "en", f"one of {lang}")
        builder.link("all", f"{lang} l", f"{lang} r")
    builder.item("alone", "all", "second", "en", "of no pair")
    builder.link("all", "de l", "elsewhere")  # an answer that lies in another set
    items, links = spelled(join("cut", {"all": builder.build()}, ["de", "en"]))
    assert [item for item, *_ in items] == ["de l", "de r", "alone"]
    assert [link[1:3] for link in links] == [("de l", "de r"), ("de l", "elsewhere")]


@pytest.mark.parametrize("order", [("first", "second"), ("second", "first")])
def test_text_ids_are_numbered_in_the_order_of_the_parts(order):
    parts = {"first": FIRST, "second": SECOND}
    both = join("both", {name: parts[name] for name in order})
    assert both.texts["text_id"].to_pylist() == [f"both:{number}" for number in range(6)]
    assert both.texts["text"][0].as_py() == {"first": "eins", "second": "zwei"}[order[0]]
