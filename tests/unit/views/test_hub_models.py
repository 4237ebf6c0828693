"""Models that translators need from the hub are named before any view is made, and a view reads the fetched folder alone."""

from __future__ import annotations

import shutil

import pytest

from crosslign.errors import InputError, NetworkError
from crosslign.views.hub_models import HubModel, fetch_model, hub_models, own_models, uses_gpu

MARIAN = "Helsinki-NLP/opus-mt-{source}-{target}"


@pytest.mark.parametrize("engine", ["transformers", "ctranslate2"])
def test_a_translator_names_a_model_for_each_pair_of_languages(engine):
    entry = {"langs": ["de", "en"], "targets": ["en", "pt"], "translator": {engine: {"model": MARIAN, "codes": {"pt": "ROMANCE"}}}}
    names = [model.name.rpartition("opus-mt-")[2] for model in hub_models(entry)]
    assert names == ["de-en", "de-ROMANCE", "en-ROMANCE"]
    many = {"targets": ["de", "fr"], "translator": {engine: {"model": "facebook/nllb-200-distilled-600M", "revision": "refs/pr/7"}}}
    assert hub_models(many) == [HubModel("facebook/nllb-200-distilled-600M", "refs/pr/7")]
    assert hub_models(many)[0].folder == "facebook--nllb-200-distilled-600M@refs--pr--7"


@pytest.mark.parametrize("engine", ["transformers", "ctranslate2"])
def test_a_folder_is_fetched_from_nowhere(engine, tmp_path):
    for place in (str(tmp_path), "./models/mine", "/somewhere/else"):
        assert hub_models({"targets": ["de"], "translator": {engine: {"model": place}}}) == []


@pytest.mark.parametrize("engine", ["transformers", "ctranslate2"])
def test_a_folder_is_part_of_what_a_view_is_made_of(engine, tmp_path):
    for pair in ("en-de", "de-en", "en-fr"):
        (tmp_path / pair).mkdir()
        (tmp_path / pair / "source.spm").write_text(pair)
    entry = {"langs": ["de", "en"], "targets": ["de", "en"], "translator": {engine: {"model": f"{tmp_path}/{{source}}-{{target}}"}}}
    assert own_models(entry) == [tmp_path / "de-en" / "source.spm", tmp_path / "en-de" / "source.spm"]
    assert own_models({**entry, "translator": {engine: {"model": MARIAN}}}) == []


def test_views_without_such_a_translator_need_nothing():
    for translator in ({"apertium": {}}, {"provided": {"corpora": ["a"]}}):
        entry = {"targets": ["de"], "translator": translator}
        assert hub_models(entry) == own_models(entry) == []
        assert not uses_gpu(entry)
    assert hub_models({"builder": "code_switch"}) == []


def test_a_gpu_is_asked_for_where_the_engine_may_take_one():
    for engine in ("transformers", "ctranslate2"):
        assert uses_gpu({"translator": {engine: {"model": "a/b"}}})
        assert uses_gpu({"translator": {engine: {"model": "a/b", "device": "cuda"}}})
        assert not uses_gpu({"translator": {engine: {"model": "a/b", "device": "cpu"}}})


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """A hub cache, as its client lays it out, with one model of one commit."""
    import huggingface_hub.constants

    commit = "0123456789" * 4
    repository = tmp_path / "hub" / "models--org--name"
    snapshot = repository / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("CROSSLIGN_OFFLINE", "1")
    return snapshot


def test_the_fetched_folder_has_no_code_and_no_pickles(cached, tmp_path):
    kept = {"config.json": "{}", "source.spm": "s", "model.safetensors": "w", "README.md": "---\nlicense: apache-2.0\n---\n"}
    for name, text in {**kept, "pytorch_model.bin": "p", "modeling.py": "import os"}.items():
        (cached / name).write_text(text)
    facts = fetch_model(HubModel("org/name"), tmp_path / "out")
    assert facts == {"commit": cached.name, "bytes": sum(map(len, kept.values())), "licence": "apache-2.0"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(kept)


def test_what_cannot_be_had_is_named(cached, tmp_path):
    (cached / "config.json").write_text("{}")
    with pytest.raises(InputError, match=r"hub:org/name@main: .*'org/name'.*safetensors"):
        fetch_model(HubModel("org/name"), tmp_path / "out")
    shutil.rmtree(cached.parents[1])
    with pytest.raises(NetworkError, match="hf download org/name --revision main"):
        fetch_model(HubModel("org/name"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
