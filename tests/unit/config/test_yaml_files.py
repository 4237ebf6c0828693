"""YAML as people write it: values of YAML 1.2, the line of each key, and an error of one line for what cannot be meant."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from crosslign.config.yaml_files import MAX_DEPTH, load_yaml
from crosslign.errors import InputError

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Cn")), max_size=12)
NUMBERS = st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=12)
BOMB = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(f"{x}: &{x} [{','.join([f'*{y}'] * 10)}]\n" for y, x in pairwise("abcdefgh"))


@pytest.fixture
def read(tmp_path):
    def load(text):
        (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
        return load_yaml(tmp_path / "a.yaml", "a.yaml")

    return load


@given(st.dictionaries(TEXTS, VALUES, max_size=5))
def test_what_is_written_comes_back(read, content):
    for form in (json.dumps(content, ensure_ascii=False), json.dumps(content, indent=1, ensure_ascii=False)):
        assert read(form).content == content


@pytest.mark.parametrize("word", ["=", "<<"])
def test_words_with_a_tag_of_their_own_are_texts_in_a_value(read, word):
    assert read(f"a: {word}\nb: [{word}]").content == {"a": word, "b": [word]}


@given(st.from_regex(r"[0-9a-zA-Z_.+~-]{0,8}", fullmatch=True))
def test_unquoted_words_stand_for_what_ruamel_takes_them_for(read, word):
    yaml = YAML(typ="safe", pure=True)
    yaml.version = (1, 2)
    try:
        wanted = yaml.load(f"a: {word}")["a"]
    except Exception:
        with pytest.raises(InputError):
            read(f"a: {word}")
        return
    if isinstance(wanted, float) and wanted - wanted != 0:
        with pytest.raises(InputError, match="finite"):
            read(f"a: {word}")
    else:
        assert read(f"a: {word}").content["a"] == wanted


@pytest.mark.parametrize("word", ["https://a.org/b?c=d:e", "x:y", "a::b", "it's", "a#b", "-x", "C:/files", "12:30"])
def test_unquoted_words_between_braces_keep_their_colons(read, word):
    assert read(f"{{a: {word}, b: [{word}, 1]}}").content == {"a": word, "b": [word, 1]}


def test_lines_are_those_of_keys_and_items(read):
    file = read("a: 1\nb:\n  - x\n  - c: &it\n      d: 2\ne: *it\n")
    assert file.content == {"a": 1, "b": ["x", {"c": {"d": 2}}], "e": {"d": 2}}
    assert file.lines == {("a",): 1, ("b",): 2, ("b", 0): 3, ("b", 1): 4, ("b", 1, "c"): 4, ("b", 1, "c", "d"): 5, ("e",): 6, ("e", "d"): 5}
    assert file.where(["b", 1, "c", "x"]) == "a.yaml:4: b.1.c.x"


def test_an_alias_is_a_copy_and_a_merged_key_gives_way(read):
    content = read("a: &a {x: [1], y: 2}\nb: {<<: *a, y: 3}\nc: {<<: [{y: 4}, *a]}\n").content
    assert content == {"a": {"x": [1], "y": 2}, "b": {"x": [1], "y": 3}, "c": {"x": [1], "y": 4}}
    content["b"]["x"].append(2)
    assert content["a"]["x"] == content["c"]["x"] == [1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2\n", r"a\.yaml:2: .*twice.*'a'"),
        ("a: {b: 1, b: 2}", r"a\.yaml:1: .*twice.*'b'"),
        ("1: a", r"a\.yaml:1: .*key 1"),
        ("[a]: b", r"a\.yaml:1: \D*text"),
        ("a: !!python/name:os.system x", r"a\.yaml:1: tags"),
        ("a: !x {b: 1}", r"a\.yaml:1: .*tags"),
        ("a: .inf", r"a\.yaml:1: a: .*finite.*inf"),
        ("a: 2026-13-01", r"a\.yaml:1: .*1\.\.12"),
        ("a: b: c", r"a\.yaml:1: .*valid"),
        ("a: 1\n---\nb: 2", r"a\.yaml:2: .*document"),
        ("a: *b", r"a\.yaml:1: .*unknown.*'b'"),
        ("a: &a [*a]", r"a\.yaml:1: .*unknown.*'a'"),
        ("a: {<<: 1}", r"a\.yaml:1: << "),
        ("[" * (MAX_DEPTH + 1), r"a\.yaml:1: .*nested.*100"),
        ("[" * 1_000_000, r"a\.yaml:1: .*nested.*100"),
        ("- " * 1_000_000, r"a\.yaml:1: .*nested.*100"),
        ("{a: " * 1_000_000, r"a\.yaml:1: .*nested.*100"),
        (BOMB, r"a\.yaml:6: .*500,000"),
    ],
)
def test_what_cannot_be_meant_is_named(read, text, message):
    with pytest.raises(InputError, match=message):
        read(text)
