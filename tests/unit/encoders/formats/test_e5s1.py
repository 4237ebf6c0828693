"""`E5S1` files: weights, tokenizer and vectors of a good one; a one-line error for every bad one."""

from __future__ import annotations

import json
import math
import struct

import numpy as np
import pytest
import torch
from e5s1_file import PIECES, REPLACEMENTS, SCORES, SPARE, WORDS, build_file
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from crosslign.encoders.formats import FORMATS
from crosslign.encoders.formats._e5s1 import expected_tensors, open_file, unpack
from crosslign.encoders.model import Member
from crosslign.errors import InputError

UNKNOWN = 3
WHOLE = build_file()[0]


def test_the_schema_names_the_formats_that_there_are():
    from pathlib import Path

    from crosslign.config.yaml_files import load_yaml

    schema = load_yaml(Path(__file__).resolve().parents[4] / "workflow/schemas/encoders.yaml").content
    assert schema["properties"]["encoders"]["additionalProperties"]["properties"]["format"]["enum"] == FORMATS.names()


def test_unpacked_weights_are_nibble_minus_eight_times_scale(tmp_path, e5s1_bytes):
    (tmp_path / "x.bin").write_bytes(e5s1_bytes[0])
    cursor, header, _, tensors = open_file(tmp_path / "x.bin")
    for name, _, _, shape in expected_tensors(header):
        np.testing.assert_array_equal(unpack(cursor, tensors[name]).reshape(shape), np.float32(e5s1_bytes[1][name]))


def test_saved_weights_are_those_rounded_to_half(e5s1_folder, e5s1_bytes):
    saved, held = load_file(e5s1_folder / "model.safetensors"), e5s1_bytes[1]
    np.testing.assert_array_equal(saved["embeddings.word_embeddings.weight"], held["emb.word"].astype(np.float16))
    np.testing.assert_array_equal(saved["encoder.layer.1.intermediate.dense.weight"], held["l1.fi.w"].astype(np.float16))
    np.testing.assert_array_equal(saved["encoder.layer.0.output.LayerNorm.bias"], held["l0.oln.b"])
    assert len(saved) == len(held)


def _norm(x, weight, bias):
    mean = x.mean(1, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(1, keepdims=True) + 1e-12) * weight + bias


def _slow_vector(w, ids):
    """Mean of the last states, written out in float64 from the published shape of BERT."""
    x = w["emb.word"][ids] + w["emb.pos"][: len(ids)] + w["emb.type"][0]
    x = _norm(x, w["emb.ln.w"], w["emb.ln.b"])
    for i in range(2):
        q, k, v = (x @ w[f"l{i}.{n}.w"].T + w[f"l{i}.{n}.b"] for n in "qkv")
        context = np.empty_like(x)
        for head in (slice(h * 8, h * 8 + 8) for h in range(4)):
            weights = np.exp(q[:, head] @ k[:, head].T / math.sqrt(8))
            context[:, head] = weights / weights.sum(1, keepdims=True) @ v[:, head]
        x = _norm(x + context @ w[f"l{i}.ao.w"].T + w[f"l{i}.ao.b"], w[f"l{i}.aln.w"], w[f"l{i}.aln.b"])
        wide = x @ w[f"l{i}.fi.w"].T + w[f"l{i}.fi.b"]
        wide = wide * (1 + np.vectorize(math.erf)(wide / math.sqrt(2))) / 2
        x = _norm(x + wide @ w[f"l{i}.fo.w"].T + w[f"l{i}.fo.b"], w[f"l{i}.oln.w"], w[f"l{i}.oln.b"])
    return x.mean(0)


def test_vectors_are_those_of_the_shape_that_the_header_gives(e5s1_folder, e5s1_bytes):
    member = Member.load(e5s1_folder).eval()
    ids = member.tokenise(["abc cd 日本"], None, 24).ids[0]
    with torch.inference_mode():
        vector = member({"input_ids": torch.tensor([ids.tolist()])}, "mean")[0].numpy()
    slow = _slow_vector({name: np.float64(value) for name, value in e5s1_bytes[1].items()}, ids)
    np.testing.assert_allclose(vector, slow, atol=2e-3)  # weights are stored in half precision
    assert member.positions == 24
    assert member.pad == 1


def test_the_config_is_the_headers(tmp_path, e5s1_bytes):
    (tmp_path / "x.bin").write_bytes(_put(e5s1_bytes[0], 36, "f", 1e-5))
    FORMATS.get("e5s1")(tmp_path / "x.bin", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["layer_norm_eps"] == pytest.approx(1e-5)
    assert [config[f"{name}_token_id"] for name in ("bos", "pad", "eos")] == [0, 1, 2]


def test_sentence_transformers_and_we_give_the_same_vectors(e5s1_folder):
    from sentence_transformers import SentenceTransformer

    from crosslign.encoders.encode import encode
    from crosslign.encoders.model import Model

    texts = ["abc", "cd ab 日本 zz", "a"]
    theirs = SentenceTransformer(str(e5s1_folder), device="cpu").encode(texts)
    ours = encode(Model.load({"main": e5s1_folder}), texts, ["en"] * 3, {"pooling": "mean"})
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def _slow_ids(text):
    """Cut by hand: replace characters, join spaces, put one in front, then the best sum of scores; unknown runs are one piece."""
    text = "".join(REPLACEMENTS.get(c, c) for c in text)
    if not text:
        return []
    while "  " in text:
        text = text.replace("  ", " ")
    text = text.replace(" ", "▁")
    text = text if text.startswith("▁") else "▁" + text
    scores = {piece: score for piece, score in zip(PIECES, SCORES, strict=True) if piece in WORDS}
    best = {0: (0.0, [])}
    for end in range(1, len(text) + 1):
        ways = [
            (best[start][0] + scores[text[start:end]], [*best[start][1], PIECES.index(text[start:end])])
            for start in range(end)
            if text[start:end] in scores
        ]
        ways.append((best[end - 1][0] + min(SCORES) - 10, [*best[end - 1][1], UNKNOWN]))
        best[end] = max(ways, key=lambda way: way[0])
    ids = best[len(text)][1]
    return [i for n, i in enumerate(ids) if not (i == UNKNOWN and n and ids[n - 1] == UNKNOWN)]


def _score(ids):
    return sum(SCORES[i] for i in ids if i != UNKNOWN)


@pytest.fixture(scope="session")
def tokenizer(e5s1_folder):
    return Member.load(e5s1_folder).tokenizer


@given(text=st.text(alphabet="abcdß日本é xyЖ\t\u3000ＡﬀA½\x01𝐛", min_size=1, max_size=20))
@settings(max_examples=300)
def test_text_is_cut_as_by_hand(tokenizer, text):
    ids, slow = tokenizer(text).input_ids, _slow_ids(text)
    assert (ids[0], ids[-1]) == (0, 2)
    assert ids[1:-1] == slow or math.isclose(_score(ids), _score(slow), rel_tol=1e-6)  # two cuts may have one score


def test_pairs_are_joined_as_xlm_r_joins_them(tokenizer):
    a, b = PIECES.index("▁ab"), PIECES.index("▁cd")
    assert tokenizer("ab", "cd").input_ids == [0, a, 2, 2, b, 2]


def _refusal(tmp_path, data):
    path = tmp_path / "bad.bin"
    path.write_bytes(data)
    with pytest.raises(InputError) as error:
        FORMATS.get("e5s1")(path, tmp_path)
    assert "\n" not in str(error.value)
    assert "bad.bin" in str(error.value)
    return str(error.value)


def _put(data, place, form, *values):
    packed = struct.pack("<" + form, *values)
    return data[:place] + packed + data[place + len(packed) :]


DIRECTORY = b"\x08\x00emb.word"
"""Where the first entry of the directory begins; its kind is one byte, then count, offset and size follow."""

TABLE = 72
"""Where the offsets of the pieces begin; scores, text and the normalisation map follow."""

MAP = TABLE + 4 * (2 * len(PIECES) + 1) + len("".join(PIECES).encode())

FIRST = min(REPLACEMENTS)
SECOND = MAP + 8 + 5 + 4 * len(REPLACEMENTS[FIRST])
"""Where the second entry of the map begins, with its character; they rise."""


def _first_weights(data):
    return struct.unpack("<Q", data[data.index(DIRECTORY) + 15 :][:8])[0]


BROKEN = {
    "empty": (lambda d: b"", "empty"),
    "magic": (lambda d: b"GGUF" + d[4:], "not an E5S1 file; it begins with b'GGUF'"),
    "version": (lambda d: _put(d, 4, "I", 2), "unknown version"),
    "version of zero": (lambda d: _put(d, 4, "I", 0), "unknown version"),
    "hidden": (lambda d: _put(d, 8, "i", 2**31 - 1), "impossible shape"),
    "negative hidden": (lambda d: _put(d, 8, "i", -32), "impossible shape"),
    "heads": (lambda d: _put(d, 16, "i", 5), "impossible shape"),
    "no heads": (lambda d: _put(d, 16, "i", 0), "impossible shape"),
    "no layers": (lambda d: _put(d, 12, "i", 0), "impossible shape"),
    "vocabulary": (lambda d: _put(d, 24, "i", 2**31 - 1), "impossible shape"),
    "layers": (lambda d: _put(d, 12, "i", 3), "'l2.q.w' has the wrong shape"),
    "positions": (lambda d: _put(d, 28, "i", 25), "'emb.pos' has the wrong shape"),
    "block": (lambda d: _put(d, 40, "i", 64), "blocks of 64"),
    "hidden of no whole blocks": (lambda d: _put(d, 8, "i", 36), "must be in blocks of 32"),
    "intermediate of no whole blocks": (lambda d: _put(d, 20, "i", 65), "must be in blocks of 32"),
    "epsilon of zero": (lambda d: _put(d, 36, "f", 0.0), "impossible epsilon"),
    "epsilon of one": (lambda d: _put(d, 36, "f", 1.0), "impossible epsilon"),
    "epsilon": (lambda d: _put(d, 36, "f", math.nan), "impossible epsilon"),
    "pieces": (lambda d: _put(d, 44, "i", 2**30), "impossible number of pieces"),
    "no pieces": (lambda d: _put(d, 44, "i", 0), "impossible number of pieces"),
    "special twice": (lambda d: _put(d, 52, "i", 0), "impossible special pieces"),
    "negative special": (lambda d: _put(d, 60, "i", -1), "impossible special pieces"),
    "special": (lambda d: _put(d, 48, "i", 999), "impossible special pieces"),
    "text": (lambda d: _put(d, 64, "Q", 2**63), "text of the pieces is outside the file"),
    "first offset": (lambda d: _put(d, TABLE, "I", 1), "table of pieces is damaged"),
    "last offset": (lambda d: _put(d, 64, "Q", MAP - TABLE), "table of pieces is damaged"),
    "empty piece": (lambda d: _put(d, TABLE + 4, "I", 0), "table of pieces is damaged"),
    "half of a surrogate pair": (lambda d: _put(d, MAP + 8, "I", 0xD800), "55296 is not the code of a character"),
    "beyond all characters": (lambda d: _put(d, MAP + 8, "I", 0x110000), "1114112 is not the code of a character"),
    "character twice in the map": (lambda d: _put(d, SECOND, "I", ord(FIRST)), "normalisation map is damaged; 7 of 8 entries"),
    "bytes of the map": (lambda d: _put(d, MAP + 4, "I", 1), "normalisation map is damaged"),
    "offsets": (lambda d: _put(d, 76, "I", 2**31), "table of pieces is damaged"),
    "score": (lambda d: _put(d, 72 + 4 * (len(PIECES) + 1), "f", math.inf), "scores of the pieces"),
    "half a block": (lambda d: _put(d, d.index(DIRECTORY) + 11, "I", (len(PIECES) + SPARE) * 32 + 1), "'emb.word' has an impossible size"),
    "weight": (lambda d: _put(d, _first_weights(d), "e", math.nan), "a weight is NaN or infinite"),
    "tensor kind": (lambda d: _put(d, d.index(DIRECTORY) + 10, "B", 7), "'emb.word' has an impossible size"),
    "tensor offset": (lambda d: _put(d, d.index(DIRECTORY) + 15, "Q", 2**64 - 8), "'emb.word' is outside the file"),
    "tensor in the head": (lambda d: _put(d, d.index(DIRECTORY) + 15, "Q", 0), "overlaps the directory"),
    "tensor size": (lambda d: _put(d, d.index(DIRECTORY) + 23, "Q", 17), "'emb.word' has an impossible size"),
    "tensor missing": (lambda d: d.replace(b"l1.fo.b", b"l1.xx.b"), "'l1.fo.b' has the wrong shape"),
    "tensor twice": (lambda d: d.replace(b"l1.fo.b", b"l1.fi.b"), "'l1.fi.b' has an impossible size"),
    "cut": (lambda d: d[:-64], "is outside the file"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_named_in_one_line(tmp_path, e5s1_bytes, name):
    breaks, message = BROKEN[name]
    assert message in _refusal(tmp_path, breaks(e5s1_bytes[0]))


@pytest.mark.parametrize("replacements", [{"a": "\x00b"}, {"\x00": "a"}])
def test_a_map_with_nul_is_refused(tmp_path, replacements):
    assert "normalisation map is damaged" in _refusal(tmp_path, build_file(replacements=replacements)[0])


def test_pieces_that_stand_twice_are_refused(tmp_path):
    assert "a piece occurs twice" in _refusal(tmp_path, build_file(pieces=[*PIECES[:-1], "ab"])[0])


def test_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.bin: .*missing"):
        FORMATS.get("e5s1")(tmp_path / "nowhere.bin", tmp_path)


def _read_all(path):
    cursor, header, _, tensors = open_file(path)
    for name, _, _, shape in expected_tensors(header):
        assert unpack(cursor, tensors[name]).size == np.prod(shape)


@given(data=st.data())
@settings(max_examples=200)
def test_any_cut_and_any_change_is_read_or_refused(tmp_path_factory, data):
    whole = WHOLE
    body = whole.index(DIRECTORY)
    changed = whole[: data.draw(st.integers(0, len(whole)))] if data.draw(st.booleans()) else whole
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, body + 600))
        changed = changed[:place] + data.draw(st.binary(min_size=1, max_size=8)) + changed[place + 8 :]
    path = tmp_path_factory.getbasetemp() / "changed.bin"
    path.write_bytes(changed)
    message = ""
    try:
        _read_all(path)
    except InputError as error:
        message = str(error)
    assert "\n" not in message


def test_spare_embeddings_behind_the_pieces_are_kept(e5s1_folder):
    assert Member.load(e5s1_folder).backbone.config.vocab_size == len(PIECES) + SPARE
