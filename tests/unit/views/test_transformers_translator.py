"""Hub models as translators, on a tiny random Marian."""

from __future__ import annotations

import json
import shutil

import pytest
import sentencepiece
import torch
from safetensors.torch import load_file, save_file
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

from crosslign.errors import InputError, NetworkError, ResourceError
from crosslign.views import TRANSLATORS, Setting, TranslatorSetting
from crosslign.views.translations import translator_for
from crosslign.views.translators import ctranslate2

SENTENCE = "the cat sat on mat and dog ran to house in rain with red hat while bird sang of sea"
WORDS = SENTENCE.split()
TEXTS = [" ".join(WORDS[start : start + length]) for start, length in ((0, 1), (3, 12), (5, 4), (2, 7), (9, 2), (1, 15))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("marian")
    (path / "text.txt").write_text("\n".join(" ".join(WORDS[n:] + WORDS[:n]) for n in range(len(WORDS))))
    sentencepiece.SentencePieceTrainer.train(
        input=str(path / "text.txt"), model_prefix=str(path / "source"), vocab_size=40, character_coverage=1.0, minloglevel=2
    )
    (path / "target.spm").write_bytes((path / "source.model").read_bytes())
    (path / "source.model").rename(path / "source.spm")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(path / "source.spm"))
    names = ["</s>", "<unk>", *(p for n in range(len(pieces)) if (p := pieces.id_to_piece(n)) not in ("<s>", "</s>", "<unk>")), "<pad>"]
    (path / "vocab.json").write_text(json.dumps({name: n for n, name in enumerate(names)}))
    files = [str(path / name) for name in ("source.spm", "target.spm", "vocab.json")]
    tokenizer = MarianTokenizer(*files, source_lang="en", target_lang="de")
    tokenizer.save_pretrained(path)
    torch.manual_seed(0)
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 64}
    special = {"pad_token_id": len(names) - 1, "eos_token_id": 0, "decoder_start_token_id": len(names) - 1}
    config = MarianConfig(vocab_size=len(names), **sizes, **heads, **special, tie_word_embeddings=False)
    model = MarianMTModel(config)
    for name, weights in model.named_parameters():  # large enough for different sentences to come out differently
        if weights.ndim == 2 and "position" not in name:
            torch.nn.init.normal_(weights, std=1.0)
    with torch.no_grad():  # as trained models have it: translations start from a vector of zeros
        model.get_decoder().embed_tokens.weight[special["pad_token_id"]] = 0
        model.get_encoder().embed_tokens.weight[special["pad_token_id"]] = 0
    model.save_pretrained(path)
    return path


def translator(folder, engine="transformers", **options):
    setting = TranslatorSetting("v", ["en"], ["de"], {})
    return TRANSLATORS.get(engine)(setting, **{"model": str(folder), "max_length": 12, "device": "cpu", **options})


@pytest.mark.parametrize("beam", [1, 3])
def test_batches_give_what_single_sentences_give(folder, beam):
    tokenizer, model = MarianTokenizer.from_pretrained(folder), MarianMTModel.from_pretrained(folder).eval()
    slow = []
    for text in TEXTS:
        inputs = tokenizer(text, return_tensors="pt", truncation=True, max_length=12)
        made = model.generate(**inputs, num_beams=beam, do_sample=False, max_new_tokens=12)
        slow.append(" ".join(tokenizer.decode(made[0], skip_special_tokens=True).split()) or None)
    assert len(set(slow)) > 2
    for budget in (1, 40, 100_000):
        assert translator(folder, beam=beam, batch_tokens=budget).translate(TEXTS, "en", "de") == slow


def test_both_engines_translate_alike(folder):
    expected = translator(folder, beam=1).translate(TEXTS, "en", "de")
    assert len(set(expected)) > 2
    assert translator(folder, "ctranslate2", beam=1, batch_tokens=40).translate(TEXTS, "en", "de") == expected


def test_translations_of_the_engines_are_kept_apart(folder):
    identities = [translator(folder, **options).identity for options in ({}, {"engine": "ctranslate2"})]
    identities.append(translator(folder, "ctranslate2", compute_type="int8").identity)
    assert len({str(identity) for identity in identities}) == 3


@pytest.mark.parametrize("engine", ["transformers", "ctranslate2"])
def test_what_does_not_fit_into_memory_is_halved(folder, engine, monkeypatch):
    wide = translator(folder, engine, beam=1, batch_tokens=100_000)
    expected, real = wide.translate(TEXTS, "en", "de"), wide._generated

    def at_most_two(model, tokenizer, rows, forced):
        if len(rows) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(model, tokenizer, rows, forced)

    monkeypatch.setattr(wide, "_generated", at_most_two)
    assert wide.translate(TEXTS, "en", "de") == expected
    monkeypatch.setattr(wide, "_generated", lambda *_: (_ for _ in ()).throw(RuntimeError("CUDA failed with error out of memory")))
    with pytest.raises(ResourceError, match=r"sentence.*memory"):
        wide.translate(TEXTS, "en", "de")


def test_batches_keep_to_the_budget(folder):
    rows = [[0] * length for length in (3, 9, 4, 4, 1, 7)]
    batches = list(translator(folder, beam=2, batch_tokens=40)._batches(rows))
    assert sorted(n for batch in batches for n in batch) == list(range(6))
    assert all(len(batch) * max(len(rows[n]) for n in batch) * 2 <= 40 for batch in batches)
    assert len(batches[0]) == 2


def test_a_rerun_translates_only_what_is_new(folder, tmp_path, monkeypatch):
    entry = {"transformers": {"model": str(folder), "max_length": 12, "beam": 1, "device": "cpu"}}
    setting = Setting("v", {}, 1, tmp_path / "kept")
    first = translator_for(setting, entry, ["en"], ["de"]).translate(TEXTS[:4], "en", "de")
    again = translator_for(setting, entry, ["en"], ["de"])
    asked = []
    engine = again._translator
    monkeypatch.setattr(engine, "translate", lambda texts, *langs, real=engine.translate: asked.extend(texts) or real(texts, *langs))
    answers = again.translate(TEXTS, "en", "de")
    assert answers[:4] == first
    assert asked == [text for text, answer in zip(TEXTS, [*first, None, None], strict=True) if answer is None]
    other = {"transformers": {**entry["transformers"], "beam": 2}}
    assert translator_for(setting, other, ["en"], ["de"])._folder != again._folder


def _cut(content):
    return content[:-40]


def _other_word(content):
    assert content.count(b"xx") == 1
    return content.replace(b"xx", b"xz")


def _no_utf8(content):
    return content.replace(b"xx", b"\xff\xfe")


@pytest.mark.parametrize("damage", [_cut, _other_word, _no_utf8])
def test_a_damaged_file_of_kept_translations_is_made_again(folder, tmp_path, monkeypatch, caplog, damage):
    entry = {"transformers": {"model": str(folder), "max_length": 12, "beam": 1, "device": "cpu"}}
    setting, answers = Setting("v", {}, 1, tmp_path / "kept"), ["xx", "y"]

    def translated():
        made = translator_for(setting, entry, ["en"], ["de"])
        monkeypatch.setattr(made._translator, "translate", lambda texts, *langs: answers)
        return made.translate(["one", "two"], "en", "de")

    first = translated()
    (file,) = (tmp_path / "kept").rglob("*.arrow")
    whole = file.read_bytes()
    assert translated() == first == answers
    file.write_bytes(damage(whole))
    assert translated() == first
    assert f"{file} is damaged; translating its sentences again" in caplog.text
    assert [path.read_bytes() for path in (tmp_path / "kept").rglob("*.arrow")] == [whole]


def test_what_cannot_be_loaded_is_named(tmp_path):
    with pytest.raises(InputError, match=rf"'{tmp_path}' .*loaded"):
        translator(tmp_path).translate(["x"], "en", "de")


def _without_a_weight(folder):
    weights = load_file(folder / "model.safetensors")
    del weights["model.decoder.layers.0.fc1.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def _with_nan(folder):
    weights = load_file(folder / "model.safetensors")
    weights["model.decoder.layers.0.fc1.weight"][0, 0] = float("nan")
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def _without_words(folder):
    special = {"</s>": 0, "<unk>": 1, "<pad>": 2}
    (folder / "vocab.json").write_text(json.dumps(special))


def _endless_blocks(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"decoder_layers": 10**6}))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_endless_blocks, r"config\.json .*1,000,000 "),
        (_without_a_weight, r"missing; .*decoder\.layers\.0\.fc1\.weight"),
        (_with_nan, r"NaN .*decoder\.layers\.0\.fc1\.weight: 1 "),
        (_without_words, "tokenizer"),
    ],
)
def test_what_transformers_would_make_up_for_a_translator_is_refused(folder, tmp_path, damage, said):
    shutil.copytree(folder, tmp_path / "mt")
    damage(tmp_path / "mt")
    with pytest.raises(InputError, match=said) as caught:
        translator(tmp_path / "mt").translate(TEXTS, "en", "de")
    assert caught.value.where == str(tmp_path / "mt")
    assert caught.value.do


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer_config.json", "generation_config.json"])
def test_a_damaged_file_of_a_translator_is_refused_in_one_sentence(folder, tmp_path, name):
    """Each fails with an error of its own: of safetensors, AttributeError, TypeError."""
    shutil.copytree(folder, tmp_path / "mt")
    whole = (tmp_path / "mt" / name).read_bytes()
    (tmp_path / "mt" / name).write_bytes(whole[: len(whole) // 2] if name.endswith(".safetensors") else b"[]")
    with pytest.raises(InputError, match=f"'{tmp_path / 'mt'}' .*loaded; ") as caught:
        translator(tmp_path / "mt").translate(TEXTS, "en", "de")
    assert caught.value.do


@pytest.mark.parametrize("engine", ["transformers", "ctranslate2"])
def test_a_fetched_model_is_read_from_its_folder_without_the_hub(folder, engine, monkeypatch):
    monkeypatch.setenv("CROSSLIGN_OFFLINE", "1")
    options = {"model": "org/opus-mt-{source}-{target}", "max_length": 12, "beam": 1, "device": "cpu"}
    setting = TranslatorSetting("v", ["en"], ["de"], {}, {"org/opus-mt-en-de": folder})
    fetched = TRANSLATORS.get(engine)(setting, **options)
    assert fetched.translate(TEXTS, "en", "de") == translator(folder, engine, beam=1).translate(TEXTS, "en", "de")
    assert fetched.identity["revision"] == translator(folder, engine).identity["revision"] is not None
    with pytest.raises(NetworkError, match=r"'org/opus-mt-en-de'.*hf download org/opus-mt-en-de"):
        TRANSLATORS.get(engine)(TranslatorSetting("v", ["en"], ["de"], {}), **options).translate(TEXTS, "en", "de")


@pytest.mark.parametrize(
    ("name", "counts"),
    [("model.safetensors", True), ("source.spm", True), ("generation_config.json", True), ("vocab.json", True), ("README.md", False)],
)
@pytest.mark.parametrize("revision", [None, "main"])
def test_kept_translations_depend_on_all_that_the_model_of_a_pair_is_read_from(tmp_path, name, counts, revision):
    (tmp_path / "mt-en-de").mkdir()
    (tmp_path / "mt-en-de" / "model.safetensors").write_bytes(b"weights")
    identities = []
    for content in (b"a", b"b"):
        (tmp_path / "mt-en-de" / name).write_bytes(content)
        identities.append(translator(tmp_path / "mt-{source}-{target}", revision=revision).identity["revision"])
    assert None not in identities
    assert (identities[0] != identities[1]) == counts


def test_a_folder_of_the_home_is_found_and_other_braces_are_letters(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "{x}-en").symlink_to(folder)
    assert translator("~/{x}-{source}").translate(["cat sat"], "en", "de") == translator(folder).translate(["cat sat"], "en", "de")


def test_without_the_library_that_it_needs_on_a_gpu_the_cpu_translates_and_says_so(folder, monkeypatch, caplog):
    """The engine is asked for a GPU, on a machine whose CUDA has another libcublas than it was built for."""
    expected = translator(folder, "ctranslate2", beam=1).translate(TEXTS, "en", "de")
    monkeypatch.setattr(ctranslate2, "has_cublas", lambda: False)
    found = translator(folder, "ctranslate2", beam=1, device="cuda").translate(TEXTS, "en", "de")
    assert found == expected
    assert "nvidia-cublas-cu12" in caplog.text
