"""Every fault of the list has a test, every test a fault, and the pages that speak of them are up to date."""

from __future__ import annotations

import re

from fault_list import PAGE, ROOT, faults, names_by_fault, page


def test_all_42_faults_have_a_test_and_no_test_has_another_fault():
    wanted = {f"F{number}" for number in range(1, 43)}
    assert set(faults()) == wanted
    assert set(names_by_fault()) == wanted


def test_the_page_is_that_of_the_list():
    assert PAGE.read_text(encoding="utf-8") == page(), "python tests/faults/fault_list.py"


def test_every_test_that_a_page_links_is_there():
    for name in ("faults.md", "promises.md"):
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        links = re.findall(r"\]\(\.\./([^)#]+)\)", text)
        assert links
        assert [link for link in links if not (ROOT / link).exists()] == []


def test_each_promise_links_tests_that_are_there():
    text = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8").split("\n## ")[0]
    promises = re.findall(r"^- \*\*.*(?:\n  .*)*", text, flags=re.MULTILINE)
    assert len(promises) >= 5
    for promise in promises:
        links = re.findall(r"\]\(\.\./(tests/[^)#]+)\)", promise)
        assert links, promise
        assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_test_named_in_the_promises_is_there():
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")))
    there = set(
        re.findall(r"^def (test_\w+)", "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "tests").rglob("test_*.py")), re.MULTILINE)
    )
    assert named
    assert named - there == set()
