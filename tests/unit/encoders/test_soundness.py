"""An encoder's folder that lacks something is refused or warned of; transformers itself fills each of these gaps and gives numbers."""

from __future__ import annotations

import json
import logging
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import pre_tokenizers

from crosslign.encoders.model import Model
from crosslign.encoders.prepare import prepare_encoder
from crosslign.errors import InputError

POINTER = "version https://git-lfs.github.com/spec/v1\n"


@pytest.fixture
def folder(tmp_path, tiny_encoder):
    shutil.copytree(tiny_encoder / "main", tmp_path / "mine")
    return tmp_path / "mine"


def _edit(path, change):
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def _reweigh(folder, change):
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def _remove(folder, *names):
    for name in names:
        (folder / name).unlink()


def _without_tokenizer(folder):
    _remove(folder, "tokenizer.json", "vocab.txt", "tokenizer_config.json")


def _without_vocabulary(folder):
    _remove(folder, "tokenizer.json", "vocab.txt")


def _only_special_tokens(folder):
    _remove(folder, "tokenizer.json")
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", encoding="utf-8")


def _a_piece_beyond_the_embeddings(folder):
    """As many pieces as rows, but one is numbered as in a larger vocabulary."""

    def renumber(content):
        pieces = content["model"]["vocab"]
        pieces[max(pieces, key=pieces.get)] = 100000

    _edit(folder / "tokenizer.json", renumber)


def _tokenizer_of_other_weights(folder):
    _remove(folder, "tokenizer.json")
    pieces = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
    (folder / "vocab.txt").write_text("\n".join(pieces[: len(pieces) // 3]) + "\n", encoding="utf-8")


def _bare_texts(folder):
    _edit(folder / "tokenizer.json", lambda content: content.update(post_processor=None))
    _edit(folder / "tokenizer_config.json", lambda content: content.update(tokenizer_class="PreTrainedTokenizerFast"))


def _fewer_blocks(folder):
    _edit(folder / "config.json", lambda content: content.update(num_hidden_layers=1))


def _no_heads(folder):
    _edit(folder / "config.json", lambda content: content.pop("num_attention_heads"))


def _other_shape(folder):
    _edit(folder / "config.json", lambda content: content.update(intermediate_size=content["intermediate_size"] // 2))


def _part_of_the_pooler(folder):
    _reweigh(folder, lambda weights: weights.pop("pooler.dense.bias"))


def _adapter(folder):
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": "x"}', encoding="utf-8")


def _packed(folder):
    _edit(folder / "config.json", lambda content: content.update(quantization_config={"quant_method": "bitsandbytes"}))


def _dense_without_modules(folder):
    _remove(folder, "modules.json")
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense" / "config.json").write_text("{}", encoding="utf-8")


def _dense_that_is_gone(folder):
    _edit(folder / "modules.json", lambda content: content.insert(2, {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}))


def _no_heads_beside_names_of_labels(folder):
    _edit(folder / "config.json", lambda content: content.update(id2label={"0": "a"}))
    _no_heads(folder)


def _dense_that_nothing_names(folder):
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense" / "config.json").write_text("{}", encoding="utf-8")


def _pointer(folder):
    (folder / "model.safetensors").write_text(f"{POINTER}oid sha256:{'0' * 64}\nsize 7\n", encoding="utf-8")


def _no_blocks(folder):
    _edit(folder / "config.json", lambda content: content.update(num_hidden_layers=0))


def _endless_blocks(folder):
    """Lists and models of them would be made without end."""
    _edit(folder / "config.json", lambda content: content.update(num_hidden_layers=10**30))


def _endless_blocks_of_a_decoder(folder):
    _edit(folder / "config.json", lambda content: content.update(model_type="qwen3", num_hidden_layers=10**6))


def _endless_rounds(folder):
    _edit(folder / "config.json", lambda content: content.update(model_type="albert", num_hidden_layers=10**6))


def _unnumbered_blocks(folder):
    _edit(folder / "config.json", lambda content: content.pop("num_hidden_layers"))


def _no_padding(folder):
    _edit(folder / "config.json", lambda content: content.update(model_type="xlm-roberta", pad_token_id=None))


def _architectures_of_another_form(folder):
    _edit(folder / "config.json", lambda content: content.update(architectures=7))


def _width_of_another_form(folder):
    _edit(folder / "config.json", lambda content: content.update(hidden_size=None))


REFUSED = [
    (_endless_blocks, r"weights are missing; config\.json counts 1,000,.* blocks, and the file has no encoder\.layer\.2\."),
    (_endless_blocks_of_a_decoder, r"weights are missing; config\.json counts 1,000,000 blocks, and the file has no encoder\.layer\.2\."),
    (_endless_rounds, r"weights are missing; config\.json counts 1,000,000 blocks"),
    (_unnumbered_blocks, "the config has no num_hidden_layers; transformers would use 12"),
    (_no_padding, "the config has no padding id; pad_token_id is None"),
    (_architectures_of_another_form, "architectures is 7"),
    (_width_of_another_form, "loaded; "),
    (_without_tokenizer, r"tokenizer; .*tokenizer\.json"),
    (_without_vocabulary, r"tokenizer; .*tokenizer\.json"),
    (_only_special_tokens, r"tokenizer .*; 5 tokens, 5 "),
    (_tokenizer_of_other_weights, r"tokenizer .*; .* \d[\d,]* tokens, .* \d[\d,]* rows"),
    (
        _a_piece_beyond_the_embeddings,
        r"tokenizer .*; .*'.+' .*100,?000, .*embeddings",
    ),
    (_bare_texts, r"tokenizer .*special .*; .*bert"),
    (_fewer_blocks, r"config .* encoder\.layer\.1\."),
    (_no_blocks, "num_hidden_layers is 0"),
    (_no_heads, r"num_attention_heads; .* 12\b"),
    (_other_shape, r"shape; .*\(\d+.*\(\d+"),
    (_part_of_the_pooler, r"missing; .*pooler\.dense\.bias"),
    (_adapter, r"adapter_config\.json"),
    (_packed, r"quantization_config in config\.json"),
    (_dense_without_modules, r"modules\.json .*missing; 2_Dense "),
    (_dense_that_nothing_names, r"modules\.json .*dense .*; 2_Dense "),
    (_no_heads_beside_names_of_labels, "num_attention_heads; "),
    (_pointer, "Git LFS"),
    (_dense_that_is_gone, r"missing; modules\.json .*'2_Dense', .*config\.json"),
]


@pytest.mark.parametrize(("damage", "said"), REFUSED, ids=[damage.__name__.strip("_") for damage, _ in REFUSED])
def test_what_transformers_would_make_up_is_refused_with_the_folder_and_what_to_do(folder, damage, said):
    damage(folder)
    with pytest.raises(InputError, match=said) as caught:
        Model.load({"main": folder})
    assert str(folder) in str(caught.value)
    assert caught.value.do


def test_errors_of_preparing_name_the_folder_that_was_given_and_what_to_do(folder, tmp_path):
    _fewer_blocks(folder)
    with pytest.raises(InputError, match=r"encoder 'mine': .*encoder\.layer\.1\.") as caught:
        prepare_encoder("mine", {"path": str(folder)}, {}, tmp_path / "results" / "mine")
    assert caught.value.where == str(folder)
    assert caught.value.do
    assert ".part" not in str(caught.value)


def test_a_packed_folder_s_errors_name_the_archive_not_where_it_was_unpacked(folder, tmp_path):
    (folder / "config.json").write_text("{", encoding="utf-8")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    archive = shutil.make_archive(str(tmp_path / "mine"), "zip", folder)
    with pytest.raises(InputError, match=r"config\.json.*JSON") as caught:
        prepare_encoder("mine", {"path": archive, "format": "torch_weights"}, {}, tmp_path / "results" / "mine")
    assert caught.value.where.startswith(archive)
    assert caught.value.do
    assert ".part" not in str(caught.value)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_with_nan_are_found_when_the_encoder_is_prepared(folder, tmp_path, bad):
    _reweigh(folder, lambda weights: weights["encoder.layer.0.output.dense.weight"].view(-1)[3:5].fill_(bad))
    said = r"NaN .*; encoder\.layer\.0\.output\.dense\.weight: 2 "
    with pytest.raises(InputError, match=said) as caught:
        prepare_encoder("mine", {"path": str(folder)}, {}, tmp_path / "out")
    assert caught.value.where == str(folder)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "name",
    ["embeddings.word_embeddings.weight", "encoder.layer.0.output.dense.weight", "encoder.layer.1.attention.output.LayerNorm.weight"],
)
def test_weights_of_zeros_are_refused(folder, tmp_path, name):
    """As at the end of a file whose bytes were reserved, and did not all come."""
    _reweigh(folder, lambda weights: weights[name].zero_())
    with pytest.raises(InputError, match=f"zero; {name}: "):
        prepare_encoder("mine", {"path": str(folder)}, {}, tmp_path / "out")


@pytest.mark.parametrize("name", ["config", "config_sentence_transformers", "sentence_bert_config"])
def test_settings_of_another_form_are_refused_with_their_file(folder, tmp_path, name):
    (folder / f"{name}.json").write_text("[7]", encoding="utf-8")
    with pytest.raises(InputError, match=rf"{name}\.json: .*'\[7\]'") as caught:
        prepare_encoder("mine", {"path": str(folder)}, {}, tmp_path / "out")
    assert caught.value.where == str(folder / f"{name}.json")
    assert caught.value.do


def test_prompts_of_another_form_put_nothing_before_a_text(folder, tmp_path):
    (folder / "config_sentence_transformers.json").write_text('{"prompts": [7], "default_prompt_name": "a"}', encoding="utf-8")
    assert "doubts" not in prepare_encoder("mine", {"path": str(folder)}, {}, tmp_path / "out")


@pytest.mark.parametrize(("kind", "said"), [(torch.int8, "I8"), (torch.float8_e4m3fn, "F8_E4M3")])
def test_packed_numbers_in_place_of_weights_are_refused(folder, tmp_path, kind, said):
    name = "encoder.layer.0.output.dense.weight"
    _reweigh(folder, lambda weights: weights.update({name: (weights[name] * 100).to(kind)}))
    with pytest.raises(InputError, match=rf"{name} .* {said}: "):
        prepare_encoder("mine", {"path": str(folder)}, {}, tmp_path / "out")


def test_a_cased_vocabulary_behind_a_lower_casing_tokenizer_is_refused(folder, tmp_path):
    _remove(folder, "tokenizer.json", "tokenizer_config.json")  # transformers then takes do_lower_case: true
    pieces = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]
    cased = [piece.title() if number > 5 and number % 2 else piece for number, piece in enumerate(pieces)]
    (folder / "vocab.txt").write_text("\n".join(cased) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"vocabulary.*capitals") as caught:
        prepare_encoder("mine", {"path": str(folder)}, {}, tmp_path / "out")
    assert "do_lower_case: false" in caught.value.do


def _bpe(folder, merges, written):
    """Put a tokenizer of pairs of bytes beside the weights."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    known = {piece: number for number, piece in enumerate(["<s>", "<pad>", "</s>", "<unk>", *letters, *map("".join, merges)])}
    for name in ("tokenizer.json", "vocab.txt", "tokenizer_config.json"):
        (folder / name).unlink(missing_ok=True)
    _edit(folder / "config.json", lambda content: content.update(model_type="roberta", architectures=["RobertaModel"], pad_token_id=1))
    (folder / "vocab.json").write_text(json.dumps(known), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{' '.join(pair)}\n" for pair in written), encoding="utf-8")
    _reweigh(folder, lambda weights: _widened(weights, len(known)))
    _edit(folder / "config.json", lambda content: content.update(vocab_size=len(known)))


def _widened(weights, rows):
    words = weights["embeddings.word_embeddings.weight"]
    weights["embeddings.word_embeddings.weight"] = words[torch.arange(rows) % len(words)].clone()


def test_a_vocabulary_without_its_merges_is_refused(folder, tmp_path):
    """Every word would be cut into its letters, which are all known."""
    merges = [(a, b) for a in "abcdefghijklmnopqrst" for b in "abcdefghijklmnopqrst"]
    _bpe(folder, merges, merges)
    assert prepare_encoder("mine", {"path": str(folder)}, {}, tmp_path / "whole")["blocks"] == 2
    _bpe(folder, merges, [])
    with pytest.raises(InputError, match=r"vocabulary.*; .* 400 .* 0 "):
        prepare_encoder("mine", {"path": str(folder)}, {}, tmp_path / "out")


def _keeps_case(folder):
    _edit(folder / "tokenizer.json", lambda content: content["normalizer"].update(lowercase=False))


def _no_activation(folder):
    _edit(folder / "config.json", lambda content: content.pop("hidden_act"))


def _lower_case_first(folder):
    _edit(folder / "sentence_bert_config.json", lambda content: content.update(do_lower_case=True))


def _own_prompt(folder):
    named = {"prompts": {"query": "query: "}, "default_prompt_name": "query"}
    _edit(folder / "config_sentence_transformers.json", lambda content: content.update(named))


def _nothing_about_texts(folder):
    _remove(folder, "tokenizer.json", "tokenizer_config.json")


def _other_kind(folder):
    _edit(folder / "config.json", lambda content: content.update(model_type="roberta"))


def _sees_what_is_before_alone(folder):
    _edit(folder / "config.json", lambda content: content.update(is_decoder=True))


def _distances(folder):
    """As of relative positions, which transformers 5 has no class for."""
    name = "encoder.layer.0.attention.self.distance_embedding.weight"
    _reweigh(folder, lambda weights: weights.update({name: torch.ones(3, 4)}))


def _some_words(folder):
    _reweigh(folder, lambda weights: weights["embeddings.word_embeddings.weight"][-20:].zero_())  # beside that of padding


def _own_code(folder):
    _edit(folder / "config.json", lambda content: content.update(auto_map={"AutoModel": "own.Model"}))


def _a_piece_less(folder):
    _remove(folder, "tokenizer.json")
    pieces = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
    (folder / "vocab.txt").write_text("\n".join(pieces[:50] + pieces[51:]), encoding="utf-8")


def _moved_special(folder):
    _edit(folder / "tokenizer.json", lambda content: content["added_tokens"][-1].update(id=11))


DOUBTED = [
    (_moved_special, "tokenizer.json gives '[MASK]' another number than its pieces leave for it"),
    (_own_code, "config.json names code of its publisher (auto_map), which is left out"),
    (_a_piece_less, "are they of one model?"),
    (_nothing_about_texts, "no file says how texts are cut"),
    (_other_kind, "config.json names the architecture BertModel, and RobertaModel is taken for model_type roberta"),
    (_sees_what_is_before_alone, "config.json says is_decoder"),
    (
        _distances,
        "BertModel has no place for 1 weight of model.safetensors, such as encoder.layer.0.attention.self.distance_embedding.weight",
    ),
    (_some_words, "the embeddings of 21 tokens of "),
    (_keeps_case, "transformers reads the tokenizer as BertTokenizer"),
    (_no_activation, "config.json does not say hidden_act: gelu is taken"),
    (_lower_case_first, "wants texts lower case first"),
    (_own_prompt, "puts 'query: ' before each text"),
]


@pytest.mark.parametrize(("damage", "said"), DOUBTED, ids=[damage.__name__.strip("_") for damage, _ in DOUBTED])
def test_what_may_be_meant_so_is_warned_of_and_kept_in_the_lineage(folder, tmp_path, caplog, damage, said):
    damage(folder)
    with caplog.at_level(logging.WARNING):
        facts = prepare_encoder("mine", {"path": str(folder)}, {}, tmp_path / "out")
    assert said in facts["doubts"][0]
    assert said in caplog.text


def test_a_sound_encoder_raises_no_doubts(folder, tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        facts = prepare_encoder("mine", {"path": str(folder)}, {}, tmp_path / "out")
    assert "doubts" not in facts
    assert not caplog.records


def test_norms_of_the_first_bert_files_and_double_precision_are_what_they_are(folder, tmp_path):
    def renamed(weights):
        for name in [name for name in weights if "LayerNorm" in name]:
            old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
            weights[old] = weights.pop(name).double()

    whole = Model.load({"main": folder}).state_dict()
    _reweigh(folder, renamed)
    assert "doubts" not in prepare_encoder("mine", {"path": str(folder)}, {}, tmp_path / "out")
    assert all(torch.equal(weights, whole[name]) for name, weights in Model.load({"main": folder}).state_dict().items())
