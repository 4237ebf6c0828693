"""A view whose translator is a model of the hub: the model is fetched before, by a job of its own; all others stay offline."""

import json
import shutil

import pyarrow.parquet as pq
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

VIEW = "results/quick/views/hub_view/all.parquet"
ENTRY = """  hub_view:
    builder: full_translation
    from: [bible_train]
    targets: [de, fr]
    translator: {%s: {model: "org/opus-{source}-{target}", beam: 1, max_length: 6}}

examples:
"""


def with_view(workflow, engine):
    workflow.edit("config/papers/quickstart.yaml", "examples:\n", ENTRY % engine)
    workflow.edit("config/scales/quick.yaml", "corpus_rows: 600", "corpus_rows: 40")
    return workflow


def write_model(folder):
    """Save a random model with a vocabulary of a few words."""
    words = ["<pad>", "</s>", "<unk>", "und", "der", "die", "et", "le", "la", "in", "of", "the", "and", "god", "lord"]
    core = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    core.pre_tokenizer = Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", eos_token="</s>", unk_token="<unk>").save_pretrained(folder)
    torch.manual_seed(1)
    sizes = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2}
    model = T5ForConditionalGeneration(T5Config(vocab_size=len(words), decoder_start_token_id=0, **sizes))
    for weights in model.parameters():
        torch.nn.init.normal_(weights, std=1.0)
    model.save_pretrained(folder)


def write_cache(home):
    """Lay out the cache of the hub's client with both models."""
    for target in ("de", "fr"):
        repository = home / "hub" / f"models--org--opus-en-{target}"
        write_model(repository / "snapshots" / ("0123456789" * 4))
        (repository / "refs").mkdir()
        (repository / "refs" / "main").write_text("0123456789" * 4)


@pytest.mark.parametrize("engine", ["transformers", "ctranslate2"])
def test_each_model_is_fetched_before_the_view(untouched, engine):
    jobs = with_view(untouched, engine).planned(VIEW)
    fetched = [name for rule, name in jobs if rule == "fetch_model"]
    assert sorted(fetched) == ["model=org--opus-en-de@main", "model=org--opus-en-fr@main"]  # in whatever order they are planned
    assert jobs.index(("build_view", "view=hub_view")) > max(jobs.index(("fetch_model", name)) for name in fetched)


def test_views_of_other_translators_fetch_no_model(pristine):
    jobs = pristine.planned("scl_table3")
    assert [rule for rule, _ in jobs if rule == "build_view"]
    assert not [name for rule, name in jobs if rule == "fetch_model"]


@pytest.mark.long
def test_such_a_view_is_made_offline_from_the_fetched_folders(untouched, tmp_path):
    write_cache(tmp_path / "home")
    workflow = with_view(untouched, "transformers")
    workflow.run(VIEW, variables={"HF_HOME": str(tmp_path / "home")})
    rows = pq.read_table(workflow.folder / VIEW).to_pylist()
    assert {row["lang"] for row in rows} <= {"de", "fr"}
    lineage = json.loads((workflow.folder / f"{VIEW}.lineage.json").read_text())
    assert {"models/org--opus-en-de@main", "models/org--opus-en-fr@main"} <= {entry["path"] for entry in lineage["inputs"]}
    # With the cache gone, the view is made again from what was fetched.
    shutil.rmtree(tmp_path / "home")
    workflow.run(VIEW, "--forcerun", "build_view", variables={"HF_HOME": str(tmp_path / "home")})
    assert pq.read_table(workflow.folder / VIEW).to_pylist() == rows


@pytest.mark.long
def test_a_model_that_cannot_be_had_is_named_before_any_view(untouched, tmp_path):
    done = with_view(untouched, "ctranslate2").run(VIEW, check=False, variables={"HF_HOME": str(tmp_path / "empty")})
    assert done.returncode != 0
    assert "hf download org/opus-en-" in done.stderr
    assert not (untouched.results / "logs" / "build_view" / "hub_view").exists()
