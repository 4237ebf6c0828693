"""Files of a repository on GitHub at one commit: its archive comes once, whatever number of its files is wanted.

The host that gives single files turns a client away after a few dozen an hour; of an archive it gives thousands in one answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crosslign.config.catalog import in_repository
from crosslign.console import number_of
from crosslign.corpora import SOURCES
from crosslign.corpora.archives import extract_member, member_names
from crosslign.corpora.sources import url
from crosslign.corpora.sources._network import TransientError
from crosslign.entries.catalog import Source
from crosslign.entries.resolved import AskedFile
from crosslign.errors import InputError, NetworkError
from crosslign.files import sha256_file
from crosslign.files.locks import locked

ARCHIVES = "https://codeload.github.com/"
FOLDER = ".repositories"
"""Folder beside those of the sources that keeps archives, for all sources of one repository; it may be removed at any time."""
LARGEST = 1 << 32
"""Bytes that a member may have."""


def archive_of(source: Source) -> Any:
    """Return where the archive of a repository at a commit is, in the words of a source of the kind `url` and its file."""
    return {"url": ARCHIVES, "connections": 1, "path": f"{source['github']}/tar.gz/{source['revision']}"}


def _archive(source: Source, folder: Path) -> Path:
    """Return the archive of a source's repository at its commit, fetched first where it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"{source['github'].replace('/', '+')}+{source['revision']}.tar.gz"
    if archive.is_file():
        return archive
    with locked(archive.with_name(f".{archive.name}.lock")):
        if not archive.is_file():
            at = archive_of(source)
            part = archive.with_name(f".{archive.name}.download.tar.gz")
            url.fetch(at, {"name": archive.name, "path": at["path"]}, part)
            try:
                member_names(part)
            except InputError as error:
                part.unlink()
                what = f"the archive of {source['github']} is damaged"
                raise TransientError(what, where=f"{ARCHIVES}{at['path']}", why=error.why) from error
            part.replace(archive)
    return archive


@SOURCES.register(version=1)
def fetch(source: Source, file: AskedFile, dest: Path) -> str:
    """Take one file out of the archive of its repository at its commit, which is fetched where it is not there.

    Raises:
        TransientError, NetworkError: those of the source `url`; the archive lacks the file.
    """
    archive = _archive(source, dest.parent.parent / FOLDER)
    names = member_names(archive)
    wanted = in_repository(source, file)
    found = next((name for name in names if name.partition("/")[2] == wanted), None)
    if found is None:
        where = f"{source['github']} at {source['revision']}"
        raise NetworkError(
            f"{file['name']} is not in the repository", where=where, why=f"none of its {number_of(len(names), 'file')} is {wanted}"
        )
    extract_member(archive, found, dest, LARGEST)
    return sha256_file(dest)
