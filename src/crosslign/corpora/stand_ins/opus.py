"""Synthetic data for any file of OPUS: Moses lines in a zip, TMX, or text of one language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import pair_in, text_in

TMX_HEAD = (
    '<?xml version="1.0" encoding="UTF-8" ?>\n<tmx version="1.4">\n<header creationdate="" srclang="{first}" adminlang="{first}" '
    'o-tmf="unknown" segtype="sentence" creationtool="crosslign" creationtoolversion="unknown" datatype="PlainText" />\n  <body>\n'
)
UNIT = '    <tu>\n      <tuv xml:lang="{first}"><seg>{a}</seg></tuv>\n      <tuv xml:lang="{second}"><seg>{b}</seg></tuv>\n    </tu>'


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> bytes | dict[str, bytes]:
    """Return `<a>-<b>.txt.zip`, `<a>-<b>.tmx.gz` or `<a>.txt.gz`; the name says languages and form."""
    pair = name.split(".", maxsplit=1)[0]
    if "-" not in pair:
        return lines([text_in(sentence, pair) for sentence in sentences])
    first, second = pair.split("-")
    texts = [pair_in(sentence, first, second) for sentence in sentences]
    if name.endswith(".zip"):
        members = {f"StandIn.{pair}.{code}": lines([text[side] for text in texts]) for side, code in enumerate((first, second))}
        return {"README": b"Written from sentences of crosslign.\n", **members}
    units = [UNIT.format(first=first, second=second, a=escape(a), b=escape(b)) for a, b in texts]
    return TMX_HEAD.format(first=first).encode() + lines(units) + b"  </body>\n</tmx>\n"
