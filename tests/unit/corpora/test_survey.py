"""What publishers say before anything is fetched, asked of a server that lies in each way."""

from __future__ import annotations

import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from crosslign.cli.main import main
from crosslign.corpora import survey as module
from crosslign.corpora.survey import Head, lost, survey, survey_lines

SIZES = {"right.zip": 1000, "rough.zip": 1400, "other.zip": 999, "tiny.zip": 1540}
ANSWERS = {
    "gone.zip": (404, {}),
    "terms.zip": (401, {}),
    "closed.zip": (403, {}),
    "portal.zip": (200, {"Content-Type": "text/html", "Content-Length": "1540"}),
    "moved.zip": (301, {"Location": "/data/right.zip"}),
    "passing.zip": (302, {"Location": "/data/right.zip"}),
    "no_heads.zip": (405, {}),
    "fault.zip": (500, {}),
    "empty.zip": (200, {"Content-Length": "0"}),
    "barred.zip": (451, {}),
    "unsaid.zip": (200, {}),
    "shut_head.zip": (403, {}),
    "lost_head.zip": (404, {}),
    "wide.zip": (200, {}),
    "packed.txt": (200, {"Content-Length": "300", "Content-Encoding": "gzip"}),
    "packed_both.txt": (200, {"Content-Length": "300", "Content-Encoding": "gzip"}),
    "zero_head.zip": (200, {"Content-Length": "0"}),
    "ranges_shut.zip": (200, {}),
    "called_page.xz": (200, {"Content-Type": "text/html", "Content-Length": "1000"}),
    "later.zip": (403, {"Retry-After": "600"}),
}


TO_GET = {
    "shut_head.zip": (206, {"Content-Range": "bytes 0-0/1000", "Content-Length": "1"}),
    "lost_head.zip": (200, {"Content-Length": "1000"}),
    "wide.zip": (206, {"Content-Range": "bytes 0-0/999", "Content-Length": "1"}),
    "packed.txt": (206, {"Content-Range": "bytes 0-0/1000", "Content-Length": "1"}),
    "packed_both.txt": (200, {"Content-Length": "300", "Content-Encoding": "gzip"}),
    "no_heads.zip": (404, {}),
    "zero_head.zip": (200, {"Content-Length": "1000"}),
    "empty.zip": (416, {"Content-Range": "bytes */0"}),
    "ranges_shut.zip": (403, {}),
    "portal.zip": (200, {"Content-Type": "text/html", "Content-Length": "10000000"}),
    "called_page.xz": (206, {"Content-Type": "text/html", "Content-Range": "bytes 0-5/1000", "Content-Length": "6"}),
}
"""What is said to GET where it is something else than to HEAD."""


class Handler(BaseHTTPRequestHandler):
    said: list[tuple[str, str]] = []  # noqa: RUF012 (one for each server)

    def log_message(self, *args):
        pass

    def do_GET(self):
        name = self.path.rpartition("/")[2]
        if name in TO_GET and (name != "ranges_shut.zip" or "Range" in self.headers):
            self.said.append((self.command, name))
            self.give(*TO_GET[name])
            if "Content-Length" in TO_GET[name][1]:
                with suppress(OSError):
                    # A client that reads all of it would be here for long.
                    self.wfile.write(b"\xfd7zXZ\0" if name == "called_page.xz" else bytes(10**7))
        else:
            self.do_HEAD()

    def do_HEAD(self):
        name = self.path.rpartition("/")[2]
        self.said.append((self.command, name))
        if "codeload" in self.path and "shut" in self.path:
            self.give(403, {})
            return
        if name.startswith("busy"):
            status, headers = 429, {"Retry-After": "3600"}
        elif name == "dead.zip":
            return
        else:
            status, headers = ANSWERS.get(name, (200, {"Content-Length": str(SIZES.get(name, 1000)), "Content-Type": "application/zip"}))
        self.give(status, headers)

    def give(self, status, headers):
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()


@pytest.fixture
def server(online, monkeypatch):
    monkeypatch.setattr(module, "PAUSE_S", 0.0)
    handler = type("Own", (Handler,), {"said": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield SimpleNamespace(address=f"http://127.0.0.1:{server.server_port}/data/", said=handler.said)
    server.shutdown()
    server.server_close()


def asked(source, *files):
    files = [{"name": name, **size} for name, size in files]
    project = SimpleNamespace(sources={"set": {**source, "files": files}}, memory={})
    return survey(project, [SimpleNamespace(source="set", file=file["name"]) for file in files])


@pytest.mark.parametrize(
    ("name", "size", "state"),
    [
        ("right.zip", {"bytes": 1000}, "there"),
        ("rough.zip", {"about_bytes": 1000}, "there"),
        ("passing.zip", {"bytes": 1000}, "there"),
        ("no_heads.zip", {}, "gone"),
        ("shut_head.zip", {"bytes": 1000}, "there"),
        ("lost_head.zip", {"bytes": 1000}, "there"),
        ("wide.zip", {"bytes": 1000}, "size differs"),
        ("packed.txt", {"bytes": 1000}, "there"),
        ("packed_both.txt", {"bytes": 1000}, "there"),
        ("zero_head.zip", {"bytes": 1000}, "there"),
        ("ranges_shut.zip", {"bytes": 1000}, "there"),
        ("later.zip", {}, "busy"),
        ("unsaid.zip", {"bytes": 1000}, "there"),
        ("moved.zip", {"bytes": 1000}, "moved"),
        ("other.zip", {"bytes": 1000}, "size differs"),
        ("tiny.zip", {"about_bytes": 82_000_000_000}, "size differs"),
        ("empty.zip", {}, "size differs"),
        ("gone.zip", {}, "gone"),
        ("barred.zip", {}, "gone"),
        ("terms.zip", {}, "gated"),
        ("closed.zip", {}, "gated"),
        ("portal.zip", {}, "gated"),
        ("called_page.xz", {"bytes": 1000}, "there"),
        ("busy.zip", {}, "busy"),
        ("fault.zip", {}, "no answer"),
        ("dead.zip", {}, "no answer"),
    ],
)
def test_each_lie_has_its_word(server, name, size, state):
    (head,) = asked({"url": server.address}, (name, size))
    assert head.state == state
    line, *more = survey_lines([head])
    assert line.startswith(f"{state} ")
    assert (not more) == (state == "there")
    doubted = {*TO_GET, "gone.zip", "closed.zip", "unsaid.zip"}
    assert {command for command, _ in server.said} == ({"HEAD", "GET"} if name in doubted else {"HEAD"})


def test_a_host_that_wants_to_be_left_alone_is_left_alone(server):
    heads = asked({"url": server.address}, *((f"busy_{number}.zip", {}) for number in range(5)))
    assert [head.state for head in heads] == ["busy"] * 5
    assert len(server.said) == 1


def test_every_address_is_asked_and_the_archive_of_a_repository_once_for_all_its_files(server, monkeypatch):
    monkeypatch.setenv("CROSSLIGN_WEB_MIRROR", server.address)
    source = {"github": "lab/tools", "revision": "f" * 40, "urls": [server.address + "gone/"]}
    found = asked(source, *((f"{number}.txt", {"bytes": 1000}) for number in range(3)))
    for host, count in (("codeload", 1), ("raw.githubusercontent", 0), ("/gone/", 3)):
        assert sum(host in head.place for head in found) == count
    assert lost(found) == []
    (archive,) = [head for head in found if "codeload" in head.place]
    assert [archive.file, *archive.others] == ["0.txt", ("set", "1.txt"), ("set", "2.txt")]


def test_where_an_archive_is_gone_one_single_file_is_asked_for(server, monkeypatch):
    monkeypatch.setenv("CROSSLIGN_WEB_MIRROR", server.address)
    found = asked({"github": "lab/gone.zip", "revision": "gone.zip"}, *((f"{number}.txt", {"bytes": 1000}) for number in range(3)))
    assert [(head.state, "codeload" in head.place, len(head.others)) for head in found] == [("gone", True, 2), ("there", False, 2)]
    assert lost(found) == []
    found = asked({"github": "lab/shut", "revision": "f" * 40}, *((f"{number}.txt", {}) for number in range(3)))
    assert [head.state for head in found] == ["busy"]
    assert lost(found) == []


def test_an_address_of_two_files_counts_for_both(server):
    source = {"url": server.address, "files": [{"name": "a.zip", "path": "gone.zip"}, {"name": "b.zip", "path": "gone.zip"}]}
    project = SimpleNamespace(sources={"set": source}, memory={})
    found = survey(project, [SimpleNamespace(source="set", file=name) for name in ("a.zip", "b.zip")])
    assert lost(found) == [("set", "a.zip"), ("set", "b.zip")]


def test_a_file_is_lost_where_none_of_its_addresses_has_it():
    said = ["s a gone", "s a there", "s b gone", "s b gated", "t b there", "t c size differs", "t d busy"]
    heads = [Head(source, file, "place", state) for source, file, state in (line.split(" ", 2) for line in said)]
    assert lost(heads) == [("s", "b"), ("t", "c")]


def test_the_command_says_so_where_the_network_is_switched_off(monkeypatch, capsys):
    monkeypatch.setenv("CROSSLIGN_OFFLINE", "1")
    assert main(["doctor", "--sources"]) == 3
    assert "CROSSLIGN_OFFLINE" in capsys.readouterr().err


def test_a_base_encoder_is_asked_for_and_the_beginning_of_a_commits_name_is_told(online, monkeypatch):
    import huggingface_hub

    whole, asked = "c67f260" + "0" * 33, []
    monkeypatch.setattr(huggingface_hub.HfApi, "repo_info", lambda self, name, repo_type, revision: SimpleNamespace(sha=whole))
    said = SimpleNamespace(size=500, location="https://hub.example/file")
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", lambda address: asked.append(address) or said)
    encoders = {"short": {"hub": "lab/a", "revision": "c67f260"}, "whole": {"hub": "lab/b", "revision": whole}, "own": {"path": "x"}}
    project = SimpleNamespace(sources={}, encoders=encoders)
    heads = survey(project, [SimpleNamespace(source=name, file="any") for name in encoders])
    assert [head.state for head in heads] == ["short name", "there"]
    assert heads[0].said == f"c67f260 is an abbreviated commit: on the hub it is {whole}"
    assert [f"/lab/{name}/resolve/{whole}/config.json" in address for name, address in zip("ab", asked, strict=True)] == [True, True]
    assert lost(heads) == []
    assert heads[0].said in "\n".join(survey_lines(heads))
