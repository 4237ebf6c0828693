"""LASER2 from files in its published layout: tokens, vectors and the whole way, against SentencePiece and an LSTM written in loops."""

from __future__ import annotations

import math
import os
import pickle
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import sentencepiece
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from laser_file import LINES, build_content, train_pieces, write_files

from crosslign.encoders.dropout import use_fast_dropout
from crosslign.encoders.encode import encode
from crosslign.encoders.formats.laser import convert
from crosslign.encoders.laser import clean
from crosslign.encoders.model import Model
from crosslign.encoders.packed.inference import supported
from crosslign.encoders.packed.training import trains_packed
from crosslign.encoders.prepare import prepare_encoder
from crosslign.errors import InputError

MAX = {"pooling": "max", "layer": -1, "max_length": 512, "normalise": False, "precision": "fp32", "prefix": ""}
TEXTS = ["Der Hund schläft!", "THE OLD BIRDS sleep on two houses, 13 or 12…", "", "日本 dog ☃☃ dog", "a", "Zwei „Vögel“ </s> auf dem Dach"]
FEW = settings(max_examples=60)


class Laser(NamedTuple):
    content: dict
    cutter: sentencepiece.SentencePieceProcessor
    folder: Path
    facts: dict
    model: Model


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def laser(request, tmp_path_factory):
    """What the files hold, the SentencePiece model, the prepared encoder's folder and facts, and the encoder."""
    folder = tmp_path_factory.mktemp(request.param)
    pieces = train_pieces(request.param)
    content = build_content(pieces)
    files = write_files(folder / "in", content, pieces)
    facts = prepare_encoder("laser2", {"source": "laser2", "format": "laser"}, files, folder / "out")
    cutter = sentencepiece.SentencePieceProcessor(model_proto=pieces)
    return Laser(content, cutter, folder / "out" / "main", facts, Model.load({"main": folder / "out" / "main"}))


def expected_ids(content, cutter, text):
    """Look up the words between spaces of SentencePiece's pieces, one by one."""
    words = " ".join(cutter.encode(clean(text), out_type=str)).split()
    return [content["dictionary"].get(word, 3) for word in words] + [2]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def direction(inputs, weights, name):
    """One LSTM from its first input to its last; gates lie in the order input, forget, cell, output."""
    of_input, of_output = weights[f"lstm.weight_ih_{name}"], weights[f"lstm.weight_hh_{name}"]
    shift = [a + b for a, b in zip(weights[f"lstm.bias_ih_{name}"], weights[f"lstm.bias_hh_{name}"], strict=True)]
    size = len(of_output[0])
    output, cell, outputs = [0.0] * size, [0.0] * size, []
    for values in inputs:
        sums = [
            shift[row]
            + sum(w * x for w, x in zip(of_input[row], values, strict=True))
            + sum(w * h for w, h in zip(of_output[row], output, strict=True))
            for row in range(4 * size)
        ]
        for at in range(size):
            enter, forget, new, leave = (sums[gate * size + at] for gate in range(4))
            cell[at] = sigmoid(forget) * cell[at] + sigmoid(enter) * math.tanh(new)
            output[at] = sigmoid(leave) * math.tanh(cell[at])
        outputs.append(list(output))
    return outputs


def slow_vector(content, ids):
    """The maximum over time of the top layer's outputs, in float64 and in loops."""
    weights = {name: value.double().tolist() for name, value in content["model"].items()}
    states = [weights["embed_tokens.weight"][i] for i in ids]
    for layer in range(content["params"]["num_layers"]):
        outputs = direction(states, weights, f"l{layer}")
        if content["params"]["bidirectional"]:
            backwards = direction(states[::-1], weights, f"l{layer}_reverse")[::-1]
            outputs = [ahead + back for ahead, back in zip(outputs, backwards, strict=True)]
        states = outputs
    return [max(state[at] for state in states) for at in range(len(states[0]))]


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("“Der Hund” – SCHLÄFT…", '"der hund" - schläft...'),
        ("a\u200bb\x07c\u00ad\td", "a b c d"),
        ("‘x’ don’t ‚y’", '"x" don\'t "y"'),
        (" ( a ) , 5 % : b ;", "(a), 5%: b;"),
        ("ΟΔΟΣ ΟΔΟΥ", "οδος οδου"),
        ('he said "yes".', 'he said "yes."'),
        ("5\u00a0000 «\u00a0Oui\u00a0»", '5.000 "oui"'),
        ("\u0378x", "x"),
    ],
)
def test_text_is_cleaned_as_laser_does(text, cleaned):
    assert clean(text) == cleaned


def test_vectors_equal_a_slow_lstm(laser):
    content, cutter, _, facts, model = laser
    vectors = encode(model, TEXTS, ["de"] * len(TEXTS), MAX)
    expected = np.array([slow_vector(content, expected_ids(content, cutter, text)) for text in TEXTS])
    assert vectors.shape == (len(TEXTS), 12)
    assert np.abs(vectors - expected).max() < 1e-5
    assert np.abs(expected).max(1).min() > 0.05
    normalised = encode(model, TEXTS, ["de"] * len(TEXTS), MAX | {"normalise": True})
    assert np.abs(normalised - expected / np.linalg.norm(expected, axis=1, keepdims=True)).max() < 1e-5
    parameters = sum(value.numel() for value in content["model"].values())
    assert facts == {"dimension": 12, "blocks": 2, "parameters": parameters, "vocabulary": len(content["dictionary"])}


@pytest.mark.parametrize(("layers", "bidirectional"), [(1, False), (3, True)])
def test_other_shapes_too(tmp_path, layers, bidirectional):
    pieces = train_pieces("unigram")
    content = build_content(pieces, layers, bidirectional)
    prepare_encoder("x", {"source": "s", "format": "laser"}, write_files(tmp_path / "in", content, pieces), tmp_path / "out")
    vectors = encode(Model.load({"main": tmp_path / "out" / "main"}), TEXTS[:2], ["en"] * 2, MAX)
    cutter = sentencepiece.SentencePieceProcessor(model_proto=pieces)
    assert np.abs(vectors - [slow_vector(content, expected_ids(content, cutter, text)) for text in TEXTS[:2]]).max() < 1e-5


def test_neither_padding_nor_order_matters(laser):
    model = laser.model
    texts = [*TEXTS, *LINES]
    together = encode(model, texts, ["en"] * len(texts), MAX)
    backwards = encode(model, texts[::-1], ["en"] * len(texts), MAX)[::-1]
    alone = np.concatenate([encode(model, [text], ["en"], MAX) for text in texts])
    assert np.abs(together - backwards).max() < 1e-6
    assert np.abs(together - alone).max() < 1e-6
    backbone = model.member("main").backbone
    ids, mask = torch.tensor([[9, 2, 5, 7], [5, 6, 7, 2]]), torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]])
    states = backbone(input_ids=ids, attention_mask=mask).last_hidden_state
    assert torch.equal(states[0, 2:], torch.zeros(2, 12))
    assert torch.allclose(states[0, :2], backbone(input_ids=ids[:1, :2]).last_hidden_state[0], atol=1e-6)


WORDS = st.sampled_from(
    [*" ".join(LINES).split(), "</s>", "<unk>", "<s>", "</S>", "ﬀ", "e\u0301", "\u2028", "日本", "ΟΔΟΣ", "’", "\u00a0»", "▁", "..."]
)


@FEW
@given(text=st.lists(WORDS | st.text(max_size=6), max_size=8).map(" ".join) | st.text(max_size=30))
def test_tokens_are_sentencepieces_in_the_dictionary(laser, text):
    (ids,) = laser.model.member("main").tokenise([text], None, 512).ids
    assert ids.tolist() == expected_ids(laser.content, laser.cutter, text)


def test_long_text_keeps_its_end_token_and_is_counted(laser):
    content, cutter, member = laser.content, laser.cutter, laser.model.member("main")
    tokens = member.tokenise([LINES[0], "a"], None, 6)
    assert tokens.ids[0].tolist() == [*expected_ids(content, cutter, LINES[0])[:5], 2]
    assert tokens.truncated == 1
    pair = member.tokenise(["the dog"], ["a dog"], 64)
    halves = [expected_ids(content, cutter, text) for text in ("the dog", "a dog")]
    assert pair.ids[0].tolist() == halves[0] + halves[1]
    assert pair.segments[0].tolist() == [0] * len(halves[0]) + [1] * len(halves[1])


def test_saved_again_and_in_sentence_transformers_it_is_the_same(laser, tmp_path):
    from sentence_transformers import SentenceTransformer

    model = laser.model
    ours = encode(model, TEXTS, ["en"] * len(TEXTS), MAX | {"normalise": True})
    model.save(tmp_path / "again")
    saved = Model.load({"main": tmp_path / "again" / "main"})
    assert np.array_equal(encode(saved, TEXTS, ["en"] * len(TEXTS), MAX | {"normalise": True}), ours)
    theirs = SentenceTransformer(str(laser.folder), device="cpu").encode(TEXTS)
    assert np.abs(theirs - ours).max() < 1e-6


def test_fast_paths_of_transformers_leave_it_alone_and_it_trains(laser):
    member = Model.load({"main": laser.folder}).member("main")
    use_fast_dropout(member.backbone)
    assert not supported(member.backbone, "fp32")
    assert not trains_packed(member.backbone, "fp32")
    with pytest.raises(InputError, match=r"readout: .*LSTM.*layer: -1"):
        member({"input_ids": torch.tensor([[5, 2]])}, "mean", 6)
    member({"input_ids": torch.tensor([[5, 2]])}, "max").sum().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in member.backbone.parameters())


class Evil:
    """Writes a file if anybody unpickles it."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def refused(folder, why, out):
    with pytest.raises(InputError, match=why) as caught:
        prepare_encoder("x", {"source": "s", "format": "laser"}, {path.name: path for path in folder.iterdir()}, out)
    assert "\n" not in str(caught.value)
    assert ".files-" not in str(caught.value)
    assert not out.exists()


@pytest.mark.parametrize("legacy", [True, False])
@pytest.mark.parametrize("place", ["params", "model", "dictionary", "all"])
def test_a_pickle_that_calls_anything_is_refused_and_nothing_ran(tmp_path, place, legacy):
    pieces = train_pieces("unigram")
    content = build_content(pieces)
    evil = Evil(tmp_path / "owned")
    write_files(tmp_path / "in", content, pieces)
    hostile = evil if place == "all" else content | {place: {**content[place], "x": evil}}
    torch.save(hostile, tmp_path / "in" / "tiny.pt", _use_new_zipfile_serialization=not legacy)
    refused(tmp_path / "in", "not a file of plain tensors", tmp_path / "out")
    (tmp_path / "in" / "tiny.pt").write_bytes(pickle.dumps(evil, protocol=2))
    refused(tmp_path / "in", "not a file of plain tensors", tmp_path / "out")
    assert not (tmp_path / "owned").exists()
    pickle.loads((tmp_path / "in" / "tiny.pt").read_bytes())
    assert (tmp_path / "owned").exists()  # whoever unpickles it runs it


def _dictionary(content, **changes):
    return content | {"dictionary": content["dictionary"] | changes}


def _weight(content, name, value):
    return content | {"model": content["model"] | {name: value}}


def _without(content, name):
    return content | {"model": {key: value for key, value in content["model"].items() if key != name}}


WRONG = {
    "it lacks one of params, model": lambda c: {"params": c["params"], "model": c["model"]},
    "not a LASER file": lambda c: [1, 2],
    "not a tensor": lambda c: _weight(c, "x", 3),
    "impossible shape": lambda c: c | {"params": c["params"] | {"num_layers": 0}},
    "'padding_idx': 7": lambda c: c | {"params": c["params"] | {"padding_idx": 7}},
    "lstm.bias_hh_l1: expected .*24.*, found None": lambda c: _without(c, "lstm.bias_hh_l1"),
    "extra: expected None": lambda c: _weight(c, "extra", torch.zeros(2)),
    "NaN or infinite": lambda c: _weight(c, "lstm.bias_hh_l1", torch.full((24,), math.inf)),
    "larger than the file": lambda c: (
        _weight(c, "embed_tokens.weight", torch.ones(1, 8).expand(1 << 20, 8)) | {"params": c["params"] | {"num_embeddings": 1 << 20}}
    ),
    "dictionary is damaged": lambda c: _dictionary(c, twice=5),
    "each id up to": lambda c: _dictionary(c, far=1 << 20),
    "the dictionary has 3 of": lambda c: c | {"dictionary": {**dict.fromkeys(("<s>", "</s>", "<unk>"), 0), "other": 4}},
}


@pytest.mark.parametrize("why", WRONG)
def test_files_of_another_kind_are_refused(tmp_path, why):
    pieces = train_pieces("unigram")
    write_files(tmp_path / "in", WRONG[why](build_content(pieces)), pieces)
    refused(tmp_path / "in", why, tmp_path / "out")


def test_missing_and_doubled_files_are_refused(tmp_path):
    pieces = train_pieces("unigram")
    files = write_files(tmp_path / "in", build_content(pieces), pieces)
    with pytest.raises(InputError, match=r"tiny\.pt: .*\*\.pt .*\*\.spm "):
        prepare_encoder("x", {"path": str(files["tiny.pt"]), "format": "laser"}, {}, tmp_path / "out")
    for noise in (b"noise", b"", pieces.replace("▁".encode(), b"\xff\x96\x81", 1)):
        files["tiny.spm"].write_bytes(noise)
        refused(tmp_path / "in", "SentencePiece", tmp_path / "out")
    files["tiny.spm"].unlink()
    refused(tmp_path / "in", r"\*\.spm ", tmp_path / "out")
    (tmp_path / "in" / "other.pt").write_bytes(b"")
    refused(tmp_path / "in", r"\*\.pt ", tmp_path / "out")


def test_a_vocabulary_of_sentencepiece_is_not_pruned(laser, tmp_path):
    files = write_files(tmp_path / "in", laser.content, laser.cutter.serialized_model_proto())
    entry = {"source": "s", "format": "laser", "prune": {"corpora": []}}
    with pytest.raises(InputError, match=r"encoders\.yaml: prune: .*unigram"):
        prepare_encoder("x", entry, files, tmp_path / "out")


@FEW
@given(data=st.data())
def test_noise_never_crashes_the_reader(tmp_path, data):
    files = write_files(tmp_path / "in", build_content(train_pieces("bpe")), train_pieces("bpe"))
    path = files[data.draw(st.sampled_from(sorted(files)))]
    held = bytearray(path.read_bytes())
    for at, byte in data.draw(st.lists(st.tuples(st.integers(0, len(held) - 1), st.integers(0, 255)), min_size=1, max_size=4)):
        held[at] = byte
    path.write_bytes(held[: data.draw(st.integers(0, len(held)) | st.just(len(held)))])
    (tmp_path / "out").mkdir(exist_ok=True)
    message = ""
    try:
        convert(tmp_path / "in", tmp_path / "out")
    except InputError as error:
        message = str(error)
    assert "\n" not in message
