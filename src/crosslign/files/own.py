"""Files of the user's own, which no lineage describes: which of them are an encoder, and their checksums, each computed once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslign.errors import CrosslignError
from crosslign.files.checksums import sha256_file, sha256_text
from crosslign.files.text import read_mapping, write_json
from crosslign.files.walk import files_below

MODEL_FILES = (".json", ".txt", ".safetensors", ".model", ".spm", ".md", ".vocab", ".bpe")
"""Files of a model's folder that are kept: no pickles, no code, no other framework's weights. Marian's SentencePiece ends in `.spm`."""
KEPT = ".own-checksums.json"
"""Where checksums are remembered, in a folder of results."""
SMALL = 1_000_000
"""Bytes up to which a file is hashed each time."""
SETTLED_NS = 2_000_000_000
"""Age of a change from which on a further one has another time stamp on every file system."""


def model_files(place: Path, form: str = "transformers_folder") -> list[Path]:
    """Return the files of an encoder that lies at a place, as its format reads them, sorted; none where nothing lies there.

    Args:
        place: the folder, or the one file.
        form: its format; all but a folder of transformers look for their files at any depth.
    """
    if not place.is_dir():
        return [place] if place.is_file() else []
    if form != "transformers_folder":
        return list(files_below(place))
    found = [*place.glob("*"), *place.glob("[0-9]_*/*")]
    return sorted(file for file in found if file.is_file() and file.suffix in MODEL_FILES and file.name != "lineage.json")


def changed_ns(path: Path) -> int:
    """Return when a file, its folder or a link on the way to it was last changed: what is moved or copied there may have an old time."""
    place = path.absolute()
    links = [above.lstat() for above in (place, *place.parents) if above.is_symlink()]
    return max(max(stat.st_mtime_ns, stat.st_ctime_ns) for stat in (place.stat(), place.parent.stat(), *links))


def sum_of_all(files: Sequence[Path], sum_of: Callable[[Path], str] = sha256_file) -> str:
    """Return the SHA-256 of one file, or one of the names and checksums of several, which lie below the same folder."""
    if len(files) == 1:
        return sum_of(files[0])
    above = os.path.commonpath([file.absolute().parent for file in files])
    return sha256_text("".join(f"{os.path.relpath(file, above)!a} {sum_of(file)}\n" for file in sorted(files)))


@dataclass(frozen=True)
class OwnSums:
    """Checksums of files, remembered by the state in which they were computed: gigabytes are not read with each dry run.

    Attributes:
        root: folder of results, which the file `KEPT` lies in.
    """

    root: Path

    def of(self, file: Path) -> str:
        """Return the SHA-256 of a file."""
        stat, name = file.stat(), ascii(str(file.absolute()))
        state = [stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
        if stat.st_size <= SMALL:
            return sha256_file(file)
        known = self._known().get(name)
        if isinstance(known, list) and known[:-1] == state:
            return str(known[-1])
        found = sha256_file(file)
        if time.time_ns() - max(state[2:]) > SETTLED_NS:
            with suppress(OSError, CrosslignError):  # a folder that takes nothing: it is computed again
                write_json(self.root / KEPT, {**self._known(), name: [*state, found]})
        return found

    def of_all(self, files: Sequence[Path]) -> str:
        """Return `sum_of_all`."""
        return sum_of_all(files, self.of)

    def _known(self) -> dict[str, Any]:
        with suppress(CrosslignError):
            return read_mapping(self.root / KEPT, or_empty=True)
        return {}
