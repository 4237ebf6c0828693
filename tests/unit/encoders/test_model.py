"""Members, their poolings against the hidden states, and folders that other libraries load."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from crosslign.encoders.encode import encode
from crosslign.encoders.model import Member, Model
from crosslign.encoders.tokens import tokenise
from crosslign.errors import InputError

SMALL = {"architecture": "bert", "layers": 1, "hidden": 16, "heads": 2, "intermediate": 32, "vocabulary": 300, "seed": 7}
TEXTS = ["The dog sleeps.", "Two birds sat on the roof of the old house behind the school.", "Ja."]


def _by_hand(member: Member, text: str, pooling: str, layer: int) -> list[float]:
    """Pool one sentence alone, in float64, from the states that transformers returns."""
    features = dict(member.tokenizer(text, return_tensors="pt"))
    with torch.inference_mode():
        output = member.eval().backbone(**features, output_hidden_states=True)
    states = [h[0].double() for h in output.hidden_states]
    count = states[0].shape[0]
    if pooling == "pooler":
        return output.pooler_output[0].tolist()
    if pooling == "avg_first_last":
        return ((states[abs(layer)] + states[-1]) / 2).mean(0).tolist()
    rows = {"cls": [0], "cls_before_mlp": [0], "mean_no_special": list(range(1, count - 1)), "last": [count - 1]}.get(
        pooling, list(range(count))
    )
    chosen = states[layer][rows]
    return (chosen.max(0).values if pooling == "max" else chosen.mean(0)).tolist()


@pytest.mark.parametrize("layer", [-1, 0, 1, 2])
@pytest.mark.parametrize("pooling", ["cls", "cls_before_mlp", "mean", "mean_no_special", "max", "last", "avg_first_last", "pooler"])
def test_pooling_of_padded_batch_equals_each_sentence_alone(tiny_model, pooling, layer):
    readout = {"pooling": pooling, "layer": layer, "max_length": 64, "normalise": False}
    vectors = encode(tiny_model, TEXTS, ["en"] * 3, readout)
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert vector.tolist() == pytest.approx(_by_hand(tiny_model.member("main"), text, pooling, layer), abs=2e-6)


@pytest.mark.parametrize(
    "readout",
    [
        {"pooling": "mean"},
        {"pooling": "cls", "normalise": False},
        {"pooling": "max", "prefix": "query: "},
        {"pooling": "last"},
        {"pooling": "mean", "layer": 6},  # of 12: block 1 of 2
        {"pooling": "mean", "layer": 0, "prefix": "query: "},
        {"pooling": "pooler", "normalise": False},
        {"pooling": "pooler", "layer": 6},
    ],
)
def test_saved_folder_gives_the_same_vectors_everywhere(tiny_model, tmp_path, readout):
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel, AutoTokenizer

    full = {"layer": -1, "max_length": 12, "normalise": True, "precision": "fp32", "prefix": "", **readout}
    ours = encode(tiny_model, TEXTS, ["en"] * 3, full)
    tiny_model.save(tmp_path, full)
    folder = str(tmp_path / "main")
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        theirs = SentenceTransformer(folder, device="cpu").encode(TEXTS)
    assert np.abs(theirs - ours).max() < 1e-6
    assert np.array_equal(encode(Model.load({"main": tmp_path / "main"}), TEXTS, ["en"] * 3, full), ours)
    again = Model.load({"main": tmp_path / "main"})
    assert again.state_dict().keys() == tiny_model.state_dict().keys()  # BERT's pooler is not read a second time as dense layers
    if full["pooling"] == "cls":
        features = AutoTokenizer.from_pretrained(folder)(TEXTS, return_tensors="pt", padding=True, truncation=True, max_length=12)
        with torch.inference_mode():
            states = AutoModel.from_pretrained(folder).eval()(**features).last_hidden_state
        assert np.abs(states[:, 0].numpy() - ours).max() < 1e-6


def test_layer_8_of_12_of_roberta_and_its_sentence_transformer(tiny_model, tmp_path):
    from sentence_transformers import SentenceTransformer
    from transformers import XLMRobertaConfig, XLMRobertaModel

    tokenizer = tiny_model.member("main").tokenizer
    sizes = {"hidden_size": 16, "num_hidden_layers": 12, "num_attention_heads": 2, "intermediate_size": 32}
    torch.manual_seed(3)
    config = XLMRobertaConfig(
        vocab_size=len(tokenizer), max_position_embeddings=66, pad_token_id=tokenizer.pad_token_id, initializer_range=0.5, **sizes
    )
    model = Model({"main": Member(XLMRobertaModel(config).eval(), tokenizer)})
    readout = {"pooling": "mean", "layer": 8, "max_length": 12}
    model.save(tmp_path, readout)
    theirs = SentenceTransformer(str(tmp_path / "main"), device="cpu").encode(TEXTS)
    assert np.abs(theirs - encode(model, TEXTS, ["en"] * 3, readout)).max() < 1e-6
    assert np.abs(theirs - encode(model, TEXTS, ["en"] * 3, readout | {"layer": -1})).max() > 0.01


@pytest.mark.parametrize("readout", [{"pooling": "mean_no_special"}, {"pooling": "avg_first_last"}])
def test_readout_without_a_word_in_sentence_transformers_is_left_out(tiny_model, tmp_path, caplog, readout):
    tiny_model.save(tmp_path, readout)
    assert not (tmp_path / "main" / "modules.json").exists()
    assert "cannot express" in caplog.text


def test_saving_is_the_same_bytes_whatever_was_encoded_before(tiny_encoder, tmp_path):
    for name, length in (("a", 5), ("b", 50)):
        model = Model.load({"main": tiny_encoder / "main"})
        encode(model, TEXTS, ["en"] * 3, {"pooling": "mean", "max_length": length})
        model.save(tmp_path / name)
    for file in (tmp_path / "a" / "main").rglob("*"):
        if file.is_file():
            assert file.read_bytes() == (tmp_path / "b" / file.relative_to(tmp_path / "a")).read_bytes(), file.name
    assert not list(tmp_path.rglob("*.bin"))
    assert json.loads((tmp_path / "a/main/tokenizer.json").read_text())["truncation"] is None


def test_language_picks_the_member(tiny_encoder, tmp_path, sentence_file):
    from crosslign.encoders.prepare import prepare_encoder

    prepare_encoder("other", {"construct": SMALL | {"hidden": 32}}, {"s": sentence_file}, tmp_path / "other")
    model = Model.load({"en": tiny_encoder / "main", "de-DE": tmp_path / "other" / "main"})
    assert list(model.members) == ["de", "en"]
    both = encode(model, ["Ja.", "Ja."], ["en", "deu"], {"pooling": "mean"})
    alone = encode(Model.load({"main": tmp_path / "other" / "main"}), ["Ja."], ["de"], {"pooling": "mean"})
    assert np.array_equal(both[1], alone[0])
    assert not np.allclose(both[0], both[1])
    with pytest.raises(InputError, match=r"'zh'.*members: de, en"):
        encode(model, ["Ja."], ["zh"], {"pooling": "mean"})


@pytest.mark.parametrize("lang", ["to", "pop"])
def test_languages_whose_codes_are_words_of_torch_have_members(tiny_encoder, tmp_path, lang):
    """Tongan and Pwapwa: a module of torch has methods of these names."""
    model = Model.load(dict.fromkeys([lang, "en"], tiny_encoder / "main"))
    model.save(tmp_path)
    assert sorted(folder.name for folder in tmp_path.iterdir()) == sorted([lang, "en"])
    assert len(list(model.parameters())) == 2 * len(list(model.member(lang).parameters()))
    assert not model.train(False).member(lang).training


def test_members_of_different_size_cannot_share_a_matrix(tiny_encoder, tmp_path, sentence_file):
    from crosslign.encoders.prepare import prepare_encoder

    prepare_encoder("other", {"construct": SMALL}, {"s": sentence_file}, tmp_path / "other")
    model = Model.load({"en": tiny_encoder / "main", "de": tmp_path / "other" / "main"})
    with pytest.raises(InputError, match=r"dimension; \{"):
        encode(model, ["Yes.", "Ja."], ["en", "de"], {"pooling": "mean"})


def test_folder_without_a_model_is_named(tmp_path, tiny_encoder):
    with pytest.raises(InputError, match=rf"{tmp_path}: .*config\.json"):
        Model.load({"main": tmp_path})
    for file in (tiny_encoder / "main").glob("*.json"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"\0" * 64)
    with pytest.raises(InputError, match=rf"{tmp_path}: .*loaded"):
        Model.load({"main": tmp_path})


def _without(source, target, *names):
    """Copy a model folder, leaving out the weights whose names begin with one of `names`."""
    for file in source.glob("*.json"):
        (target / file.name).write_bytes(file.read_bytes())
    weights = {name: tensor for name, tensor in load_file(source / "model.safetensors").items() if not name.startswith(names)}
    save_file(weights, target / "model.safetensors", {"format": "pt"})


def test_missing_weights_are_refused_and_a_missing_pooler_is_never_random(tmp_path, tiny_encoder):
    _without(tiny_encoder / "main", tmp_path, "pooler.")
    model = Model.load({"main": tmp_path})
    assert np.isfinite(encode(model, TEXTS, ["en"] * 3, {"pooling": "mean"})).all()
    with pytest.raises(InputError, match=r"readout: .*pooling: pooler"):
        encode(model, TEXTS, ["en"] * 3, {"pooling": "pooler"})
    _without(tiny_encoder / "main", tmp_path, "encoder.layer.1.")
    with pytest.raises(InputError, match=rf"{tmp_path}: .*missing.*encoder\.layer\.1"):
        Model.load({"main": tmp_path})


def test_pairs_carry_segments_and_the_longer_is_cut_first(tiny_model):
    tokenizer = tiny_model.member("main").tokenizer
    tokens = tokenise(tokenizer, ["Yes.", "Yes."], ["The museum opens at ten.", "Yes."], 9)
    assert [len(ids) for ids in tokens.ids] == [9, 7]
    assert tokens.truncated == 1
    assert tokens.segments[1].tolist() == [0, 0, 0, 0, 1, 1, 1]
    features = tiny_model.member("main").collate(tokens.ids, tokens.segments, range(2))
    assert features["token_type_ids"][1].tolist() == [0, 0, 0, 0, 1, 1, 1, 0, 0]
    assert features["attention_mask"].sum(1).tolist() == [9, 7]


def test_batch_of_equal_lengths_needs_no_mask(tiny_model):
    ids = [np.arange(length, dtype=np.int32) for length in (4, 3, 4)]
    assert set(tiny_model.member("main").collate(ids, None, [2, 0])) == {"input_ids"}


def test_other_reads_the_languages_without_a_member_of_their_own(tiny_model):
    member = tiny_model.member("main")
    model = Model({"en": member, "other": member})
    assert [model.member_of(lang) for lang in ("en", "eng", "de", "zh-CN")] == ["en", "en", "other", "other"]
    with pytest.raises(InputError, match="'de'"):
        Model({"en": member}).member_of("de")


SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 20}
KINDS = {
    "MPNet": SIZES,  # no fused attention; positions begin behind the padding id
    "DebertaV2": SIZES | {"relative_attention": True, "position_buckets": 8, "pos_att_type": ["c2p", "p2c"]},
    "RobertaPreLayerNorm": SIZES,
    "Albert": SIZES | {"embedding_size": 8},  # one block, used twice
    "ModernBert": SIZES | {"pad_token_id": 0, "cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3},
    "Electra": SIZES | {"embedding_size": 8},
}


@pytest.mark.parametrize("kind", KINDS)
def test_models_of_other_kinds_are_read_to_their_last_position_and_saved_with_equal_vectors(tiny_model, tmp_path, kind):
    import transformers
    from sentence_transformers import SentenceTransformer

    tokenizer = tiny_model.member("main").tokenizer
    config = getattr(transformers, f"{kind}Config")(vocab_size=len(tokenizer) + 8, **KINDS[kind])
    torch.manual_seed(3)
    getattr(transformers, f"{kind}Model")(config).save_pretrained(tmp_path / "published")
    tokenizer.save_pretrained(tmp_path / "published")
    if kind == "Electra":  # as some, without a padding token
        settings = json.loads((tmp_path / "published" / "tokenizer_config.json").read_text())
        (tmp_path / "published" / "tokenizer_config.json").write_text(json.dumps(settings | {"pad_token": None}))
    model = Model.load({"main": tmp_path / "published"})
    texts = [*TEXTS, "a very long text " * 20]
    ours = encode(model, texts, ["en"] * 4, {"pooling": "mean"})
    behind_padding = kind in ("MPNet", "RobertaPreLayerNorm")  # whose padding id is 1: their first token has position 2
    assert len(model.member("main").tokenise(texts[3:], None, 999).ids[0]) == (18 if behind_padding else 20)
    model.train()
    member = model.member("main")
    member(member.collate(tokenise(tokenizer, texts, None, 12).ids, None, range(4)), "mean").sum().backward()
    model.save(tmp_path / "saved", {"pooling": "mean"})
    theirs = SentenceTransformer(str(tmp_path / "saved" / "main"), device="cpu").encode(texts)
    assert np.abs(theirs - ours).max() < 1e-6


def test_a_token_that_the_encoder_has_no_embedding_of_is_named(tiny_model, tiny_encoder):
    member = Member.load(tiny_encoder / "main")
    member.tokenizer.add_tokens(["zebra"])
    assert encode(Model({"main": member}), TEXTS, ["en"] * 3, {"pooling": "mean"}).shape == (3, member.dimension)
    with pytest.raises(InputError, match=r"tokenizer: .*'zebra'.*\d+ tokens, .*\d+ rows"):
        encode(Model({"main": member}), ["the zebra"], ["en"], {"pooling": "mean"})
