"""What is looked up for a pair of languages, and the file that is written; OPUS' catalogue is a few rows here."""

from __future__ import annotations

import pytest

from crosslign.cli.commands.pair import checked
from crosslign.cli.main import main
from crosslign.config.load import load_project
from crosslign.errors import InputError
from crosslign.planning import pairs as planned
from crosslign.planning.pairs import evaluations_of, file_text, method_of, set_lines, spellings, steps_of, survey, table_lines

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
    ("Tatoeba", "v1", "cmn", "en", 900, 7_000),
    ("Web", "v1", "en", "zh_TW", 9_000, 98_000),
    ("Tatoeba", "v1", "dsb", "en", 9, 142),
    ("Wiki", "v1", "dsb", "", 900, 9_000),
    ("Web", "v1", "en", "sr", 9_000, 98_000),
]


@pytest.fixture
def project(tmp_path, monkeypatch):
    def catalogued(query):
        keys = ("corpus", "version", "source", "target", "size", "alignment_pairs")
        rows = [dict(zip(keys, row, strict=True)) for row in ROWS if (row[2], row[3]) == (query["source"], query["target"])]
        return [{**row, "url": f"https://opus/{row['source']}.txt.gz"} for row in rows]

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
    with pytest.raises(InputError, match=r"2,000 .*OPUS Web 400.*en-fo 8,000"):
        survey(project, ["fo-is"])
    with pytest.raises(InputError, match=r"2,000 .*; .*2,000 .*: 0"):
        survey(project, ["en-szl"])


def written(project, *pairs):
    """Write what is planned for some pairs, and read it."""
    plan = survey(project, [*pairs])
    (project.root / "config" / "pairs").mkdir(exist_ok=True)
    (project.root / "config" / "pairs" / f"{'+'.join(pairs)}.yaml").write_text(
        file_text(plan, "minilm_l6", steps_of(plan)), encoding="utf-8"
    )
    return plan, load_project(project.root)


def test_codes_of_opus_are_those_of_its_files(project):
    """OPUS calls Chinese of Tatoeba cmn, and a script by a country."""
    _, read = written(project, "en-zh")
    corpus = read.corpora["pair_en_zh_tatoeba_cmn_en"]
    assert (corpus["langs"], corpus["options"]["codes"]) == (["zh", "en"], {"zh": "cmn"})
    assert read.examples["pair_en_zh_pairs"]["pairs"] == ["en-zh"]
    _, read = written(project, "en-zh_Hant")
    assert read.corpora["pair_en_zh_hant_web_en_zh_tw"]["options"]["codes"] == {"zh": "zh_TW"}
    # No file of the mirror's source has it: the archive of all languages does.
    assert read.corpora["pair_en_zh_hant_flores_zho_hant"]["source"] == "flores200_archive"


def test_licences_are_those_of_the_catalog_also_where_another_pair_has_a_file(project):
    plan, read = written(project, "en-zh")
    assert {text.licence for text in plan.taken if text.name == "OPUS Tatoeba"} == {"CC-BY-2.0-FR"}
    assert [*map(str, survey(read, ["en-zh"]).found)] == [*map(str, plan.found)]


def test_a_script_that_is_named_is_kept_alone(project):
    plan, read = written(project, "en-sr_Latn")
    assert plan.evaluations == {"tatoeba": ["srp"]}  # FLORES has Serbian in Cyrillic letters
    assert {"character_script": {"scripts": {"sr": ["Latin"]}}} in read.corpora["pair_en_sr_latn_web_en_sr"]["filters"]


def test_without_parallel_text_a_dictionary_or_one_language_alone_is_what_there_is(project):
    plan, read = written(project, "en-dsb")
    assert ([text.name for text in plan.monolingual], plan.taken) == (["OPUS Wiki"], [])
    assert "one language" in method_of(plan, None)
    alone = read.corpora["pair_en_dsb_wiki_dsb"]
    assert (alone["kind"], alone["langs"], [step for step in alone["filters"] if "length_ratio" in step]) == ("mono", ["dsb"], [])
    assert [term["examples"] for term in read.systems["pair_en_dsb_encoder"]["terms"]] == ["pair_en_dsb_alone", "pair_en_dsb_english"]
    assert "pair_en_dsb_text" not in read.tables

    words = (
        "{kind: bitext, source: written, files: [dictionary_en-de.txt], reader: dictionary, langs: [en, dsb], licence: CC0, filters: []}"
    )
    (project.root / "config" / "corpora.yaml").write_text(f"corpora:\n  my_words: {words}\n", encoding="utf-8")
    plan, read = written(load_project(project.root), "en-dsb")
    assert (plan.dictionaries, plan.monolingual) == (["my_words"], [])
    view = read.views["pair_en_dsb_switched"]
    assert (view["dictionaries"], view["from"]) == ({"dsb": "my_words"}, ["simcse_wiki_head"])
    terms = [term["examples"] for term in read.systems["pair_en_dsb_encoder"]["terms"]]
    assert terms == ["pair_en_dsb_switched_pairs", "pair_en_dsb_english"]
    assert read.examples[terms[0]]["decontaminate"]


def test_a_language_without_parallel_text_is_trained_beside_a_pair_that_has_some(project):
    plan, read = written(project, "en-is", "en-dsb")
    assert ({text.pair for text in plan.taken}, [text.name for text in plan.monolingual]) == ({"en-is"}, ["OPUS Wiki"])
    assert read.examples["pair_en_is_en_dsb_pairs"]["pairs"] == ["en-is"]
    assert read.examples["pair_en_is_en_dsb_alone"]["from"] == ["pair_en_is_en_dsb_wiki_dsb"]


def test_sets_that_know_the_languages_are_listed_and_those_of_the_table_marked(project):
    lines = {line[3:].split("  ")[0]: line for line in set_lines(project, survey(project, ["fo-en", "en-is"]))}
    assert lines["FLORES-200"].split() == ["+", "FLORES-200", "fao_Latn", "isl_Latn"]
    assert lines["NTREX-128"].split() == ["NTREX-128", "fao_Latn", "isl_Latn"]
    assert lines["Belebele"].split() == ["Belebele", "-", "isl_Latn"]
    assert "STS17" not in lines


def test_english_as_a_pivot_is_looked_up_for_each_language(project):
    rows = [("Web", "v1", "fo", "is", 9_000, 98_000)]
    ROWS[:0] = rows
    try:
        plan = survey(project, ["fo-is"])
    finally:
        del ROWS[: len(rows)]
    assert plan.pairs == ["fo-is"]  # there is enough; what there is with English is shown all the same
    assert {text.pair for text in plan.found} == {"fo-is", "en-fo", "en-is"}


def test_codes_of_two_and_three_letters_are_one_language(project):
    assert spellings("swh")[:2] == ["swh", "sw"]
    assert {"is", "isl"} == set(spellings("is"))
    assert evaluations_of(project, "fo") == {"tatoeba": ["fao"], "flores": ["fao_Latn"]}
    assert evaluations_of(project, "zh") == {"tatoeba": ["cmn"], "flores": ["zho_Hans"]}
    assert evaluations_of(project, "zh_Hant")["flores"] == ["zho_Hant"]
    assert evaluations_of(project, "sw") == {"tatoeba": ["swh"], "flores": ["swh_Latn"]}
    assert evaluations_of(project, "hsb") == {"tatoeba": ["hsb"]}
    assert evaluations_of(project, "xyz") == {}


def test_a_file_that_somebody_changed_is_not_written_over(project, tmp_path, capsys):
    assert main(["pair", "en-is", "--directory", str(tmp_path), "--encoder", "minilm_l6"]) == 0
    assert "build it with: snakemake --cores all pair_en_is" in capsys.readouterr().out
    assert main(["pair", "en-is", "--directory", str(tmp_path)]) == 2
    assert "the file already exists" in capsys.readouterr().err
    assert main(["pair", "english", "--directory", str(tmp_path)]) == 2
    assert "'english' is not a pair of languages" in capsys.readouterr().err
    assert main(["pair", "eng-isl", "--directory", str(tmp_path)]) == 2
    assert "en-is.yaml: the file already exists" in capsys.readouterr().err
    assert main(["pair", "swa-sw", "--directory", str(tmp_path)]) == 2
    assert main(["pair", "zh_Hans-zh_Hant", "--directory", str(tmp_path)]) == 2
    assert "'zh_Hans-zh_Hant' is not a pair of languages" in capsys.readouterr().err
    assert main(["pair", "en-dsb", "--directory", str(tmp_path), "--teacher", "minilm_l6"]) == 2  # it has no parallel text
    assert "a teacher needs translations" in capsys.readouterr().err
    assert not (tmp_path / "config" / "pairs" / "en-dsb.yaml").exists()


def test_a_pair_is_planned_once_however_often_it_is_named(project, tmp_path, capsys):
    assert checked(["en-is", "isl-eng", "en_Latn-sr_Latn"]) == ["en-is", "en-sr_Latn"]
    ROWS.append(("Web", "v2", "da", "fo", 900, 3_000))
    ROWS.append(("Web", "v2", "fo", "is", 900, 3_000))
    try:
        plan = survey(project, ["fo-is", "da-fo", "is-en"])
        both = survey(project, ["en-sr_Latn", "en-sr_Cyrl"])
    finally:
        del ROWS[-2:]
    assert plan.pairs == ["fo-is", "da-fo", "is-en", "en-fo"]
    items = [text.item for text in (*plan.taken, *both.taken)]
    assert all(items.count(item) == 1 for item in items)
    titles = [line.split("  ")[1].strip() for line in table_lines(plan) if " text of " in line]
    assert len(titles) == len(set(titles)) == 5
    assert "scripts: {sr: [Latin, Cyrillic]}" in file_text(both, "minilm_l6", 200)
