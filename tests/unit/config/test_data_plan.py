"""The data section of a plan: what a table needs, where it is, who must fetch it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from crosslign.config.catalog import local_file
from crosslign.config.data_plan import data_plan
from crosslign.config.load import load_project
from crosslign.config.project import Project
from crosslign.errors import InputError
from crosslign.paths import CATALOG, Paths

ROOT = Path(__file__).resolve().parents[3]
SHA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"  # of b"test"


@pytest.fixture
def project(tmp_path):
    """A small configuration of every state that a file can be in."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "there.txt").write_text("text")
    mirror = tmp_path / "mirror"
    (mirror / "elsewhere").mkdir(parents=True)
    (mirror / "elsewhere" / "other.zip").write_text("test")
    (mirror / "MANIFEST.csv").write_text(f"path,bytes,sha256\nelsewhere/other.zip,4,{SHA}\n")
    paths = Paths(tmp_path / "results", "laptop")
    paths.download("web", "a.zip").parent.mkdir(parents=True)
    paths.download("web", "a.zip").write_text("a")
    sources = {
        "web": {"url": "https://example.org/x/", "licence": "CC0", "files": [{"name": "a.zip", "bytes": 1}, {"name": "b.zip", "bytes": 7}]},
        "held": {"url": "https://example.org/y", "licence": "CC-BY", "files": [{"name": "c.zip", "sha256": SHA}]},
        "mine": {
            "local": str(tmp_path / "mine"),
            "licence": "research only",
            "stand_in": "moses",
            "files": [{"name": "there.txt"}, {"name": "gone.txt"}],
        },
        "asked": {"url": "https://example.org/z", "licence": "not stated", "files": [{"name": "d.zip"}]},
        "lost": {"url": "https://example.org/w", "licence": "not stated", "files": [{"name": "e.zip"}]},
        "model": {"package": "m", "version": "1", "licence": "MIT", "files": [{"name": "m-1-py3-none-any.whl"}]},
        "unused": {"url": "https://example.org/v", "licence": "CC0", "files": [{"name": "f.zip"}]},
    }
    corpora = {
        "train": {"kind": "mono", "source": "web", "files": ["a.zip"], "filters": [{"not_near": {"corpora": ["test"]}}]},
        "test": {"kind": "evaluation", "source": "held"},
        "kept_out": {"kind": "evaluation", "source": "web", "files": ["b.zip"]},
        "local": {"kind": "bitext", "source": "mine"},
        "by_hand": {"kind": "evaluation", "source": "asked", "access": "manual"},
        "gone": {"kind": "evaluation", "source": "lost", "access": "withdrawn"},
        "idle": {"kind": "mono", "source": "unused"},
        "joined": {"kind": "evaluation", "of": ["test", "kept_out"]},
    }
    trained = {"train": {"learning_rate": 1e-5, "steps": 1}, "readout": "mean"}
    settings = {
        "root": tmp_path,
        "settings": {"scale": "laptop", "papers": ["paper"], "targets": ["all"], "mine": {}},
        "scale": {"encoders": {}, "sources": "real", "limits": {}},
        "sources": sources,
        "corpora": corpora,
        "encoders": {"base": {"source": "model", "readout": "mean"}},
        "readouts": {"mean": {"max_length": 32, "normalise": True}},
        "tasks": {"t1": {"texts": {"a": "by_hand"}}, "t2": {"texts": {"a": "gone"}}, "t3": {"texts": {"a": "test"}}},
        "views": {
            "switched": {"from": ["train"], "dictionaries": {"de": "local"}},
            "translated": {"from": ["train"], "translator": {"provided": {"corpora": ["idle"]}}},
        },
        "examples": {
            "e1": {"from": ["switched"], "decontaminate": ["kept_out"]},
            "e2": {"of": ["e1"]},
        },
        "systems": {
            "s1": {"base": {"encoder": "base"}, "terms": [{"examples": "e2", "batch": 2}], "select": {"best": {"task": "t1"}}, **trained},
            "s2": {"base": {"system": "s1"}, "terms": [{"examples": "e2", "batch": 2}], **trained},
        },
        "finetunes": {"ft": {"terms": [{"examples": "e1", "batch": 2}], **trained}},
        "tables": {"main": {"columns": [{"task": "t2"}, {"mean_of": "x"}], "rows": [{"system": "s2"}, {"label": "published"}]}},
        "figures": {"fig": {"from": ["base"], "text_set": "test"}},
        "claims": {},
        "paper_of": dict.fromkeys(("main", "fig", "s1", "s2", "ft"), "paper"),
        "paths": paths,
        "mirrors": (mirror,),
        "replaced": {},
    }
    return Project(**settings)


def states(project, *targets):
    return {need.file: need.state for need in data_plan(project, targets)}


def test_a_table_is_followed_to_every_file(project):
    assert states(project, "main") == {
        "a.zip": "here",
        "b.zip": "fetch",
        "c.zip": "mirror",
        "there.txt": "here",
        "gone.txt": "by hand",
        "d.zip": "by hand",
        "e.zip": "withdrawn",
        "m-1-py3-none-any.whl": "fetch",
    }


def test_facts_of_a_file(project):
    needs = {need.file: need for need in data_plan(project, ["main", "fig"])}
    assert needs["a.zip"].used_by == ("train",)
    assert needs["b.zip"].bytes == 7
    assert needs["b.zip"].origin == "https://example.org/x/b.zip"
    assert needs["b.zip"].path == project.paths.download("web", "b.zip")
    assert needs["c.zip"].sha256 == SHA
    assert needs["gone.txt"].path == project.root / "mine" / "gone.txt"
    assert needs["gone.txt"].licence == "research only"
    assert needs["m-1-py3-none-any.whl"].used_by == ("base",)
    assert [*needs] == [need.file for need in sorted(needs.values(), key=lambda need: (need.source, need.file))]


def test_other_targets(project):
    assert states(project, "fig") == {"c.zip": "mirror", "m-1-py3-none-any.whl": "fetch"}
    assert states(project, "idle") == {"f.zip": "fetch"}
    assert states(project, "base+ft") == {**states(project, "e1"), "m-1-py3-none-any.whl": "fetch"}
    assert states(project, "joined") == {"c.zip": "mirror", "b.zip": "fetch"}
    assert states(project, "translated") == {"a.zip": "here", "c.zip": "mirror", "f.zip": "fetch"}
    assert states(project, "e1") == {"a.zip": "here", "b.zip": "fetch", "c.zip": "mirror", "there.txt": "here", "gone.txt": "by hand"}
    assert states(project, "all") == states(project, "main", "fig") == states(project, "report") == states(project, "paper")
    assert states(project, "all_figures") == states(project, "fig")


def test_a_scale_with_stand_ins_writes_its_files(project):
    found = states(replace(project, scale={**project.scale, "sources": "stand_in"}), "main")
    assert found["there.txt"] == found["gone.txt"] == "synthetic"
    assert found["b.zip"] == "fetch"


def test_unknown_targets_are_named(project):
    with pytest.raises(InputError, match=r"'mian'.*'main'"):
        data_plan(project, ["mian"])


def test_the_quick_start_fetches_nothing():
    project = load_project(ROOT, {"scale": "quick"})
    assert {need.state for need in data_plan(project, ["all"]) if need.source != "written"} == {"synthetic"}


def test_every_public_file_has_a_size():
    """Golden: CC-100's page prints 82G for English, 305M for Afrikaans; files of a `local` folder are counted where they lie."""
    project = load_project(ROOT, {"scale": "paper", "papers": ["msimcse", "moco_bert", "emma_x", "scl", "mpcl"], "targets": ["all"]})
    public = {name: entry["files"] for name, entry in project.sources.items() if "local" not in entry}
    assert not [(name, file["name"]) for name, files in public.items() for file in files if not file.get("bytes", file.get("about_bytes"))]
    cc100 = {file["name"]: file["about_bytes"] for file in project.sources["cc100"]["files"]}
    assert (cc100["en.txt.xz"], cc100["af.txt.xz"]) == (82 * 2**30, 305 * 2**20)
    assert sum(cc100.values()) > 500e9


def test_the_projects_own_folders_are_found_from_anywhere(tmp_path, monkeypatch):
    """As with `snakemake --directory elsewhere`, or `crosslign plan --directory` of another project."""
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "elsewhere"
    (own / "mine").mkdir(parents=True)
    (own / "workflow").symlink_to(ROOT / "workflow")
    (own / "config").mkdir()
    source = "{local: mine, files: [{name: a.txt}], licence: mine}"
    (own / "config" / "corpora.yaml").write_text(f"sources: {{mine: {source}}}\n", encoding="utf-8")
    sources = load_project(own, {"papers": ["quickstart"]}).sources
    assert local_file(sources["mine"], {"name": "a.txt"}) == Path("elsewhere/mine/a.txt")
    assert sources["written"]["local"] == "resources/written"
    assert local_file(sources["written"], {"name": "sts_de.tsv"}).samefile(CATALOG / "resources" / "written" / "sts_de.tsv")
