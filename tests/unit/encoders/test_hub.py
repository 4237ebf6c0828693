"""A hub on the loopback: base encoders come by huggingface_hub itself, with the files that their format reads and no other."""

from __future__ import annotations

import json
import shutil
import threading
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch
from safetensors.torch import load_file

from crosslign.corpora.sources._snapshot import as_fetched

COMMIT = "0123456789" * 4
PREPARE = """
import importlib, json, sys
from pathlib import Path
import huggingface_hub.constants
importlib.reload(huggingface_hub.constants)  # of this process's own variables
from crosslign.encoders.prepare import prepare_encoder
facts = prepare_encoder("x", json.loads(sys.argv[1]), {}, Path(sys.argv[2]))
print(json.dumps(facts))
"""


class Hub(BaseHTTPRequestHandler):
    """The two questions that a download asks: what a revision holds, and the bytes of a file at a commit."""

    folder = None
    asked: list[str] = []  # noqa: RUF012 (one for each server)
    failures: list[int] = []  # noqa: RUF012 (of the files, one after another, then none)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        names = sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())
        if self.path.startswith("/api/models/org/name"):
            listed = [{"type": "file", "path": name, "size": (self.folder / name).stat().st_size, "oid": "0" * 40} for name in names]
            siblings = [{"rfilename": name} for name in names]
            told = listed if "/tree/" in self.path else {"id": "org/name", "modelId": "org/name", "sha": COMMIT, "siblings": siblings}
            self.answer(json.dumps(told).encode(), "application/json")
            return
        name = self.path.split("?")[0].partition(f"/resolve/{COMMIT}/")[2]
        if name not in names:
            self.send_error(404)
            return
        if self.failures:
            self.send_error(self.failures.pop())
            return
        if self.command == "GET":
            self.asked.append(name)
        self.answer((self.folder / name).read_bytes(), "application/octet-stream")

    def answer(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{sha256(body).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def hub(forks, tmp_path):
    """An empty repository on a hub of its own; gives its folder, what was asked for, and the function that prepares an encoder."""
    folder = tmp_path / "repository"
    folder.mkdir()
    handler = type("Handler", (Hub,), {"folder": folder, "asked": [], "failures": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    environment = {"HF_ENDPOINT": address, "HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_XET": "1"}
    environment |= {"HF_HUB_OFFLINE": "0", "CROSSLIGN_OFFLINE": "0", "HF_HUB_DISABLE_TELEMETRY": "1"}

    def prepare(out, **entry):
        return forks.run(PREPARE, json.dumps({"hub": "org/name", "revision": "main", **entry}), out, environment=environment)

    prepare.failures = handler.failures
    yield folder, handler.asked, prepare
    server.shutdown()


def test_a_folder_with_safetensors_comes_without_anything_else(hub, tiny_encoder, tmp_path):
    folder, asked, prepare = hub
    shutil.copytree(tiny_encoder / "main", folder, dirs_exist_ok=True)
    for name in ("pytorch_model.bin", "flax_model.msgpack", "modeling_x.py", "onnx/model.onnx"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"never fetched")
    done = prepare(tmp_path / "out")
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout)["commit"] == COMMIT
    assert "model.safetensors" in asked
    assert not [name for name in asked if name.endswith((".bin", ".msgpack", ".py", ".onnx"))]
    found = load_file(tmp_path / "out" / "main" / "model.safetensors")
    expected = load_file(tiny_encoder / "main" / "model.safetensors")
    assert {name: value.tolist() for name, value in found.items()} == {name: value.tolist() for name, value in expected.items()}


def test_a_hub_that_fails_for_a_moment_is_asked_again(hub, tiny_encoder, tmp_path):
    folder, _, prepare = hub
    shutil.copytree(tiny_encoder / "main", folder, dirs_exist_ok=True)
    prepare.failures += [522, 522]  # the hub's own client asks again after others
    done = prepare(tmp_path / "out")
    assert done.returncode == 0, done.stderr[-2000:]
    assert not prepare.failures


def test_a_flipped_bit_in_the_hubs_cache_is_named_and_not_prepared(hub, tiny_encoder, tmp_path):
    folder, _, prepare = hub
    shutil.copytree(tiny_encoder / "main", folder, dirs_exist_ok=True)
    assert prepare(tmp_path / "out").returncode == 0
    (weights,) = (tmp_path / "home").rglob("model.safetensors")
    kept = bytearray(weights.read_bytes())
    kept[-40] ^= 1
    weights.resolve().write_bytes(kept)
    done = prepare(tmp_path / "again")
    assert "a file in the hub's cache is damaged" in done.stderr
    assert f"Remove {weights.resolve()}" in done.stderr
    assert not (tmp_path / "again").exists()
    weights.resolve().unlink()
    assert prepare(tmp_path / "again").returncode == 0


def test_a_small_file_of_the_cache_is_called_by_its_sum_in_git_or_warned_of(tmp_path, caplog):
    content = b'{"model_type": "bert"}'
    for number, head in enumerate((b"blob 22\0", b"", b"x")):
        blob = tmp_path / sha1(head + content).hexdigest()
        blob.write_bytes(content)
        (tmp_path / f"{number}.json").symlink_to(blob)
        assert as_fetched(tmp_path / f"{number}.json").read_bytes() == content
    assert [record.args[0].name for record in caplog.records] == ["2.json"]


@pytest.mark.long
def test_weights_that_torch_saved_come_where_the_format_says_so(hub, tiny_encoder, tmp_path):
    folder, asked, prepare = hub
    shutil.copytree(tiny_encoder / "main", folder, dirs_exist_ok=True)
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save({f"bert.{name}": value for name, value in weights.items()}, folder / "pytorch_model.bin")
    plain = prepare(tmp_path / "plain")
    assert "set `format: torch_weights`" in plain.stderr
    assert not (tmp_path / "plain").exists()
    assert "pytorch_model.bin" not in asked
    done = prepare(tmp_path / "out", format="torch_weights")
    assert done.returncode == 0, done.stderr[-2000:]
    assert asked.count("pytorch_model.bin") == 1
    assert not list((tmp_path / "out").rglob("*.bin"))


def test_a_repository_that_is_not_there_is_told_in_words(hub, tmp_path):
    _, _, prepare = hub
    done = prepare(tmp_path / "out", hub="org/other")
    assert "could not be downloaded from the hub" in done.stderr
    assert not (tmp_path / "out").exists()
