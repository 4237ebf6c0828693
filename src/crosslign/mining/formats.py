"""Mined pairs as files of text: TSV for people, TMX for translation memories, and the two line-aligned files of Moses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import XMLGenerator
from xml.sax.xmlreader import AttributesImpl

import pyarrow as pa

BREAKS = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029], " ")
"""Control codes and what some programs end a line at are spaces in files of text; Parquet keeps the sentence as it is."""
NO_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")
"""What XML 1.0 has no character for, beside control codes."""
FILES: Mapping[str, tuple[str, ...]] = {
    "tsv": ("tsv",),
    "parquet": ("parquet",),
    "tmx": ("tmx",),
    "moses": ("moses_source", "moses_target"),
}
"""Names of the files of each format, as `write_pairs` takes them."""


@dataclass(frozen=True)
class About:
    """What a file may say of all its pairs.

    Attributes:
        langs: codes of the two sides.
        encoders: base encoders that read the sentences.
    """

    langs: tuple[str, str]
    encoders: str


Tables = Iterator[pa.Table]


def _rows(tables: Tables) -> Iterator[tuple[object, ...]]:
    for table in tables:
        yield from zip(*(column.to_pylist() for column in table.columns), strict=True)


def write_tsv(path: Path, tables: Tables, schema: pa.Schema, about: About) -> None:
    """Write a head and one pair a line."""
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        out.write("\t".join(schema.names) + "\n")
        for score, above, source, target, left, right, *others in _rows(tables):
            cells = [
                f"{score:.6f}",
                str(above).lower(),
                str(source),
                str(target),
                str(left).translate(BREAKS),
                str(right).translate(BREAKS),
            ]
            out.write(
                "\t".join([*cells, *(f"{one:.4f}" if isinstance(one, float) else str(one).translate(BREAKS) for one in others)]) + "\n"
            )


def write_tmx(path: Path, tables: Tables, schema: pa.Schema, about: About) -> None:
    """Write TMX 1.4: a unit a pair, with its score and lines as properties; the head names the encoder."""
    from crosslign.version import __version__

    langs = [lang.replace("_", "-") for lang in about.langs]  # of BCP 47, as XML has them
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        xml = XMLGenerator(out, "utf-8", short_empty_elements=True)

        def begin(name: str, attributes: Mapping[str, str]) -> None:
            xml.startElement(name, AttributesImpl(attributes))

        def element(name: str, text: str, attributes: Mapping[str, str]) -> None:
            begin(name, attributes)
            xml.characters(NO_XML.sub("\ufffd", text.translate(BREAKS)))
            xml.endElement(name)

        xml.startDocument()
        begin("tmx", {"version": "1.4"})
        head = {"creationtool": "crosslign", "creationtoolversion": __version__, "segtype": "sentence", "o-tmf": "TSV", "adminlang": "en"}
        begin("header", {**head, "srclang": langs[0], "datatype": "plaintext"})
        element("prop", about.encoders, {"type": "x-encoder"})
        xml.endElement("header")
        begin("body", {})
        for score, _, source, target, left, right, *others in _rows(tables):
            out.write("\n")
            begin("tu", {})
            element("prop", f"{score:.6f}", {"type": "x-score"})
            element("prop", f"{source} {target}", {"type": "x-lines"})
            for name, place in zip(schema.names[-len(others) :], others, strict=bool(others)):
                if not isinstance(place, float):
                    element("prop", str(place), {"type": f"x-{name.replace('_', '-')}"})
            for lang, text in zip(langs, (left, right), strict=True):
                begin("tuv", {"xml:lang": lang})
                element("seg", str(text), {})
                xml.endElement("tuv")
            xml.endElement("tu")
        xml.endElement("body")
        xml.endElement("tmx")
        xml.endDocument()


def _write_lines(column: str) -> Callable[[Path, Tables, pa.Schema, About], None]:
    def write(path: Path, tables: Tables, schema: pa.Schema, about: About) -> None:
        with open(path, "w", encoding="utf-8", newline="\n") as out:
            for table in tables:
                out.writelines(f"{text.translate(BREAKS)}\n" for text in table[column].to_pylist())

    return write


TEXT_WRITERS: Mapping[str, Callable[[Path, Tables, pa.Schema, About], None]] = {
    "tsv": write_tsv,
    "tmx": write_tmx,
    "moses_source": _write_lines("source_text"),
    "moses_target": _write_lines("target_text"),
}
"""What writes each file of text."""
