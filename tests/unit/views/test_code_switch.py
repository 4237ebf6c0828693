"""Code-switched views."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosslign.corpora.columns import SIDES
from crosslign.errors import InputError
from crosslign.files import read_rows, sha256_file, write_rows
from crosslign.files.rows import SCHEMAS
from crosslign.views import Setting
from crosslign.views.build import build_view
from crosslign.views.builders import code_switch
from crosslign.views.builders._words import split_punctuation
from crosslign.views.builders.code_switch import CodeSwitch

DICTIONARY = {"de": [("house", "Haus"), ("cat", "Katze"), ("cat", "Kater"), ("taxi", "Taxi")], "fr": [("house", "maison"), ("cat", "chat")]}


@pytest.fixture
def corpora(tmp_path):
    paths = {}
    for lang, words in DICTIONARY.items():
        rows = [{"id": f"d:{n}", "a_lang": "en", "a_text": a, "b_lang": lang, "b_text": b} for n, (a, b) in enumerate(words)]
        paths[f"words_{lang}"] = tmp_path / f"words_{lang}.parquet"
        write_rows(paths[f"words_{lang}"], pa.Table.from_pylist(rows, schema=SCHEMAS["bitext"]), "bitext")
    return paths


def mono(tmp_path, texts, lang="en", name="mono"):
    rows = [{"id": f"c:{n}", "lang": lang, "text": text} for n, text in enumerate(texts)]
    write_rows(tmp_path / f"{name}.parquet", pa.Table.from_pylist(rows, schema=SCHEMAS["mono"]), "mono")
    return {name: tmp_path / f"{name}.parquet"}


def entry(langs=("de", "fr"), **options):
    return {
        "builder": "code_switch",
        "from": ["mono"],
        "dictionaries": {lang: f"words_{lang}" for lang in langs},
        "probability": 1.0,
        **options,
    }


def test_every_known_word_is_replaced_at_probability_one(corpora, tmp_path):
    given = mono(tmp_path, ["The house, a “House” and my taxi.", "nothing here"])
    counts = build_view("v", entry(["de"], strip_punctuation=True), {**corpora, **given}, tmp_path / "v.parquet")
    rows = read_rows(tmp_path / "v.parquet").to_pylist()
    assert rows == [
        {
            "id": "v:c:0:1",
            "lang": "de",
            "text": "The Haus, a “Haus” and my Taxi.",
            "of": "c:0",
            "kind": "code_switch",
            "n": 1,
            "replaced": pytest.approx(3 / 7),
        },
        {"id": "v:c:1:1", "lang": "de", "text": "nothing here", "of": "c:1", "kind": "code_switch", "n": 1, "replaced": 0.0},
    ]
    assert counts["words"] == 9
    assert (counts["covered"], counts["replaced"], counts["identity"]) == (3, 3, 1)
    assert counts["identity_share"] == pytest.approx(1 / 3)
    assert counts["by_language"]["de"] == {key: counts[key] for key in counts["by_language"]["de"]}  # the only language
    assert counts["replaced_share"] == pytest.approx(3 / 9)
    assert (counts["read"], counts["rows"], counts["per_language"]) == (2, 2, {"de": 2})


def test_words_are_what_stands_between_white_space(corpora, tmp_path):
    given = mono(tmp_path, ["The house, a “House” and my HOUSE"])
    counts = build_view("v", entry(["de"]), {**corpora, **given}, tmp_path / "v.parquet")
    assert read_rows(tmp_path / "v.parquet")["text"].to_pylist() == ["The house, a “House” and my Haus"]
    assert counts["covered"] == 1


def test_probability_zero_changes_nothing(corpora, tmp_path):
    build_view("v", entry(probability=0.0), {**corpora, **mono(tmp_path, ["a house"])}, tmp_path / "v.parquet")
    assert read_rows(tmp_path / "v.parquet")["text"].to_pylist() == ["a house"]


def test_shares_follow_the_probability_and_choices_are_uniform(corpora, tmp_path):
    given = mono(tmp_path, ["cat " * 10] * 600)
    counts = build_view("v", entry(probability=0.75), {**corpora, **given}, tmp_path / "v.parquet")
    assert counts["replaced"] / 6000 == pytest.approx(0.75, abs=0.03)  # 5 standard deviations
    assert counts["per_language"]["de"] / 600 == pytest.approx(0.5, abs=0.1)
    words = " ".join(read_rows(tmp_path / "v.parquet")["text"].to_pylist()).split()
    assert words.count("Kater") / (words.count("Kater") + words.count("Katze")) == pytest.approx(0.5, abs=0.06)


def test_one_language_a_view_or_one_a_word(corpora, tmp_path):
    given = mono(tmp_path, ["house " * 12] * 20)
    build_view("v", entry(), {**corpora, **given}, tmp_path / "v.parquet")
    assert all(len(set(text.split())) == 1 for text in read_rows(tmp_path / "v.parquet")["text"].to_pylist())
    build_view("v", entry(per_word_language=True), {**corpora, **given}, tmp_path / "v.parquet")
    mixed = read_rows(tmp_path / "v.parquet")
    assert all(set(text.split()) == {"Haus", "maison"} for text in mixed["text"].to_pylist())
    assert set(mixed["lang"].to_pylist()) == {"en"}


def test_draws_hang_on_seed_and_id_alone(corpora, tmp_path):
    texts = [f"cat house cat {n}" for n in range(30)]
    given = mono(tmp_path, texts)
    options = entry(probability=0.5, views=3)
    build_view("v", options, {**corpora, **given}, tmp_path / "all.parquet")
    build_view("v", options, {**corpora, **given}, tmp_path / "again.parquet")
    assert sha256_file(tmp_path / "all.parquet") == sha256_file(tmp_path / "again.parquet")
    rows = read_rows(tmp_path / "all.parquet").to_pylist()
    assert len({row["id"] for row in rows}) == 90
    assert [row["n"] for row in rows[:4]] == [1, 2, 3, 1]
    backwards = [{"id": f"c:{n}", "lang": "en", "text": text} for n, text in reversed(list(enumerate(texts)))]
    write_rows(tmp_path / "mono.parquet", pa.Table.from_pylist(backwards, schema=SCHEMAS["mono"]), "mono")
    build_view("v", options, {**corpora, **given}, tmp_path / "turned.parquet")
    assert sorted(read_rows(tmp_path / "turned.parquet").to_pylist(), key=str) == sorted(rows, key=str)
    build_view("v", {**options, "seed": 7}, {**corpora, **given}, tmp_path / "other.parquet")
    assert read_rows(tmp_path / "other.parquet")["text"].to_pylist() != read_rows(tmp_path / "turned.parquet")["text"].to_pylist()


def test_only_rows_of_the_languages_are_copied(corpora, tmp_path):
    rows = [
        {"id": "c:1", "group": "g", "lang": "en", "text": "a cat", "version": "k"},
        {"id": "c:2", "group": "g", "lang": "de", "text": "eine Katze", "version": None},
    ]
    write_rows(tmp_path / "mono.parquet", pa.Table.from_pylist(rows, schema=SCHEMAS["multiway"]), "multiway")
    build_view("v", entry(["fr"]), {**corpora, "mono": tmp_path / "mono.parquet"}, tmp_path / "v.parquet")
    (row,) = read_rows(tmp_path / "v.parquet").to_pylist()
    assert (row["of"], row["group"], row["version"], row["text"], row["lang"]) == ("c:1", "g", "k", "a chat", "fr")


def test_both_sentences_of_a_labelled_row_switch_into_one_language(corpora, tmp_path):
    row = {"id": "c:1", "a_lang": "en", "a_text": "cat cat", "b_lang": "en", "b_text": "house house", "label": [2.0], "group": "g"}
    write_rows(tmp_path / "mono.parquet", pa.Table.from_pylist([row], schema=SCHEMAS["labelled"]), "labelled")
    build_view("v", entry(views=8), {**corpora, "mono": tmp_path / "mono.parquet"}, tmp_path / "v.parquet")
    for copy in read_rows(tmp_path / "v.parquet").to_pylist():
        assert copy["a_lang"] == copy["b_lang"]
        assert copy["b_text"] == {"de": "Haus Haus", "fr": "maison maison"}[copy["a_lang"]]
        assert (copy["label"], copy["group"], copy["replaced"]) == ([2.0], "g", 1.0)


def test_languages_without_a_dictionary_are_skipped_and_named(corpora, tmp_path):
    given = mono(tmp_path, ["a cat"] * 9)
    counts = build_view("v", entry(targets=["fr", "sw", "ur"]), {**corpora, **given}, tmp_path / "v.parquet")
    assert (counts["languages"], counts["without_dictionary"]) == (["fr"], ["sw", "ur"])
    assert [*counts["by_language"]] == ["fr"]
    assert counts["per_language"] == {"fr": 9}
    assert build_view("v", entry(), {**corpora, **given}, tmp_path / "v.parquet")["without_dictionary"] == []
    with pytest.raises(InputError, match=r"v: .*dictionary; .* sw"):
        build_view("v", entry(targets=["sw"]), {**corpora, **given}, tmp_path / "v.parquet")


def test_errors(corpora, tmp_path):
    with pytest.raises(InputError, match=r"v: .*empty"):
        build_view("v", entry(), {**corpora, **mono(tmp_path, ["ein Haus"], "de")}, tmp_path / "v.parquet")
    assert not (tmp_path / "v.parquet").exists()
    with pytest.raises(InputError, match=r"'words_de' .* ru .*'de'"):
        build_view("v", {**entry(["de"]), "langs": ["ru"]}, {**corpora, **mono(tmp_path, ["x"])}, tmp_path / "v.parquet")
    both = {**corpora, **mono(tmp_path, ["x"])}
    with pytest.raises(InputError, match=r"v: .*kind"):
        build_view("v", {**entry(), "from": ["mono", "words_de"]}, both, tmp_path / "v.parquet")


@settings(max_examples=150)
@given(st.text("ab'-.,“”!\u00bf x", max_size=8))
def test_punctuation_is_taken_off_and_put_back(word):
    before, inner, after = split_punctuation(word)
    assert before + inner + after == word
    assert inner == "" or (inner[0] not in ".,“”!'-\u00bf" and inner[-1] not in ".,“”!'-\u00bf")


def test_punctuation_inside_a_word_stays():
    assert split_punctuation("“don't!”") == ("“", "don't", "!”")


MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
HALF = 2**32


def scrambled(value):
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def drawn(key, counter):
    return scrambled((key + (counter + 1) * GOLDEN) & MASK)


def fingerprint(word):
    data = word.encode()
    found = scrambled(int.from_bytes(data[:8], "little") ^ (len(data) * GOLDEN & MASK))
    for start in range(8, len(data), 8):
        found = scrambled(((found + GOLDEN) & MASK) ^ int.from_bytes(data[start : start + 8], "little"))
    return found


def below(number, bound):
    return (number // HALF) * bound // HALF


def slowly(row, number, dictionaries, probability, seed, langs, per_word, strip):
    """Return (language, text) of each side of one copy, the share replaced and the counts by language, one word after another."""
    targets = [target for target in sorted(dictionaries) if target not in {row["a_lang"], row["b_lang"]}]
    key = drawn(drawn(fingerprint(row["id"]), seed), number)
    whole, sides, counts = targets[below(drawn(key, 0), len(targets))], [], {}
    for side, (lang, text) in enumerate(((row["a_lang"], row["a_text"]), (row["b_lang"], row["b_text"])), 1):
        if lang not in langs or text is None:
            sides.append((lang, text))
            continue
        words = []
        for place, word in enumerate(text.split()):
            draw = drawn(drawn(key, side), place)
            target = targets[below(drawn(draw, 0), len(targets))] if per_word else whole
            before, inner, after = split_punctuation(word) if strip else ("", word, "")
            ways = dictionaries[target].get(inner.lower(), [])
            new = ways[(draw % HALF) * len(ways) // HALF] if ways and draw // HALF < probability * HALF else None
            found = counts.setdefault(target, [0, 0, 0, 0])
            for at, holds in enumerate((True, bool(ways), new is not None, new is not None and new.lower() == inner.lower())):
                found[at] += holds
            words.append(word if new is None else f"{before}{new}{after}")
        sides.append((lang if per_word else whole, " ".join(words)))
    return sides, counts


WORDS = [
    "a",
    "house",
    "HOUSE",
    "cat",
    "Straße",
    "ΟΔΟΣ",
    "İzmir",
    "counterrevolutionary",
    "12345678",
    "123456789",
    "“cat”",
    "don't",
    "…",
    "ﬁsh",
]
SPACES = [" ", " ", " ", "  ", "\t", "\u00a0", "\u3000", "\u2028", "\x1c", "\u0085", "\r"]
TEXTS = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(SPACES)), max_size=8).map(lambda parts: "".join(a + b for a, b in parts))
ROWS = st.lists(
    st.tuples(st.sampled_from(["en", "ru"]), TEXTS.filter(str.strip), st.sampled_from(["en", "de", None]), TEXTS), min_size=1, max_size=6
)


@settings(max_examples=150)
@given(ROWS, st.booleans(), st.booleans(), st.sampled_from([0.0, 0.3, 1.0]), st.integers(0, 3), st.integers(1, 5))
def test_copies_are_those_of_a_loop_over_words(tmp_path_factory, rows, per_word, strip, probability, seed, at_once):
    folder = tmp_path_factory.mktemp("slow")
    known = {
        "de": {"house": ["Haus", "House", "ein Gebäude"], "cat": ["Katze"], "straße": ["Weg"], "12345678": ["acht"]},
        "fr": {"house": ["maison"], "οδος": ["rue"], "i̇zmir": ["Smyrne"], "counterrevolutionary": ["x"], "123456789": ["neuf", "9"]},
    }
    known["it"] = {**known["fr"], "don't": ["non"], "ﬁsh": ["pesce"]}
    paths = {}
    for lang, words in known.items():
        pairs = [("en", word, other) for word, others in words.items() for other in others]
        table = [{"id": f"d:{n}", "a_lang": own, "a_text": a, "b_lang": lang, "b_text": b} for n, (own, a, b) in enumerate(pairs)]
        paths[lang] = folder / f"{lang}.parquet"
        write_rows(paths[lang], pa.Table.from_pylist(table, schema=SCHEMAS["bitext"]), "bitext")
    given_rows = [
        {"id": f"korpus:Zeile {n}", "a_lang": a, "a_text": one, "b_lang": b, "b_text": two if b else None}
        for n, (a, one, b, two) in enumerate(rows)
    ]
    options = {"dictionaries": {lang: lang for lang in known}, "probability": probability, "views": 2}
    made = CodeSwitch(Setting("v", paths, seed), **options, per_word_language=per_word, strip_punctuation=strip)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code_switch, "AT_ONCE", at_once)
        found = made.augment(pa.Table.from_pylist(given_rows, schema=SCHEMAS["labelled"]), SIDES["labelled"]).to_pylist()
    expected, counts = [], {lang: [0, 0, 0, 0] for lang in known}
    for row in given_rows:
        for number in (1, 2) if "en" in (row["a_lang"], row["b_lang"]) else ():
            sides, counted = slowly(row, number, known, probability, seed, {"en"}, per_word, strip)
            expected.append((f"v:{row['id']}:{number}", *sides))
            for lang, numbers in counted.items():
                counts[lang] = [old + new for old, new in zip(counts[lang], numbers, strict=True)]
    assert [(row["id"], (row["a_lang"], row["a_text"]), (row["b_lang"], row["b_text"])) for row in found] == expected
    by_language = made.counts()["by_language"]
    assert {lang: [by_language[lang][name] for name in code_switch.COUNTED] for lang in known} == counts
