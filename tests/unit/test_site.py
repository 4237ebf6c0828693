"""The documentation site builds strictly, fetches nothing, and no page of it makes a browser fetch anything from elsewhere."""

import json
import re
import socket
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}
"""What a browser fetches by itself to show a page."""


class Fetched(HTMLParser):
    """Collects what a page makes a browser fetch."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name == PARTS.get(tag)]


@pytest.mark.long
def test_the_site_builds_strictly_without_network(tmp_path, monkeypatch):
    pytest.importorskip("mkdocstrings")
    build, config = pytest.importorskip("mkdocs.commands.build"), pytest.importorskip("mkdocs.config")

    def refuse(*address):
        raise OSError(f"the site wants {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.chdir(ROOT)
    build.build(config.load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path)))  # any warning ends it: links, anchors, pages left out
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        text = page.read_text(encoding="utf-8")
        reader = Fetched()
        reader.feed(text)
        assert not [name for name in reader.found if re.match(r"(https?:)?//", name or "")], page
        from_page = [name for name in reader.found if name and not name.startswith("/")]  # only 404.html counts from the root
        assert all((page.parent / name.partition("#")[0]).exists() for name in from_page), page
        assert 'class="mermaid"' not in text, page  # the theme would fetch its library
    assert "crosslign.in_python.mine" in (tmp_path / "reference" / "python.html").read_text(encoding="utf-8")
    places = {
        entry["location"]: entry.get("boost", 1) for entry in json.loads((tmp_path / "search" / "search_index.json").read_text())["docs"]
    }
    assert (tmp_path / "search" / "search_index.js").exists()  # the search of pages that are opened as files
    assert places["archive/changelog.html"] < places["faq.html"] < places["add-a-method.html"]
    assert 'id="explain"' in (tmp_path / "reference" / "command-line.html").read_text(encoding="utf-8")


def test_every_page_has_its_place_on_the_site():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert not {page for page in pages if f": {page}\n" not in navigation}


def test_a_page_outside_the_reference_and_the_archive_has_at_most_1500_words():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    reference = re.findall(r": (.+)", re.search(r"- Reference:\n((?:      .+\n)+)", navigation)[1])
    pages = {str(path.relative_to(ROOT / "docs")): path for path in (ROOT / "docs").rglob("*.md")}
    read = {name: path for name, path in pages.items() if name not in reference and not name.startswith("archive/")}
    read |= {name: ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")}
    assert not {name: words for name, path in read.items() if (words := len(path.read_text(encoding="utf-8").split())) > 1500}
