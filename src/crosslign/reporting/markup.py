"""Texts as markup: characters escaped for Markdown and LaTeX, and the templates of pages."""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Mapping, Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "→": r"$\rightarrow$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "±": r"$\pm$",
    "–": "--", "—": "---", "−": "$-$", "≤": r"$\leq$", "τ": r"$\tau$", "λ": r"$\lambda$", "∗": "$*$", "×": r"$\times$", "†": r"$\dagger$",
    "‡": r"$\ddagger$", "…": r"\ldots{}", "‘": "`", "’": "'", "“": "``", "”": "''", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "[": "{[}", "]": "{]}", "*": "{*}", "≈": r"$\approx$",
}  # fmt: skip
"""How characters are written for LaTeX; a bracket or a star at the start of a row would be read as an argument of the row before it."""
ACCENTED = frozenset("ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿ")
"""Letters beyond ASCII that every LaTeX prints from its standard fonts."""


@functools.cache
def templates() -> Environment:
    """Return the environment of the package's templates; HTML is escaped."""
    environment = Environment(
        loader=PackageLoader("crosslign.reporting", "templates"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["column_groups"] = column_groups
    return environment


def column_groups(columns: Sequence[Mapping[str, str]]) -> list[tuple[str, int]]:
    """Return the headings that span neighbouring columns, with how many each spans."""
    return [(name, len(list(group))) for name, group in itertools.groupby(columns, key=lambda column: column["group"])]


def markdown_escape(text: str) -> str:
    """Return text with a backslash before whatever Markdown would read as markup: lists, headings, entities and formulas, too."""
    escaped = re.sub(r"([\\`*_{}\[\]<>|&$~#])", r"\\\1", text)
    return re.sub(r"^(\d{0,9})([-+=.)])(?=[-=]*(\s|$))", r"\1\\\2", escaped)


def _latin(character: str) -> str:
    """Return a character without its accents, or `?` where it has no ASCII form; nothing for an accent that stands alone."""
    plain = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return "".join(LATEX.get(c, c) for c in plain) or ("" if unicodedata.combining(character) else "?")


def latex_escape(text: str) -> str:
    """Return a text that LaTeX prints as it stands; characters that pdfLaTeX has no font for are only seen by XeLaTeX and LuaLaTeX."""
    pieces = []
    for known, run in itertools.groupby(text, lambda c: c.isascii() or c in LATEX or c in ACCENTED):
        piece = "".join(LATEX.get(c, c) for c in run)
        pieces.append(piece if known else rf"{{\ifdefined\Umathchar {piece}\else {''.join(map(_latin, piece))}\fi}}")
    return "".join(pieces)
