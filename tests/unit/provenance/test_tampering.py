"""Results that were tampered with, files of people and of other processes among them: what is named, taken away, read, and left alone."""

import errno
import json
import os
import shutil

import pytest
from scored_results import HEAD, SCORE, TABLE

from crosslign.cli.main import main
from crosslign.files.lineage import Lineage, checksum, lineage_path, read_sidecar
from crosslign.provenance import artefact_states
from crosslign.provenance.discard import discard
from crosslign.provenance.verify import verify


def forged(**changes):
    """Return what changes keys of a lineage file."""

    def change(results):
        sidecar = lineage_path(results / SCORE)
        sidecar.write_text(json.dumps({**json.loads(sidecar.read_text()), **changes}))

    return change


def replaced(name, text):
    """Return what writes a text in the place of a file."""
    return lambda results: (results / name).write_text(text)


def folder_in_place(results):
    (results / SCORE).unlink()
    (results / SCORE).mkdir()


DAMAGED = {
    "brackets without end": (replaced(f"{SCORE}.lineage.json", "[" * 100_000), "its lineage is damaged"),
    "a number of thousands of digits": (replaced(f"{SCORE}.lineage.json", "1" * 5000), "its lineage is damaged"),
    "inputs that are none": (forged(inputs=[7]), "its lineage is damaged"),
    "a path that is none": (forged(inputs=[{"path": "a/\0", "sha256": ""}]), "its lineage is damaged"),
    "a path that no disk has": (forged(inputs=[{"path": "a/" + "b" * 5000, "sha256": ""}]), "its lineage is damaged"),
    "an artefact without a path": (forged(artefact={}), "its lineage is damaged"),
    "a recipe that names no source": (forged(recipe={"entry": {"source": {}}}, inputs=[{"path": "x", "sha256": ""}]), ""),
    "an unreadable lineage of nothing": (replaced("scores/gone.json.lineage.json", "{"), "its lineage is damaged"),
    "no run": (forged(run={}), "its lineage is damaged"),
    "a run without an end": (
        forged(run={"commit": "", "started": "2026-01-01", "wall_s": float("inf"), "peak_mb": 1, "device": ""}),
        "its lineage is damaged",
    ),
    "a rule of no name": (forged(rule="x" * 5000), ""),
    "a rule elsewhere": (forged(rule="../../../setup"), ""),
    "a folder in the place of a file": (folder_in_place, "has changed since"),
    "a field without end": (replaced("tables/t.csv", HEAD + "x" * 200_000), "touched by hand: tables/t.csv"),
    "a score without records": (replaced(SCORE, "{}"), "not a score file"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_was_tampered_with_is_named_and_taken_away_and_never_ends_the_command(results, capsys, name):
    damage, said = DAMAGED[name]
    damage(results)
    assert main(["verify", str(results)]) == (1 if said else 0)
    assert said in capsys.readouterr().out
    assert main(["verify", str(results), "--settle"]) == 0
    assert main(["verify", str(results), "--discard"]) == 0
    capsys.readouterr()
    assert main(["verify", str(results)]) == 0, capsys.readouterr().out
    assert "all results are complete and undamaged" in capsys.readouterr().out


def test_a_name_with_a_line_end_adds_no_line_to_the_screen(results):
    (results / "tables" / "x\nall results are complete and undamaged").write_text("x")
    text, whole = verify(results)
    assert not whole
    assert "all results are complete and undamaged" not in text.splitlines()


def test_a_file_of_the_user_s_own_is_named_and_never_taken_away(results, tmp_path_factory):
    own = tmp_path_factory.mktemp("own") / "mine.tsv"
    own.write_text("mine")
    Lineage("rule", {}, [], own.parent).write(own, "kind")
    Lineage("rule", {"file": str(own)}, [own], results).write(results / "corpora/c.parquet", "corpus")
    own.write_text("changed")
    assert any(line.startswith("touched by hand: ") and "mine.tsv" in line for line in verify(results)[0].splitlines())
    gone = discard(results, own.parent)[0]
    assert "corpora/c.parquet" in gone
    assert own.read_text() == "changed"
    assert not any("mine.tsv" in path for path in gone)


def test_a_download_on_another_disk_is_taken_away_too(results, monkeypatch):
    monkeypatch.setattr("os.rename", lambda *_: (_ for _ in ()).throw(OSError(errno.EXDEV, "Invalid cross-device link")))
    (results / "corpora/c.parquet").write_text("other")
    assert "corpora/c.parquet" in discard(results)[0]
    assert (results / ".discarded/1/corpora/c.parquet").read_text() == "other"


def test_what_is_taken_away_twice_is_kept_twice(results):
    for number, text in ((1, "first"), (2, "second")):
        (results / "corpora/c.parquet").write_text(text)
        Lineage("rule", {}, [], results).write(results / "corpora/c.parquet", "corpus")
        (results / "corpora/c.parquet").write_text(f"{text}, changed by hand")
        assert "corpora/c.parquet" in discard(results)[0]
        assert (results / f".discarded/{number}/corpora/c.parquet").read_text() == f"{text}, changed by hand"
    assert (results / ".discarded/1/corpora/c.parquet").read_text() == "first, changed by hand"


@pytest.mark.timeout(20)
@pytest.mark.parametrize("taken", ["a dead link", "a link to itself", "a file", "a pipe", "a link to a file"])
def test_discarding_where_something_else_has_the_name_of_its_folder_is_refused_in_words(results, capsys, taken):
    place = results / ".discarded"
    if taken == "a file":
        place.write_text("notes")
    elif taken == "a pipe":
        os.mkfifo(place)
    else:
        place.symlink_to({"a dead link": "nowhere", "a link to itself": ".discarded", "a link to a file": "corpora/c.parquet"}[taken])
    (results / SCORE).write_text("{}")
    before = sorted(results.rglob("*"))
    assert main(["verify", str(results), "--discard"]) == 2
    assert ".discarded: no folder for what is discarded; it is a file, or a link to nothing. Move it away" in capsys.readouterr().err
    assert sorted(results.rglob("*")) == before


@pytest.mark.parametrize("place", ["lineage.json", "tables/lineage.json", "scores/A-s1/lineage.json"])
@pytest.mark.parametrize("content", ["{", None])
def test_a_stray_lineage_of_a_folder_takes_nothing_with_it(results, place, content):
    """It lies where no folder has lineage: unreadable, or a copy of another's."""
    (results / place).write_text(content or (results / "systems/A-s1/lineage.json").read_text())
    assert f"touched by hand: {place} " in verify(results)[0]
    assert discard(results)[0] == [place]
    assert (results / "tables/t.csv").exists()
    assert verify(results)[1]


def test_one_unreadable_table_takes_no_other_with_it(results):
    for end in ("", ".lineage.json"):
        (results / f"tables/other.csv{end}").write_bytes((results / f"tables/t.csv{end}").read_bytes())
    Lineage("rule", TABLE, [results / SCORE], results).write(results / "tables/other.csv", "kind")
    (results / "tables/t.csv.lineage.json").write_text("{")
    assert discard(results)[0] == ["tables/t.csv"]
    assert (results / "tables/other.csv").exists()


@pytest.mark.parametrize("name", ["x" * 250, "x" * 255, "a\nb", "-rf", os.fsdecode(b"\xff.md")])
def test_a_persons_file_of_an_odd_name_is_named_and_moved_as_it_is(results, name):
    (results / "tables").mkdir(exist_ok=True)
    (results / "tables" / name).write_text("notes")
    assert discard(results)[0] == [f"tables/{name}"]
    assert (results / ".discarded" / "1" / "tables" / name).read_text() == "notes"


@pytest.mark.parametrize("place", ["/dev/zero", "/etc/passwd", "../../../../../../../../etc/passwd", "corpora/pipe"])
def test_only_files_of_these_results_are_read(results, monkeypatch, place):
    """A pipe or a device has no end; what lies elsewhere on the machine is nobody's input."""
    os.mkfifo(results / "corpora/pipe")
    sidecar = lineage_path(results / SCORE)
    forged = json.loads(sidecar.read_text())
    sidecar.write_text(json.dumps({**forged, "inputs": [{"path": place, "sha256": "0" * 64}]}))
    read = []
    monkeypatch.setattr(artefact_states, "checksum", lambda path: read.append(path.name) or checksum(path))
    verify(results)
    assert read
    assert not {"zero", "passwd", "pipe"} & set(read)


def with_input(results, place, **run):
    """Have a score's lineage name another input; `run` changes what its job says of itself."""
    sidecar = lineage_path(results / SCORE)
    found = json.loads(sidecar.read_text())
    kept = {key: value for key, value in {**found["run"], **run}.items() if value is not None}
    sidecar.write_text(json.dumps({**found, "run": kept, "inputs": [{"path": place, "sha256": "0" * 64}]}))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("link", ["evil", "laptop/evil", "downloads"])
@pytest.mark.parametrize(("to", "inside"), [("/etc", "passwd"), ("/", "usr/lib"), ("/", "dev/zero"), ("/", "")])
def test_a_link_in_results_leads_to_no_file_of_the_machine(tmp_path, results, monkeypatch, link, to, inside):
    place = tmp_path / "others" / "laptop"
    shutil.copytree(results, place, ignore=shutil.ignore_patterns("others"))
    (place.parent / link).symlink_to(to)
    with_input(place, os.path.normpath(f"../{link}/{inside}"), read_bytes=10**18)
    read = []
    monkeypatch.setattr(artefact_states, "checksum", lambda path: read.append(path) or checksum(path))
    verify(place, tmp_path)
    discard(place, tmp_path)
    assert read
    assert all(path.is_relative_to(place) and link.split("/")[-1] not in path.parts for path in read)


def test_a_folder_on_another_disk_is_read_where_lineage_describes_it(tmp_path, results):
    far = tmp_path / "far"
    far.mkdir()
    (far / "a.tsv").write_text("a")
    Lineage("fetch", {}, [], far).write(far / "a.tsv", "download")
    place = tmp_path / "others" / "laptop"
    shutil.copytree(results, place, ignore=shutil.ignore_patterns("others", "far"))
    near = place.parent / "downloads"
    near.symlink_to(far)
    Lineage("build_corpus", {}, [near / "a.tsv"], place).write(place / "corpora/c.parquet", "corpus")
    (far / "a.tsv").write_text("b")
    assert "stale: corpora/c.parquet" in verify(place)[0]


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("read_bytes", "said"), [(2, f"stale: {SCORE} ("), (None, "not checked: 1,099,511,627,776 bytes")])
def test_an_input_without_lineage_is_not_read_without_end(results, monkeypatch, read_bytes, said):
    """A terabyte of holes, beside the results."""
    big = results.parent / f"{results.name}.bin"
    big.touch()
    os.truncate(big, 2**40)
    with_input(results, f"../{big.name}", read_bytes=read_bytes)
    monkeypatch.setattr(artefact_states, "checksum", lambda path: pytest.fail(str(path)) if path == big else checksum(path))
    text, whole = verify(results)
    assert not whole
    assert said in text
    assert (SCORE in discard(results)[0]) == (read_bytes is not None)
    big.unlink()


@pytest.mark.parametrize(("path", "inside"), [(SCORE, ""), ("systems/A-s1", "last/weights")])
def test_what_has_another_size_is_touched_and_its_bytes_are_not_read(results, monkeypatch, path, inside):
    """A terabyte of holes takes no room, and hours to read."""
    os.truncate(results / path / inside, 2**40)
    read = []
    monkeypatch.setattr(artefact_states, "checksum", lambda path: read.append(path) or checksum(path))
    assert f"touched by hand: {path}" in verify(results)[0]
    assert results / path not in read


def test_an_artefact_that_was_replaced_by_a_pipe_is_missing(results):
    (results / SCORE).unlink()
    os.mkfifo(results / SCORE)
    assert f"missing: {SCORE}" in verify(results)[0]


def test_what_others_write_or_left_behind_is_passed_over(results):
    for name in ("scores/.task.json.part/task.json", "tables/.nfs0000123", "tables/.t.csv.part", "systems/.A-s2.part/lineage.json"):
        (results / name).parent.mkdir(parents=True, exist_ok=True)
        (results / name).write_text("{")
    assert verify(results)[1]


def test_an_artefact_that_is_made_anew_meanwhile_is_no_damage(results, monkeypatch):
    """Its lineage goes away between the moment when it is listed and the one when it is read."""
    sidecar = lineage_path(results / "tables/t.csv")

    def vanishing(path):
        if path == sidecar:
            sidecar.unlink()
            (results / "tables/t.csv").unlink()
        return read_sidecar(path)

    monkeypatch.setattr(artefact_states, "read_sidecar", vanishing)
    assert verify(results)[1]
