"""The report and a table's page in a real browser: nothing complains, nothing overflows, sorting works, light and dark."""

import pytest
from chromium import browser, find_chromium
from small_report import table, write_report

from crosslign.files import write_text
from crosslign.reporting.formats import as_html
from crosslign.reporting.layout import lay_out

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="no Chromium here: apt-get install chromium")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    report = write_report(folder, scale="quick", title="A title that is long, " * 6)
    single = folder / "one.html"
    write_text(single, as_html(lay_out(table("one", "first", "paper"), folder / "results", folder / "published")))
    return {"report": report.as_uri(), "table": single.as_uri()}


@pytest.mark.parametrize("name", ["report", "table"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_no_complaint_and_no_overflow(page, files, name, width, dark):
    page.open(files[name], width, dark)
    assert page.complaints() == []
    assert page.js("innerWidth") == width
    assert page.js("document.documentElement.scrollWidth") <= width
    background = page.js("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") is not dark


def test_a_click_sorts_by_the_column_and_a_second_one_turns_it_round(page, files):
    page.open(files["table"], 1280)
    first = "document.querySelector('#one tbody tr:not([hidden]):not(.group) td').textContent"
    click = "document.querySelectorAll('#one thead tr:last-child th')[1].querySelector('button').click()"
    assert page.js(first) == "system A"
    page.js(click)
    assert page.js(first) == "system B"
    page.js(click)
    assert page.js(first) == "system A"
    assert page.complaints() == []


def test_a_sorted_row_says_its_group_and_a_third_click_restores_the_printed_order(page, files):
    page.open(files["table"], 1280)
    rows = "[...document.querySelectorAll('#one tbody tr:not([hidden])')].map((row) => row.cells[0].textContent)"
    before = "getComputedStyle(document.querySelector('#one tbody tr:not([hidden]):not(.group) td'), '::before').content"
    click = "document.querySelectorAll('#one thead tr:last-child th')[1].querySelector('button').click()"
    printed = page.js(rows)
    assert printed == ["A", "system A", "B", "system B"]
    assert page.js(before) == "none"
    page.js(click)
    assert page.js(rows) == ["system B", "system A"]
    assert page.js(before) != "none"
    assert page.js("document.querySelector('#one tbody tr:not([hidden]) td').dataset.block") == "B"
    page.js(click)
    page.js(click)
    assert page.js(rows) == printed
    assert page.js(before) == "none"


def test_a_tap_on_a_cell_shows_what_pointing_at_it_does(page, files):
    page.open(files["table"], 390)
    page.js("document.querySelector('#one tbody td[title]').click()")
    assert (
        page.js("document.querySelector('p.details').textContent") == page.js("document.querySelector('#one tbody td[title]').title") != ""
    )


def test_published_figures_are_greyer_at_a_reduced_scale(page, files):
    opacity = "Number(getComputedStyle(document.querySelector('td .published')).opacity)"
    page.open(files["table"], 1280)
    full = page.js(opacity)
    page.open(files["report"], 1280)
    assert page.js(opacity) < full


def test_a_paper_is_reached_from_the_contents(page, files):
    page.open(files["report"], 390)
    page.js("document.querySelector('nav.bar a[href=\"#paper-second\"]').click()")
    assert page.js("location.hash") == "#paper-second"
    assert 0 <= page.js("document.querySelector('#paper-second').getBoundingClientRect().top") < 844
