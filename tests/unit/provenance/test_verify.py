"""Results that were changed behind the workflow's back are found, and whole ones pass."""

import pytest
from scored_results import HEAD, SCORE, TABLE

from crosslign.cli.main import main
from crosslign.errors import InputError
from crosslign.files import write_json
from crosslign.files.lineage import Lineage, lineage_path
from crosslign.provenance.discard import discard
from crosslign.provenance.verify import verify


def test_whole_results_pass(results, capsys):
    text, whole = verify(results)
    assert whole, text
    assert main(["verify", str(results)]) == 0
    assert "all results are complete and undamaged" in capsys.readouterr().out


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
    assert "A / x: the table has 0.9, the scores give 0.30000000000000004" in text


def test_lineage_that_cannot_be_read_is_reported(results):
    lineage_path(results / SCORE).write_text("{")
    text, whole = verify(results)
    assert not whole
    assert "its lineage is damaged" in text


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"`snakemake --cores all`.*results/laptop"):
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
    assert discard(with_vectors)[0] == []


def test_what_was_made_of_removed_vectors_is_stale_where_their_own_inputs_changed(with_vectors):
    (with_vectors / VECTORS).unlink()
    (with_vectors / "systems/A-s1/last/weights").write_text("other")
    assert f"stale: {VECTORS} (systems/A-s1 has changed since)" in verify(with_vectors)[0]
    assert SCORE in discard(with_vectors)[0]


def test_what_is_missing_takes_nothing_along(results):
    (results / "corpora/c.parquet").unlink()
    assert "missing: corpora/c.parquet" in verify(results)[0]
    assert discard(results)[0] == []
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
    assert discard(results)[0] == ["systems/B-s1", "tables/t.md"]


def test_scores_of_another_group_need_no_lineage(results):
    other = results / "scores/theirs/last/mean/task.json"
    write_json(other, {"records": []})
    assert not verify(results)[1]
    (results / "scores/theirs/origin.txt").write_text("Another group\n")
    text, whole = verify(results)
    assert whole, text


def test_scores_of_another_group_do_not_hang_on_what_lies_here(results):
    """They came with lineage; the evaluation corpus of that name here is another one, and the vectors stayed there."""
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
    assert discard(results)[0] == sorted([str(file), "corpora/c.parquet"])
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
    assert "A / sum: the table has 0.7000000000000001, the scores give 0.6000000000000001" in verify(results)[0]


def test_control_codes_in_the_names_of_rows_do_not_reach_the_terminal(results):
    path = results / "tables/t.csv"
    path.write_text(path.read_text().replace("t,A,x,0.3", "t,A\x1b[2J,x,0.9"))
    Lineage("rule", TABLE, [results / SCORE], results).write(path, "kind")
    text = verify(results)[0]
    assert "A[2J / x: the table has 0.9" in text
    assert "\x1b" not in text
