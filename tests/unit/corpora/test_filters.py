"""Rules of single rows: hand-made cases, and properties on arbitrary Unicode."""

from __future__ import annotations

import math
import sys
from difflib import SequenceMatcher
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosslign.corpora.filters import FILTERS, Filter, Setting, Sides, TextMap
from crosslign.corpora.pipeline import Pipeline
from crosslign.errors import InputError
from crosslign.languages import of_label

LANGS = ("ar", "de", "en", "hi", "ru", "th", "zh")
SETTING = Setting(LANGS, where="tests")
STATELESS = {
    "length": {"min_words": 2, "max_words": 6},
    "length_ratio": {},
    "longest_word": {"threshold": 8},
    "html_tags": {},
    "alphabet_ratio": {},
    "character_script": {},
    "non_zero_numerals": {},
    "terminal_punctuation": {},
    "longest_common_substring": {},
    "identical_pair": {},
}
SPECIAL = [
    "😀👍🏽",
    "שלום",
    "مرحبا ٣",
    "\u202eabc\u202c",
    "\ufeff",
    "e\u0301",
    "１２３",
    "a\u200bb",
    "\U0010ffff",
    "<b>x</b>",
    "…!?",
    "ﬁ",
    "\t\n",
    "",
]
TEXT = st.one_of(st.sampled_from(SPECIAL), st.text(max_size=24), st.text("ab 1.ß界ф", max_size=24))
ROW = st.tuples(TEXT, st.sampled_from(LANGS), st.one_of(st.none(), TEXT), st.sampled_from(LANGS))


def make(name: str, **options: object) -> Filter | TextMap:
    return FILTERS.get(name)(SETTING, **options)


def sides(*rows: tuple[str, str] | tuple[str, str, str | None, str | None], pivot: bool = False, groups: list[str] | None = None) -> Sides:
    full = [(*row, None, None)[:4] for row in rows]
    columns = [list(column) for column in zip(*full, strict=True)] if full else [[], [], [], []]
    return Sides(*columns, right_is_pivot=pivot, groups=groups or [])


def keep(name: str, *rows: tuple, pivot: bool = False, **options: object) -> list[bool]:
    return make(name, **options).keep(sides(*rows, pivot=pivot)).tolist()


def test_every_module_is_tested():
    stateful = {"as_clean", "language_id", "exact_duplicate", "near_duplicate", "not_near", "punctuation"}
    assert set(FILTERS.names()) == set(STATELESS) | stateful


@pytest.mark.parametrize("name", STATELESS)
@settings(max_examples=60)
@given(rows=st.lists(ROW, max_size=8), cut=st.integers(0, 8))
def test_rules_are_deterministic_and_do_not_see_batches(name, rows, cut):
    whole = make(name, **STATELESS[name]).keep(sides(*rows))
    assert whole.dtype == bool
    assert whole.shape == (len(rows),)
    rule = make(name, **STATELESS[name])
    parts = [rule.keep(sides(*part)) for part in (rows[:cut], rows[cut:])]
    assert np.array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("name", STATELESS)
@settings(max_examples=40)
@given(text=TEXT, lang=st.sampled_from(LANGS), other=TEXT, other_lang=st.sampled_from(LANGS))
def test_rules_are_symmetric_and_a_pivot_is_no_part_of_the_row(name, text, lang, other, other_lang):
    options = STATELESS[name]
    assert keep(name, (text, lang, other, other_lang), **options) == keep(name, (other, other_lang, text, lang), **options)
    alone = keep(name, (text, lang), **options)
    if name in {"length", "longest_word", "html_tags", "alphabet_ratio", "character_script"}:
        assert keep(name, (text, lang, other, other_lang), pivot=True, **options) == alone
    else:
        assert alone == [True]


def test_lone_surrogates_do_not_stop_a_rule():
    for name, options in STATELESS.items():
        assert len(keep(name, ("a\ud800b", "en", "\udfff", "de"), **options)) == 1


def test_length_counts_words_or_characters_bounds_included():
    rows = [("one", "en"), ("one two", "en"), ("one two three", "en"), ("一二 三", "zh"), ("一二三四", "zh")]
    assert keep("length", *rows, min_words=2, max_words=3) == [False, True, True, True, False]
    assert keep("length", *rows, min_words=2, max_words=3, max_characters=4) == [False, True, True, True, True]
    assert keep("length", (" ".join("x" * 100), "en"), (" ".join("x" * 101), "en"), ("", "en")) == [True, False, False]
    assert keep("length", ("a b", "en", "a", "de"), min_words=2) == [False]


def test_length_ratio_stays_below_the_bound():
    assert keep("length_ratio", ("a b c", "en", "x", "de"), ("a b c d e f", "en", "x y z", "de")) == [False, True]
    # Words against characters where the language has no spaces; all characters with unit char.
    assert keep("length_ratio", ("we came home late", "en", "我们回家晚了", "zh")) == [True]
    assert keep("length_ratio", ("we came home late indeed", "en", "我们回家晚了", "zh"), unit="char") == [False]
    assert keep("length_ratio", ("a", "en", " ", "de")) == [False]
    assert keep("length_ratio", (" ", "en", " ", "de")) == [True]  # as OpusFilter: both have no word
    # Five words are seven word pieces, a Chinese character is one: 28 characters are four times as long, one piece a quarter of four.
    pairs = [("we came home late indeed", "en", "字" * n, "zh") for n in (28, 27, 2, 1)]
    assert keep("length_ratio", *pairs, max_ratio=4.0, unit="token") == [False, True, True, False]
    assert keep("length_ratio", *pairs, max_ratio=4.0) == [False, False, True, False]


def test_longest_word_is_shorter_than_the_threshold():
    assert keep("longest_word", ("x" * 39, "en"), ("x" * 40, "en"), ("字" * 60, "zh")) == [True, False, True]


def test_html_tags():
    texts = ["plain", "a < b and b > c", "1<2", "<b>bold</b>", "x <br/> y", "</p>", "<!-- note -->", "<3 you", "<A HREF='x'>y"]
    assert keep("html_tags", *((text, "en") for text in texts)) == [True, True, True, False, False, False, False, True, False]


def test_alphabet_ratio_counts_all_characters():
    rows = [("abc1", "en"), ("ab12", "en"), ("a b c d", "en"), ("नमस्ते", "hi")]
    assert keep("alphabet_ratio", *rows) == [True, False, False, True]
    assert keep("alphabet_ratio", *rows, exclude_whitespace=True) == [True, False, True, True]


def test_character_script_by_language():
    rows = [("Привет", "ru"), ("Привет abc", "ru"), ("Привет, 123!", "ru"), ("你好世界", "zh"), ("hello", "zh"), ("123 …", "zh")]
    assert keep("character_script", *rows) == [True, False, True, True, False, True]
    assert keep("character_script", ("Приветпри a", "ru"), min_share=0.9) == [True]  # 9 of 10
    with pytest.raises(InputError, match=r"character_script: ru .*`scripts`"):
        keep("character_script", ("Привет", "ru"), scripts={"ru": []})
    assert keep("character_script", ("مَرْحَبًا", "ar")) == [True]  # vowel signs belong to all scripts


def test_non_zero_numerals():
    rows = [("in 1999", "en", "1999", "de"), ("in 1900", "en", "19", "de"), ("12", "en", "3", "de"), ("no", "en", "none", "de")]
    assert keep("non_zero_numerals", *rows) == [True, True, False, True]
    assert keep("non_zero_numerals", ("٣٤", "ar", "34", "en"), ("３", "zh", "3", "en")) == [True, True]
    # 2 * 1 / (1 + 3) = 0.5 is enough.
    assert keep("non_zero_numerals", ("1", "en", "123", "de")) == [True]
    assert keep("non_zero_numerals", ("1", "en", "123", "de"), threshold=0.51) == [False]


def test_terminal_punctuation():
    # difference 1 + 0 + 3 beyond the first: -log(1 + 3 + 3) = -1.95; with one more: -log(9) = -2.197
    assert keep("terminal_punctuation", ("a", "en", "b...", "de")) == [True]
    assert -math.log(1 + 3 + 2) > -2 > -math.log(1 + 4 + 3)
    assert keep("terminal_punctuation", ("a", "en", "b....", "de")) == [False]
    assert keep("terminal_punctuation", ("a.", "en", "b。", "zh"), threshold=0) == [True]
    assert keep("terminal_punctuation", ("a.", "en", "b", "zh"), threshold=0) == [False]


@settings(max_examples=150)
@given(a=st.text("abc ", max_size=14), b=st.text("abc ", max_size=14), threshold=st.sampled_from([0.3, 0.5, 0.9, 1.0]))
def test_longest_common_substring_is_exact(a, b, threshold):
    size = SequenceMatcher(None, a, b, autojunk=False).find_longest_match().size
    shorter = min(len(a), len(b))
    expected = not shorter or size / shorter < threshold
    assert keep("longest_common_substring", (a, "en", b, "de"), threshold=threshold) == [expected]


def test_identical_pair_ignores_case_width_spaces_and_punctuation():
    rows = [("Hello, World!", "en", "ＨＥＬＬＯ world", "de"), ("Hello", "en", "Hallo", "de"), ("!!!", "en", "???", "de")]
    assert keep("identical_pair", *rows) == [False, True, True]


def test_language_id_wants_the_declared_language():
    english, german = "The children are playing in the garden behind the house.", "Die Kinder spielen im Garten hinter dem Haus."
    rows = [(english, "en"), (german, "de"), (german, "en"), (english, "en", german, "de"), (english, "en", english, "de"), (english, "xx")]
    setting = Setting(("de", "en"))
    rule = FILTERS.get("language_id")(setting)
    assert rule.keep(sides(*rows)).tolist() == [True, True, False, True, False, True]
    assert rule.keep(sides(*rows)).tolist() == rule.keep(sides(*rows)).tolist()
    assert rule.keep(sides((german, "de", english, "de"), pivot=True)).tolist() == [True]
    assert FILTERS.get("language_id")(setting, min_confidence=1.0).keep(sides(("in", "en"))).tolist() == [False]
    with pytest.raises(InputError, match=r"language_id .*\['en', 'xx'\].*\['en'\]"):
        FILTERS.get("language_id")(setting, among=["en", "xx"])


@settings(max_examples=60)
@given(rows=st.lists(ROW, max_size=6), cut=st.integers(0, 6))
def test_language_id_takes_any_text_and_does_not_see_batches(rows, cut):
    rule = make("language_id", low_accuracy=True)
    parts = [rule.keep(sides(*part)) for part in (rows[:cut], rows[cut:])]
    assert np.array_equal(np.concatenate(parts), rule.keep(sides(*rows)))


def test_language_id_of_a_corpus_of_one_language():
    rule = FILTERS.get("language_id")(Setting(("en",)))
    german = "Die Kinder spielen im Garten hinter dem Haus."
    assert rule.keep(sides((german, "en"), ("The children are playing behind the house.", "en"))).tolist() == [False, True]


@pytest.mark.parametrize("lang", ["no", "nb", "no-NO"])
def test_language_id_knows_norwegian_by_either_code(lang):
    rule = FILTERS.get("language_id")(Setting(("en", lang)))
    rows = [("Barna leker i hagen bak huset.", lang), ("The children are playing behind the house.", lang)]
    assert rule.keep(sides(*rows)).tolist() == [True, False]


def test_punctuation_is_a_map():
    step = make("punctuation")
    assert isinstance(step, TextMap)
    assert step.change("«a»", "en") == '"a"'
    assert step.change("“so”–he   said ‘no’", "en") == "\"so\"-he said 'no'"


@settings(max_examples=40)
@given(text=TEXT)
def test_punctuation_takes_any_text(text):
    step = make("punctuation")
    assert step.change(text, "en") == step.change(text, "en-GB")


def test_language_id_by_a_fasttext_model(tmp_path, monkeypatch):
    class Model:
        def predict(self, text, k, threshold=0.0):
            if k == -1:
                return ("__label__en", "__label__de", "__label__zh"), (0.0, 0.0, 0.0)
            assert "\n" not in text
            return {"Good day": (("__label__en",), (0.9,)), "Guten Tag": (("__label__de",), (0.4,))}.get(text, ((), ()))

    monkeypatch.setitem(sys.modules, "fasttext", SimpleNamespace(load_model=lambda path: Model()))
    with pytest.raises(InputError, match=r"language_id: .*lid\.ftz.*`model`"):
        make("language_id", model=str(tmp_path / "lid.ftz"))
    (tmp_path / "lid.ftz").touch()
    rule = make("language_id", model=str(tmp_path / "lid.ftz"))
    rows = [("Good\u2028day", "en"), ("Good day", "de"), ("Guten Tag", "de"), ("?", "zh"), ("?", "th"), ("Good day", "en", "?", "de")]
    assert rule.keep(sides(*rows)).tolist() == [True, False, False, False, True, False]
    by_source = Pipeline("c", "mono", ["en"], [{"language_id": {"model": "lid176"}}], {"lid176": tmp_path / "lid.ftz"})
    table = pa.table({"id": ["1", "2"], "lang": ["en", "en"], "text": ["Good day", "Guten Tag"]})
    assert [batch["id"].to_pylist() for batch in by_source.apply([table])] == [["1"]]
    assert make("language_id", model=str(tmp_path / "lid.ftz"), min_confidence=0.3).keep(sides(("Guten Tag", "de"))).tolist() == [True]


def test_the_packaged_detector_judges_the_languages_that_a_model_does_not(tmp_path, monkeypatch):
    asked = []

    class Model:
        def predict(self, text, k, threshold=0.0):
            asked.append(text)
            return (("__label__en", "__label__de", "__label__sw"), (0.9, 0.0, 0.0)) if k == -1 else (("__label__en",), (0.9,))

    monkeypatch.setitem(sys.modules, "fasttext", SimpleNamespace(load_model=lambda path: Model()))
    (tmp_path / "lid.ftz").touch()
    english, swahili = "The children are playing in the garden.", "Watoto wanacheza nje katika bustani nyuma ya nyumba."
    setting = Setting(("en", "swh"))
    rule = FILTERS.get("language_id")(setting, model=str(tmp_path / "lid.ftz"), model_langs=["en-GB", "de"])
    asked.clear()
    rows = [(english, "en", swahili, "swh"), (english, "en", english, "swh"), (english, "de"), (swahili, "xx"), (None, "en")]
    assert rule.keep(sides(*rows)).tolist() == [True, False, False, True, True]
    assert asked == [english] * 3
    with pytest.raises(InputError, match=r"language_id: .*\['en'\].*`model_langs`"):
        FILTERS.get("language_id")(setting, model_langs=["en"])


@pytest.mark.parametrize(
    ("label", "lang", "kept"),
    [
        ("arb_Arab", "ar", True), ("ekk_Latn", "et", True), ("nob_Latn", "no", True), ("nno_Latn", "no", False), ("zsm_Latn", "ms", True),
        ("lvs_Latn", "lv", True), ("als_Latn", "sq", True), ("als", "sq", False), ("cmn_Hani", "zh", True), ("amh_Ethi", "am", True),
        ("ory_Orya", "or", True), ("swh_Latn", "swh-Latn", True), ("arb_Arab", "arb-Arab", True), ("fra_Latn", "en", False),
    ],
)  # fmt: skip
def test_labels_of_language_and_script_are_the_corpora_s_codes(tmp_path, monkeypatch, label, lang, kept):
    known = (f"__label__{label}", "__label__sq", "__label__no_Latn", "__label__eng_Latn")

    def predict(text, k, threshold=0.0):
        return (known, (0.0,) * len(known)) if k == -1 else ((f"__label__{label}",), (0.9,))

    monkeypatch.setitem(sys.modules, "fasttext", SimpleNamespace(load_model=lambda path: SimpleNamespace(predict=predict)))
    (tmp_path / "model.bin").touch()
    rule = make("language_id", model=str(tmp_path / "model.bin"))
    assert rule.keep(sides(("a text", lang))).tolist() == [kept]


def test_language_id_by_heliport(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "heliport", None)
    with pytest.raises(InputError, match=r"language_id: .*pip install heliport"):
        make("language_id", model="heliport")
    monkeypatch.delitem(sys.modules, "heliport")
    (tmp_path / "heliport").mkdir()
    answers = '{"eins": "deu", "et": "ekk", "tri": "hbs"}'
    (tmp_path / "heliport" / "__init__.py").write_text(
        f"class Identifier:\n    def identify(self, text):\n        return {answers}.get(text, 'und')\n"
    )
    (tmp_path / "heliport" / "confidenceThresholds").write_text("deu\t0.1\nekk\t0.2\nhbs\t0.3\nzho\t1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    rule = make("language_id", model="heliport")
    rows = [("eins", "de"), ("et", "et"), ("tri", "hr"), ("tri", "sr"), ("eins", "et"), ("?", "zh"), ("?", "th"), ("eins", "de", "?", "zh")]
    assert rule.keep(sides(*rows)).tolist() == [True, True, True, True, False, False, True, False]
    monkeypatch.delitem(sys.modules, "heliport")


def test_labels_agree_with_the_codes_that_lingua_has():
    from lingua import Language

    codes = {one.iso_code_639_3.name.lower(): one.iso_code_639_1.name.lower() for one in Language.all()}
    assert codes.pop("nob") == "nb"  # corpora say `no`
    assert {three: of_label(f"{three}_Latn") for three in codes} == codes


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("LengthFilter", "length"),
        ("LengthRatioFilter", "length_ratio"),
        ("LongWordFilter", "longest_word"),
        ("HtmlTagFilter", "html_tags"),
        ("AlphabetRatioFilter", "alphabet_ratio"),
        ("CharacterScoreFilter", "character_script"),
        ("NonZeroNumeralsFilter", "non_zero_numerals"),
        ("TerminalPunctuationFilter", "terminal_punctuation"),
        ("LongestCommonSubstringFilter", "longest_common_substring"),
    ],
)
def test_opusfilters_names_are_led_to_ours(theirs, ours):
    with pytest.raises(InputError, match=rf"'{theirs}'.*'{ours}'"):
        FILTERS.get(theirs)
