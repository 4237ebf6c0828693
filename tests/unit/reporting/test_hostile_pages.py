"""The pages of a run show hostile titles, licences and names of corpora as text: nothing of them is markup, nothing turns the page."""

import csv
import json
from html.parser import HTMLParser

import pytest
from small_report import lineages, table, write_report

from crosslign.console import printable
from crosslign.files import write_json
from crosslign.reporting.overview import build_overview
from crosslign.reporting.report import build_report

HOSTILE = (
    "<script>alert(1)</script> <img src=x onerror=alert(2)> \x1b]0;owned\x07\x1b[2J\u202eevil | `x` [y](http://example.org) {{ 7 * 7 }}"
)


class Page(HTMLParser):
    """The texts of a page, by the tag that they stand in, its tags, and attributes that run code."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.runs, self.open, self.shown = [], [], [], "", ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.open = tag
        self.tags.append(tag)
        self.runs += [name for name, _ in attrs if name.startswith("on")]

    def handle_endtag(self, tag):
        self.open = ""

    def handle_data(self, data):
        if self.open == "script":
            self.scripts.append(data)
        else:
            self.shown += data


@pytest.fixture
def recipe(tmp_path):
    """Results of which every text that comes from outside is hostile, and what the pages are made of."""
    write_report(tmp_path)
    for sidecar in tmp_path.rglob("*lineage.json"):
        content = json.loads(sidecar.read_text(encoding="utf-8"))
        content["licences"] = [HOSTILE]
        content["recipe"] = {key: HOSTILE if key == "corpus" else value for key, value in content["recipe"].items()}
        write_json(sidecar, content)
    one = table("one", "first", "paper", HOSTILE)
    one |= {"caption": HOSTILE, "footnotes": [{"at": {"column": "language 1"}, "text": HOSTILE}]}
    one["rows"] = [{**row, "label": f"{row['label']} {HOSTILE}"} for row in one["rows"]]
    figure = {"id": "fig", "paper": "first", "title": HOSTILE, "caption": HOSTILE}
    return {"tables": [one], "figures": [figure], "scale": "paper", "stand_in": False}


def test_the_report_shows_hostile_text_as_text(tmp_path, recipe):
    results, plain = tmp_path / "results", Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    with open(results / "fig.csv", "a", encoding="utf-8", newline="") as file:
        csv.writer(file).writerow([HOSTILE, "en", "g", 0.5, 0.5])
    figures = [results / f"fig.{form}" for form in ("png", "csv")]
    build_report(recipe, results, tmp_path / "published", figures, lineages(results), tmp_path / "report.html", results / "overlap.csv")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.scripts == plain.scripts
    assert page.runs == []
    assert page.tags.count("img") == 1
    # Its title twice, captions, labels, footnote, licence, a system of the figure.
    assert page.shown.count("<script>alert(1)</script>") >= 9
    assert "{{ 7 * 7 }}" in page.shown
    assert text == printable(text)


def test_the_overview_shows_hostile_text_as_text(tmp_path, recipe):
    out = {form: tmp_path / f"overview.{form}" for form in ("html", "md")}
    build_overview(recipe, tmp_path / "results", tmp_path / "published", out)
    html, markdown = (out[form].read_text(encoding="utf-8") for form in ("html", "md"))
    page = Page(html)
    assert page.scripts == []
    assert page.runs == []
    assert page.tags.count("img") == 1
    assert page.shown.count("<script>alert(1)</script>") >= 2
    assert html == printable(html)
    assert markdown == printable(markdown)
    # In Markdown each mark has a backslash before it, so that cells, links and tags stay text.
    for mark in ("\\<script\\>", "evil \\| \\`x\\` \\[y\\]("):
        assert markdown.count(mark) >= 2
