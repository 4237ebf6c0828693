"""Stand-ins for any file of OPUS: Moses lines in a zip, TMX, or text of one language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines, write_archive, write_file
from crosslign.corpora.stand_ins._sentences import needed, pair_in, text_in

TMX_HEAD = (
    '<?xml version="1.0" encoding="UTF-8" ?>\n<tmx version="1.4">\n<header creationdate="" srclang="{first}" adminlang="{first}" '
    'o-tmf="unknown" segtype="sentence" creationtool="crosslign" creationtoolversion="unknown" datatype="PlainText" />\n  <body>\n'
)
UNIT = '    <tu>\n      <tuv xml:lang="{first}"><seg>{a}</seg></tuv>\n      <tuv xml:lang="{second}"><seg>{b}</seg></tuv>\n    </tu>'


@STAND_INS.register
def write(dest: Path, file: Mapping[str, Any], sentences: Sequence[Mapping[str, str]]) -> None:
    """Write `<a>-<b>.txt.zip`, `<a>-<b>.tmx.gz` or `<a>.txt.gz`; the name says languages and form.

    Args:
        dest: final path.
        file: the catalog's file.
        sentences: aligned sentences by language.
    """
    name = str(file["name"])
    needed(sentences, name)
    pair = name.split(".", maxsplit=1)[0]
    if "-" not in pair:
        write_file(dest, name, lines([text_in(sentence, pair) for sentence in sentences]))
        return
    first, second = pair.split("-")
    texts = [pair_in(sentence, first, second) for sentence in sentences]
    if name.endswith(".zip"):
        members = {f"StandIn.{pair}.{code}": lines([text[side] for text in texts]) for side, code in enumerate((first, second))}
        write_archive(dest, name, {"README": b"Written from sentences of crosslign.\n", **members})
        return
    units = [UNIT.format(first=first, second=second, a=escape(a), b=escape(b)) for a, b in texts]
    content = TMX_HEAD.format(first=first).encode() + lines(units) + b"  </body>\n</tmx>\n"
    write_file(dest, name, content)
