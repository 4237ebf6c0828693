"""XTREME's translated training sets: original pair, translated pair, label; every language in an order of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from crosslign.corpora.sampling import generator
from crosslign.corpora.stand_ins._names import language_in
from crosslign.corpora.stand_ins._packing import lines, write_file
from crosslign.corpora.stand_ins._sentences import text_in


def write_translated(dest: Path, name: str, pairs: Iterable[tuple[str, Mapping[str, str], Mapping[str, str]]]) -> None:
    """Write the file of the language that its name says.

    Args:
        dest: final path.
        name: `en-<language>-translated.tsv`.
        pairs: (label, first sentence, second sentence) by language.

    Raises:
        InputError: another name.
    """
    lang = language_in(name, "en-<language>-translated.tsv")
    rows = [
        "\t".join((text_in(first, "en"), text_in(second, "en"), text_in(first, lang), text_in(second, lang), label))
        for label, first, second in pairs
    ]
    generator(0, lang).shuffle(rows)
    write_file(dest, name, lines(rows))
