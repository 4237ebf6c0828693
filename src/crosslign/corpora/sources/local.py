"""Files in a folder of this machine, such as corpora that must be asked for by hand."""

from __future__ import annotations

from pathlib import Path

from crosslign.config.catalog import local_file
from crosslign.corpora import SOURCES
from crosslign.entries.catalog import Source
from crosslign.entries.resolved import AskedFile
from crosslign.errors import InputError
from crosslign.files.checksums import copy_summed


@SOURCES.register(version=1)
def fetch(source: Source, file: AskedFile, dest: Path) -> str:
    """Copy one file; a relative folder is relative to the working directory, and where that has none, one of the catalog.

    Raises:
        InputError: the file is not there.
    """
    path = local_file(source, file)
    if not path.is_file():
        raise InputError(f"{file['name']} is missing", where=str(path), do="Put it there, or change `local` in config/corpora.yaml")
    return copy_summed(path, dest)
