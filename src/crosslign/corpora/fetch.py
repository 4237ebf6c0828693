"""One catalog file from a mirror or its source: locked, verified, retried, whole or not at all."""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any, TypeVar

from crosslign.config.catalog import addresses, describe, size_of, source_kind
from crosslign.console import number_of
from crosslign.corpora import SOURCES
from crosslign.corpora.soundness import unsound
from crosslign.corpora.sources._hosts import connection
from crosslign.corpora.sources._network import BusyError, SlowError, TransientError, WrongError, require_space
from crosslign.corpora.sources.url import said_size
from crosslign.entries.catalog import Source
from crosslign.entries.resolved import AskedFile
from crosslign.errors import InputError, NetworkError
from crosslign.files import atomic_path, sha256_file, write_text
from crosslign.files.checksums import copy_summed
from crosslign.files.lineage import lineage_path
from crosslign.files.locks import locked
from crosslign.files.mirrors import mirrored
from crosslign.files.text import read_text

log = logging.getLogger(__name__)
Got = TypeVar("Got")

GRACE_S = 6 * 3600.0
"""A server that asks for a longer wait is not waited for."""
RECORDED = re.compile(r"[0-9a-f]{64}(\s+[0-9]{1,18})?")


@dataclass(frozen=True)
class Patience:
    """How long a fetch goes on trying at one address.

    Attributes:
        tries: in a row that bring nothing new.
        first_s: seconds before the second try, spread by chance; twice as long before each further one.
        busy_s: the same where a server wants to be left alone and does not say for how long.
        longest_s: no wait that a server did not ask for is longer.
        wrong: times that wrong bytes are fetched.
    """

    tries: int = 6
    first_s: float = 1.0
    busy_s: float = 60.0
    longest_s: float = 900.0
    wrong: int = 3

    def wait(self, tried: int, error: TransientError) -> None:
        """Wait as long as the server asks, else longer each time: half a minute in all, half an hour for a server that is busy."""
        first = self.busy_s if isinstance(error, BusyError) else self.first_s
        seconds = error.retry_after or 0.0  # 0 also where the moment that it names has passed, as where clocks differ
        if not seconds:
            seconds = min(first * 2 ** (tried - 1) * random.uniform(0.75, 1.5), self.longest_s)
        if seconds >= 1:
            log.warning("%s; trying again in %.0f s", error, seconds)
        time.sleep(seconds)

    def wait_or_raise(self, tried: int, error: TransientError, tries: int) -> None:
        """Wait for another try; raise the error where there were `tries`, or the server asks for a longer wait than `GRACE_S`."""
        if tried >= tries or (error.retry_after or 0) > GRACE_S:
            raise error
        self.wait(tried, error)


PATIENCE = Patience()


def patiently(ask: Callable[[], Got], patience: Patience = PATIENCE) -> Got:
    """Return what is asked for; where that fails for a while, it is asked for again, `patience.tries` times in all."""
    tried = 0
    while True:
        try:
            return ask()
        except TransientError as error:
            tried += 1
            patience.wait_or_raise(tried, error, patience.tries)


def record_path(dest: Path) -> Path:
    """Return where the hash of a file without one in the catalog is recorded at its first download."""
    return dest.with_name(dest.name + ".sha256")


class _NotTheOneError(Exception):
    """A copy that is not the wanted file."""


@dataclass(frozen=True)
class _Wanted:
    """What a file must be."""

    file: AskedFile
    where: str
    record: Path | None

    @property
    def sha256(self) -> str:
        """The catalog's hash, else that of the first download, else nothing."""
        if self.file.get("sha256"):
            return str(self.file["sha256"]).lower()
        return next(iter(self._recorded()), "")

    @property
    def whole(self) -> int:
        """Bytes of the whole file of which this one is the beginning: as recorded, else as the catalog has them; 0 of a whole file."""
        if "head" not in self.file:
            return 0
        return int([*self._recorded(), "", ""][1] or self.file.get("about_bytes", self.file["head"]))

    def _recorded(self) -> list[str]:
        if not self.record or not self.record.is_file():
            return []
        text = read_text(self.record).strip()
        if not RECORDED.fullmatch(text):
            why = "it must hold the sha256 of the first download, and for a file's beginning the size of the whole file"
            do = "Delete it: the next download is then accepted as it is"
            raise InputError("not a record of a download", where=str(self.record), why=why, do=do)
        return text.split()

    def note(self, found: str, whole: int) -> None:
        """Record the sum of a file without one in the catalog, and of a beginning the size of the whole."""
        if self.record and not self.file.get("sha256"):
            write_text(self.record, f"{found} {whole}\n" if whole else f"{found}\n")

    def problem(self, path: Path, found: str = "") -> str:
        """Return what is wrong with the file at `path`, expected and found; empty when it is the one.

        Args:
            path: the file.
            found: its sum, where that was taken as it came.
        """
        size, expected = path.stat().st_size, self.file.get("bytes")
        if self.sha256:
            found = found or sha256_file(path)
            return "" if found == self.sha256 else f"expected sha256 {self.sha256}, found {found} ({number_of(size, 'byte')})"
        if expected is not None and size != expected:
            return f"expected {number_of(expected, 'byte')}, found {size:,}"
        return unsound(path, self.file) if self.record else ""


def _from_mirrors(name: str, wanted: _Wanted, dest: Path, mirrors: Sequence[Path]) -> tuple[str, str, int]:
    """Copy the file of the first mirror that has it, or the beginning of it.

    Returns:
        Its sum, empty where none has it; what is wrong with others; bytes of the file that it is the beginning of, 0 where unknown.
    """
    problems = []
    for path in mirrored(name, wanted.file, mirrors):
        size = path.stat().st_size
        require_space(dest, wanted.file.get("head", size))
        with suppress(_NotTheOneError), atomic_path(dest) as temporary:
            found = copy_summed(path, temporary, wanted.file.get("head"))
            if problem := wanted.problem(temporary, found):
                log.warning("%s is not used: %s", path, problem)
                problems.append(f"{path}: {problem}")
                raise _NotTheOneError
            log.info("%s: copied from the mirror %s", wanted.file["name"], path)
            return found, "", size if path.name == wanted.file.get("of") else 0
    return "", "; ".join(problems), 0


def _persist(source: Source, wanted: _Wanted, part: Path, patience: Patience, *, elsewhere: bool) -> str:
    """Fetch and verify at one address, and return the sum; a try that brings more than all before begins the count of tries again.

    With `elsewhere`, one that wants to be left alone is left at once: another may have the file.
    """
    fetch = SOURCES.get(source_kind(source))
    tried, wrong, most = 0, 0, 0
    while True:
        try:
            found = fetch(source, wanted.file, part)
            problem = wanted.problem(part, found)
            if not problem:
                return found
            aside = part.replace(part.with_suffix(".wrong"))
            raise WrongError(
                f"{wanted.file['name']} differs from the catalog's entry",
                where=describe(source, wanted.file),
                why=f"{problem}, kept as {aside}",
            )
        except TransientError as error:
            size = part.stat().st_size if part.exists() else 0
            tried, most = (1, size) if size > most and not isinstance(error, SlowError) else (tried + 1, most)
            wrong += isinstance(error, WrongError)
            once = source_kind(source) == "local" or (elsewhere and isinstance(error, BusyError))  # a file of this machine stays what it is
            patience.wait_or_raise(tried, error, 1 if once or wrong >= patience.wrong else patience.tries)


def _from_source(source: Source, wanted: _Wanted, part: Path, patience: Patience) -> str:
    """Fetch and verify, at one address after another, and return the sum of what came."""
    if wanted.sha256 and part.is_file() and not wanted.problem(part):
        return wanted.sha256  # killed between the last byte and the final name
    places, failed = addresses(source), dict[int, NetworkError]()
    both = (True, False) if len(places) > 1 and source_kind(source) != "github" else (False,)  # GitHub's other host bears less
    for elsewhere in both:
        for number, place in enumerate(places):
            before = failed.get(number)
            if before and (not isinstance(before, BusyError) or (before.retry_after or 0) > GRACE_S):
                continue
            try:
                with connection(place, wanted.file, part.parent.parent):  # also while it waits: other jobs would be turned away as well
                    if isinstance(before, BusyError):
                        patience.wait(1, before)
                    return _persist(place, wanted, part, patience, elsewhere=elsewhere)
            except NetworkError as error:
                failed[number] = error
                if len(failed) < len(places):
                    log.warning("%s; trying another address", error)
    if len(failed) == 1:
        raise failed[0]
    why = "; ".join(f"{error.where}: {error.why}" for error in failed.values())
    raise NetworkError(
        f"none of {number_of(len(failed), 'address')} supplied it", where=wanted.where, why=why, do=failed[0].do
    ) from failed[0]


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
        do=(f"{error.do}. " if error.do else "")
        + f"A mirror (CROSSLIGN_MIRROR, or `mirror:` in config/config.yaml) can supply it as {name}/{file['name']}{known}.{recorded}",
    )


def _remove(dest: Path, *endings: str) -> None:
    """Remove the helping files of `dest` whose names end so."""
    for ending in endings:
        for left in dest.parent.glob(f".{escape(dest.name)}.{ending}"):
            left.unlink(missing_ok=True)


@contextmanager
def alone_with(dest: Path) -> Iterator[None]:
    """Let nobody else write a file, its record and its lineage while the block runs; what killed jobs left of their copies goes first."""
    dest.parent.mkdir(parents=True, exist_ok=True)
    with locked(dest.with_name(f".{dest.name}.lock")):
        for path in (dest, record_path(dest), lineage_path(dest)):
            _remove(path, "[0-9a-f]" * 8 + ".part")
        yield


def _bring(name: str, source: Source, wanted: _Wanted, dest: Path, mirrors: Sequence[Path], patience: Patience) -> tuple[str, int]:
    """Bring a file to `dest`, under its lock, and return its sum, and the size of what it is the beginning of, 0 where nobody said that.

    What a killed job left of a download is gone on with.
    """
    found, problems, whole = _from_mirrors(name, wanted, dest, mirrors)
    part = dest.with_name(f".{dest.name}.download")
    if not found:
        require_space(dest, wanted.file.get("bytes", 0) - (part.stat().st_size if part.exists() else 0))
        try:
            with atomic_path(dest, part):
                found = _from_source(source, wanted, part, patience)
        except NetworkError as error:
            raise _missing(name, wanted, error, problems) from error
        whole = (said_size(part) or 0) if "head" in wanted.file else 0
    _remove(dest, "download", "download.state", "wrong")
    return found, whole


def fetch_file(
    name: str,
    source: Source,
    file: AskedFile,
    dest: Path,
    mirrors: Sequence[Path],
    patience: Patience = PATIENCE,
) -> dict[str, Any]:
    """Bring one catalog file to `dest`: from there, a mirror, or its source.

    A hash in the catalog always holds. A file without one must be what its name and rough size say, whole where it is packed; then its
    hash is recorded beside it (`<dest>.sha256`), which goes with the file. Only a local file without one may change, and is copied again.

    A broken download stays as `.<name>.download` and
    is resumed, wrong bytes are kept as `.<name>.wrong` until the right ones come; nothing but a
    verified file is ever called `dest`.

    Args:
        name: id of the catalog entry; also its folder in a mirror.
        source: the entry's source: `package`, `url`, `opus`, `github`, `local` or `hub`, with what these need; `urls`, further addresses
            that are asked in turn; `connections`, how many its host bears.
        file: name, and sha256, bytes, about_bytes, path where the catalog knows them.
        dest: final path.
        mirrors: folders that are looked in before the source.
        patience: how long each address is tried.

    Returns:
        Facts for lineage, equal wherever the file came from: `file`, `bytes`, `sha256`, and `recorded`,
        true when the hash stems from the first download and not from the catalog; of the beginning of a file `whole_bytes`, the whole's.

    Raises:
        NetworkError: the file could not be had; names it, its size, its URL and how a mirror supplies it.
        InputError: the catalog entry or a mirror's manifest cannot be used, or a local file is missing.
        ResourceError: the disk is full.
    """
    dest = Path(dest)
    local = source_kind(source) == "local"
    wanted = _Wanted(file, describe(source, file), None if local else record_path(dest))
    with alone_with(dest):
        found, whole = "", 0
        if not dest.is_file() and wanted.record:
            wanted.record.unlink(missing_ok=True)
        if not dest.is_file() or wanted.problem(dest) or (local and not wanted.sha256):
            found, whole = _bring(name, source, wanted, dest, mirrors, patience)
        found, whole = wanted.sha256 or found or sha256_file(dest), whole or wanted.whole
        wanted.note(found, whole)
    return {
        "file": file["name"],
        "bytes": dest.stat().st_size,
        "sha256": found,
        "recorded": wanted.record is not None and not file.get("sha256"),
        **({"whole_bytes": whole} if whole else {}),
    }
