"""The report and a table's page in a real browser: nothing complains, nothing overflows, sorting works, light and dark."""

import re

import pytest
from chromium import browser, find_chromium
from small_report import table, write_report

from crosslign.files import write_json, write_text
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
    gaps = folder / "gaps.html"
    write_text(gaps, as_html(with_gaps(folder / "gaps")))
    twins = folder / "twins.html"
    write_text(twins, as_html(with_twins(folder / "twins")))
    return {"report": report.as_uri(), "table": single.as_uri(), "gaps": gaps.as_uri(), "twins": twins.as_uri()}


def with_twins(folder):
    """A table of two rows of one group and label, as MPCL's Table 1 has them, and one of its own."""
    rows = [{"group": "G", "label": label, "system": system} for label, system in (("+ Single", "A"), ("+ Single", "B"), ("base", "C"))]
    cells = [[cell_of(folder, name)] for name in ("low", "high", "low")]
    common = {"id": "twins", "paper": "p", "scale": "paper", "stand_in": False, "title": "Twins", "footnotes": []}
    return lay_out({**common, "columns": [{"label": "c"}], "rows": rows, "cells": cells}, folder, folder)


def with_gaps(folder):
    """A table of a few columns whose second row has no value, beside long published figures."""
    columns = [{"label": f"c{n}", "published": {"task": "t", "subset": "s", "metric": "f1"}} for n in range(4)]
    rows = [{"label": label, "published": "m"} for label in ("low", "none", "high")]
    cells = [
        [{"text": "", "reason": "not run"} if row["label"] == "none" else cell_of(folder, row["label"]) for _ in columns] for row in rows
    ]
    (folder / "gaps.csv").write_text(
        "group,model,task,subset,metric,value,std,direction,note\n,m,t,s,f1,93.6,0.25,higher,printed delta +1.2\n", encoding="utf-8"
    )
    common = {"id": "gaps", "paper": "p", "scale": "paper", "stand_in": False, "title": "Gaps", "footnotes": []}
    return lay_out({**common, "columns": columns, "rows": rows, "cells": cells}, folder, folder)


def cell_of(folder, name):
    record = {"eval": "t", "subset": "s", "metric": "f1", "value": 0.9 if name == "high" else 0.1}
    write_json(folder / "scores" / f"{name}.json", {"records": [record]})
    return {"scores": [f"scores/{name}.json"], "select": {"task": "t", "subset": "s", "metric": "f1", "protocol": "", "direction": ""}}


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


def test_names_stay_in_their_cells_and_words_of_text_are_not_broken(page, files):
    page.open(files["report"], 390)
    first = "[...document.querySelectorAll('tr > :first-child')]"
    assert page.js(f"{first}.filter((cell) => cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.textContent)") == []
    cell = "[...document.querySelectorAll('td.text')].find((cell) => cell.textContent === 'tatoeba_written')"
    assert (
        page.js(
            f"(() => {{ const text = document.createRange(); text.selectNodeContents({cell}); return text.getClientRects().length }})()"
        )
        == 1
    )


def test_a_click_sorts_by_the_column_and_a_second_one_turns_it_round(page, files):
    page.open(files["table"], 1280)
    first = "document.querySelector('#one tbody tr:not([hidden]):not(.group) th').textContent"
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
    before = "getComputedStyle(document.querySelector('#one tbody tr:not([hidden]):not(.group) th'), '::before').content"
    click = "document.querySelectorAll('#one thead tr:last-child th')[1].querySelector('button').click()"
    printed = page.js(rows)
    assert printed == ["A", "system A", "B", "system B"]
    assert page.js(before) == "none"
    page.js(click)
    assert page.js(rows) == ["system B", "system A"]
    assert page.js(before) != "none"
    assert page.js("document.querySelector('#one tbody tr:not([hidden]) th').dataset.block") == "B"
    page.js(click)
    page.js(click)
    assert page.js(rows) == printed
    assert page.js(before) == "none"


def test_sorted_rows_of_one_name_are_told_apart_by_their_systems(page, files):
    page.open(files["twins"], 1280)
    after = "[...document.querySelectorAll('#twins tbody tr:not(.group) th')].map((head) => getComputedStyle(head, '::after').content)"
    assert page.js(after) == ["none", "none", "none"]
    page.js("document.querySelector('#twins thead button').click()")
    assert [content == "none" for content in page.js(after)] == [False, False, True]
    assert page.js("[...document.querySelectorAll('#twins th[data-system]')].map((head) => head.dataset.system)") == ["B", "A"]


@pytest.mark.parametrize("width", [1280, 1400, 1920])
def test_a_table_of_twelve_columns_fits_its_box(page, files, width):
    page.open(files["report"], width)
    assert page.js("[...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > box.clientWidth + 1).length") == 0
    assert page.js("document.querySelector('.choose .more').hidden") is True


def test_a_group_of_columns_is_left_out_and_comes_back(page, files):
    page.open(files["table"], 390)
    shown = "[...document.querySelectorAll('#one tbody tr:not(.group)')].map((row) => [...row.cells].filter((cell) => !cell.hidden).length)"
    heads = "[...document.querySelectorAll('#one tr.groups th:not([hidden])')].map((head) => head.textContent)"
    more = "document.querySelector('.choose .more').hidden"
    click = "document.querySelectorAll('.choose button')[0].click()"
    assert (page.js(shown), page.js(heads), page.js(more)) == ([13, 13], ["Half", "Other half"], False)
    page.js(click)
    assert (page.js(shown), page.js(heads)) == ([8, 8], ["Other half"])
    page.js("document.querySelectorAll('.choose button')[1].click()")
    assert page.js(more) is True
    page.js(click)
    assert (page.js(shown), page.js(heads)) == ([6, 6], ["Half"])
    assert page.complaints() == []


def test_a_tap_on_a_cell_shows_what_pointing_at_it_does(page, files):
    page.open(files["table"], 390)
    page.js("document.querySelector('#one tbody td[title]').click()")
    assert (
        page.js("document.querySelector('p.details').textContent") == page.js("document.querySelector('#one tbody td[title]').title") != ""
    )


def luminance(colour):
    """Relative luminance of `rgb(r, g, b)`, as WCAG 2 defines it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(page, selector):
    """Contrast of an element's text to the page; text of 4.5 and more is readable (WCAG 2, AA)."""
    ink = page.js(f"getComputedStyle(document.querySelector('{selector}')).color")
    light, dark = sorted((luminance(ink), luminance(page.js("getComputedStyle(document.body).backgroundColor"))), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_published_figures_are_grey_greyer_at_a_reduced_scale_and_readable(page, files, dark):
    page.open(files["table"], 1280, dark)
    full, ours = contrast(page, "td .published"), contrast(page, "td.cell span")
    page.open(files["report"], 1280, dark)
    assert 4.5 <= contrast(page, "td .published") < full < ours


def test_cells_without_a_value_come_last_in_both_orders(page, files):
    page.open(files["gaps"], 1280)
    rows = "[...document.querySelectorAll('#gaps tbody tr:not([hidden])')].map((row) => row.cells[0].textContent)"
    click = "document.querySelector('#gaps thead button').click()"
    for order in (["high", "low", "none"], ["low", "high", "none"]):
        page.js(click)
        assert page.js(rows) == order


def test_a_wide_cell_breaks_between_ours_and_the_published_figure(page, files):
    page.open(files["gaps"], 390)
    tops = "[...document.querySelectorAll('#gaps td.cell span')].slice(0, 2).map((part) => part.getBoundingClientRect().top)"
    first, second = page.js(tops)
    assert first < second
    page.open(files["gaps"], 1280)
    first, second = page.js(tops)
    assert first == second


def test_nothing_is_cut_off_in_print(page, files):
    page.open(files["gaps"], 700)
    page.call("Emulation.setEmulatedMedia", media="print")
    assert page.js("getComputedStyle(document.querySelector('.scroll')).overflowX") == "visible"
    assert page.js("getComputedStyle(document.querySelector('.hint')).display") == "none"


def test_a_paper_is_reached_from_the_contents(page, files):
    page.open(files["report"], 390)
    page.js("document.querySelector('nav.bar a[href=\"#paper-second\"]').click()")
    assert page.js("location.hash") == "#paper-second"
    assert 0 <= page.js("document.querySelector('#paper-second').getBoundingClientRect().top") < 844


def test_the_bar_of_parts_stays_in_sight_below(page, files):
    page.open(files["report"], 390)
    page.js("document.querySelector('#licences').scrollIntoView()")
    assert page.js("scrollY") > 844
    assert page.js("document.querySelector('nav.bar').getBoundingClientRect().top") == 0
