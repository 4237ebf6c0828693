"""A table as an RO-Crate, read again by the library: workflow, run, files, authors, licences, and the chain behind it."""

import json
import os
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from rocrate.rocrate import ROCrate
from small_chain import ROOT, SCORE, build_chain, made

from crosslign.config.load import load_project
from crosslign.errors import InputError, ResourceError
from crosslign.files.lineage import checksum
from crosslign.paths import TABLE_FORMATS, Paths
from crosslign.provenance.chain import chain
from crosslign.provenance.crate import write_crate
from crosslign.tasks.records import origins

TABLE = {
    "title": "A title",
    "columns": [{"label": "xx→en", "task": "tatoeba_bible", "subset": "avg", "metric": "accuracy", "direction": "xx2en"}],
    "rows": [{"label": "verses", "system": "QS-P"}],
}
FILES = {
    "Snakefile": "# rules", "workflow/rules/a.smk": "# a", "workflow/scripts/__pycache__/a.pyc": "bytes", "LICENSE": "Apache",
    "config/config.yaml": "scale: quick", "config/local.yaml": "account: of somebody", "resources/published/t.csv": "paper",
    "profiles/default/config.yaml": "cores: 2",
}  # fmt: skip


@pytest.fixture(scope="module")
def quickstart():
    return load_project(ROOT, {"scale": "laptop", "results": "results", "papers": ["quickstart"]})


@pytest.fixture
def project(tmp_path, quickstart):
    """A project of a few files, with one table of one cell."""
    root = tmp_path / "project"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    shutil.copy(ROOT / "CITATION.cff", root)
    paths = Paths(root / "results", "laptop")
    build_chain(paths.results)
    for form in TABLE_FORMATS:
        made(paths.results, f"tables/t.{form}", "table", "make_table", [SCORE], {"title": "A title"})
    return replace(
        quickstart, root=root, paths=paths, tables={"t": TABLE, "u": TABLE}, paper_of={**quickstart.paper_of, "t": "p", "u": "p"}
    )


@pytest.fixture
def crate(project, tmp_path):
    write_crate(project, "t", tmp_path / "t.zip", ["--config", "scale=laptop"])
    return ROCrate(str(tmp_path / "t.zip"))


def ids(entities):
    return [entity.id for entity in entities]


def test_the_main_entity_is_the_workflow_and_the_profiles_are_named(crate):
    assert crate.mainEntity.id == "Snakefile"
    assert set(crate.mainEntity.type) == {"File", "SoftwareSourceCode", "ComputationalWorkflow"}
    assert crate.mainEntity["programmingLanguage"]["name"] == "Snakemake"
    profiles = ("https://w3id.org/ro/wfrun/process/0.6", "https://w3id.org/ro/wfrun/workflow/0.6")
    assert ids(crate.root_dataset["conformsTo"]) == [*profiles, "https://w3id.org/workflowhub/workflow-ro-crate/1.1"]
    assert crate.metadata["conformsTo"] == "https://w3id.org/ro/crate/1.3"


def test_the_run_names_what_it_read_and_made_when_and_by_which_command(crate, project):
    (action,) = crate.root_dataset["mentions"]
    assert (action.type, action["instrument"]) == ("CreateAction", crate.mainEntity)
    assert ids(action["object"]) == ["#scale", "config/config.yaml", "resources/published/t.csv"]
    tables = [f"results/laptop/tables/t.{form}" for form in TABLE_FORMATS]
    assert ids(action["result"]) == [*tables, f"results/laptop/{SCORE}"]
    assert action["description"] == "snakemake --cores all --config scale=laptop -- results/laptop/tables/t.md"
    assert action["startTime"] <= action["endTime"] == crate.datePublished.isoformat()
    assert action["object"][0]["exampleOfWork"] == crate.mainEntity["input"][0]
    assert action["result"][0]["exampleOfWork"] == crate.mainEntity["output"][0]
    assert action["result"][4]["sha256"] == checksum(project.paths.results / SCORE)


def test_author_and_licences_are_those_of_the_project_and_of_the_data(crate):
    (author,) = crate.root_dataset["author"]
    assert (author.type, author["name"]) == ("Organization", "crosslign contributors")
    assert crate.license["name"] == "Apache-2.0"
    assert [licence["name"] for licence in crate.get(f"results/laptop/{SCORE}")["license"]] == ["CC0-1.0"]


def test_every_file_is_described_and_every_described_file_is_there(crate, project, tmp_path):
    with zipfile.ZipFile(tmp_path / "t.zip") as archive:
        names = set(archive.namelist())
    described = {entity.id for entity in crate.get_by_type("File")} | {"ro-crate-metadata.json"}
    assert names == described
    assert {"Snakefile", "workflow/rules/a.smk", "profiles/default/config.yaml", "LICENSE", "CITATION.cff", "README.md"} <= names
    assert not any("local.yaml" in name or "__pycache__" in name for name in names)


def test_the_chain_in_the_crate_is_the_chain_of_the_results(project, tmp_path):
    out = tmp_path / "crate"
    write_crate(project, "t", out)
    there, here = (chain(results, ["tables/t.md"]) for results in (out / "results" / "laptop", project.paths.results))
    assert [(link.path, link.kind, link.sha256, link.made_of) for link in there] == [
        (link.path, link.kind, link.sha256, link.made_of) for link in here
    ]
    assert there[-1].path == "../downloads/bible/verses.whl"
    held = {path.relative_to(out / "results").as_posix() for path in (out / "results").rglob("*") if path.is_file()}
    assert not [name for name in held if name.split("/")[1] in ("corpora", "systems", "embeddings") and not name.endswith(".lineage.json")]


def test_equal_results_give_equal_bytes_and_results_are_unpacked_last(project, tmp_path):
    for name in ("a.zip", "b.zip"):
        write_crate(project, "t", tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        later = [name.startswith("results/") for name in archive.namelist()]
    assert later == sorted(later)


def test_a_crate_takes_the_place_of_a_crate_and_of_nothing_else(project, tmp_path):
    for _ in range(2):
        write_crate(project, "t", tmp_path / "crate")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"thesis\.tex: .*content"):
        write_crate(project, "t", tmp_path / "own")
    assert (tmp_path / "own" / "thesis.tex").exists()
    os.mkfifo(tmp_path / "pipe.zip")  # it was waited on for ever
    with pytest.raises(InputError, match=r"pipe\.zip: .*device"):
        write_crate(project, "t", tmp_path / "pipe.zip")
    (tmp_path / "crate" / "results" / "notes.txt").write_text("read this first")
    with pytest.raises(InputError, match=r"notes\.txt: .*content"):
        write_crate(project, "t", tmp_path / "crate")
    assert (tmp_path / "crate" / "results" / "notes.txt").exists()
    for _ in range(2):
        write_crate(project, "t", tmp_path / "crate.zip")
    for name in ("own.zip", "thesis.tex"):
        (tmp_path / name).write_text("years of work")
        with pytest.raises(InputError, match=rf"{name}: .*\bother "):
            write_crate(project, "t", tmp_path / name)
        assert (tmp_path / name).read_text() == "years of work"


def others_crate(place, zipped):
    """Write a crate as another program does, with the run of a table and a file of its user."""
    graph = [{"@id": name} for name in ("ro-crate-metadata.json", "./", "data.csv", "#run-t", "#run-1", "Snakefile")]
    held = {"ro-crate-metadata.json": json.dumps({"@graph": graph}), "data.csv": "years of work", "Snakefile": "rule a"}
    if zipped:
        with zipfile.ZipFile(place, "w") as archive:
            for name, text in held.items():
                archive.writestr(name, text)
        return
    place.mkdir()
    for name, text in held.items():
        (place / name).write_text(text)


@pytest.mark.parametrize("name", ["other.zip", "other"])
def test_a_crate_of_another_program_is_not_replaced(project, tmp_path, name):
    others_crate(tmp_path / name, name.endswith(".zip"))
    before = checksum(tmp_path / name)
    with pytest.raises(InputError, match=rf"{name}/[\w.-]+: .*\bother "):
        write_crate(project, "t", tmp_path / name)
    assert checksum(tmp_path / name) == before


def test_what_a_person_put_into_an_archive_of_ours_is_not_replaced(project, tmp_path):
    write_crate(project, "t", tmp_path / "t.zip")
    with zipfile.ZipFile(tmp_path / "t.zip", "a") as archive:
        archive.writestr("notes.txt", "years of work")
    with pytest.raises(InputError, match=r"t\.zip/notes\.txt: .*\bother "):
        write_crate(project, "t", tmp_path / "t.zip")


@pytest.mark.parametrize("name", ["x.zip", ".", "..", "/", "link", "d.zip", "x" * 254, f"{'x' * 250}.zip", "x" * 300, "loop", "x.txt/y"])
def test_a_place_that_no_crate_can_take_is_refused_in_words(project, tmp_path, monkeypatch, name):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    os.mkfifo("x.zip")
    Path("d.zip").mkdir()
    Path("other").mkdir()
    Path("other/thesis.tex").write_text("years of work")
    Path("link").symlink_to("other")
    Path("loop").symlink_to("loop")
    Path("x.txt").write_text("a")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises((InputError, ResourceError)):
        write_crate(project, "t", Path(name))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_link_to_a_folder_for_crates_is_followed(project, tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to("far")
    for _ in range(2):
        assert write_crate(project, "t", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "far" / "ro-crate-metadata.json").exists()


def test_scores_of_another_group_travel_with_the_name_of_the_group(project, tmp_path):
    """Else the table made again in the crate would call them ours."""
    note = project.paths.results / "scores" / "QS-P-s42" / "origin.txt"
    note.write_text("the group of another city\n")
    out = tmp_path / "crate"
    write_crate(project, "t", out)
    assert origins(out / "results" / "laptop", [SCORE]) == ["the group of another city"]
    assert "results/laptop/scores/QS-P-s42/origin.txt" in ids(ROCrate(str(out)).data_entities)


def test_a_file_without_end_is_refused_and_not_packed(project, tmp_path):
    note = project.paths.results / "scores" / "QS-P-s42" / "origin.txt"
    note.touch()
    os.truncate(note, 1 << 40)
    with pytest.raises(InputError, match=r"origin\.txt: .*1,099,511,627,776 .*1,073,741,824"):
        write_crate(project, "t", tmp_path / "crate")
    assert not (tmp_path / "crate").exists()


def test_scores_without_lineage_are_refused_with_what_to_do(project, tmp_path):
    (project.paths.results / f"{SCORE}.lineage.json").unlink()
    with pytest.raises(InputError, match=r"tatoeba_bible\.json: .*snakemake --cores all --config a=b -- t; "):
        write_crate(project, "t", tmp_path / "t.zip", ["--config", "a=b"])


@pytest.mark.parametrize("name", ["tables/t.csv", "tables/t.html", SCORE, SCORE.replace(".json", ".resamples.parquet")])
def test_what_differs_from_its_lineage_is_not_packed(project, tmp_path, name):
    made(project.paths.results, SCORE.replace(".json", ".resamples.parquet"), "scores", "score", [], {})
    write_crate(project, "t", tmp_path / "t.zip")
    before = checksum(tmp_path / "t.zip")
    file = project.paths.results / name
    file.write_text(file.read_text().replace("t", "f"))
    with pytest.raises(InputError, match=rf"{file.name}: .*lineage.*crosslign verify.*--discard"):
        write_crate(project, "t", tmp_path / "t.zip")
    assert checksum(tmp_path / "t.zip") == before


def test_what_cannot_be_packed_is_refused(project, tmp_path):
    with pytest.raises(InputError, match=r"crosslign crate: .*'v'; .* t, u$"):
        write_crate(project, "v", tmp_path / "v.zip")
    with pytest.raises(InputError, match=r"u\.md: .*snakemake --cores all -- u; "):
        write_crate(project, "u", tmp_path / "u.zip")
    (project.root / "CITATION.cff").unlink()
    with pytest.raises(InputError, match="CITATION"):
        write_crate(project, "t", tmp_path / "t.zip")
    assert not list(tmp_path.glob("*.zip"))


def test_stand_ins_are_said_to_be_some(project, tmp_path):
    for form in TABLE_FORMATS:
        sidecar = project.paths.results / f"tables/t.{form}.lineage.json"
        sidecar.write_text(json.dumps({**json.loads(sidecar.read_text()), "stand_in": True}))
    write_crate(project, "t", tmp_path / "t.zip")
    assert "its scores mean nothing" in ROCrate(str(tmp_path / "t.zip")).description
