"""Hub models of many languages in one: tiny random M2M-100 and NLLB with tokenizers trained here."""

from __future__ import annotations

import json

import pytest
import sentencepiece
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, M2M100Config, M2M100ForConditionalGeneration, M2M100Tokenizer, NllbTokenizer

from crosslign.errors import InputError
from crosslign.views import TRANSLATORS, TranslatorSetting

SENTENCE = "the cat sat on mat and dog ran to house in rain with red hat while bird sang of sea"
WORDS = SENTENCE.split()
TEXTS = [" ".join(WORDS[start : start + length]) for start, length in ((0, 2), (3, 9), (5, 4), (2, 7))]
UNUSED = [f"unused{n}" for n in range(200)]  # a vocabulary holds more than the languages' own tokens
NLLB = {"en": "eng_Latn", "de": "deu_Latn", "fr": "fra_Latn", "sw": "swh_Latn"}


def pieces(path):
    """Train a sentencepiece model on the words; return its file."""
    (path / "text.txt").write_text("\n".join(" ".join(WORDS[n:] + WORDS[:n]) for n in range(len(WORDS))))
    prefix = str(path / "pieces")
    sentencepiece.SentencePieceTrainer.train(input=str(path / "text.txt"), model_prefix=prefix, vocab_size=40, minloglevel=2)
    return path / "pieces.model"


def m2m100(path):
    model = sentencepiece.SentencePieceProcessor(model_file=str(pieces(path)))
    found = [model.id_to_piece(n) for n in range(len(model))]
    names = ["<s>", "<pad>", "</s>", "<unk>", *(piece for piece in found if piece not in ("<s>", "</s>", "<unk>")), *UNUSED]
    (path / "vocab.json").write_text(json.dumps({name: n for n, name in enumerate(names)}))
    return M2M100Tokenizer(str(path / "vocab.json"), str(path / "pieces.model"))


def nllb(path):
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=80, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], show_progress=False)
    trained.train_from_iterator([SENTENCE] * 4, trainer)
    learnt = json.loads(trained.to_str())["model"]
    vocab = learnt["vocab"] | {name: len(learnt["vocab"]) + n for n, name in enumerate(UNUSED)}
    return NllbTokenizer(vocab=vocab, merges=[tuple(merge) for merge in learnt["merges"]])


@pytest.fixture(scope="module", params=[(m2m100, {}), (nllb, NLLB)], ids=["m2m100", "nllb"])
def model(request, tmp_path_factory):
    """Return the folder of a tiny random model, and the codes that its languages have."""
    build, codes = request.param
    made = tmp_path_factory.mktemp("pieces")
    tokenizer, folder = build(made), tmp_path_factory.mktemp("model")
    tokenizer.save_pretrained(folder)
    torch.manual_seed(2)  # different sentences come out differently
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 64}
    special = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id, "bos_token_id": tokenizer.bos_token_id}
    languages = getattr(tokenizer, "lang_code_to_token", {}).values()  # M2M-100 puts them behind its vocabulary, and eight unused words
    known = max(tokenizer.convert_tokens_to_ids(token) + 1 for token in [*tokenizer.get_vocab(), *languages]) + 8 * bool(languages)
    config = M2M100Config(vocab_size=known, decoder_start_token_id=tokenizer.eos_token_id, **sizes, **heads, **special)
    network = M2M100ForConditionalGeneration(config)
    for name, weights in network.named_parameters():  # large enough for different sentences to come out differently
        if weights.ndim == 2 and "position" not in name:
            torch.nn.init.normal_(weights, std=1.0)
    used = [codes.get(code, f"__{code}__") for code in ("en", "de", "fr", "sw")]
    kept = {*tokenizer.convert_tokens_to_ids(used), *tokenizer(SENTENCE)["input_ids"], *range(4)}
    with torch.no_grad():  # so that pieces come out, and not one of two hundred languages
        network.model.shared.weight[torch.tensor([n for n in range(known) if n not in kept])] = 0
    network.save_pretrained(folder)
    return folder, codes


def translator(model, engine="transformers", **options):
    folder, codes = model
    setting = TranslatorSetting("v", ["en"], ["de", "fr"], {})
    return TRANSLATORS.get(engine)(
        setting, **{"model": str(folder), "codes": codes, "max_length": 10, "beam": 2, "device": "cpu", **options}
    )


def slow(model, source, target):
    """Return what the library gives for one sentence at a time: the source's code set, the target's token forced to be first."""
    folder, codes = model
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = M2M100ForConditionalGeneration.from_pretrained(folder).eval()
    tokenizer.src_lang = codes.get(source, source)
    first = tokenizer.convert_tokens_to_ids(codes[target]) if codes else tokenizer.get_lang_id(target)
    made = []
    for text in TEXTS:
        inputs = tokenizer(text, return_tensors="pt", truncation=True, max_length=10)
        out = network.generate(**inputs, forced_bos_token_id=first, num_beams=2, do_sample=False, max_new_tokens=10)
        assert out[0, 1] == first
        made.append(" ".join(tokenizer.decode(out[0, 2:], skip_special_tokens=True).split()) or None)
    return made


@pytest.mark.parametrize("target", ["de", "fr"])
def test_both_engines_give_the_same_greedy_translations(model, target):
    expected = translator(model, beam=1, batch_tokens=60).translate(TEXTS, "en", target)
    assert len(set(expected)) > 1
    assert translator(model, "ctranslate2", beam=1, batch_tokens=60).translate(TEXTS, "en", target) == expected


@pytest.mark.parametrize("target", ["de", "fr"])
def test_batches_of_one_model_give_what_the_library_gives_for_each_language(model, target):
    expected = slow(model, "en", target)
    assert len(set(expected)) > 1
    assert translator(model, batch_tokens=60).translate(TEXTS, "en", target) == expected


def test_the_targets_token_is_forced_to_be_first(model, monkeypatch):
    both = translator(model)
    tokenizer, network = both._load("en", "de")
    forced = []
    real = network.generate
    monkeypatch.setattr(network, "generate", lambda **given: forced.append(given["forced_bos_token_id"]) or real(**given))
    for target in ("de", "fr", "de"):
        both.translate(TEXTS[:1], "en", target)
    names = [model[1].get(target, f"__{target}__") for target in ("de", "fr", "de")]
    assert forced == tokenizer.convert_tokens_to_ids(names)


def test_the_source_stands_before_the_sentence(model):
    made = translator(model)
    tokenizer, _ = made._load("en", "de")
    ids = []
    for source in ("en", "sw"):
        made._prepare(tokenizer, source, "de")
        ids.append(tokenizer("the cat")["input_ids"])
    assert ids[0] != ids[1]
    assert ids[0][1:] == ids[1][1:]


def test_no_name_of_a_language_is_left_in_a_translation(model):
    name = model[1].get("fr", "__fr__")
    assert not any(text and text.startswith(name) for text in translator(model).translate(TEXTS, "en", "fr"))


def test_a_language_that_the_model_lacks_is_named(model):
    with pytest.raises(InputError, match=r"'xx'; .*`codes`"):
        translator(model).translate(TEXTS, "en", "xx")


def test_weights_are_loaded_in_the_type_that_is_asked_for(model):
    _, network = translator(model, dtype="bfloat16")._load("en", "de")
    assert {weights.dtype for weights in network.parameters()} == {torch.bfloat16}
    assert translator(model).identity["dtype"] == "float32"
    assert translator(model, dtype="bfloat16").identity != translator(model).identity
