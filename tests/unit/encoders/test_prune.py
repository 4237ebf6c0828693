"""Pruned vocabularies: exact where all pieces stay, usable elsewhere."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pyarrow as pa
import pytest
import torch
from e5s1_file import PIECES, SCORES, WORDS
from hypothesis import given, settings
from hypothesis import strategies as st

from crosslign.encoders.encode import encode
from crosslign.encoders.model import Member, Model
from crosslign.encoders.prepare import prepare_encoder
from crosslign.encoders.prune import prune, replace_saved, texts_of, used_ids
from crosslign.errors import InputError
from crosslign.files import write_rows

KEPT = ["abc cd", "日本 x", "a b"]
PREFIXES = ["dd ", "ß "]


@pytest.fixture(scope="session")
def pruned_folder(tmp_path_factory, e5s1_bytes):
    folder = tmp_path_factory.mktemp("pruned")
    (folder / "tiny.bin").write_bytes(e5s1_bytes[0])
    columns = {"id": list("012"), "lang": ["en"] * 3, "text": KEPT}
    write_rows(folder / "all.parquet", pa.table(columns), "mono")
    entry = {"path": str(folder / "tiny.bin"), "format": "e5s1", "prune": {"corpora": ["c"], "prefixes": PREFIXES}}
    facts = prepare_encoder("tiny", entry, {}, folder / "out", [folder / "all.parquet"])
    assert facts["vocabulary_before"] == len(PIECES)
    assert facts["vocabulary"] < len(PIECES)
    return folder / "out" / "main"


@pytest.fixture(scope="session")
def both(e5s1_folder, pruned_folder):
    return Member.load(e5s1_folder), Member.load(pruned_folder)


def test_only_used_special_and_lowest_pieces_stay(both):
    full, pruned = both
    pieces = json.loads(pruned.tokenizer.backend_tokenizer.to_str())["model"]["vocab"]
    used = {PIECES[i] for text in KEPT for prefix in ("", *PREFIXES) for i in full.tokenizer(prefix + text).input_ids}
    lowest = WORDS[int(np.argmin(SCORES[4:-1]))]
    assert [piece for piece, _ in pieces] == [piece for piece in PIECES if piece in used | {"<pad>", "<unk>", "<mask>", lowest}]
    assert pruned.backbone.config.vocab_size == len(pieces) == pruned.backbone.get_input_embeddings().weight.shape[0]


@pytest.mark.parametrize("prefix", ["", *PREFIXES])
def test_vectors_of_kept_texts_are_the_same_numbers(e5s1_folder, pruned_folder, prefix):
    readout = {"pooling": "mean", "prefix": prefix}
    full, pruned = (encode(Model.load({"main": folder}), KEPT, ["en"] * 3, readout) for folder in (e5s1_folder, pruned_folder))
    np.testing.assert_array_equal(full, pruned)


def test_sentence_transformers_loads_it(pruned_folder):
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(pruned_folder), device="cpu").encode(KEPT)
    ours = encode(Model.load({"main": pruned_folder}), KEPT, ["en"] * 3, {"pooling": "mean"})
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


@given(text=st.text(alphabet="abcdß日本é xЖ", min_size=1, max_size=24))
@settings(max_examples=200)
def test_any_text_of_kept_pieces_is_cut_and_encoded_as_before(both, text):
    before, after = (member.tokenizer.convert_ids_to_tokens(member.tokenise([text], None, 24).ids[0]) for member in both)
    stay = {piece for piece, _ in json.loads(both[1].tokenizer.backend_tokenizer.to_str())["model"]["vocab"]}
    if set(before) <= stay:
        assert after == before
        with torch.inference_mode():
            a, b = (
                member.eval()({"input_ids": torch.tensor([member.tokenise([text], None, 24).ids[0].tolist()])}, "mean") for member in both
            )
        assert torch.equal(a, b)
    else:
        assert after[0] == "<s>"


def test_other_tokenizers_are_refused(tiny_encoder):
    with pytest.raises(InputError, match=r"config/encoders\.yaml: prune: .*WordPiece"):
        prune(Member.load(tiny_encoder / "main"), KEPT)


def test_settings_of_the_pruned_encoder_name_its_own_ids(e5s1_folder):
    member = Member.load(e5s1_folder)
    config, embedding = member.backbone.config, member.backbone.get_input_embeddings()
    config.pad_token_id = config.eos_token_id = embedding.padding_idx = PIECES.index("日本")  # ids that move: fewer pieces stand before it
    pruned = prune(member, ["日本"])
    moved = pruned.tokenizer.convert_tokens_to_ids("日本")
    assert moved < PIECES.index("日本")
    assert {config.pad_token_id, config.eos_token_id, embedding.padding_idx} == {moved}
    assert embedding.num_embeddings == len(pruned.tokenizer)


def test_the_longest_input_of_a_pruned_encoder_is_that_of_the_full_one(both):
    assert both[1].tokenizer.model_max_length == both[0].tokenizer.model_max_length


def test_a_padding_id_that_would_move_is_refused_where_positions_are_counted_from_it(e5s1_folder):
    member = Member.load(e5s1_folder)
    member.backbone.config.model_type, member.backbone.config.pad_token_id = "xlm-roberta", PIECES.index("日本")
    with pytest.raises(InputError, match=r"config/encoders\.yaml: prune: .* 22 "):
        prune(member, ["日本"])


def test_nothing_is_truncated_when_pieces_are_counted(both):
    full = both[0]
    full.tokenise(["a"], None, 4)  # leaves a truncation of four tokens behind in the tokenizer
    assert PIECES.index("▁cd") in used_ids(full.tokenizer, ["a " * 50 + "cd"])


@pytest.mark.parametrize("batch", [1, 2, 4096])
def test_every_text_counts_with_each_prefix_and_without(both, monkeypatch, batch):
    monkeypatch.setattr("crosslign.encoders.prune.BATCH", batch)
    tokenizer, texts, prefixes = both[0].tokenizer, ["ab", "cd", "日"], ["ß", "dd"]
    cut = [tokenizer(prefix + text).input_ids for text in texts for prefix in ("", *prefixes)]
    assert used_ids(tokenizer, iter(texts), prefixes) == {number for ids in cut for number in ids}


def test_the_truncation_of_an_earlier_call_is_not_saved_with_the_pruned_tokenizer(e5s1_folder):
    member = Member.load(e5s1_folder)
    member.tokenise(["a"], None, 4)
    assert prune(member, KEPT).tokenizer.backend_tokenizer.truncation is None


@pytest.fixture(params=["TemplateProcessing", "RobertaProcessing"])
def specials_last(request):
    """An encoder whose special pieces stand behind all words, as mBART's do, and one of them beyond the vocabulary of the model."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    vocabulary = [
        ("▁", -1.0),
        *((f"▁w{n}", -2.0 - n / 10) for n in range(120)),
        *((name, 0.0) for name in ("<unk>", "</s>", "<s>", "<pad>")),
    ]
    number = {piece: at for at, (piece, _) in enumerate(vocabulary)}
    start, end = (("<s>", number["<s>"]), ("</s>", number["</s>"]))
    backend = Tokenizer(models.Unigram(vocabulary, number["<unk>"]))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.post_processor = {
        "TemplateProcessing": lambda: processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> $B </s>", [start, end]),
        "RobertaProcessing": lambda: processors.RobertaProcessing(end, start),
    }[request.param]()
    named = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "mask_token": "<mask>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=16, **named)
    ids = {f"{name}_token_id": number[named[f"{name}_token"]] for name in ("bos", "eos", "pad")}
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 16}
    return Member(BertModel(BertConfig(vocab_size=len(tokenizer), **sizes, **ids)), tokenizer)


@pytest.mark.parametrize("second", ["w90", "w90 ß"])
def test_special_pieces_behind_all_words_get_new_ids_wherever_they_stand(specials_last, second):
    texts, langs, readout = ["w41 w3", second], ["en"] * 2, {"pooling": "mean"}
    full, vectors = specials_last.tokenizer, encode(Model({"main": specials_last}), texts, langs, readout)
    pieces = [full(text).tokens() for text in texts]
    pruned = prune(specials_last, texts)
    assert [pruned.tokenizer(text).tokens() for text in texts] == pieces
    np.testing.assert_array_equal(encode(Model({"main": pruned}), texts, langs, readout), vectors)
    lowest = "▁w119"  # no text has it
    kept = [*(["▁"] if "ß" in second else []), "▁w3", "▁w41", "▁w90", lowest, "<unk>", "</s>", "<s>", "<pad>", "<mask>"]
    assert pruned.tokenizer.convert_ids_to_tokens(list(range(len(pruned.tokenizer)))) == kept
    config = pruned.backbone.config
    assert [kept[number] for number in (config.bos_token_id, config.eos_token_id, config.pad_token_id)] == ["<s>", "</s>", "<pad>"]


def test_no_file_of_the_full_encoder_stays_beside_the_pruned_one(pruned_folder, tmp_path):
    shutil.copytree(pruned_folder, tmp_path / "main")
    weights = ["model.safetensors", "model-00001-of-00002.safetensors", "model.safetensors.index.json"]
    for name in (*weights, "sentencepiece.bpe.model", "codes.bpe", "vocab.txt", "added_tokens.json", "special_tokens_map.json"):
        (tmp_path / "main" / name).write_text("of the full one")
    replace_saved(Member.load(pruned_folder), tmp_path / "main")
    found, expected = ({str(path.relative_to(folder)): path for path in folder.rglob("*")} for folder in (tmp_path / "main", pruned_folder))
    assert found.keys() == expected.keys()
    for name in ("model.safetensors", "tokenizer.json", "modules.json"):
        assert found[name].read_bytes() == expected[name].read_bytes()
    assert found["model.safetensors"].stat().st_mode == found["config.json"].stat().st_mode  # not for their owner alone


def test_texts_of_both_sides_are_read(tmp_path):
    pair = {"id": ["1"], "a_lang": ["en"], "a_text": ["one"], "b_lang": ["de"], "b_text": ["eins"]}
    write_rows(tmp_path / "pairs.parquet", pa.table(pair), "bitext")
    write_rows(tmp_path / "texts.parquet", pa.table({"text_id": ["t"], "lang": ["en"], "text": ["two"]}), "texts")
    assert sorted(texts_of([tmp_path / "pairs.parquet", tmp_path / "texts.parquet"])) == ["eins", "one", "two"]
