"""Files of the user's own, outside of the results: what was made of them is stale once they have changed, and not where they are gone."""

import os
from pathlib import Path

import pytest

from crosslign.cli.main import main
from crosslign.files.lineage import Lineage, lineage_path

ABOUT = "licence: CC0-1.0, citation: none"
ENCODER = f"encoders: {{tiny: {{path: OWN, readout: mean_t64_bf16, {ABOUT}}}}}\n"
LOCAL = f"sources: {{mine: {{local: OWN, files: [{{name: b.txt}}], {ABOUT}}}}}\n"
FILTERED = (
    f"{LOCAL}corpora: {{own: {{kind: mono, source: mine, reader: text_lines, langs: [de], {ABOUT}, "
    "filters: [{language_id: {model: OWN/b.txt}}]}}\n"
)
MINED = "mine: {m: {system: labse, allow_tiny: true, source: {file: OWN/a.txt, lang: de}, target: {file: OWN/b.txt, lang: en}}}\n"
CASES = {
    "an encoder": ("encoders.yaml", ENCODER, "quick/encoders/tiny", "prepare_encoder"),
    "a source": ("corpora.yaml", LOCAL, "quick/downloads/mine/b.txt", "fetch"),
    "a model of a filter": ("corpora.yaml", FILTERED, "quick/corpora/own/de.parquet", "build_corpus"),
    "a side of a mining": ("config.yaml", MINED, "quick/mined/m/target.parquet", "mine_texts"),
}


@pytest.fixture
def own(tmp_path):
    """A folder of the user's own with two files."""
    folder = tmp_path / "of my own"
    folder.mkdir()
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text(name)
    return folder


@pytest.fixture(params=CASES)
def made(request, tmp_path, own, monkeypatch):
    """What was made of that folder in a project that names it: a copy of a file, of one checksum of all, or with one of each."""
    file, entry, place, rule = CASES[request.param]
    results = tmp_path / "project" / "results"
    (results.parent / "config").mkdir(parents=True)
    monkeypatch.chdir(results.parent)
    (results.parent / "config" / "config.yaml").write_text("scale: quick\npapers: [quickstart]\n")
    with (results.parent / "config" / file).open("a") as config:
        config.write(entry.replace("OWN", str(own)))
    artefact, files = results / place, sorted(own.iterdir())[-2 if rule == "prepare_encoder" else -1 :]
    for path in (artefact, results / "quick" / "corpora" / "other.parquet"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[-1].read_bytes() if rule == "fetch" else b"made of them")
        inputs, read = (files, []) if rule == "mine_texts" else ([], [] if rule == "fetch" else files)
        lineage = Lineage(rule, {}, inputs, results / "quick", own=read)
        lineage.check_inputs()
        lineage.write(path, "kind")
    return artefact


def test_what_was_made_of_a_file_outside_is_stale_once_that_has_changed_and_not_once_it_is_gone(made, own, capsys):
    assert main(["verify"]) == 0, capsys.readouterr()
    (own / "b.txt").write_text("edited")
    os.utime(own / "b.txt", (0, 0))
    assert main(["verify"]) == 1
    (said,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("stale: ")]
    assert str(own) in said
    assert made.name in said
    assert main(["verify", "--discard"]) == 0
    assert not made.exists()
    assert not lineage_path(made).exists()
    assert (own / "b.txt").read_text() == "edited"


def test_a_file_outside_with_more_bytes_than_were_read_is_not_read(made, own):
    os.truncate(own / "b.txt", 1 << 40)
    assert main(["verify"]) == 1


def test_a_file_outside_that_is_gone_refutes_nothing(made, own):
    for path in own.iterdir():
        path.unlink()
    assert main(["verify"]) == 0


def test_results_of_another_project_are_not_compared_with_files_of_this_one(made, own, tmp_path):
    (own / "b.txt").write_text("edited")
    elsewhere = Path("results").rename(tmp_path / "copy")
    assert main(["verify", str(elsewhere / "quick")]) == 0


def test_a_folder_that_is_a_link_to_itself_has_no_results(made, capsys):
    Path("loop").symlink_to("loop")
    assert main(["verify", "loop"]) == 2
    assert "no results here" in capsys.readouterr().err


def test_what_is_stale_by_a_file_outside_is_not_settled(made, own):
    (own / "b.txt").write_text("edited")
    os.utime(made, (1e9, 1e9))
    assert main(["verify", "--settle"]) == 0
    assert made.stat().st_mtime == 1e9


def test_where_the_configuration_is_wrong_results_that_were_named_are_checked_and_it_is_said(made, own, capsys):
    Path("config/config.yaml").write_text("scale: [")
    assert main(["verify", "results/quick"]) == 0
    assert "not compared with files outside of the results" in capsys.readouterr().out
    assert main(["verify"]) == 2
