"""What modules.json and its companions say: read, refused or warned of, by whichever way an encoder comes in."""

from __future__ import annotations

import json
import logging
import shutil

import pytest
from safetensors.torch import load_file, save_file

import crosslign
from crosslign.encoders.model import Model
from crosslign.errors import InputError

PACKAGE = "sentence_transformers.models"


@pytest.fixture
def folder(tmp_path, tiny_encoder):
    shutil.copytree(tiny_encoder / "main", tmp_path / "mine")
    return tmp_path / "mine"


def _set(path, **changes):
    content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    path.write_text(json.dumps(content | changes), encoding="utf-8")


def _modules(folder, *kinds, package=PACKAGE, transformer=""):
    paths = {"Transformer": transformer, "Pooling": "1_Pooling"}
    named = [{"path": paths.get(kind, f"{at}_{kind}"), "type": f"{package}.{kind}"} for at, kind in enumerate(kinds)]
    (folder / "modules.json").write_text(json.dumps(named), encoding="utf-8")


@pytest.mark.parametrize(
    "kinds",
    [
        ("Transformer", "Pooling", "Normalize", "Dense"),
        ("Transformer", "Normalize", "Pooling"),
        ("Transformer", "Pooling", "Pooling"),
        ("Transformer", "Pooling", "Normalize", "Normalize"),
        ("Pooling", "Transformer"),
        ("Transformer", "Dense"),
    ],
)
def test_modules_in_an_order_that_is_not_read_are_refused(folder, kinds):
    _modules(folder, *kinds)
    for load in (crosslign.encoder, lambda place: Model.load({"main": place})):
        with pytest.raises(InputError, match=rf"modules\.json: .*; .*{', '.join(kinds)}; .*Transformer, Pooling, ") as caught:
            load(folder)
        assert caught.value.do


def test_a_module_of_another_s_code_or_a_transformer_elsewhere_is_refused(folder):
    _modules(folder, "Transformer", "Pooling", package="custom")
    with pytest.raises(InputError, match=r"modules\.json: .*; custom\.Pooling, custom\.Transformer; "):
        Model.load({"main": folder})
    _modules(folder, "Transformer", "Pooling", transformer="0_Transformer")
    with pytest.raises(InputError, match=r"modules\.json: .*'0_Transformer'"):
        Model.load({"main": folder})


@pytest.mark.parametrize("kinds", [("Transformer", "Pooling"), ("Transformer", "Pooling", "Dropout", "Normalize")])
def test_dropout_and_unit_length_may_come_or_not(folder, kinds):
    _modules(folder, *kinds, package="sentence_transformers.sentence_transformer.modules.any")
    assert crosslign.encoder(folder).readout["normalise"] is ("Normalize" in kinds)


@pytest.mark.parametrize(
    ("file", "changes", "said"),
    [
        ("sentence_bert_config.json", {"do_lower_case": True}, "wants texts lower case first"),
        ("sentence_bert_config.json", {"config_kwargs": {"hidden_act": "relu"}}, "sets hidden_act over config.json"),
        ("config_sentence_transformers.json", {"truncate_dim": 8}, "keeps 8 dimensions of a vector"),
        ("1_Pooling/config.json", {"include_prompt": False}, "leaves the tokens of the prompt 'query: ' out of the pooling"),
    ],
)
def test_what_embedding_settings_do_not_do_is_warned_of_in_python_too(folder, caplog, file, changes, said):
    _set(folder / "config_sentence_transformers.json", prompts={"query": "query: "}, default_prompt_name="query")
    with caplog.at_level(logging.WARNING):
        assert crosslign.encoder(folder).readout["prefix"] == "query: "
    assert not caplog.records
    _set(folder / file, **changes)
    with caplog.at_level(logging.WARNING):
        crosslign.encoder(folder)
    assert said in caplog.text


def test_weights_of_nan_are_refused_in_python_before_anything_is_encoded(folder):
    weights = load_file(folder / "model.safetensors")
    weights["encoder.layer.0.output.dense.weight"][0, 0] = float("nan")
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(InputError, match=r"NaN .*; encoder\.layer\.0\.output\.dense\.weight: 1 "):
        crosslign.encoder(folder)


@pytest.mark.parametrize(
    ("file", "changes", "said"),
    [
        ("1_Pooling/config.json", {"pooling_mode": ["mean", "cls"]}, r"1_Pooling/config\.json: .*pooling; .*\['mean', 'cls'\]"),
        ("sentence_bert_config.json", {"max_seq_length": "x"}, r"sentence_bert_config\.json: .*max_length .*'x'"),
        (
            "sentence_bert_config.json",
            {"config_args": {"num_hidden_layers": -1}},
            r"sentence_bert_config\.json: .*layer .* -1\b",
        ),
    ],
)
def test_settings_of_another_form_are_refused_in_python(folder, file, changes, said):
    _set(folder / file, **changes)
    with pytest.raises(InputError, match=said):
        crosslign.encoder(folder)


def test_prompts_that_are_none_put_nothing_before_a_text(folder):
    _set(folder / "config_sentence_transformers.json", prompts=["query: "], default_prompt_name="query")
    assert "prefix" not in crosslign.encoder(folder).readout
