"""Pages of the documentation site that are made when it is built, and links that lead out of docs/ (hooks of mkdocs, see mkdocs.yml).

README, CONTRIBUTING and CHANGELOG stay where they are; the references come from the schemas, the parser and the public names.
"""

from __future__ import annotations

import argparse
import os
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import crosslign
from crosslign.cli.main import parser
from crosslign.config.reference import reference

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "config/README.md": "reference/configuration.md",
}
"""Pages outside docs/, and what each is called on the site."""
BOOST = {"archive": 0.1, "changes.md": 0.1, "add-a-method.md": 4, "cluster.md": 4, "mine-your-own.md": 4, "your-own-pair.md": 4}
"""Folders and pages that a search puts below or above the others: records last, tutorials first."""
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
ITEM = re.compile(r"( *)(?:[-*]|\d+\.) ")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that do not lie below docs/."""
    made = {site: (ROOT / path).read_text(encoding="utf-8") for path, site in OUTSIDE.items()}
    made["reference/configuration.md"] = reference()
    made["reference/command-line.md"] = command_line()
    made["reference/python.md"] = python_names()
    for site, text in made.items():
        files.append(File.generated(config, site, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return a page as Python-Markdown wants it: lists, links out of docs/, and no picture that a browser must fetch code for."""
    site = page.file.src_uri
    page.meta["search"] = {"boost": BOOST.get(site.partition("/")[0], 1)}
    path = next((path for path, name in OUTSIDE.items() if name == site), f"docs/{site}")
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(
        _flow(part)
        if part.startswith("```mermaid")
        else part
        if part.startswith("```")
        else LINK.sub(lambda link: _led(link, path, site), _lists(part))
        for part in parts
    )


def _flow(graph: str) -> str:
    """Return the boxes of a graph of one row, as text: the library that draws such graphs would come from another site."""
    boxes = dict.fromkeys(re.findall(r"(\w+)(?:\[\"([^\"]*)\"\])?(?= -->|$)", graph.partition("LR\n")[2], flags=re.MULTILINE))
    shown = {name: label for name, label in boxes if label}
    names = dict.fromkeys(name for name, _ in boxes if name)
    return '<p class="flow">' + " → ".join(f"<span>{shown.get(name, name)}</span>" for name in names) + "</p>"


def _lists(text: str) -> str:
    """Return a text whose nested lists are indented by four columns a level, where GitHub takes two."""
    lines = []
    for line in text.split("\n"):
        item = ITEM.match(line)
        lines.append(" " * len(item[1]) + line if item and len(item[1]) % 2 == 0 else line)
    return "\n".join(lines)


def _led(link: re.Match[str], path: str, site: str) -> str:
    """Return a link of the page at `path` as the site has it; what is no page of it is named, not linked."""
    target, _, anchor = link[3].partition("#")
    if not target or re.match(r"[a-z]+:", link[3]):
        return link[0]
    place = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    there = OUTSIDE.get(place, place.removeprefix("docs/"))
    if there == place or not (ROOT / place).is_file() or place.endswith(".py"):
        return f"{link[2].strip('`')} (`{place}`)" if link[2].strip("`") != place else f"`{place}`"
    away = posixpath.relpath(there, posixpath.dirname(site) or ".")
    return f"{link[1]}[{link[2]}]({away}{'#' if anchor else ''}{anchor})"


def command_line() -> str:
    """Return the reference of `crosslign`, a section a command, as its own `--help` prints it."""
    os.environ["COLUMNS"] = "110"
    top = parser()
    commands = next(action for action in top._actions if isinstance(action, argparse._SubParsersAction))
    parts = [f"# Command line\n\nWhat `crosslign --help` and `crosslign COMMAND --help` print.\n\n```text\n{top.format_help()}```\n"]
    parts += [f"\n## {name}\n\n```text\n{sub.format_help()}```\n" for name, sub in sorted(commands.choices.items())]
    return "".join(parts)


def python_names() -> str:
    """Return the page of the public names: mkdocstrings puts their docstrings in."""
    names = [f"::: {crosslign.ELSEWHERE.get(name, 'crosslign.in_python')}.{name}\n" for name in crosslign.__all__]
    return "\n".join(["# Python\n\nThe names of `crosslign` for other programs; [in Python](../in-python.md) has examples.\n", *names])
