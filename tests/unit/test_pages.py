"""Pages lead where they say: links, files and targets that they name are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "config" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def anchors(page):
    """Return what headings of a page are called in addresses."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    links = [link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", text) if not link.startswith("https://")]
    found = [(page.parent / file if file else page, anchor) for file, _, anchor in links]
    assert not [target for target, anchor in found if not target.exists() or (anchor and anchor not in anchors(target))]
    assert not [name for name in re.findall(r"(?<![\w/.])docs/[\w/-]+\.md", text) if not (ROOT / name).exists()]


def test_targets_of_make_that_pages_name_are_there():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = {name for page in PAGES for name in re.findall(r"(?:`| {4})make ([\w-]+)", page.read_text(encoding="utf-8"))}
    assert len(named) > 10
    assert not named - targets


def test_pages_of_the_project_that_code_names_are_there():
    paths = [path for folder in ("src", "workflow", "config", "slurm", "profiles", "envs") for path in (ROOT / folder).rglob("*")]
    texts = [
        path.read_text(encoding="utf-8")
        for path in (*paths, ROOT / "Makefile")
        if path.suffix in (".py", ".smk", ".yaml", "") and path.is_file()
    ]
    named = {name for text in texts for name in re.findall(r"docs/[\w/-]+\.md", text)}
    assert len(named) > 5
    assert not [name for name in named if not (ROOT / name).exists()]
