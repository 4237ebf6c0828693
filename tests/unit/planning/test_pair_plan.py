"""What is looked up for a pair of languages, and the file that is written; OPUS' catalogue is a few rows here."""

from __future__ import annotations

import pytest

from crosslign.cli.main import main
from crosslign.config.load import load_project
from crosslign.errors import InputError
from crosslign.planning import pairs as planned
from crosslign.planning.pairs import evaluations_of, file_text, spellings, steps_of, survey, table_lines

ROWS = [  # corpus, version, source, target, size in KB, pairs
    ("TED2020", "v1", "en", "is", 200, 3_000),
    ("Web", "v1", "en", "is", 9_000, 98_000),
    ("Web", "v0", "en", "isl", 900, 9_000),
    ("Huge", "v1", "en", "is", 9_000_000, 9_000_000),
    ("KDE4", "v2", "en", "is", 400, 20_000),
    ("Tiny", "v1", "en", "is", 4, 20),
    ("Uncounted", "v1", "en", "is", 4, ""),
    ("Web", "v1", "fo", "is", 20, 400),
    ("Web", "v1", "en", "fo", 900, 8_000),
]


@pytest.fixture
def project(tmp_path, monkeypatch):
    def catalogued(query):
        keys = ("corpus", "version", "source", "target", "size", "alignment_pairs")
        return [dict(zip(keys, row, strict=True)) for row in ROWS if (row[2], row[3]) == (query["source"], query["target"])]

    monkeypatch.setattr(planned, "catalogued", catalogued)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.yaml").write_text("scale: laptop\npapers: [quickstart]\n", encoding="utf-8")
    return load_project(tmp_path)


def test_text_that_people_wrote_comes_first_and_there_is_an_end(project):
    plan = survey(project, ["en-is"])
    taken = [text.name for text in plan.taken]
    assert taken == ["OPUS TED2020", "OPUS Web"]  # 101,000 pairs; strings of software would come next
    assert not {"OPUS Huge", "OPUS Tiny", "OPUS Uncounted"} & set(taken)
    assert [text.sentences for text in plan.found if text.name == "OPUS Web"] == [98_000]  # of two spellings the larger
    assert plan.evaluations["tatoeba"] == ["isl"]
    assert any(line.startswith("+  OPUS TED2020") for line in table_lines(plan))


def test_the_file_that_is_written_is_read_and_builds_what_was_planned(project, tmp_path):
    plan = survey(project, ["en-is"])
    (tmp_path / "config" / "pairs").mkdir()
    (tmp_path / "config" / "pairs" / "en-is.yaml").write_text(file_text(plan, "minilm_l6", steps_of(plan)), encoding="utf-8")
    read = load_project(tmp_path)
    assert len(read.examples["pair_en_is_pairs"]["from"]) == len(plan.taken)
    assert {column["task"] for column in read.tables["pair_en_is"]["columns"]} >= {"pair_en_is_tatoeba_isl", "sts17_tracks"}
    (tmp_path / "config" / "pairs" / "en-is.yaml").write_text(file_text(plan, "me5_small", steps_of(plan), "minilm_l6"), encoding="utf-8")
    assert load_project(tmp_path).examples["pair_en_is_pairs_taught"]["teacher"] == "minilm_l6"
    assert steps_of(plan) == sum(min(text.sentences, 200_000) for text in plan.taken) // 64


def test_too_little_is_refused_with_numbers_and_what_would_help(project):
    with pytest.raises(InputError, match=r"2,000 sentence pairs are needed; there are: OPUS Web 400.*en-fo 8,000"):
        survey(project, ["fo-is"])


def test_codes_of_two_and_three_letters_are_one_language(project):
    assert spellings("swh")[:2] == ["swh", "sw"]
    assert {"is", "isl"} == set(spellings("is"))
    assert evaluations_of(project, "sw") == {"tatoeba": ["swh"], "flores": ["swh_Latn"]}
    assert evaluations_of(project, "hsb") == {"tatoeba": ["hsb"]}
    assert evaluations_of(project, "xyz") == {}


def test_a_file_that_somebody_changed_is_not_written_over(project, tmp_path, capsys):
    assert main(["pair", "en-is", "--directory", str(tmp_path), "--encoder", "minilm_l6"]) == 0
    assert "build it by: snakemake --cores all pair_en_is" in capsys.readouterr().out
    assert main(["pair", "en-is", "--directory", str(tmp_path)]) == 2
    assert "the file is there" in capsys.readouterr().err
    assert main(["pair", "english", "--directory", str(tmp_path)]) == 2
    assert "'english' is no pair of languages" in capsys.readouterr().err
