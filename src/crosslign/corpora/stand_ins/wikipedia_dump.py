"""Synthetic data for a Wikipedia dump: pages of wiki markup in XML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins.wikipedia_parquet import articles

HEAD = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10" xml:lang="en">\n'
    "  <siteinfo><dbname>enwiki</dbname></siteinfo>"
)
PAGE = (
    "  <page>\n    <title>Article {id}</title>\n    <ns>0</ns>\n    <id>{id}</id>\n    <revision>\n      <id>{revision}</id>\n"
    '      <text bytes="{size}" xml:space="preserve">{text}</text>\n    </revision>\n  </page>'
)
REDIRECT = '  <page>\n    <title>Old</title>\n    <ns>0</ns>\n    <id>0</id>\n    <redirect title="Article 1" />\n  </page>'


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> bytes:
    """Return `…-pages-articles.xml`, packed as its name says, with the markup that a reader must take away."""
    pages = [HEAD, REDIRECT]
    for number, paragraphs in enumerate(articles(sentences), start=1):
        body = "\n\n".join(f"{paragraph}<ref>A note.</ref>" for paragraph in paragraphs)
        markup = escape(f"{{{{Infobox|name=none}}}}\n== Heading ==\n{body}\n* An item of a list.\n[[Category:Written]]")
        pages.append(PAGE.format(id=number, revision=number + 1000, size=len(markup.encode()), text=markup))
    return lines([*pages, "</mediawiki>"])
