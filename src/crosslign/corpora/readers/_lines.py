r"""Lines of text, read by one policy.

- Only `\n` ends a line; `\r\n` is accepted for it. U+2028, U+0085 and a lone `\r` are text.
- A byte order mark at the start of the file is dropped.
- Bytes that are no UTF-8, NUL, and a line of more than 64 MiB are an error that names file and line.
- `.gz`, `.bz2`, `.xz` and `.zst`, and members of archives, are unpacked on the way; an empty file is an error.
- A line without text is yielded: the reader decides, and mostly refuses it. Blank lines behind the last one with text are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crosslign.corpora.readers._left_out import BROKEN, leave_out
from crosslign.corpora.readers._parts import TextFile, open_part
from crosslign.corpora.unpacking import AGAIN
from crosslign.errors import InputError
from crosslign.registry import nearest

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
AT_ONCE = 1 << 18
"""Bytes that are unpacked, decoded and checked at once: as Python strings they take some megabytes."""
MOST_BLANK = 1000
"""Blank lines behind the last one with text that are none; more are told."""
LONGEST = 1 << 26
"""Bytes of a line, as unpacked: some kilobytes of a packed file could else fill all memory."""
Broken = Callable[[bytes], str | None]
"""What stands for a line that is not UTF-8 or holds NUL; None where nothing does."""


def left_out(line: bytes) -> None:
    """Count a line that is no text as one that is left out."""
    leave_out(BROKEN)


def read_lines(source: Path | TextFile, *, blank_end: bool = False, broken: Broken | None = None) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text) of a file or of a member of an archive, without the line's end.

    Args:
        source: the file.
        blank_end: yield blank lines behind the last one with text, too: where a blank line says something. All of a blank file are yielded.
        broken: what stands for a line that is no text; one for which nothing does is passed over. Without it such a line is an error.

    Raises:
        InputError: the file is missing, empty, damaged, not UTF-8, holds NUL or a line beyond `LONGEST`; the place is `file:line`.
    """
    part = source if isinstance(source, TextFile) else TextFile(source.name, source)
    number, said, waiting = 0, 0, list[tuple[int, str]]()
    with open_part(part) as stream:
        for block in _blocks(stream):
            for text in _split(block) or _checked(block, part, number, broken):
                number += 1
                if text is None:
                    continue
                if not (blank_end or text.strip() or len(waiting) == MOST_BLANK):
                    waiting.append((number, text))
                    continue
                if waiting:
                    yield from waiting
                    waiting.clear()
                yield number, text
                said = number
    yield from () if said else waiting
    if not number:
        raise InputError("the file is empty", where=part.at(), do=AGAIN)


def lines_of(source: Path | TextFile) -> list[str]:
    """Return the lines of a small file, as `read_lines` reads it."""
    return [text for _, text in read_lines(source)]


def read_columns(source: Path | TextFile, rows: int, *, skip_broken: bool = False) -> Iterator[pa.Array]:
    """Yield what `read_lines` yields as columns of `rows` texts, the last one shorter; a bad line is named before its column is there.

    With `skip_broken` a line that is not UTF-8, or holds NUL, is a null in its place, so that aligned files keep step.
    """
    part = source if isinstance(source, TextFile) else TextFile(source.name, source)
    waiting: list[pa.Array] = []
    number = 0
    with open_part(part) as stream:
        for block in _blocks(stream):
            waiting.append(_texts(block, part, number, skip_broken))
            number += len(waiting[-1])
            if (ready := sum(map(len, waiting)) // rows * rows) > 0:
                whole = pa.concat_arrays(waiting)
                yield from (whole[start : start + rows] for start in range(0, ready, rows))
                waiting = [whole[ready:]]
    if not number:
        raise InputError("the file is empty", where=part.at(), do=AGAIN)
    if len(rest := pa.concat_arrays(waiting)):
        yield rest


def without_blank_end(chunks: Iterable[tuple[pa.Array, ...]]) -> Iterator[tuple[pa.Array, ...]]:
    """Yield columns of aligned lines, a chunk at a time, without the lines at the end of the last two that are blank in all of them.

    A file that is blank as a whole is yielded as it is.
    """
    held, some = list[tuple[pa.Array, ...]](), False
    for chunk in chunks:
        if len(held) == 2:
            yield held.pop(0)
            some = True
        held.append(chunk)
    ends = [_last_told(chunk) for chunk in held]
    while held and not ends[-1] and (some or any(ends)):
        held.pop()
        ends.pop()
    yield from held[:-1]
    if held:
        yield tuple(texts[: ends[-1] or None] for texts in held[-1])


def _last_told(chunk: tuple[pa.Array, ...]) -> int:
    """Return the number of the last line of aligned ones that is not blank in all of them, from 1; 0 where all are."""
    told = np.flatnonzero(~np.logical_and.reduce([blank(texts.fill_null("-")) for texts in chunk]))
    return int(told[-1]) + 1 if len(told) else 0


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield whole lines behind a byte order mark, some thousands at a time; of a line beyond `LONGEST` its beginning."""
    first, rest = stream.read(len(BYTE_ORDER_MARK)).removeprefix(BYTE_ORDER_MARK), b""
    while len(rest) <= LONGEST and (read := first or stream.read(AT_ONCE)):
        first, end = b"", read.rfind(b"\n") + 1
        if end:
            yield rest + read[:end]
            rest = read[end:]
        else:
            rest += read
    if rest:
        yield rest


def _split(block: bytes) -> list[str]:
    """Return the lines of a block; none where one of them is bad, or may be: then each is to be looked at."""
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError:
        return []
    if "\0" in text or len(block) > LONGEST:
        return []
    *lines, last = text.split("\n")
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    return [*lines, last] if last or not lines else lines


def _column(block: bytes) -> pa.Array | None:
    """Return the lines of a block without a Python object for each; None where each must be looked at."""
    if b"\r" in block or b"\0" in block or len(block) > LONGEST:
        return None
    try:
        block.decode("utf-8")
    except UnicodeDecodeError:
        return None
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
    offsets = np.concatenate([[0], ends - np.arange(len(ends))]).astype(np.int32)
    text = block.translate(None, b"\n")
    if not block.endswith(b"\n"):
        offsets = np.append(offsets, np.int32(len(text)))
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(text))


def _texts(block: bytes, part: TextFile, before: int, skip_broken: bool) -> pa.Array:
    """Return the lines of a block, looked at one by one where one of them may be bad."""
    if column := _column(block):
        return column
    lines: Sequence[str | None] = _split(block) or list(_checked(block, part, before, (lambda line: None) if skip_broken else None))
    return pa.array(lines, pa.string())


def _checked(block: bytes, part: TextFile, before: int, broken: Broken | None) -> Iterator[str | None]:
    """Yield the lines of a block until a bad one, which is named, or for which stands what `broken` says."""
    for number, raw in enumerate(BytesIO(block), before + 1):
        if len(raw) > LONGEST:
            raise InputError(f"a line has more than {LONGEST:,} bytes", where=part.at(number), why="this is not a text file of lines")
        line = raw[:-1].removesuffix(b"\r") if raw.endswith(b"\n") else raw
        if broken and (b"\0" in line or not _is_utf8(line)):
            yield broken(line)
            continue
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                "not UTF-8", where=part.at(number), why=f"byte {error.object[error.start]:#04x} at column {error.start + 1}"
            ) from error
        if "\0" in text:
            raise InputError("a NUL character", where=part.at(number), why="the file is not plain UTF-8 text")
        yield text


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def left_after(texts: pa.Array, skip_empty: bool, part: TextFile, number: int) -> NDArray[np.bool_]:
    """Return which lines of a column are there; those that are broken are left out, those that are empty where that is allowed.

    Args:
        texts: lines, null where one is broken.
        skip_empty: whether empty ones may be left out.
        part: the file, for messages.
        number: the first line's.

    Raises:
        InputError: a line is empty and may not be.
    """
    there = np.asarray(texts.is_valid())
    empty = blank(texts.fill_null("-"))
    if empty.any() and not skip_empty:
        check_text(texts[int(np.argmax(empty))].as_py(), part, number + int(np.argmax(empty)))
    return there & ~empty


def blank(texts: pa.Array) -> NDArray[np.bool_]:
    """Return which texts are empty or white space only."""
    return np.asarray(pc.or_(pc.equal(pc.binary_length(texts), 0), pc.utf8_is_space(texts)))


def check_text(text: Any, source: Path | TextFile, number: int, what: str = "line") -> str:
    """Return `text` as it is.

    Raises:
        InputError: it is empty or white space only, or no text, as a value of JSON may be.
    """
    if isinstance(text, str) and text.strip():
        return text
    where = source.at(number) if isinstance(source, TextFile) else f"{source}:{number}"
    if isinstance(text, str):
        raise InputError(f"the {what} is empty", where=where)
    raise InputError(f"the {what} is not text", where=where, why=f"found {text!r}"[:80])


def place_of(column: str, header: Sequence[str], source: TextFile) -> int:
    """Return the place of a column in the first line of a file.

    Raises:
        InputError: it is not there, or twice.
    """
    if (count := header.count(column)) != 1:
        what = f"two columns are called {column!r}" if count else f"no column {column!r}"
        raise InputError(what, where=source.at(1), why=f"found {', '.join(header)}" if count else nearest(column, list(header)))
    return header.index(column)


def first_missing(lines: Mapping[Path | TextFile, int]) -> str:
    """Return the place, `file:line`, where the shortest of several files lacks a line; `lines` holds the number of each."""
    source, number = min(lines.items(), key=lambda item: item[1])
    return source.at(number + 1) if isinstance(source, TextFile) else f"{source}:{number + 1}"
