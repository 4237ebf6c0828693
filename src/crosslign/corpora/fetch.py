"""One catalog file from a mirror or its source: locked, verified, retried, whole or not at all."""

from __future__ import annotations

import logging
import random
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any

from crosslign.config.catalog import describe, size_of, source_kind
from crosslign.corpora import SOURCES
from crosslign.corpora.sources._network import SlowError, TransientError, require_space
from crosslign.errors import NetworkError
from crosslign.files import atomic_path, sha256_file, write_text
from crosslign.files.locks import locked
from crosslign.files.mirrors import mirrored

logger = logging.getLogger(__name__)

ATTEMPTS = 3
BACKOFF_S = 1.0
LONGEST_WAIT_S = 120.0


def record_path(dest: Path) -> Path:
    """Return where the hash of a file without one in the catalog is recorded at its first download."""
    return dest.with_name(dest.name + ".sha256")


@dataclass(frozen=True)
class _Wanted:
    """What a file must be."""

    file: Mapping[str, Any]
    where: str
    record: Path | None

    @property
    def sha256(self) -> str:
        """The catalog's hash, else that of the first download, else nothing."""
        if self.file.get("sha256"):
            return str(self.file["sha256"]).lower()
        return self.record.read_text(encoding="utf-8").strip() if self.record and self.record.is_file() else ""

    def problem(self, path: Path) -> str:
        """Return what is wrong with the file at `path`, expected and found; empty when it is the one."""
        found, size, expected = sha256_file(path), path.stat().st_size, self.file.get("bytes")
        if self.sha256:
            return "" if found == self.sha256 else f"expected sha256 {self.sha256}, found {found} ({size:,} bytes)"
        return f"expected {expected:,} bytes, found {size:,}" if expected is not None and size != expected else ""


def _in_mirrors(name: str, wanted: _Wanted, mirrors: Sequence[Path]) -> tuple[Path | None, str]:
    """Return the file of the first mirror that has it, and the problems of those that have another."""
    problems = []
    for path in mirrored(name, wanted.file, mirrors):
        if problem := wanted.problem(path):
            logger.warning("%s is not used: %s", path, problem)
            problems.append(f"{path}: {problem}")
            continue
        return path, ""
    return None, "; ".join(problems)


def _wait(attempt: int, error: TransientError) -> None:
    """Wait before another try: as long as the server asks, else twice as long each time, spread by chance."""
    seconds = error.retry_after if error.retry_after is not None else BACKOFF_S * 2**attempt * random.uniform(0.5, 1.5)
    time.sleep(min(seconds, LONGEST_WAIT_S))


def _from_source(source: Mapping[str, Any], wanted: _Wanted, part: Path) -> None:
    """Fetch and verify, with three tries in a row that bring nothing new or bring it too slowly; one that brings more starts anew."""
    fetch = SOURCES.get(source_kind(source))
    tries = 1 if source_kind(source) == "local" else ATTEMPTS  # a file of this machine stays what it is
    if wanted.sha256 and part.is_file() and not wanted.problem(part):
        return  # killed between the last byte and the final name
    attempt, most = 0, 0
    while True:
        try:
            fetch(source, wanted.file, part)
            problem = wanted.problem(part)
            if not problem:
                return
            aside = part.replace(part.with_suffix(".wrong"))
            raise TransientError(
                f"{wanted.file['name']} is not what the catalog says", where=wanted.where, why=f"{problem}, kept as {aside}"
            )
        except TransientError as error:
            size = part.stat().st_size if part.exists() else 0
            attempt, most = (0, size) if size > most and not isinstance(error, SlowError) else (attempt + 1, most)
            if attempt >= tries:
                raise
            logger.warning("%s; trying again", error)
            _wait(attempt, error)


def _missing(name: str, wanted: _Wanted, error: NetworkError, problems: str) -> NetworkError:
    file = wanted.file
    known = f", or anywhere in it with sha256 {file['sha256']} in its MANIFEST.csv" if file.get("sha256") else ""
    recorded = (
        f" If the publisher changed the file, delete {wanted.record} to accept the new one."
        if wanted.record and wanted.record.is_file()
        else ""
    )
    return NetworkError(
        f"{file['name']} ({size_of(file)}) is missing: {error.what}",
        where=wanted.where,
        why="; ".join(filter(None, [error.why, problems])),
        do=f"A mirror (CROSSLIGN_MIRROR, or `mirror:` in config/config.yaml) supplies it as {name}/{file['name']}{known}.{recorded}",
    )


def _remove(dest: Path, *endings: str) -> None:
    """Remove the helping files of `dest` whose names end so."""
    for ending in endings:
        for left in dest.parent.glob(f".{escape(dest.name)}.{ending}"):
            left.unlink(missing_ok=True)


def _bring(name: str, source: Mapping[str, Any], wanted: _Wanted, dest: Path, mirrors: Sequence[Path]) -> None:
    """Bring a file to `dest`, under its lock; what a killed job left of a copy goes, what it left of a download is gone on with."""
    _remove(dest, "[0-9a-f]" * 8 + ".part")
    found, problems = _in_mirrors(name, wanted, mirrors)
    part = dest.with_name(f".{dest.name}.download")
    require_space(dest, found.stat().st_size if found else wanted.file.get("bytes", 0) - (part.stat().st_size if part.exists() else 0))
    if found:
        with atomic_path(dest) as temporary:
            shutil.copyfile(found, temporary)
        logger.info("%s: copied from the mirror %s", wanted.file["name"], found)
    else:
        try:
            with atomic_path(dest, part):
                _from_source(source, wanted, part)
        except NetworkError as error:
            raise _missing(name, wanted, error, problems) from error
    _remove(dest, "download", "download.state", "wrong")


def fetch_file(name: str, source: Mapping[str, Any], file: Mapping[str, Any], dest: Path, mirrors: Sequence[Path]) -> dict[str, Any]:
    """Bring one catalog file to `dest`: from there, a mirror, or its source.

    A hash in the catalog always holds. A file without one has its hash recorded beside it
    (`<dest>.sha256`) at the first download, and that one holds from then on; only a local file
    without one may change, and is copied anew. A broken download stays as `.<name>.download` and
    is resumed, wrong bytes are kept as `.<name>.wrong` until the right ones come; nothing but a
    verified file is ever called `dest`.

    Args:
        name: id of the catalog entry; also its folder in a mirror.
        source: the entry's source: `package`, `url`, `opus`, `local` or `hub`, with what these need.
        file: name, and sha256, bytes, path where the catalog knows them.
        dest: final path.
        mirrors: folders that are looked in before the source.

    Returns:
        Facts for lineage, equal wherever the file came from: `file`, `bytes`, `sha256`, and `recorded`,
        true when the hash stems from the first download and not from the catalog.

    Raises:
        NetworkError: the file could not be had; names it, its size, its URL and how a mirror supplies it.
        InputError: the catalog entry or a mirror's manifest cannot be used, or a local file is missing.
        ResourceError: the disk is full.
    """
    dest = Path(dest)
    local = source_kind(source) == "local"
    wanted = _Wanted(file, describe(source, file), None if local else record_path(dest))
    dest.parent.mkdir(parents=True, exist_ok=True)
    with locked(dest.with_name(f".{dest.name}.lock")):
        if not dest.is_file() or wanted.problem(dest) or (local and not wanted.sha256):
            _bring(name, source, wanted, dest, mirrors)
        found = wanted.sha256 or sha256_file(dest)
        if wanted.record and not file.get("sha256"):
            write_text(wanted.record, found + "\n")
    return {
        "file": file["name"],
        "bytes": dest.stat().st_size,
        "sha256": found,
        "recorded": wanted.record is not None and not file.get("sha256"),
    }
