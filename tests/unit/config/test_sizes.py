"""Sizes of a paper's training data: each has ids of its own, and everything that hangs on one resolves."""

from __future__ import annotations

from pathlib import Path

import pytest

from crosslign.config.cells import resolve_table
from crosslign.config.load import load_project
from crosslign.config.resolve import resolve, runs_of
from crosslign.config.sizes import renamed, sized, with_dependants
from crosslign.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
SECTIONS = ("views", "examples", "systems", "finetunes", "tables", "figures")
PAPER = {
    "sizes": {"M": {}, "S": {"examples": {"pairs": {"rows": 5, "seed": None}}}, "all": {"corpora": {"web_*": {"sample": None}}}},
    "examples": {
        "pairs": {"builder": "x", "from": ["web_a"], "rows": 9, "seed": 1},
        "mono": {"builder": "x", "from": ["news"]},
        "both": {"builder": "union", "of": ["pairs", "mono"]},
    },
    "systems": {
        "one": {"base": {"encoder": "e"}, "terms": [{"examples": "both"}]},
        "two": {"like": "one", "base": {"system": "one"}},
        "like_one": {"like": "one", "train": {"steps": 2}},
        "other": {"like": "one", "terms": [{"examples": "mono"}]},
        "three": {"base": {"system": "two"}, "terms": [{"examples": "mono"}]},
    },
    "tables": {"t": {"title": "size {size}", "rows": [{"label": "two", "system": "two+nli"}, {"system": "other"}]}},
}
CORPORA = {"web_a": {"kind": "bitext", "sample": 3}, "news": {"kind": "mono", "sample": 4}}


def at(size):
    content, cut, ids = sized(PAPER, CORPORA, size, "here")
    joined = {section: content.get(section, {}) for section in SECTIONS}
    ids = with_dependants(joined, ids)
    return renamed(joined, ids), {**CORPORA, **cut}


def test_the_first_size_is_the_file():
    found, corpora = at(None)
    assert {section: PAPER.get(section, {}) for section in SECTIONS} | {"tables": found["tables"]} == found
    assert found["tables"]["t"] == {**PAPER["tables"]["t"], "title": "size M"}
    assert corpora == CORPORA
    assert at("M") == (found, corpora)


def test_what_hangs_on_another_size_has_it_behind_its_id():
    found, _ = at("S")
    assert found["examples"] == {
        "pairs-S": {"builder": "x", "from": ["web_a"], "rows": 5},
        "mono": PAPER["examples"]["mono"],
        "both-S": {"builder": "union", "of": ["pairs-S", "mono"]},
    }
    assert list(found["systems"]) == ["one-S", "two-S", "like_one-S", "other", "three-S"]
    assert found["systems"]["two-S"] == {"like": "one-S", "base": {"system": "one-S"}}
    assert found["systems"]["other"] == {"like": "one-S", "terms": [{"examples": "mono"}]}
    assert [row["system"] for row in found["tables"]["t"]["rows"]] == ["two-S+nli", "other"]
    assert found["tables"]["t"]["title"] == "size S"
    assert found["tables"]["t"]["rows"][0]["label"] == "two"


def test_corpora_of_another_size_are_others():
    found, corpora = at("all")
    assert corpora == {**CORPORA, "web_a-all": {"kind": "bitext"}}
    assert found["examples"]["pairs-all"]["from"] == ["web_a-all"]
    assert list(found["examples"]) == ["pairs-all", "mono", "both-all"]


@pytest.mark.parametrize(
    ("paper", "size", "match"),
    [
        (PAPER, "L", r"sizes\.p: .*'L'"),
        ({"examples": {}}, "S", r"sizes\.p: .*'S'.*one"),
        ({"sizes": {"M": {"examples": {"pair": {}}}}, "examples": {"pairs": {}}}, "M", r"sizes\.p: .*'M'.*'pair'.*'pairs'"),
        ({"sizes": {"M": {"corpora": {"cc_*": {}}}}}, "M", r"sizes\.p: .*'M'.*'cc_\*'"),
    ],
)
def test_sizes_that_are_not_there(paper, size, match):
    with pytest.raises(InputError, match=match):
        sized(paper, CORPORA, size, "config/config.yaml: sizes.p")


LANGS = {"S": (10, 11), "M": (41, 42), "full": (90, 94)}


@pytest.mark.parametrize("size", LANGS)
def test_emma_x_at_its_sizes(size):
    loaded = load_project(ROOT, {"scale": "paper", "papers": ["emma_x"], "targets": ["all"], "sizes": {"emma_x": size}})
    mark = "" if size == "M" else f"-{size}"
    phases = [name for name in loaded.systems if name.startswith("EX-p")]
    assert len(phases) >= 6
    assert all(name.endswith(mark) for name in phases)
    for system in phases:
        terms = [term for run in runs_of(loaded, system) for term in resolve(loaded, system, int(run.rpartition("-s")[2]))["terms"]]
        assert {term["examples"] for term in terms} <= {f"ex_{name}{mark}" for name in ("pairs", "streams", "monolingual")}
    pairs, text, anchors = (loaded.examples[f"{name}{mark}"] for name in ("ex_pairs", "ex_monolingual", "ex_anchors"))
    assert (len(pairs["pairs"]), len(pairs["langs"])) == LANGS[size]
    assert {pairs.get("max_per_pair"), text.get("rows")} == {"S": {100_000, 1_100_000}, "M": {200_000, 18_000_000}, "full": {None}}[size]
    if size != "full":
        with_one = anchors["max_per_pair"] * len(anchors["pairs"])
        assert with_one / (with_one + text["rows"]) > 0.13, "a tenth of every batch has a translation, with room for chance"
    assert all(("sample" in loaded.corpora[corpus]) == (size != "full") for corpus in pairs["from"] if not corpus.startswith("wmt"))
    table = resolve_table(loaded, "emma_x_table1")
    assert any(f"size {size};" in note["text"] for note in loaded.tables["emma_x_table1"]["footnotes"])
    assert any(f"EX-p2-gmm4{mark}" in str(row.get("system")) for row in table["rows"])
