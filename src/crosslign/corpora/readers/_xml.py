"""XML read as a stream: bounded memory, no entities of the file's own, nothing outside it opened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar
from xml.parsers import expat

from crosslign.corpora.readers._parts import TextFile, open_part
from crosslign.corpora.unpacking import CHUNK
from crosslign.errors import InputError

T = TypeVar("T")

LARGEST = 1 << 26
"""Bytes between the ends of two items, as unpacked: what the parser and the handler may have to hold."""
DEEPEST = 100
"""Elements within elements; the parser holds all that are open."""


class Handler(Generic[T]):
    """Gathers items as the parser comes by; a subclass fills `done` and names the outermost element and that of an item."""

    root_tag = ""
    item_tag = ""

    def __init__(self) -> None:
        self.done: list[T] = []
        self.path: list[str] = []
        self.root = ""
        self.ended = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self.root = self.root or tag
        self.path.append(tag)
        if len(self.path) > DEEPEST:
            raise InputError(f"elements are nested more than {DEEPEST} levels deep")

    def text(self, data: str) -> None:
        """Text within the elements of `path`."""

    def end(self, tag: str) -> None:
        """An element ends."""
        self.path.pop()
        self.ended += tag == self.item_tag

    def undefined(self, name: str, *_: object) -> None:
        """Refuse a reference to an entity that only a file elsewhere could define: its text would be lost.

        Raises:
            InputError: always.
        """
        raise InputError(f"the file does not define the entity {name!r}", why="definitions outside the file are not read")

    def refuse(self, name: str, *_: object) -> None:
        """Refuse an entity declaration.

        Raises:
            InputError: always.
        """
        raise InputError(f"the file declares an entity {name!r}", why="declared entities can expand without limit")


def items(part: TextFile, handler: Handler[T]) -> Iterator[T]:
    """Yield what a handler gathers, chunk after chunk.

    Raises:
        InputError: not XML, an entity declaration, an entity that is not defined, another outermost element than the handler's,
            an item beyond `LARGEST` or elements beyond `DEEPEST` (`file:line`), a damaged file.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = handler.start, handler.end, handler.text
    parser.EntityDeclHandler, parser.SkippedEntityHandler = handler.refuse, handler.undefined
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    try:
        with open_part(part) as stream:
            held, ended = 0, 0
            while chunk := stream.read(CHUNK):
                parser.Parse(chunk, False)
                held, ended = (0 if handler.ended > ended else held + len(chunk)), handler.ended
                if held > LARGEST:
                    raise InputError(f"a <{handler.item_tag}> has more than {LARGEST:,} bytes")
                yield from handler.done
                handler.done = []
            parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise InputError("not XML", where=part.at(error.lineno), why=expat.ErrorString(error.code)) from error
    except InputError as error:
        raise InputError(error.what, where=error.where or part.at(parser.CurrentLineNumber), why=error.why, do=error.do) from error
    yield from handler.done
    if handler.root != handler.root_tag:
        raise InputError(f"not a <{handler.root_tag}> file", where=part.at(1), why=f"the outermost element is <{handler.root}>")
