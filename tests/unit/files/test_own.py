"""Files of the user's own: which are an encoder, and checksums that are remembered."""

import hashlib
import json

import pytest

from crosslign.files import own
from crosslign.files.lineage import Lineage
from crosslign.files.own import KEPT, OwnSums, model_files


def test_an_encoder_is_the_files_that_its_format_reads(tmp_path):
    for name in ("config.json", "model.safetensors", "optimizer.pt", "1_Pooling/config.json", "step-9/model.safetensors", "lineage.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert [str(file.relative_to(tmp_path)) for file in model_files(tmp_path)] == [
        "1_Pooling/config.json",
        "config.json",
        "model.safetensors",
    ]
    assert len(model_files(tmp_path, "torch_weights")) == 6
    assert model_files(tmp_path / "optimizer.pt", "e5s1") == [tmp_path / "optimizer.pt"]
    assert model_files(tmp_path / "none") == []


def test_a_large_file_is_read_once_while_it_stays_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(own, "SETTLED_NS", -1)
    file, other = tmp_path / "weights", tmp_path / "other"
    for path, byte in ((file, b"a"), (other, b"b")):
        path.write_bytes(byte * (own.SMALL + 1))
    found = [OwnSums(tmp_path).of(path) for path in (file, other)]
    assert found == [hashlib.sha256(byte * (own.SMALL + 1)).hexdigest() for byte in (b"a", b"b")]
    with monkeypatch.context() as patched:
        patched.setattr(own, "sha256_file", lambda path: pytest.fail(f"{path} was read again"))
        assert [OwnSums(tmp_path).of(path) for path in (file, other)] == found
    other.replace(file)
    assert OwnSums(tmp_path).of(file) == found[1]
    for damaged in ("{", "[]", json.dumps({ascii(str(file)): 7})):
        (tmp_path / KEPT).write_text(damaged)
        assert OwnSums(tmp_path).of(file) == found[1]
    assert OwnSums(tmp_path / "weights").of(file) == found[1]  # a folder that takes nothing


def test_what_was_just_written_is_not_remembered(tmp_path):
    (tmp_path / "weights").write_bytes(bytes(own.SMALL + 1))
    OwnSums(tmp_path).of(tmp_path / "weights")
    assert not (tmp_path / KEPT).exists()


def test_lineage_notes_one_sum_of_all(tmp_path):
    (tmp_path / "lid.ftz").write_bytes(b"model")
    lineage = Lineage("build_corpus", {}, [], tmp_path, own=[tmp_path / "lid.ftz"])
    lineage.check_inputs()
    assert lineage.own_sum == {"own": hashlib.sha256(b"model").hexdigest()}
    lineage.write(tmp_path / "lid.ftz", "corpus")
    assert json.loads((tmp_path / "lid.ftz.lineage.json").read_text())["own"] == lineage.own_sum["own"]
