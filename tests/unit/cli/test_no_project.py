"""The command line in an empty folder: what needs no project works, what needs one says so in one line."""

import pytest

from crosslign.cli import COMMANDS
from crosslign.cli.main import main
from crosslign.config.signatures import PACKAGES

WORDS = {
    "diff": ["a", "b"],
    "explain": ["t", "r", "c"],
    "mteb": ["a", "b"],
    "mine": ["entry"],
    "card": ["run"],
    "crate": ["t"],
    "push": ["QS-P", "a/b"],
    "pair": ["de-hsb"],
}
"""What a command must be given."""
WORK = {"doctor", "list", "new"}


@pytest.fixture
def empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", sorted(set(COMMANDS.names()) - WORK))
def test_a_command_that_needs_a_project_or_results_says_so_in_one_line(empty, capsys, name):
    assert main([name, *WORDS.get(name, [])]) == 2
    said = capsys.readouterr()
    (line,) = said.err.splitlines()
    assert line.startswith("error: ")
    assert "no project here; the command needs a project's configuration" in line or "here" in line
    assert (said.out, list(empty.iterdir())) == ("", [])


def test_doctor_looks_at_the_machine(empty, monkeypatch, capsys):
    monkeypatch.setenv("CROSSLIGN_OFFLINE", "1")
    assert main(["doctor"]) in {0, 1}
    assert "torch" in capsys.readouterr().out
    assert list(empty.iterdir()) == []


def listed(capsys, *words):
    assert main(["list", *words]) == 0
    return dict(line.split(maxsplit=1) if " " in line else (line, "") for line in capsys.readouterr().out.splitlines())


def test_everything_that_has_a_name_is_listed_with_what_it_is(empty, capsys):
    kinds = listed(capsys)
    assert set(PACKAGES) < set(kinds)
    assert "multilingual-e5-small" in listed(capsys, "encoders")["me5_small"]
    assert listed(capsys, "objectives")["infonce"].startswith("Each anchor a must find its own positive b")
    assert len(listed(capsys, "objectives")) == int(kinds["objectives"])
    assert {"quick", "laptop", "contest", "paper"} == set(listed(capsys, "scales"))
    assert "MP-warm-xlmr-main" in listed(capsys, "systems", "--config", "papers=[mpcl]")


def test_an_entry_of_ones_own_is_listed(empty, capsys):
    (empty / "config" / "scales").mkdir(parents=True)
    (empty / "config" / "scales" / "mine.yaml").write_text("sources: real\n")
    assert "mine" in listed(capsys, "scales")


def test_an_unknown_kind_is_refused_by_name(empty, capsys):
    assert main(["list", "encodrs"]) == 2
    assert "did you mean 'encoders'?" in capsys.readouterr().err
