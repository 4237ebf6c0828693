"""Sentences of a Wikipedia dump (`enwiki-…-pages-articles.xml.bz2`): markup parsed by mwparserfromhell, read as a stream."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from crosslign.corpora import READERS
from crosslign.corpora.readers._parts import TextFile
from crosslign.corpora.readers._prose import sentences
from crosslign.corpora.readers._tables import ROWS, tables
from crosslign.corpora.readers._xml import Handler, items
from crosslign.files.rows import SCHEMAS, pieces
from crosslign.options import Positive
from crosslign.workers import Work, Workers

ARTICLES = "0"
"""Name space of articles."""
ARTICLES_AT_ONCE, CHARACTERS_AT_ONCE = 256, 1 << 22
"""Articles that are parsed together, and the length of their markup from which on fewer are."""
NOT_PROSE = frozenset({"ref", "table", "gallery", "math", "timeline", "score", "syntaxhighlight", "source", "code", "imagemap"})
MEDIA = re.compile(r"\s*[^\W\d_][\w ]*:", re.UNICODE)
LISTS = ("*", "#", ":", ";")
"""What a line of a list, or an indented one, begins with."""
LEFTOVERS = ("|", "!", "{", "}", "__")
"""What a line begins with that markup left behind which could not be parsed."""


@READERS.register(version=3, gives="mono", languages=1)
def read(files: Mapping[str, Path], corpus: str, langs: Sequence[str], *, min_words: Positive = 1, threads: int = 1) -> Iterator[pa.Table]:
    """Yield `mono` rows: the sentences of articles, without redirects, headings, lists, tables, notes and captions.

    Args:
        files: path by catalog name (`.xml`, packed or not), read in that order.
        corpus: id of the corpus; row ids are `<corpus>:<file>:<article>.<sentence>`, counted from 1.
        langs: the language of the dump.
        min_words: sentences of fewer words are left out.
        threads: processes that parse markup, beside this one, which unpacks; the rows are the same.

    Raises:
        InputError: not XML, an entity declaration, a damaged file.
        ResourceError: one of the processes died.
    """
    articles = (table for name, path in files.items() for table in _articles(TextFile(name, Path(path)), corpus))
    for table in _parsed(articles, corpus, langs[0], min_words, threads):
        yield from pieces(table, ROWS) if table.num_rows else ()


def _parsed(articles: Iterator[pa.Table], corpus: str, lang: str, min_words: int, threads: int) -> Iterator[pa.Table]:
    if threads == 1:
        yield from (article_rows(table, lang, min_words) for table in articles)
        return
    given = {"lang": lang, "min_words": min_words}
    with Workers(threads, article_work, given, corpus) as workers:
        yield from (table for table, _ in workers.map(articles, None))


def article_work(lang: str, min_words: int) -> Work:
    """Return the work of a worker that parses articles; the notes say nothing."""
    return lambda table, _: (article_rows(table, lang, min_words), None)


def _articles(part: TextFile, corpus: str) -> Iterator[pa.Table]:
    """Yield tables of id (of the rows, up to the article) and markup, of some hundred articles or some megabytes each."""
    ids, texts, size = list[str](), list[str](), 0
    for page, markup in items(part, _Pages()):
        ids.append(f"{corpus}:{part.name}:{page}")
        texts.append(markup)
        size += len(markup)
        if len(ids) == ARTICLES_AT_ONCE or size > CHARACTERS_AT_ONCE:
            yield pa.table({"id": ids, "markup": texts})
            ids, texts, size = [], [], 0
    if ids:
        yield pa.table({"id": ids, "markup": texts})


def article_rows(articles: pa.Table, lang: str, min_words: int) -> pa.Table:
    """Return the `mono` rows of articles, given as id and markup."""
    rows = [
        (f"{article}.{number}", lang, sentence)
        for article, markup in zip(articles["id"].to_pylist(), articles["markup"].to_pylist(), strict=True)
        for number, sentence in enumerate(sentences(prose(markup)), start=1)
        if len(sentence.split()) >= min_words
    ]
    found = list(tables(rows, "mono", ("id", "lang", "text")))
    return pa.concat_tables(found) if found else SCHEMAS["mono"].empty_table()


def prose(markup: str) -> str:
    """Return the running text of an article's wiki markup, a paragraph a line."""
    import mwparserfromhell

    code = mwparserfromhell.parse("\n".join(line for line in markup.splitlines() if not line.startswith(LISTS)))
    for heading in code.filter_headings():
        _remove(code, heading)
    for tag in code.filter_tags():
        if str(tag.tag).strip().lower() in NOT_PROSE:
            _remove(code, tag)
    for link in code.filter_wikilinks():
        if MEDIA.match(str(link.title)):
            _remove(code, link)
    text = str(code.strip_code(normalize=True, collapse=True, keep_template_params=False))
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(LEFTOVERS))


def _remove(code: Any, node: Any) -> None:
    """Remove a node, which may have gone with one that held it."""
    try:
        code.remove(node)
    except ValueError:
        return


class _Pages(Handler[tuple[str, str]]):
    """Gathers (id, wiki markup) of each article that is not a redirect."""

    root_tag = "mediawiki"
    item_tag = "page"

    def __init__(self) -> None:
        super().__init__()
        self._fields: dict[str, list[str]] = {}
        self._redirect = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        super().start(tag, attributes)
        if tag == "page":
            self._fields, self._redirect = {}, False
        elif tag == "redirect":
            self._redirect = True

    def text(self, data: str) -> None:
        if self.path[-2:] in (["page", "id"], ["page", "ns"], ["revision", "text"]):
            self._fields.setdefault(self.path[-1], []).append(data)

    def end(self, tag: str) -> None:
        super().end(tag)
        if tag == "page" and not self._redirect:
            values = {name: "".join(pieces) for name, pieces in self._fields.items()}
            if values.get("ns", ARTICLES) == ARTICLES and values.get("text"):
                self.done.append((values.get("id", ""), values["text"]))
