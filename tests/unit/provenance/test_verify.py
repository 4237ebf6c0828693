"""Results that were changed behind the workflow's back are found, and whole ones pass."""

import errno
import json
import os

import pytest

from crosslign.cli.main import main
from crosslign.errors import InputError
from crosslign.files import write_json
from crosslign.files.lineage import Lineage, checksum, lineage_path, read_sidecar
from crosslign.provenance import artefact_states
from crosslign.provenance.discard import discard
from crosslign.provenance.verify import verify

SCORE = "scores/A-s1/last/mean/task.json"
SELECT = {"task": "task", "subset": "de", "metric": "f1", "protocol": "", "direction": ""}
TABLE = {"columns": [{"label": "x"}], "cells": [[{"scores": [SCORE], "select": SELECT}]]}
"""A table of one cell, as its lineage names it."""
HEAD = "table,row,column,ours,ours_std,n_seeds,published,ci_low,ci_high,mark,footnotes,score_file,record\n"


@pytest.fixture
def results(tmp_path):
    """A corpus, a run's folder made of it, its score, and a table."""
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora/c.parquet").write_text("rows")
    (tmp_path / "systems/A-s1/last").mkdir(parents=True)
    (tmp_path / "systems/A-s1/last/weights").write_text("w")
    record = {"eval": "task", "subset": "de", "metric": "f1", "protocol": "", "direction": "", "value": 0.1 + 0.2}
    write_json(tmp_path / SCORE, {"records": [record]})
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/t.csv").write_text(HEAD + f"t,A,x,{0.1 + 0.2!r},,1,,,,,,{SCORE},task/de/f1//\n")
    made = {"corpora/c.parquet": [], "systems/A-s1": ["corpora/c.parquet"], SCORE: ["systems/A-s1"], "tables/t.csv": [SCORE]}
    for path, inputs in made.items():
        recipe = TABLE if path.startswith("tables") else {}
        Lineage("rule", recipe, [tmp_path / name for name in inputs], tmp_path).write(tmp_path / path, "kind")
    return tmp_path


def test_whole_results_pass(results, capsys):
    text, whole = verify(results)
    assert whole, text
    assert main(["verify", str(results)]) == 0
    assert "everything is whole" in capsys.readouterr().out


def test_a_changed_file_is_touched_and_what_is_made_of_it_is_stale(results):
    (results / "systems/A-s1/last/weights").write_text("other")
    text, whole = verify(results)
    assert not whole
    assert "touched by hand: systems/A-s1 " in text
    assert f"stale: {SCORE} (systems/A-s1 has changed since)" in text


def test_a_deleted_file_is_missing(results):
    (results / "corpora/c.parquet").unlink()
    text, whole = verify(results)
    assert not whole
    assert "missing: corpora/c.parquet" in text


def test_a_cell_changed_by_hand_is_found_even_with_matching_hashes(results):
    path = results / "tables/t.csv"
    path.write_text(path.read_text().replace(repr(0.1 + 0.2), "0.9"))
    Lineage("rule", TABLE, [results / SCORE], results).write(path, "kind")
    text, whole = verify(results)
    assert not whole
    assert "A / x: 0.9 is printed, the scores give 0.30000000000000004" in text


def test_lineage_that_cannot_be_read_is_reported(results):
    lineage_path(results / SCORE).write_text("{")
    text, whole = verify(results)
    assert not whole
    assert "its lineage cannot be read" in text


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(InputError, match="no results here"):
        verify(tmp_path)
    assert main(["verify", str(tmp_path)]) == 2


VECTORS = "embeddings/A-s1/last/mean/task.npy"


@pytest.fixture
def with_vectors(results):
    """The same, with the vectors that the score was computed from."""
    (results / VECTORS).parent.mkdir(parents=True)
    (results / VECTORS).write_text("vectors")
    Lineage("embed", {}, [results / "systems/A-s1"], results).write(results / VECTORS, "embeddings")
    Lineage("score", {}, [results / VECTORS], results).write(results / SCORE, "scores")
    return results


def test_vectors_removed_after_their_last_score_leave_the_results_whole(with_vectors):
    (with_vectors / VECTORS).unlink()
    text, whole = verify(with_vectors)
    assert whole, text
    assert "removed          1 matrix" in text
    assert main(["verify", str(with_vectors)]) == 0
    assert discard(with_vectors) == []


def test_what_was_made_of_removed_vectors_is_stale_where_their_own_inputs_changed(with_vectors):
    (with_vectors / VECTORS).unlink()
    (with_vectors / "systems/A-s1/last/weights").write_text("other")
    assert f"stale: {VECTORS} (systems/A-s1 has changed since)" in verify(with_vectors)[0]
    assert SCORE in discard(with_vectors)


def test_what_is_missing_takes_nothing_along(results):
    (results / "corpora/c.parquet").unlink()
    assert "missing: corpora/c.parquet" in verify(results)[0]
    assert discard(results) == []
    assert (results / SCORE).exists()


def test_lineage_written_under_another_root_is_read_from_where_it_lies(results):
    """It may have been moved with its folder."""
    file = results / "downloads/written/a.tsv"
    file.parent.mkdir(parents=True)
    file.write_text("a")
    Lineage("fetch", {}, [], results / "downloads").write(file, "download")
    text, whole = verify(results)
    assert whole, text
    file.write_text("b")
    assert "touched by hand: downloads/written/a.tsv" in verify(results)[0]


def test_a_file_without_lineage_is_touched(results):
    (results / "tables/t.md").write_text("forged")
    (results / "systems/B-s1").mkdir()
    text, whole = verify(results)
    assert not whole
    assert "touched by hand: tables/t.md (no lineage describes it)" in text
    assert "touched by hand: systems/B-s1 (no lineage describes it)" in text
    assert discard(results) == ["systems/B-s1", "tables/t.md"]


def test_scores_of_another_group_need_no_lineage(results):
    other = results / "scores/theirs/last/mean/task.json"
    write_json(other, {"records": []})
    assert not verify(results)[1]
    (results / "scores/theirs/origin.txt").write_text("Another group\n")
    text, whole = verify(results)
    assert whole, text


def test_scores_of_another_group_do_not_hang_on_what_lies_here(results):
    """They came with lineage; the text set of that name here is another one, and the vectors stayed there."""
    other, corpus = results / "scores/theirs/last/mean/task.json", results / "corpora/own/texts.parquet"
    corpus.parent.mkdir(parents=True, exist_ok=True)
    corpus.write_text("theirs")
    vectors = results / "embeddings/theirs.npy"
    vectors.parent.mkdir(parents=True, exist_ok=True)
    vectors.write_text("vectors")
    write_json(other, {"records": []})
    Lineage("score", {}, [corpus, vectors], results).write(other, "scores")
    vectors.unlink()
    corpus.write_text("ours")
    Lineage("build_evaluation", {}, [], results).write(corpus, "evaluation")
    text, whole = verify(results)
    assert not whole
    assert "stale: scores/theirs/last/mean/task.json" in text
    (results / "scores/theirs/origin.txt").write_text("Another group\n")
    text, whole = verify(results)
    assert whole, text
    write_json(other, {"records": [1]})
    assert "touched by hand: scores/theirs/last/mean/task.json" in verify(results)[0]


def test_a_download_that_changed_and_what_was_made_of_it_are_found(tmp_path):
    """Downloads are shared by scales and lie beside them; a file of one name may lie in the folders of several sources."""
    results, file = tmp_path / "laptop", tmp_path / "downloads/mine/a.tsv"
    for path in (file, tmp_path / "downloads/other/a.tsv", results / "corpora/c.parquet"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.parent.name)
    Lineage("fetch", {}, [], tmp_path).write(file, "download")
    Lineage("build_corpus", {}, [file], results).write(results / "corpora/c.parquet", "corpus")
    assert verify(results)[1]
    file.write_text("changed")
    text, whole = verify(results)
    assert not whole
    assert f"touched by hand: {file}" in text
    assert "stale: corpora/c.parquet" in text
    assert discard(results) == sorted([str(file), "corpora/c.parquet"])
    assert (results / ".discarded/1/downloads/mine/a.tsv").read_text() == "changed"
    assert (tmp_path / "downloads/other/a.tsv").exists()


def test_a_changed_published_figure_and_a_changed_file_of_the_user_make_stale(tmp_path):
    results, project = tmp_path / "results/laptop", tmp_path
    figures, own = project / "resources/published/t.csv", project / "data/de.txt"
    for path in (figures, own, results / "overlap.md", results / "mined/m/source.parquet"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a")
    Lineage("make_table", {}, [figures], results).write(results / "overlap.md", "table")
    Lineage("mine_texts", {"file": "data/de.txt"}, [own], results).write(results / "mined/m/source.parquet", "sentences")
    assert verify(results, project)[1]
    figures.write_text("b")
    own.write_text("b")
    text = verify(results, project)[0]
    assert "stale: overlap.md (" in text
    assert "resources/published/t.csv has changed since" in text
    assert "stale: mined/m/source.parquet (" in text


def test_sums_and_averages_of_parts_are_derived_again(results):
    """Cells that name no record of their own: the mean of several scores, and a sum of counts."""
    second = {**TABLE["cells"][0][0]}
    rows = [[{"parts": [second, second]}, {"parts": [second, second], "total": True}]]
    path = results / "tables/t.csv"
    path.write_text(HEAD + "".join(f"t,A,{name},{value!r},,,,,,,,,\n" for name, value in (("mean", 0.1 + 0.2), ("sum", 2 * (0.1 + 0.2)))))
    recipe = {"columns": [{"label": "mean"}, {"label": "sum"}], "cells": rows}
    Lineage("rule", recipe, [results / SCORE], results).write(path, "table")
    text, whole = verify(results)
    assert whole, text
    path.write_text(path.read_text().replace("0.6", "0.7"))
    Lineage("rule", recipe, [results / SCORE], results).write(path, "table")
    assert "A / sum: 0.7000000000000001 is printed, the scores give 0.6000000000000001" in verify(results)[0]


def test_control_codes_in_the_names_of_rows_do_not_reach_the_terminal(results):
    path = results / "tables/t.csv"
    path.write_text(path.read_text().replace("t,A,x,0.3", "t,A\x1b[2J,x,0.9"))
    Lineage("rule", TABLE, [results / SCORE], results).write(path, "kind")
    text = verify(results)[0]
    assert "A[2J / x: 0.9" in text
    assert "\x1b" not in text


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
    "brackets without end": (replaced(f"{SCORE}.lineage.json", "[" * 100_000), "its lineage cannot be read"),
    "a number of thousands of digits": (replaced(f"{SCORE}.lineage.json", "1" * 5000), "its lineage cannot be read"),
    "inputs that are none": (forged(inputs=[7]), "its lineage cannot be read"),
    "a path that is none": (forged(inputs=[{"path": "a/\0", "sha256": ""}]), "its lineage cannot be read"),
    "a path that no disk has": (forged(inputs=[{"path": "a/" + "b" * 5000, "sha256": ""}]), "its lineage cannot be read"),
    "an artefact without a path": (forged(artefact={}), "its lineage cannot be read"),
    "a recipe that names no source": (forged(recipe={"entry": {"source": {}}}, inputs=[{"path": "x", "sha256": ""}]), ""),
    "an unreadable lineage of nothing": (replaced("scores/gone.json.lineage.json", "{"), "its lineage cannot be read"),
    "no run": (forged(run={}), "its lineage cannot be read"),
    "a run without an end": (
        forged(run={"commit": "", "started": "2026-01-01", "wall_s": float("inf"), "peak_mb": 1, "device": ""}),
        "read",
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
    assert "everything is whole" in capsys.readouterr().out


def test_a_name_with_a_line_end_adds_no_line_to_the_screen(results):
    (results / "tables" / "x\neverything is whole").write_text("x")
    text, whole = verify(results)
    assert not whole
    assert "everything is whole" not in text.splitlines()


def test_a_file_of_the_user_s_own_is_named_and_never_taken_away(results, tmp_path_factory):
    own = tmp_path_factory.mktemp("own") / "mine.tsv"
    own.write_text("mine")
    Lineage("rule", {}, [], own.parent).write(own, "kind")
    Lineage("rule", {"file": str(own)}, [own], results).write(results / "corpora/c.parquet", "corpus")
    own.write_text("changed")
    assert any(line.startswith("touched by hand: ") and "mine.tsv" in line for line in verify(results)[0].splitlines())
    gone = discard(results, own.parent)
    assert "corpora/c.parquet" in gone
    assert own.read_text() == "changed"
    assert not any("mine.tsv" in path for path in gone)


def test_a_download_on_another_disk_is_taken_away_too(results, monkeypatch):
    monkeypatch.setattr("os.rename", lambda *_: (_ for _ in ()).throw(OSError(errno.EXDEV, "Invalid cross-device link")))
    (results / "corpora/c.parquet").write_text("other")
    assert "corpora/c.parquet" in discard(results)
    assert (results / ".discarded/1/corpora/c.parquet").read_text() == "other"


def test_what_is_taken_away_twice_is_kept_twice(results):
    for number, text in ((1, "first"), (2, "second")):
        (results / "corpora/c.parquet").write_text(text)
        Lineage("rule", {}, [], results).write(results / "corpora/c.parquet", "corpus")
        (results / "corpora/c.parquet").write_text(f"{text}, changed by hand")
        assert "corpora/c.parquet" in discard(results)
        assert (results / f".discarded/{number}/corpora/c.parquet").read_text() == f"{text}, changed by hand"
    assert (results / ".discarded/1/corpora/c.parquet").read_text() == "first, changed by hand"


@pytest.mark.parametrize("place", ["lineage.json", "tables/lineage.json", "scores/A-s1/lineage.json"])
@pytest.mark.parametrize("content", ["{", None])
def test_a_stray_lineage_of_a_folder_takes_nothing_with_it(results, place, content):
    """It lies where no folder has lineage: unreadable, or a copy of another's."""
    (results / place).write_text(content or (results / "systems/A-s1/lineage.json").read_text())
    assert f"touched by hand: {place} " in verify(results)[0]
    assert discard(results) == [place]
    assert (results / "tables/t.csv").exists()
    assert verify(results)[1]


def test_one_unreadable_table_takes_no_other_with_it(results):
    for end in ("", ".lineage.json"):
        (results / f"tables/other.csv{end}").write_bytes((results / f"tables/t.csv{end}").read_bytes())
    Lineage("rule", TABLE, [results / SCORE], results).write(results / "tables/other.csv", "kind")
    (results / "tables/t.csv.lineage.json").write_text("{")
    assert discard(results) == ["tables/t.csv"]
    assert (results / "tables/other.csv").exists()


@pytest.mark.parametrize("name", ["x" * 250, "x" * 255, "a\nb", "-rf", os.fsdecode(b"\xff.md")])
def test_a_persons_file_of_an_odd_name_is_named_and_moved_as_it_is(results, name):
    (results / "tables").mkdir(exist_ok=True)
    (results / "tables" / name).write_text("notes")
    assert discard(results) == [f"tables/{name}"]
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
