"""What an editor makes of the configuration: yaml-language-server finds each file's schema, marks no key that is right, and completes."""

import json
import re
import shutil
import subprocess

import pytest
from project_copy import ROOT

from crosslign.cli.commands.new import write_objective
from crosslign.cli.main import main
from crosslign.paths import CATALOG

SERVER = "yaml-language-server@1.25.0"
SCHEMA = re.compile(r"# yaml-language-server: \$schema=(\S+)\n")
FILES = sorted([*(path for path in CATALOG.rglob("*.yaml") if "resources" not in path.parts), *(ROOT / "config").glob("*.yaml")])


class Editor:
    """An editor's side of the language server."""

    def __init__(self, server):
        self._process = subprocess.Popen([server, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._asked = 0
        self._ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        self._send({"method": "initialized", "params": {}})

    def _send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def _receive(self):
        while not (header := self._process.stdout.readline()).lower().startswith(b"content-length:"):
            assert header, "the server has ended"
        self._process.stdout.readline()
        message = json.loads(self._process.stdout.read(int(header.split(b":")[1])))
        if "id" in message and "method" in message:  # it asks for settings, of which there are none
            self._send({"id": message["id"], "result": None})
        return message

    def _ask(self, method, params):
        self._asked += 1
        self._send({"id": self._asked, "method": method, "params": params})
        while "method" in (answer := self._receive()) or answer["id"] != self._asked:
            pass
        return answer["result"]

    def marked(self, path, text):
        """Open a file with this text; return what is marked in it."""
        self._file = {"uri": path.resolve().as_uri()}
        self._send(
            {"method": "textDocument/didOpen", "params": {"textDocument": {**self._file, "languageId": "yaml", "version": 1, "text": text}}}
        )
        while (found := self._receive()).get("method") != "textDocument/publishDiagnostics" or found["params"]["uri"] != self._file["uri"]:
            pass
        return [f"{path.name}:{one['range']['start']['line'] + 1}: {one['message']}" for one in found["params"]["diagnostics"]]

    def completed(self, line, character):
        """Return what is offered at a place of the file that was opened last."""
        place = {"textDocument": self._file, "position": {"line": line, "character": character}}
        return [one["label"] for one in self._ask("textDocument/completion", place)["items"]]

    def close(self):
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def editor(tmp_path_factory):
    folder = tmp_path_factory.mktemp("editor")
    if not shutil.which("npm"):
        pytest.skip("npm is not installed: apt-get install -y --no-install-recommends npm")
    done = subprocess.run(["npm", "install", "--silent", "--no-audit", SERVER], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"npm cannot install {SERVER} here: {(done.stderr or done.stdout).strip()[-200:]}")
    made = Editor(folder / "node_modules" / ".bin" / "yaml-language-server")
    yield made
    made.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The files that commands write for a user."""
    folder = tmp_path_factory.mktemp("written")
    shutil.copytree(ROOT / "config", folder / "config")
    assert main(["pair", "en-sw", "--directory", str(folder)]) == 0
    return [folder / "config" / "pairs" / "en-sw.yaml", *write_objective(folder / "mine", "mine")[1:]]


def test_the_first_line_of_each_file_names_a_schema_that_is_there(written):
    assert len(FILES) == 21
    for path in (*FILES, *written):
        named = SCHEMA.match(path.read_text(encoding="utf-8"))
        assert named, path
        assert (path.parent / named[1]).is_file(), path


def test_nothing_is_marked_in_them(editor, written):
    assert [mark for path in (*FILES, *written) for mark in editor.marked(path, path.read_text(encoding="utf-8"))] == []


def test_mistakes_are_marked_and_keys_completed(editor):
    path = CATALOG / "corpora.yaml"
    line = SCHEMA.match(path.read_text(encoding="utf-8"))[0]
    entry = "corpora:\n  mine:\n    kind: bitext\n    source: mine\n    reader: moses\n    langs: [de, en]\n    licence: CC0-1.0\n    "
    (mark,) = editor.marked(path.with_name("own.yaml"), f"{line}{entry}sampel: 3\n")
    assert mark == "own.yaml:9: Property sampel is not allowed."
    assert editor.marked(path.with_name("other.yaml"), f"{line}{entry}sam\n")
    assert "sample" in editor.completed(8, 7)
