"""Beginnings of large files (`head:`): which files they are made of, and what a run fetches with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from crosslign.config.data_plan import data_plan
from crosslign.config.file_heads import head_bytes, with_heads
from crosslign.config.graph import corpus_references
from crosslign.config.load import load_project
from crosslign.config.loads import drawn_first, filters_of
from crosslign.config.project import filter_models, without_models
from crosslign.config.resources import file_priority, job_need
from crosslign.config.targets import tables_of
from crosslign.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
FIVE = ["msimcse", "moco_bert", "scl", "mpcl", "emma_x"]
SOURCES = {
    "web": {
        "url": "https://example.org/",
        "files": [{"name": "de.txt.xz", "about_bytes": 9_000_000}, {"name": "sw.txt.xz", "bytes": 900_000}, {"name": "unknown.txt"}],
    }
}
CORPUS = {"kind": "mono", "source": "web", "files": ["de.txt.xz", "sw.txt.xz"], "reader": "text_lines", "head": "1.5 MB"}


def project(scale, papers=FIVE, **more):
    return load_project(ROOT, {"scale": scale, "papers": papers, "targets": ["all"], **more})


def test_larger_files_are_cut_and_smaller_ones_whole():
    sources, corpora = with_heads(SOURCES, {"c": CORPUS}, stand_in=False)
    assert corpora["c"]["files"] == ["head1.5MB-de.txt.xz", "sw.txt.xz"]
    head = sources["web"]["files"][-1]
    assert (head["path"], head["bytes"], head["about_bytes"]) == ("de.txt.xz", 1_500_000, 9_000_000)
    assert len(SOURCES["web"]["files"]) == 3


def test_synthetic_data_have_no_beginnings():
    sources, corpora = with_heads(SOURCES, {"c": CORPUS}, stand_in=True)
    assert sources == SOURCES
    assert corpora["c"] == {key: value for key, value in CORPUS.items() if key != "head"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"reader": "moses"}, r"c\.head: moses.*json_lines, text_lines, tsv"),
        ({"files": ["unknown.txt"]}, r"corpora\.c\.head: .*unknown.txt"),
        ({"source": "packed"}, r"c\.head: a\.zip.*archive"),
        ({"source": "hub"}, r"c\.head: .*hub.*url"),
    ],
)
def test_what_cannot_be_cut_is_refused(change, said):
    others = {
        "packed": {"url": "https://example.org/", "files": [{"name": "a.zip", "bytes": 9}]},
        "hub": {"hub": "a/b", "files": [{"name": "a.txt", "bytes": 9}]},
    }
    entry = {**CORPUS, **change}
    if "files" not in change and "source" in change:
        del entry["files"]
    with pytest.raises(InputError, match=said):
        with_heads({**SOURCES, **others}, {"c": entry}, stand_in=False)


def test_units_are_those_of_disks():
    assert [head_bytes(said) for said in ("1 kB", "300 MB", "1.5 GB")] == [1000, 300_000_000, 1_500_000_000]


def test_all_of_the_five_papers_is_under_150_gigabytes():
    needs = data_plan(project("paper"), ["all"])
    assert sum(need.bytes or need.about_bytes or 0 for need in needs) < 150e9


def test_the_table_that_counts_all_archives_is_one_that_is_asked_for():
    paper, quick = project("paper"), project("quick")
    assert "emma_x_table7" not in tables_of(paper, "all")
    assert "emma_x_table7" not in tables_of(paper, "emma_x")
    assert tables_of(paper, "emma_x_table7") == ["emma_x_table7"]
    assert "emma_x_table7" in tables_of(quick, "all")


def test_a_size_that_needs_all_rows_reads_whole_files():
    whole = project("paper", ["emma_x"], sizes={"emma_x": "full"})
    assert whole.corpora["cc100_en"]["files"] == ["head300MB-en.txt.xz"]
    assert whole.corpora["cc100_en-full"]["files"] == ["en.txt.xz"]
    assert "head" not in whole.corpora["cc100_en-full"]


def test_recipes_below_the_papers_scale_know_nothing_of_beginnings():
    quick = project("quick")
    assert not any("head" in entry for entry in quick.corpora.values())
    assert not any("head" in file for source in quick.sources.values() for file in source["files"])


def test_small_files_come_first():
    paper = project("paper")
    sizes = [file_priority(paper, "opus_ccmatrix", name) for name in ("en-eu.txt.zip", "en-nl.txt.zip", "en-pt.txt.zip")]
    assert 1 >= sizes[0] > sizes[1] > sizes[2] > 0


def test_the_web_s_bitext_is_judged_by_a_model_that_its_source_brings():
    paper = project("paper")
    files = {(need.source, need.file) for need in data_plan(paper, ["ccmatrix_en-sw"])}
    assert files == {("opus_ccmatrix", "en-sw.txt.zip"), ("lid176", "lid.176.ftz")}
    assert corpus_references(paper, "ccmatrix_en-sw") == {"lid176": paper.paths.download("lid176", "lid.176.ftz")}


def test_languages_are_identified_in_rows_that_can_still_be_drawn():
    paper = project("paper")
    judged = [name for name, entry in paper.corpora.items() if "language_id" in filters_of(paper, name) and "sample" in entry]
    assert {"ccmatrix_en-de", "ccaligned_en-sw", "multiun_en-zh"} <= set(judged)
    assert all(drawn_first(paper, name) for name in judged)


def test_each_process_has_memory_for_a_large_model():
    paper = project("paper")

    def memory(name):
        filters = [{"language_id": {"model": name}}]
        changed = replace(paper, corpora={**paper.corpora, "cc100_sw": {**paper.corpora["cc100_sw"], "filters": filters}})
        return job_need(changed, "build_corpus", {"corpus": "cc100_sw"}, 1).mem_mb

    assert memory("glotlid") - memory("lid176") >= 4 * 1689


def test_synthetic_data_are_judged_by_the_packaged_detector():
    quick = project("quick")
    assert not any(filter_models(entry, quick.sources) for entry in quick.corpora.values())
    assert {"language_id": {"min_confidence": 0.5}} in quick.corpora["ccmatrix_en-sw"]["filters"]
    own = {"kind": "mono", "filters": [{"language_id": {"model": "/my/lid.ftz", "min_confidence": 0.2}}]}
    named = {"kind": "mono", "filters": [{"length": None}, {"language_id": {"model": "lid176", "min_confidence": 0.2}}]}
    assert without_models(own, {"lid176": {}}) == own
    assert without_models(named, {"lid176": {}})["filters"] == [{"length": {}}, {"language_id": {"min_confidence": 0.2}}]
