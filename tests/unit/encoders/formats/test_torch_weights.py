"""Folders whose weights torch saved, zipped or not: the same vectors as from safetensors; nothing in them is executed."""

from __future__ import annotations

import os
import shutil
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from crosslign.encoders.encode import encode
from crosslign.encoders.model import Model
from crosslign.encoders.prepare import prepare_encoder
from crosslign.errors import InputError

TEXTS = ["the dog sleeps", "a cat runs over the road"]
READOUT = {"pooling": "cls", "max_length": 12}


class Evil:
    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return os.system, (f"touch {self.place}",)


@pytest.fixture
def published(tiny_encoder, tmp_path):
    """A checkpoint as a training of SimCSE leaves it: weights behind the name of the model, and a projection that nobody needs."""
    folder = tmp_path / "published" / "inner" / "checkpoint"
    shutil.copytree(tiny_encoder / "main", folder, ignore=shutil.ignore_patterns("*.safetensors", "modules.json", "[0-9]_*"))
    weights = {f"bert.{name}": value for name, value in load_file(tiny_encoder / "main" / "model.safetensors").items()}
    shared = weights["bert.embeddings.word_embeddings.weight"]
    torch.save({**weights, "lm_head.decoder.weight": shared, "mlp.dense.weight": torch.zeros(2, 2)}, folder / "pytorch_model.bin")
    torch.save(Evil(tmp_path / "owned"), folder / "training_args.bin")
    return tmp_path / "published"


def vectors_of(folder):
    return encode(Model.load({"main": folder}), TEXTS, ["en"] * len(TEXTS), READOUT)


def prepared(path, out):
    prepare_encoder("x", {"path": str(path), "format": "torch_weights"}, {}, out)
    return out / "main"


def test_folder_and_zip_give_the_vectors_of_the_weights(published, tiny_encoder, tmp_path):
    with zipfile.ZipFile(tmp_path / "published.zip", "w") as archive:
        for file in published.rglob("*"):
            archive.write(file, file.relative_to(published))
    expected = vectors_of(tiny_encoder / "main")
    for number, source in enumerate((published, tmp_path / "published.zip")):
        folder = prepared(source, tmp_path / str(number))
        assert np.abs(vectors_of(folder) - expected).max() < 1e-6
        assert not list(folder.rglob("*.bin"))
    assert not (tmp_path / "owned").exists()


def test_a_payload_is_refused_and_never_runs(published, tmp_path):
    (weights,) = published.rglob("pytorch_model.bin")
    torch.save({"bert.pooler.dense.weight": Evil(tmp_path / "owned")}, weights)
    with pytest.raises(InputError, match=r"pytorch_model\.bin: .*tensors"):
        prepared(published, tmp_path / "out")
    assert not (tmp_path / "owned").exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [{"epoch": 3}, [torch.zeros(2)], {}])
def test_what_is_no_set_of_weights_is_refused(published, tmp_path, content):
    (weights,) = published.rglob("pytorch_model.bin")
    torch.save(content, weights)
    with pytest.raises(InputError, match=r"pytorch_model\.bin: .*weights"):
        prepared(published, tmp_path / "out")


def test_two_checkpoints_or_none_are_refused(published, tmp_path):
    shutil.copytree(published / "inner", published / "other")
    with pytest.raises(InputError, match="found 2"):
        prepared(published, tmp_path / "out")
    for file in published.rglob("pytorch_model.bin"):
        file.unlink()
    with pytest.raises(InputError, match="found 0"):
        prepared(published, tmp_path / "out")
