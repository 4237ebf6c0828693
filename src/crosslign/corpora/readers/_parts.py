"""Text files that a reader reads: files of the catalog, or members of those that are archives."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated

from crosslign.corpora.archives import damage_named, member_names, open_member, open_stream
from crosslign.corpora.unpacked_ahead import ahead
from crosslign.corpora.unpacking import PACKED, unpacked
from crosslign.errors import InputError
from crosslign.options import Len, MinLen, Texts
from crosslign.registry import nearest

ARCHIVES = (".zip", ".whl", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst")
ANY = "*"
BESIDE = re.compile(r"(?:^|/)(?:__MACOSX/|\._)")
"""Resource forks, which macOS packs into its archives under the name of each file."""

OneOrTwo = str | Annotated[Sequence[str], Len(1, 2)]
Members = str | Texts | Annotated[Mapping[str, str], MinLen(1)]
"""A member's name, several names, or names by language (`*` for all others); `{lang}` in it stands for the language."""


@dataclass(frozen=True)
class TextFile:
    """One text file.

    Attributes:
        name: what row ids call it: `<file>`, or `<file>/<member>`.
        path: the file, or the archive that holds it.
        member: its name in the archive; empty for a file.
        langs: its languages, one or two, where somebody said; else empty.
    """

    name: str
    path: Path
    member: str = ""
    langs: tuple[str, ...] = ()

    def at(self, number: int | None = None) -> str:
        """Return the place that messages name: the file, its member, a line of it."""
        place = f"{self.path}:{self.member}" if self.member else str(self.path)
        return place if number is None else f"{place}:{number}"


@contextmanager
def open_part(part: TextFile) -> Iterator[IO[bytes]]:
    """Open a part for reading bytes; packed files and members are unpacked on the way, by a thread, damage is named."""
    if part.member:
        with open_member(part.path, part.member) as stream, ahead(unpacked(stream, part.member, part.at())) as found:
            yield found
    elif part.path.suffix in PACKED:
        with damage_named(part.path), open_stream(part.path) as stream, ahead(stream) as found:
            yield found
    else:
        with damage_named(part.path), open_stream(part.path) as stream:
            yield stream


def is_archive(name: str) -> bool:
    """Tell whether a file of this name holds members."""
    return name.endswith(ARCHIVES)


def all_parts(files: Mapping[str, Path]) -> list[TextFile]:
    """Return every file, and every member of those that are archives, without what macOS writes beside each file.

    Raises:
        InputError: an archive has two members of one name.
    """
    parts = []
    for name, path in files.items():
        members = _members(path) if is_archive(name) else [""]
        parts += [TextFile(f"{name}/{member}" if member else name, Path(path), member) for member in members]
    return parts


def _members(path: Path) -> list[str]:
    members = [member for member in member_names(path) if not BESIDE.search(member)]
    twice = [member for member, count in Counter(members).items() if count > 1]
    if twice:
        raise InputError(f"member {twice[0]!r} occurs twice", where=str(path))
    return members


def named_parts(parts: Sequence[TextFile], name: re.Pattern[str], where: str) -> dict[tuple[str, ...], TextFile]:
    """Return the parts whose names, without the suffix of their packing, a pattern finds, by its groups.

    Raises:
        InputError: two of them have the same groups, as where an archive of a whole repository holds a set and its translation.
    """
    found: dict[tuple[str, ...], TextFile] = {}
    for part in parts:
        if match := name.search(bare_name(part.name)):
            first = found.setdefault(match.groups(), part)
            if first is not part:
                do = "Name the files of only one set in `files`"
                raise InputError("two files have the same role in the set", where=where, why=f"{first.name} and {part.name}", do=do)
    return found


def bare_name(name: str) -> str:
    """Return a name without the suffix of its packing."""
    return next((name.removesuffix(suffix) for suffix in PACKED if name.endswith(suffix)), name)


def parts_of(
    files: Mapping[str, Path],
    langs: Sequence[str],
    member: Members | None,
    file_langs: Mapping[str, str | Sequence[str]] | None,
    where: str,
) -> list[TextFile]:
    """Return what to read, file after file, language after language.

    Args:
        files: path by catalog name.
        langs: languages of the corpus.
        member: members to read of each file that is an archive; None where no file is one.
        file_langs: one language or two by file name, or by member name.
        where: id of the corpus, for messages.

    Raises:
        InputError: an archive without `member`, one that lacks a member or has two of a name, a language whose member nobody named, a name
            in `file_langs` that is not a file's.
    """
    said = {name: (value,) if isinstance(value, str) else tuple(value) for name, value in (file_langs or {}).items()}
    parts: list[TextFile] = []
    names = list(files)
    for name, path in files.items():
        if not is_archive(name):
            parts.append(TextFile(name, Path(path), "", said.get(name, ())))
            continue
        if member is None:
            raise InputError(f"{name!r} is an archive", where=where, do="Name the members to read in `member`")
        members = _members(path)
        names += members
        for inside, known in _named(member, langs, where):
            if inside not in members:
                raise InputError(f"member {inside!r} is not in the archive", where=str(path), why=nearest(inside, members))
            parts.append(TextFile(f"{name}/{inside}", Path(path), inside, said.get(inside) or said.get(name) or known))
    if strange := [name for name in said if name not in names]:
        raise InputError(
            f"`file_langs` names {strange[0]!r}, which is not a file of the corpus", where=where, why=nearest(strange[0], names)
        )
    return parts


def _named(member: Members, langs: Sequence[str], where: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield (member, the language that it was named for)."""
    if not isinstance(member, str | Mapping):
        for name in member:
            yield from _named(name, langs, where)
        return
    if isinstance(member, str):
        if "{lang}" not in member:
            yield member, ()
            return
        member = {ANY: member}
    for lang in langs:
        template = member.get(lang, member.get(ANY))
        if template is None:
            raise InputError(f"`member` names no file for {lang!r}", where=where, why=f"found {sorted(member)}")
        yield template.replace("{lang}", lang), (lang,)
