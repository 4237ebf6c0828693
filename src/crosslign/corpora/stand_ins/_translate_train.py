"""XTREME's translated training sets: original pair, translated pair, label; every language in an order of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from crosslign.corpora.sampling import generator
from crosslign.corpora.stand_ins._names import language_in
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import text_in


def translated(name: str, pairs: Iterable[tuple[str, Mapping[str, str], Mapping[str, str]]]) -> bytes:
    """Return the file of the language that its name says.

    Args:
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
    return lines(rows)
