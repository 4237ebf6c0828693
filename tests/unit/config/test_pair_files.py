"""`config/pairs/*.yaml`: one file stands for corpora, examples, a system, evaluations and tables."""

from __future__ import annotations

import pytest

from crosslign.config.load import load_project
from crosslign.config.pairs import target_of
from crosslign.errors import InputError

FILE = """pairs: [en-sw, de-hsb]
encoder: minilm_l6
text:
  - {corpus: tico19}
  - {opus: KDE4, version: v2, pair: de-hsb, sentences: 20213, about_bytes: 469000}
filters:
  - length: {min_words: 2}
english: {corpus: simcse_wiki_head, weight: 0.2}
evaluations: {tatoeba: [swh, hsb], flores: [swh_Latn]}
lost:
  - {label: en-en, task: sts17_tracks, subset: en-en, metric: spearman}
train: {steps: 200, batch: 32, learning_rate: 1e-4}
"""


def loaded(folder, text=FILE):
    (folder / "config" / "pairs").mkdir(parents=True)
    (folder / "config" / "pairs" / "en-sw+de-hsb.yaml").write_text(text, encoding="utf-8")
    return load_project(folder, {"papers": ["quickstart"], "scale": "laptop"})


def test_a_pair_is_entries_of_the_kinds_that_there_are(tmp_path):
    project = loaded(tmp_path)
    corpus = project.corpora["pair_en_sw_de_hsb_kde4_de_hsb"]
    assert project.sources[corpus["source"]]["files"] == [{"name": "de-hsb.txt.zip", "about_bytes": 469000}]
    assert (corpus["langs"], corpus["filters"], corpus["licence"]) == (["de", "hsb"], [{"length": {"min_words": 2}}], "unknown")
    examples = project.examples["pair_en_sw_de_hsb_pairs"]
    sets = [f"pair_en_sw_de_hsb_{name}" for name in ("tatoeba_swh", "tatoeba_hsb", "flores_swh_latn", "mining_swh_latn", "mining_hsb")]
    assert examples["decontaminate"] == [*sets, "sts17_tracks"]
    assert project.examples["pair_en_sw_de_hsb_english"]["decontaminate"] == examples["decontaminate"]
    assert (examples["pairs"], examples["from"]) == (["en-sw", "de-hsb"], ["tico19", "pair_en_sw_de_hsb_kde4_de_hsb"])
    system = project.systems["pair_en_sw_de_hsb_encoder"]
    assert [(term["weight"], term["batch"]) for term in system["terms"]] == [(1.0, 32), (0.2, 32)]
    table = project.tables["pair_en_sw_de_hsb"]
    assert [row["system"] for row in table["rows"]] == ["minilm_l6", "pair_en_sw_de_hsb_encoder"]
    assert [column["label"] for column in table["columns"]][:4] == ["swh→en", "en→swh", "hsb→en", "en→hsb"]
    assert [row["label"] for row in project.tables["pair_en_sw_de_hsb_text"]["rows"]] == examples["from"]
    mining = [column for column in table["columns"] if column["metric"] == "f1"]
    lines = {name: project.corpora[f"{column['task']}_lines"]["files"][0] for column in mining if (name := column["label"])}
    assert lines == {"sw-en": "swh_Latn.devtest", "hsb-en": "tatoeba.hsb-eng.hsb"}  # of FLORES where it knows the language


def test_the_target_of_a_pair_mines_the_text_that_its_file_names(tmp_path):
    from crosslign.config.mining import mine_recipe
    from crosslign.config.targets import target_files

    sides = "mine:\n  source: {file: a.txt, lang: sw}\n  target: {file: b.jsonl, lang: en}\n  k: 6\n"
    sts = 'similarity:\n  - {label: "ar-en", task: sts17, subset: ar-en, metric: spearman}\n'
    project = loaded(tmp_path, FILE + sides + sts)
    recipe = mine_recipe(project, "pair_en_sw_de_hsb_mined")
    assert (recipe["system"], recipe["k"], recipe["source"]["file"]) == ("pair_en_sw_de_hsb_encoder", 6, "a.txt")
    assert project.paths.mined("pair_en_sw_de_hsb_mined", "parquet") in target_files(project, ["pair_en_sw_de_hsb"])
    assert "sts17" in project.examples["pair_en_sw_de_hsb_pairs"]["decontaminate"]
    assert [column["label"] for column in project.tables["pair_en_sw_de_hsb"]["columns"]][-2:] == ["ar-en", "en-en"]


def test_a_pair_is_a_target_also_without_evaluations(tmp_path):
    from crosslign.config.targets import target_files

    lines = [line for line in FILE.splitlines() if not line.startswith(("evaluations", "lost", "  - {label"))]
    project = loaded(tmp_path, "\n".join(lines))
    assert target_files(project, ["pair_en_sw_de_hsb"]) == target_files(project, ["pair_en_sw_de_hsb_text"])


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "encoder: minilm_l6",
            "encoder: minilm_16",
            r"en-sw\+de-hsb.yaml:2: encoder: .*'minilm_16'.*'minilm_l6'",
        ),
        ("corpus: tico19", "corpus: tico", "yaml:4: text.0.corpus: .*'tico'.*'tico19'"),
        (
            "flores: [swh_Latn]",
            "flores: [swa_Latn]",
            "yaml:9: evaluations.flores(.0)?: flores200_devtest.*'swa_Latn'.*'swh_Latn",
        ),
        ("task: sts17_tracks", "task: sts17_track", "yaml:11: lost.0.task: .*'sts17_track'.*'sts17_tracks'"),
        ("english:", "clean: {corpus: tico19, margin: me5_smal}\nenglish:", r"clean\.margin: .*'me5_smal'.*'me5_small'"),
        ("train: {", "mine: {source: {file: a.txt, lang: sw}}\ntrain: {", r"yaml:12: mine: .*'target'.*\['source'\]"),
        ("evaluations:", "evaluation:", "yaml:9.*'evaluation'.*'evaluations'"),
        ("- length:", "- lenght:", r"corpora\.pair_en_sw_de_hsb_kde4_de_hsb\.filters\.0\.lenght: .*'lenght'.*'length'"),
        (
            "english:",
            "dictionaries: [muse_en-de, dictionary_de]\nenglish:",
            "yaml:8: dictionaries(.1)?:.*muse_en-de",
        ),
        ("metric: spearman", "metric: f1", r"config/pairs/en-sw\+de-hsb.yaml: tables.*'f1'.*pearson"),
        (
            "train: {",
            "mine: {source: {file: a, lang: sw}, target: {file: b, lang: en}, checkpoint: best}\ntrain: {",
            r"config/pairs/en-sw\+de-hsb.yaml: mine.checkpoint: pair_en_sw_de_hsb_encoder .*'best'.*last",
        ),
        (
            "  - {opus: KDE4, version: v2, pair: de-hsb, sentences: 20213, about_bytes: 469000}\n",
            "clean: {corpus: tatoeba_exports_de}\n",
            "yaml:5: clean: .*OPUS.*`margin`",
        ),
        ("pairs: [en-sw,", "pairs: [zh_Hans-zh_Hant,", "yaml:1: pairs(.0)?: zh_Hans-zh_Hant .*twice"),
    ],
)
def test_wrong_names_are_refused_with_line_and_nearest_name(tmp_path, before, after, message):
    with pytest.raises(InputError, match=message):
        loaded(tmp_path, FILE.replace(before, after))


def test_a_clean_sample_sets_thresholds_of_the_corpora_of_opus(tmp_path):
    project = loaded(tmp_path, FILE.replace("english:", "clean: {corpus: tatoeba_exports_de, keep: 0.99}\nenglish:"))
    step = {"as_clean": {"corpora": ["tatoeba_exports_de"], "keep": 0.99}}
    assert project.corpora["pair_en_sw_de_hsb_kde4_de_hsb"]["filters"] == [{"length": {"min_words": 2}}, step]


def test_the_margin_of_a_clean_sample_is_a_threshold_too(tmp_path):
    project = loaded(tmp_path, FILE.replace("english:", "clean: {corpus: tatoeba_exports_de, margin: me5_small}\nenglish:"))
    kept = project.examples["pair_en_sw_de_hsb_pairs"]
    assert (kept["builder"], kept["of"], kept["from"]) == ("margin_pairs", ["pair_en_sw_de_hsb_read"], ["tatoeba_exports_de"])
    assert kept["teacher"] == "me5_small"
    assert project.examples["pair_en_sw_de_hsb_read"]["from"] == ["tico19", "pair_en_sw_de_hsb_kde4_de_hsb"]
    assert kept["decontaminate"] == project.examples["pair_en_sw_de_hsb_read"]["decontaminate"]


def taught(text=FILE):
    return text.replace("encoder: minilm_l6", "encoder: minilm_l6\nteacher: me5_small")


def test_a_teacher_makes_it_distillation(tmp_path):
    project = loaded(tmp_path, taught())
    terms = project.systems["pair_en_sw_de_hsb_encoder"]["terms"]
    assert {(term["objective"], term["loss"]) for term in terms} == {("sentence_transformers_loss", "MSELoss")}
    assert [term["examples"] for term in terms] == ["pair_en_sw_de_hsb_pairs_taught", "pair_en_sw_de_hsb_english_taught"]
    examples = project.examples["pair_en_sw_de_hsb_pairs_taught"]
    assert (examples["of"], examples["teacher"]) == (["pair_en_sw_de_hsb_pairs"], "me5_small")
    assert "pair_en_sw_de_hsb_flores_swh_latn" in examples["decontaminate"]
    assert project.tables["pair_en_sw_de_hsb"]["rows"][1]["system"] == "pair_en_sw_de_hsb_encoder"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("teacher: me5_small", "teacher: me5_smal", "yaml:3: teacher: .*'me5_smal'.*'me5_small'"),
        ("[en-sw, de-hsb]", "[fr-sw, de-hsb]", "yaml:3: teacher: .*English"),
        (
            "english:",
            "monolingual: [{corpus: cc100_ne}]\nenglish:",
            "yaml:3: teacher: .*translations.*`monolingual`",
        ),
        ("batch: 32,", "batch: 32, temperature: 0.1,", "train.temperature: distillation "),
    ],
)
def test_a_teacher_that_cannot_teach_is_refused(tmp_path, before, after, message):
    with pytest.raises(InputError, match=message):
        loaded(tmp_path, taught().replace(before, after))


def test_the_report_shows_the_tables_of_a_pair_behind_those_of_papers(tmp_path):
    from dataclasses import replace

    from crosslign.config.cells import overview

    project = loaded(tmp_path)
    shown = {}
    for targets in (["all", "report"], ["pair_en_sw_de_hsb", "report"]):
        asked = replace(project, settings={**project.settings, "targets": targets})
        shown[targets[0]] = [table["id"] for table in overview(asked)["tables"]]
    own = ["pair_en_sw_de_hsb_text", "pair_en_sw_de_hsb"]
    assert sorted(shown["pair_en_sw_de_hsb"]) == sorted(own) == sorted(shown["all"][-2:])
    assert "quickstart" in shown["all"]


def test_a_target_is_called_by_its_languages():
    assert target_of("en-sw+de-hsb") == "pair_en_sw_de_hsb"


def test_an_evaluation_set_that_is_planted_in_the_training_text_is_caught(tmp_path):
    import pyarrow as pa

    from crosslign.examples.build import build_examples
    from crosslign.files.rows import SCHEMAS, read_rows, write_rows

    project = loaded(tmp_path)
    entry = project.examples["pair_en_sw_de_hsb_pairs"]
    held = {name: [f"Sentence {number} of {name} is held out." for number in range(12)] for name in entry["decontaminate"]}
    evaluations = {}
    for name, texts in held.items():
        table = pa.Table.from_pylist(
            [{"text_id": f"{name}:{n}", "lang": "en", "text": text} for n, text in enumerate(texts)], SCHEMAS["texts"]
        )
        write_rows(tmp_path / f"{name}.parquet", table, "texts")
        evaluations[name] = tmp_path / f"{name}.parquet"
    planted = [text.upper().replace(".", " !") for texts in held.values() for text in texts]  # whole sets, written otherwise
    english = [f"An honest sentence, number {number}." for number in range(40)] + planted
    rows = [{"id": f"t:{n}", "a_lang": "en", "a_text": text, "b_lang": "sw", "b_text": f"Sentensi {n}"} for n, text in enumerate(english)]
    write_rows(tmp_path / "text.parquet", pa.Table.from_pylist(rows, SCHEMAS["bitext"]), "bitext")
    corpora = dict.fromkeys(entry["from"][:1], tmp_path / "text.parquet")
    counts = build_examples("pairs", {**entry, "from": list(corpora)}, corpora, evaluations, {}, tmp_path / "pairs.parquet")
    assert (counts["built"], counts["rows"]) == (40 + len(planted), 40)
    assert {name: found["dropped"] for name, found in counts["decontamination"]["evaluations"].items()} == dict.fromkeys(held, 12)
    left = {row[side] for row in read_rows(tmp_path / "pairs.parquet").to_pylist() for side in ("a_text", "b_text")}
    assert not left & set(planted)
