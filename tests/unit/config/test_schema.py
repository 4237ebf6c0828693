"""What the schemas' words mean here: where a pattern ends, what an integer and an address are."""

from pathlib import Path

import pytest

from crosslign.config.schema import check
from crosslign.config.yaml_files import YamlFile
from crosslign.errors import InputError

FILES = {"licence": "none", "files": [{"name": "a"}]}


def checked(part, content):
    check(YamlFile(Path("a.yaml"), content, {}), "common", part)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (FILES, "package, url, local, hub, opus, github .*none"),
        (
            {"url": "https://a.org", "local": "data", **FILES},
            "package, .* github .*url, local",
        ),
        ({"local": "data", "licence": "none"}, "files, files_from, split .*none"),
        ({"url": "https://a.org", "split": "train", "licence": "none"}, "hub, local .*none"),
        ({"local": "data", "split": "train", "rows": 5, "licence": "none"}, r"a\.yaml: .*'hub'.*'rows'"),
        ({"hub": "a/b", "rows": 5, **FILES}, r"a\.yaml: .*'split'.*'rows'"),
        ({"local": "data", "files_from": "a.csv", **FILES}, "files, files_from, split .*files, files_from"),
    ],
)
def test_a_source_is_of_one_kind_and_has_files(source, message):
    with pytest.raises(InputError, match=message):
        checked("source", source)


TEXT = {"kind": "bitext", "source": "a", "reader": "moses", "langs": ["de", "en"], "licence": "none"}
SET = {**TEXT, "kind": "evaluation"}


def without(entry, *keys):
    return {key: value for key, value in entry.items() if key not in keys}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (without(TEXT, "source"), "'source'.*missing"),
        (without(TEXT, "reader"), "'reader'.*missing"),
        ({**TEXT, "of": ["b"]}, "'of'.*belong"),
        ({**TEXT, "from": ["b"]}, "'from'.*belong"),
        (without(SET, "reader"), "reader, of .*none"),
        ({**SET, "of": ["b"]}, "reader, of .*reader, of"),
        (without(SET, "source"), "'source'.*missing"),
        (without(SET, "licence"), "'licence'.*missing"),
    ],
)
def test_a_corpus_says_what_it_is_made_of(entry, message):
    with pytest.raises(InputError, match=rf"corpora\.mine.*{message}"):
        check(YamlFile(Path("a.yaml"), {"sources": {}, "corpora": {"mine": entry}}, {}), "corpora")


@pytest.mark.parametrize(
    "entry", [TEXT, SET, {**without(SET, "source"), "from": ["b"]}, {"kind": "evaluation", "langs": ["de"], "of": ["b"]}]
)
def test_a_corpus_that_says_so_is_taken(entry):
    check(YamlFile(Path("a.yaml"), {"sources": {}, "corpora": {"mine": entry}}, {}), "corpora")


@pytest.mark.parametrize("name", ["A-1", "a_b.c", "0"])
def test_an_id_is_what_the_pattern_says(name):
    checked("id", name)


@pytest.mark.parametrize("name", ["a\n", "\na", "a\r", "a/b", "..", "", "a" * 81])
def test_an_id_has_no_line_end_not_even_behind_it(name):
    with pytest.raises(InputError, match=r"a\.yaml: .*'\^\[A-Za-z0-9\]"):
        checked("id", name)


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a\\b", "a\0b", "a\nb", "a\n", "a\x1b[2J", "a" * 201, ""])
def test_a_file_name_is_one_name_without_codes(name):
    with pytest.raises(InputError, match=r"0\.name"):
        checked("files", [{"name": name}])


@pytest.mark.parametrize("name", ["corpus v1 (final).tar.gz", "Tatoeba é.txt", "a;b $(c)", "...", ".a"])
def test_a_file_name_may_be_odd(name):
    checked("files", [{"name": name}])


@pytest.mark.parametrize("wanted", [["de", "fr", "de"], {"all_but": ["en", "en"]}])
def test_a_subset_counts_once_in_an_average(wanted):
    with pytest.raises(InputError, match=r"a\.yaml: .*twice"):
        checked("subsets", wanted)


@pytest.mark.parametrize("wanted", ["all", ["de"], {"all_but": ["en"]}])
def test_subsets_are_named_or_all_or_all_but_some(wanted):
    checked("subsets", wanted)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [("al", r"a\.yaml: .*'al'"), ([], r"\[\].*non-empty"), ({"all_but": []}, "all_but.*non-empty"), ({"all": ["de"]}, "all")],
)
def test_what_subsets_cannot_be_is_said_of_what_was_written(wanted, said):
    with pytest.raises(InputError, match=said):
        checked("subsets", wanted)


@pytest.mark.parametrize("number", [12.0, True, "12", 1e3])
def test_an_integer_is_written_as_one(number):
    with pytest.raises(InputError, match=r"a\.yaml: .*integer"):
        checked("length", number)


@pytest.mark.parametrize("url", ["https://a.org", "http://a.org:8080/b c".replace(" ", "%20"), "https://a.org/?key=%40x@y"])
def test_an_address_may_be_any_of_a_web_server(url):
    checked("source", {"url": url, **FILES})


@pytest.mark.parametrize(
    "url", ["file:///etc", "not an address", "https://", "ftp://a.org/", "https://a.org/b c", "//a.org", "https://[::1"]
)
def test_what_cannot_be_fetched_is_no_address(url):
    with pytest.raises(InputError, match=r"url: .*address"):
        checked("source", {"url": url, **FILES})


@pytest.mark.parametrize("name", ["token", "X-Amz-Signature", "AWSAccessKeyId", "sig", "api_key", "Authorization", "%74oken"])
def test_an_address_with_a_secret_in_its_query_is_refused_and_not_shown(name):
    query = f"?download=1&{name}=WhatNobodyMaySee"
    source = {"url": "https://a.org/", "licence": "none", "files": [{"name": "a.zip", "path": f"a.zip{query}"}]}
    for entry in (source, {"url": f"https://a.org/x{query}", **FILES}):
        with pytest.raises(InputError, match=r"a\.yaml: .*secret") as error:
            checked("source", entry)
        assert "WhatNobodyMaySee" not in str(error.value)


def test_a_query_without_a_secret_is_part_of_an_address():
    checked("source", {"url": "https://a.org/", "licence": "none", "files": [{"name": "a", "path": "a?download=1&author=b&keyword=c"}]})


@pytest.mark.parametrize("user", ["me:PassWord@", "TokenOfMine@", "%61:PassWord@"])
def test_an_address_with_a_password_is_refused_and_not_shown(user):
    for key in ("url", "api"):
        with pytest.raises(InputError, match=rf"a\.yaml: {key}: .*password") as error:
            checked("source", {**({"opus": "x"} if key == "api" else {}), key: f"https://{user}a.org/x", **FILES})
        assert user not in str(error.value)
        assert "PassWord" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "entry", "message"),
    [
        ("x_{lang}", TEXT, r"x_\{lang\}:.*'each'"),
        ("x", {**TEXT, "langs": ["de", "{lang}"]}, r"corpora\.x\.langs\.1: .*\{lang\}"),
        ("x", {**TEXT, "source": "a_{lang}"}, r"corpora\.x\.source: .*a_\{lang\}"),
    ],
)
def test_a_name_in_braces_that_nothing_was_put_in_for_is_refused(name, entry, message):
    with pytest.raises(InputError, match=message):
        check(YamlFile(Path("a.yaml"), {"sources": {}, "corpora": {name: entry}}, {}), "corpora")
