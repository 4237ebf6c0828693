"""LaTeX of tables: every text compiles under pdfLaTeX, columns carry their headings, wide and long tables fit."""

import shutil
import subprocess

import pytest
from paper_tables import laid_out, resolved_tables

from crosslign.reporting.cell import Cell
from crosslign.reporting.formats import ACCENTED, LATEX, as_latex, latex_escape
from crosslign.reporting.layout import PrintedCell, PrintedRow, PrintedTable

PREAMBLE = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage{booktabs,xcolor,graphicx}
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
    return PrintedTable(
        "t", label, label, heads, body, [("a", label), ("", label)], label, scale != "paper", 1, 100, column_letters=["a"] * columns
    )


def compiled(folder, *tables):
    """Return what pdflatex says of tables; the test fails where it does not compile them."""
    (folder / "table.tex").write_text(PREAMBLE % "\n".join(map(as_latex, tables)), encoding="utf-8")
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
def test_tables_of_the_papers_compile(tmp_path):
    compiled(tmp_path, *(laid_out(name) for name in ("scl_table1", "scl_table4", "moco_bert_table10", "mpcl_table1")))
