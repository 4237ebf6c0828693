"""Results that were changed behind the workflow's back are found, and whole ones pass."""

import pytest

from crosslign.cli.main import main
from crosslign.errors import InputError
from crosslign.files import write_json
from crosslign.files.lineage import Lineage, lineage_path
from crosslign.reporting.verify import verify

SCORE = "scores/A-s1/last/mean/task.json"
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
        Lineage("rule", {}, [tmp_path / name for name in inputs], tmp_path).write(tmp_path / path, "kind")
    return tmp_path


def test_whole_results_pass(results, capsys):
    text, whole = verify(results)
    assert whole, text
    assert main(["verify", str(results)]) == 0
    assert "everything is whole" in capsys.readouterr().out


def test_an_average_names_several_records_and_is_checked_by_its_parts_alone(results):
    path = results / "tables/t.csv"
    path.write_text(path.read_text() + f"t,A,m,0.3,,1,,,,,,{SCORE},task/de/f1//;task/fr/f1//\n")
    Lineage("rule", {}, [results / SCORE], results).write(path, "kind")
    text, whole = verify(results)
    assert whole, text


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
    Lineage("rule", {}, [results / SCORE], results).write(path, "kind")
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
