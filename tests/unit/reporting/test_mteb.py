"""Records in MTEB's form, read back by MTEB where it is installed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import f1_score

from crosslign.config.yaml_files import load_yaml
from crosslign.corpora.evaluation import EvaluationBuilder
from crosslign.paths import CATALOG
from crosslign.reporting.mteb import FORMS, as_mteb, export, language_codes
from crosslign.tasks.records import Record
from crosslign.tasks.score import score, write_scores

ROOT = Path(__file__).resolve().parents[3]
CONTEXT = {
    **{
        "run_id": "labse",
        "system": "labse",
        "seed": 42,
        "task": "sts17_mteb",
        "checkpoint": "base",
        "readout": "cls_t256",
        "profile": "paper",
    },
    **{"checkpoint_sha": "abc", "pooling": "cls", "layer": -1, "max_length": 256, "code_version": "c", "data_manifest_sha": "d"},
}
RECORDS = [
    Record("sts17_mteb", "en-ar", "spearman", 0.7451, 250),
    Record("sts17_mteb", "en-ar", "pearson", 0.75, 250, main=True),
    Record("sts17_mteb", "es-es", "spearman", 0.8083, 250),
    Record("sts17_mteb", "all", "spearman", 0.78, 500),
    Record("sts17_mteb", "en-tr", "spearman", None, 0, status="undefined", reason="no pairs"),
]


def test_languages_as_mteb_writes_them():
    assert language_codes("en-ar") == ["eng-Latn", "ara-Arab"]
    assert language_codes("deu-eng") == ["deu-Latn", "eng-Latn"]
    assert language_codes("default") == ["eng-Latn"]
    assert language_codes("kas_Deva-eng_Latn") == ["kas-Deva", "eng-Latn"]


def test_subsets_metrics_and_main_score():
    result = as_mteb("sts17_mteb", RECORDS, ["all"], "d")
    assert result["task_name"] == "STS17"
    assert [row["hf_subset"] for row in result["scores"]["test"]] == ["en-ar", "es-es"]
    assert result["scores"]["test"][0] == {
        **{"hf_subset": "en-ar", "languages": ["eng-Latn", "ara-Arab"], "main_score": 0.7451},
        **{"cosine_pearson": 0.75, "cosine_spearman": 0.7451},
    }
    assert as_mteb("lareqa", RECORDS, [], "d") is None
    assert as_mteb("sts17_mteb", RECORDS[4:], [], "d") is None


def test_forms_and_documented_tasks_are_tasks_of_the_project():
    tasks = set(load_yaml(CATALOG / "tasks.yaml").content["tasks"])
    assert set(FORMS) <= tasks
    documented, header = set(), ""
    page = (ROOT / "docs" / "protocols.md").read_text(encoding="utf-8")
    for line in page.splitlines():
        first = line.split("|")[1].strip() if line.startswith("|") else ""
        header = (header or first) if first else ""
        documented |= set(re.findall(r"`(\w+)`", first)) if header == "task" else set()
    assert len(documented) > 30
    assert documented <= tasks <= set(re.findall(r"`(\w+)`", page))


def test_what_has_not_mtebs_items_and_text_is_never_exported():
    """SentEval's text is tokenised and lower-cased, and half of SICK; MTEB's XNLI is a sample; the others come from other files."""
    others = ("sts12", "sts16", "stsb", "sickr", "sts17", "sts17_tracks", "sts17_extended", "sts22_t64", "xnli_pairs", "paws_x_cosine")
    assert not [task for task in others if as_mteb(task, [Record(task, "en", "spearman", 0.5, 9)], [], "d")]


@pytest.mark.parametrize("task", ["sts12_mteb", "sts13_mteb", "sts14_mteb", "sts15_mteb", "sts16_mteb", "stsb_mteb", "sickr_mteb"])
def test_english_similarity_is_read_from_mtebs_own_data(task):
    metadata = pytest.importorskip("mteb").get_task(FORMS[task].name).metadata
    catalog = load_yaml(CATALOG / "corpora.yaml").content["sources"]["mteb_{name}"]
    place = catalog["each"]["name"].index(task.removesuffix("_mteb"))
    assert f"mteb/{catalog['each']['repo'][place]}" == metadata.dataset["path"]
    assert catalog["each"]["commit"][place] == FORMS[task].revision == metadata.dataset["revision"]
    (row,) = as_mteb(task, [Record(task, "en", "spearman", 0.7, 9)], [], "d")["scores"]["test"]
    assert (row["hf_subset"], row["main_score"]) == ("default", 0.7)
    assert metadata.main_score == "cosine_spearman"


def test_mteb_reads_what_was_exported(tmp_path):
    write_scores(tmp_path / "results" / "scores" / "labse" / "base" / "cls_t256" / "sts17_mteb.json", CONTEXT, RECORDS)
    (path,) = export(tmp_path / "results", tmp_path / "out", {"sts17_mteb": ["all"]})
    assert path.relative_to(tmp_path / "out").as_posix() == "crosslign__labse__cls_t256/abc/STS17.json"
    assert json.loads((path.parent / "model_meta.json").read_text())["revision"] == "abc"
    mteb = pytest.importorskip("mteb")
    result = mteb.results.TaskResult.from_disk(path, load_historic_data=False)
    assert result.task_name == "STS17"
    assert result.get_score(splits=["test"], languages=["spa"]) == pytest.approx(0.8083)


def test_readouts_of_one_run_are_models_of_their_own_in_mteb(tmp_path):
    cache = pytest.importorskip("mteb.cache")
    for readout, value in (("cls_t256", 0.5), ("mean", 0.6)):
        path = tmp_path / "results" / "scores" / "labse" / "base" / readout / "sts17_mteb.json"
        write_scores(path, {**CONTEXT, "readout": readout}, [Record("sts17_mteb", "es-es", "spearman", value, 250, main=True)])
    list(export(tmp_path / "results", tmp_path / "cache" / "results", {}))
    found = {result.model_name: result for result in cache.ResultCache(tmp_path / "cache").load_results().model_results}
    assert {name: result.task_results[0].get_score() for name, result in found.items()} == {
        "crosslign/labse__cls_t256": 0.5, "crosslign/labse__mean": 0.6,
    }  # fmt: skip
    (one,) = cache.ResultCache(tmp_path / "cache").load_results(models=["crosslign/labse__mean"]).model_results
    assert one.model_revision == "abc"


def mined(task, subset, f1):
    return [Record(task, subset, "accuracy", 0.9, 9, "xx2en"), Record(task, subset, "weighted_f1", f1, 9, "xx2en", "mteb")]


FORMED = {
    "flores200_part": (mined("flores200_part", "ace_Arab", 0.4), "FloresBitextMining", "devtest", "ace_Arab-eng_Latn", "f1", 0.4),
    "paws_x_pairs": (
        [Record("paws_x_pairs", "de", "average_precision", 0.6, 9)],
        "PawsXPairClassification",
        "test",
        "de",
        "cosine_ap",
        0.6,
    ),
    "tatoeba_six": (mined("tatoeba_six", "deu", 0.8), "Tatoeba", "test", "deu-eng", "f1", 0.8),
}


@pytest.mark.parametrize("task", FORMED)
def test_names_subsets_and_splits_are_those_of_mteb(task):
    records, name, split, subset, metric, value = FORMED[task]
    result = as_mteb(task, records, ["avg"], "d")
    assert (result["task_name"], list(result["scores"])) == (name, [split])
    (row,) = result["scores"][split]
    assert (row["hf_subset"], row["main_score"], row[metric]) == (subset, value, value)
    metadata = pytest.importorskip("mteb").get_task(name).metadata
    assert split in metadata.eval_splits
    assert row["languages"] == metadata.eval_langs[subset]


def test_all_languages_are_written_as_mteb_writes_them():
    mteb = pytest.importorskip("mteb")
    for form in FORMS.values():
        known = mteb.get_task(form.name).metadata.eval_langs
        for subset in known if isinstance(known, dict) else ():
            if subset.endswith(form.pivot):
                assert language_codes(subset, form.codes) == known[subset], (form.name, subset)


def test_results_of_one_task_are_one_file(tmp_path):
    """Of Tatoeba the larger set counts, and what the other adds."""
    folder = tmp_path / "results" / "scores" / "labse" / "base" / "cls_t256"
    for task, records in {
        "paws_x_pairs": FORMED["paws_x_pairs"][0],
        "tatoeba": [*mined("tatoeba", "deu", 0.8), *mined("tatoeba", "fra", 0.7)],
        "tatoeba_six": [*mined("tatoeba_six", "swh", 0.5), *mined("tatoeba_six", "deu", 0.1), *mined("tatoeba_six", "fra", 0.1)][:4],
    }.items():
        write_scores(folder / f"{task}.json", {**CONTEXT, "task": task, "data_manifest_sha": f"data of {task}"}, records)
    paths = {path.stem: json.loads(path.read_text()) for path in export(tmp_path / "results", tmp_path / "out", {})}
    assert set(paths) == {"PawsXPairClassification", "Tatoeba"}
    assert set(paths["PawsXPairClassification"]["scores"]) == {"test"}
    tatoeba = paths["Tatoeba"]
    assert {row["hf_subset"]: row["main_score"] for row in tatoeba["scores"]["test"]} == {"deu-eng": 0.8, "fra-eng": 0.7, "swh-eng": 0.5}
    assert tatoeba["dataset_revision"] == "data of tatoeba+data of tatoeba_six"


def test_weighted_f1_of_tatoeba_is_that_of_scikit_learn():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 12, 3))
    builder = EvaluationBuilder("tatoeba")
    for role, lang in (("source", "deu"), ("target", "eng")):
        for number in range(12):
            builder.item(f"{lang}-{number}", "deu", role, lang, f"{lang} {number}")
    for number in range(12):
        builder.link("deu", f"deu-{number}", f"eng-{number}")
    main = {"metric": "accuracy", "subset": "deu", "direction": "xx2en"}
    task = {"scorer": "retrieval", "texts": {"test": "tatoeba"}, "output": "vectors", "main": main, "resamples": 0}
    records = score("tatoeba", task, {"test": np.concatenate([x, y])}, {"test": builder.build()})
    cosines = (x / np.linalg.norm(x, axis=1, keepdims=True)) @ (y / np.linalg.norm(y, axis=1, keepdims=True)).T
    wanted = f1_score(np.arange(12), cosines.argmax(1), average="weighted")
    assert next(r.value for r in records if r.metric == "weighted_f1") == pytest.approx(wanted)
    row = as_mteb("tatoeba", records, [], "d")["scores"]["test"][0]
    assert (row["hf_subset"], row["main_score"]) == ("deu-eng", pytest.approx(wanted))
