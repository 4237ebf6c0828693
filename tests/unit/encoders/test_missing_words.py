"""Whatever file, or key of a file, an encoder's folder lacks: it is refused, warned of, or the vectors are the same."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer

from crosslign.encoders.encode import encode
from crosslign.encoders.model import Model
from crosslign.encoders.prepare import prepare_encoder
from crosslign.encoders.soundness import examined
from crosslign.errors import InputError

READOUT = {"pooling": "mean", "layer": -1, "max_length": 32, "normalise": True, "precision": "fp32", "prefix": ""}


def _vectors(folder, texts):
    return encode(Model.load({"main": folder / "main"}), texts, ["en"] * len(texts), READOUT)


def _without(folder):
    """Yield the name of each file and of each key, with what takes it away."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield f"{path.relative_to(folder)}", path, None
            content = json.loads(path.read_text(encoding="utf-8")) if path.suffix == ".json" else None
            for key in sorted(content) if isinstance(content, dict) else ():
                yield f"{path.relative_to(folder)}: {key}", path, {name: value for name, value in content.items() if name != key}


def test_what_is_missing_is_refused_or_said_or_changes_nothing(tmp_path, tiny_encoder, sentence_pairs):
    source, texts = tmp_path / "mine", [pair[0] for pair in sentence_pairs[:8]]
    shutil.copytree(tiny_encoder / "main", source)
    prepare_encoder("mine", {"path": str(source)}, {}, tmp_path / "whole")
    whole, silent, tried = _vectors(tmp_path / "whole", texts), [], 0
    for name, path, rest in _without(source):
        kept = path.read_bytes()
        path.unlink()
        if rest is not None:
            path.write_text(json.dumps(rest), encoding="utf-8")
        try:
            facts = prepare_encoder("mine", {"path": str(source)}, {}, tmp_path / "out")
        except InputError as error:
            told = bool(error.do)
        else:
            told = "doubts" in facts or np.allclose(_vectors(tmp_path / "out", texts), whole, atol=1e-6)
        path.write_bytes(kept)
        tried += 1
        silent += [] if told else [name]
    assert not silent
    assert tried > 40


SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "initializer_range": 0.3}
GROUPED = SIZES | {"num_key_value_heads": 2, "head_dim": 8}
LOCAL = {"num_hidden_layers": 7, "sliding_window": 4, "use_bidirectional_attention": True}
DISTANCES = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 4, "norm_rel_ebd": "layer_norm"}
KINDS = {
    "qwen3": GROUPED | {"rope_parameters": {"rope_theta": 1e6, "rope_type": "default"}},
    "gemma3_text": GROUPED | LOCAL,
    "albert": SIZES | {"embedding_size": 16},
    "deberta-v2": SIZES | DISTANCES | {"position_biased_input": False, "max_relative_positions": 9},
    "modernbert": SIZES | {"num_hidden_layers": 3, "local_attention": 4, "global_attn_every_n_layers": 3},
    "xlm": {"emb_dim": 32, "n_layers": 2, "n_heads": 4},
}
REFUSED = ("num_hidden_layers", "n_layers")


@pytest.fixture(scope="module")
def of_kind(tiny_encoder, tmp_path_factory):
    """A function that gives the folder of a tiny encoder of a kind."""
    made = {}

    def folder(kind):
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp(kind)
            tokenizer = AutoTokenizer.from_pretrained(tiny_encoder / "main")
            ids = {f"{name}_token_id": tokenizer.pad_token_id for name in ("pad", "bos", "eos", "cls", "sep")}
            torch.manual_seed(0)
            model = AutoModel.from_config(AutoConfig.for_model(kind, vocab_size=len(tokenizer), **ids, **KINDS[kind]))
            with torch.no_grad():  # no norm of zeros, as no trained one is
                for weights in model.parameters():
                    weights.add_(torch.randn(weights.shape), alpha=0.1)
            model.save_pretrained(made[kind])
            tokenizer.save_pretrained(made[kind])
        return made[kind]

    return folder


def _doubts(folder):
    return examined("mine", folder, Model.load({"main": folder}).member("main"))


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("qwen3", "rope_parameters"),
        ("gemma3_text", "use_bidirectional_attention"),
        ("gemma3_text", "sliding_window"),
        ("albert", "num_hidden_layers"),
        ("xlm", "n_layers"),
        ("deberta-v2", "pos_att_type"),
        ("deberta-v2", "norm_rel_ebd"),
        ("modernbert", "rope_parameters"),
        ("xlm", "gelu_activation"),
    ],
)
def test_a_key_that_decides_vectors_and_that_no_weight_shows_is_said_or_asked_for(of_kind, tmp_path, kind, key):
    assert not _doubts(of_kind(kind))
    shutil.copytree(of_kind(kind), tmp_path, dirs_exist_ok=True)
    content = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    del content[key]
    (tmp_path / "config.json").write_text(json.dumps(content), encoding="utf-8")
    if key in REFUSED:
        with pytest.raises(InputError, match=f" {key}; "):
            _doubts(tmp_path)
    else:
        assert any(f"config.json does not say {key}: " in doubt for doubt in _doubts(tmp_path))


def test_keys_of_before_transformers_5_say_the_same(of_kind, tmp_path):
    shutil.copytree(of_kind("qwen3"), tmp_path, dirs_exist_ok=True)
    content = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    content["rope_theta"] = content.pop("rope_parameters")["rope_theta"]
    (tmp_path / "config.json").write_text(json.dumps(content), encoding="utf-8")
    assert not _doubts(tmp_path)
