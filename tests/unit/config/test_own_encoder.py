"""An encoder in a folder of this machine: left out while nothing lies there; a reduced scale may put another in its place."""

import pytest
from small_configuration import ENCODERS, FILES, PAPER, SCALE, write_project

from crosslign.config.cells import resolve_table
from crosslign.config.data_plan import data_plan
from crosslign.config.figures import figure_inputs
from crosslign.config.load import load_project
from crosslign.config.mining import require_there
from crosslign.errors import InputError

REASON = "the encoder own is not there: models/own"


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_project(tmp_path)
    for old, new in (("system: tiny}", "system: own}"), ("base: {encoder: tiny}", "base: {encoder: own}"), ("[tiny, P-A]", "[own, P-B]")):
        text = (tmp_path / PAPER).read_text(encoding="utf-8")
        assert old in text
        (tmp_path / PAPER).write_text(text.replace(old, new), encoding="utf-8")
    for name in ("a.de", "b.en"):
        (tmp_path / name).write_text("text\n", encoding="utf-8")
    return tmp_path


def cells(folder):
    return [row[0] for row in resolve_table(load_project(folder), "t_one")["cells"]]


def test_what_stands_on_it_is_a_dash_with_the_reason(project):
    assert cells(project) == [{"reason": REASON}] * 3
    loaded = load_project(project)
    assert [panel["reason"] for panel in figure_inputs(loaded, "f_two")["inputs"]["panels"]] == [REASON] * 2
    assert figure_inputs(loaded, "f_two")["declared"] == []
    (need,) = [need for need in data_plan(loaded, ["t_one"]) if need.source == "own"]
    assert need.state == "by hand"


@pytest.mark.parametrize("folder", ["models/own", "results/mini/encoders/own"])
def test_it_runs_once_it_lies_there_or_was_prepared(project, folder):
    (project / folder).mkdir(parents=True)
    assert all("scores" in cell for cell in cells(project))
    assert {need.state for need in data_plan(load_project(project), ["t_one"]) if need.source == "own"} == {"here"}


def test_a_mining_says_what_is_not_there(project):
    loaded = load_project(project)
    with pytest.raises(InputError, match=r"mine\.m_one\.system: P-A .* own .*: models/own"):
        require_there(loaded, "m_one")
    (project / "models" / "own").mkdir(parents=True)
    require_there(load_project(project), "m_one")
    (project / "b.en").unlink()
    with pytest.raises(InputError, match=r"mine\.m_one\.target\.file: .*missing.*b\.en"):
        require_there(load_project(project), "m_one")
    (project / "b.en").mkdir()
    with pytest.raises(InputError, match=r"mine\.m_one\.target\.file: .*folder.*b\.en"):
        require_there(load_project(project), "m_one")


def test_a_table_names_what_stands_for_it_at_a_reduced_scale(project):
    assert resolve_table(load_project(project), "t_one")["encoders"] == {}
    (project / SCALE).write_text(FILES[SCALE].replace("encoders: {}", 'encoders: {"*": tiny}'), encoding="utf-8")
    assert resolve_table(load_project(project), "t_one")["encoders"] == {"own": "tiny"}
    assert "scores" in cells(project)[0]
    (project / SCALE).write_text(FILES[SCALE].replace("encoders: {}", 'encoders: {"*": tiny, own: own}'), encoding="utf-8")
    assert resolve_table(load_project(project), "t_one")["encoders"] == {}


def test_it_must_be_an_entry_of_the_catalog(project):
    (project / ENCODERS).write_text(FILES[ENCODERS].replace("  own:", "  mine:"), encoding="utf-8")
    with pytest.raises(InputError, match=r"systems\.P-A\.base\.encoder: .*'own'"):
        load_project(project)
