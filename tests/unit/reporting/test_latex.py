"""LaTeX of tables: every text compiles under pdfLaTeX, columns carry their headings, wide and long tables fit."""

import re
import shutil
import subprocess
from dataclasses import replace

import pytest
from paper_tables import laid_out, resolved_tables

from crosslign.config.baselines import named_columns
from crosslign.errors import InputError
from crosslign.reporting.formats import as_latex
from crosslign.reporting.layout import PrintedCell, PrintedRow, PrintedTable
from crosslign.reporting.markup import ACCENTED, LATEX, latex_escape
from crosslign.reporting.values import Cell

PREAMBLE = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage{booktabs,xcolor,graphicx,longtable}
\begin{document}
%s
\end{document}
"""
STRANGE = r"a_b & 5 % of ${}#^~ \ xx→en ≤ τ ∗ λ † Straße, øre"
FOREIGN = "Привет 你好 İstanbul ％ ț̈"


def small(label, rows=1, columns=1, scale="paper"):
    """Return a table of one label everywhere, with everything that a cell can show."""
    cell = PrintedCell("75.0 ± 7.1", "93.6", "a", "↑", True, "", Cell(), delta="−18.6")
    heads = [{"group": f"{label} {column // 2}", "label": label, "name": label} for column in range(columns)]
    body = [PrintedRow(label if not row else "", label, label, "a", [cell] * columns, label) for row in range(rows)]
    return PrintedTable("t", label, label, heads, body, [("a", label), ("", label)], scale != "paper", column_letters=["a"] * columns)


def compiled(folder, *tables):
    (folder / "table.tex").write_text(PREAMBLE % "\n".join(map(as_latex, tables)), encoding="utf-8")
    return run(folder)


def run(folder):
    """Return what pdflatex says of `table.tex`; the test fails where it does not compile it."""
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "table.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=120)
    if b"find the format file" in done.stdout:
        pytest.skip("this pdflatex has no format file")
    said = done.stdout.decode(errors="replace")
    assert done.returncode == 0, said[-1500:]
    return said


needs_latex = pytest.mark.skipif(
    not shutil.which("pdflatex"), reason="no pdflatex here: apt-get install texlive-latex-base texlive-latex-recommended"
)


def test_special_characters_are_escaped_and_foreign_ones_stand_where_only_unicode_engines_look():
    assert latex_escape("a_b & 5 %") == r"a\_b \& 5 \%"
    assert latex_escape("é λ") == r"é $\lambda$"
    assert latex_escape("5 好ş％") == r"5 {\ifdefined\Umathchar 好ş％\else ?s\%\fi}"


def test_no_text_of_a_paper_table_needs_a_character_that_pdflatex_lacks():
    lacking = {c for name in resolved_tables() for c in str(laid_out(name)) if not (c.isascii() or c in LATEX or c in ACCENTED)}
    assert lacking == set()


@needs_latex
@pytest.mark.parametrize("scale", ["paper", "quick"])
def test_strange_labels_compile(tmp_path, scale):
    compiled(tmp_path, small(STRANGE, 3, 2, scale), small(FOREIGN, 1, 1, scale))


@needs_latex
def test_every_table_of_the_papers_compiles(tmp_path):
    tables = map(as_latex, map(laid_out, resolved_tables()))
    (tmp_path / "table.tex").write_text(PREAMBLE % "\\clearpage\n".join(tables), encoding="utf-8")
    run(tmp_path)


@needs_latex
@pytest.mark.parametrize("label", ["[CLS]", "*first", "[3pt]"])
def test_a_label_is_never_read_as_an_argument_of_the_row_above_it(tmp_path, label):
    compiled(tmp_path, small(label, 3, 2))


def test_latex_has_the_chosen_columns_alone_and_the_footnotes_that_are_left():
    table = small("x", columns=3)
    table.column_letters, table.footnotes = ["b", "", "c"], [("a", "of all"), ("b", "of the first"), ("c", "of the last"), ("↑", "above")]
    table.latex = [1, 2]
    text = as_latex(table)
    assert r"\begin{tabular}{lrr}" in text
    assert "of the first" not in text
    assert all(note in text for note in ("of all", "of the last", "above"))
    assert as_latex(replace(table, latex=[])).count("of the first") == 1


def test_columns_are_chosen_by_label_or_group_and_a_name_that_is_none_is_refused():
    columns = [{"group": "F1", "label": "de"}, {"group": "F1", "label": "fr"}, {"label": "de"}]
    assert named_columns(columns, ["F1"]) == [0, 1]
    assert named_columns(columns, ["de"]) == [0, 2]
    assert named_columns(columns, []) == []
    with pytest.raises(InputError, match="'accuracy'"):
        named_columns(columns, ["accuracy"])


def test_columns_carry_the_heading_that_tells_them_apart():
    text = as_latex(small("x", columns=4))
    assert r" & \multicolumn{2}{c}{x 0} & \multicolumn{2}{c}{x 1} \\" in text
    assert r"\cmidrule(lr){2-3} \cmidrule(lr){4-5}" in text
    assert "multicolumn{1}{c}" not in as_latex(laid_out("msimcse_table4"))


@needs_latex
def test_long_tables_run_over_pages_wide_ones_shrink_and_narrow_ones_keep_their_size(tmp_path):
    measured = r"\typeout{width \the\wd0 of \the\textwidth}"
    wide, narrow = (as_latex(small("x", 2, columns)).replace(r"\ifdim\wd0", measured + r"\ifdim\wd0") for columns in (30, 1))
    scaled = r"\let\plain\resizebox\renewcommand{\resizebox}{\typeout{scaled}\plain}"
    (tmp_path / "table.tex").write_text(PREAMBLE % "\n".join([scaled, wide, narrow, as_latex(laid_out("emma_x_table7"))]), encoding="utf-8")
    said = run(tmp_path)
    assert said.count("scaled") == 1
    assert said.count("width ") == 2
    assert "Float too large" not in said
    assert int(re.search(r"\((\d+) pages", said)[1]) >= 3
