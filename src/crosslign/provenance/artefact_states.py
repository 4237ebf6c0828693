"""What state every artefact of a results folder is in: hashed again, and compared with what lineage says of it and of its inputs."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslign.console import number_of
from crosslign.errors import InputError
from crosslign.files.lineage import (
    AGAIN,
    FOLDERS,
    bytes_of,
    checksum,
    described_by,
    lineage_path,
    read_lineage,
    read_sidecar,
    sidecar_if_there,
    sidecars_of,
)
from crosslign.files.text import LARGEST
from crosslign.files.walk import NOWHERE, closed_below, files_below, folders_in, is_plain, is_there, is_unfinished
from crosslign.paths import CATALOG, ORIGIN, PUBLISHED, origin_files, own_or_catalog

WHOLE, REMOVED, STALE, MISSING, TOUCHED, UNREAD = "whole", "removed", "stale", "missing", "touched by hand", "cannot be read"
SOUND = (WHOLE, REMOVED)
"""States that nothing has to be done about."""
OF_FILES = ("corpora", "views", "examples", "embeddings", "scores", "mined", "tables", "figures")
OF_FOLDERS = ("encoders", "systems")
"""Folders of results in which every file, or every folder, has lineage."""
PAGES = ("overlap", "overview", "report")
STRAY = "the artefact that it describes is not here"
SHOWN = "Run crosslign verify, which names all that is changed; with --discard, the next run rebuilds it"
NOT_BUILT = "Build first (`snakemake --cores all`), or give a results folder with its scale, such as results/laptop"


@dataclass(frozen=True)
class Finding:
    """The state of one artefact or cell.

    Attributes:
        path: relative to the results folder; absolute where it lies outside of it (downloads and models, which scales share).
        state: whole, removed (vectors that nobody needs any more), stale (made of inputs that have changed since), missing, touched
            by hand, or that its bytes cannot be read: then nobody knows, and nothing is refuted.
        why: what differs.
    """

    path: str
    state: str
    why: str = ""


def _is_of_its_size(file: Path) -> bool:
    """Tell whether a file or folder has the size that its lineage names, if any: nobody waits for the sum of a terabyte of holes."""
    with suppress(InputError):
        lineage = sidecar_if_there(lineage_path(file))
        return lineage is None or bool(bytes_of(file) == lineage["artefact"]["bytes"])
    return True


def unread(error: BaseException) -> str:
    """Return why bytes cannot be read, of an error that comes of that; empty for every other, such as of what they hold."""
    found = error if isinstance(error, OSError) else error.__cause__
    if not isinstance(found, OSError) or not found.errno or found.errno in (*NOWHERE, errno.EISDIR):
        return ""
    return str(found.strerror)


Sum = str | OSError | None
"""SHA-256 of an artefact as it lies there now; None where it is not there, or no file or folder; the error where it cannot be read."""


def sum_now(file: Path) -> Sum:
    """Hash a file or folder."""
    try:
        file.stat()
        if closed := closed_below(file):
            return closed[0][1]
        if not is_plain(file):
            return None
        return checksum(file) if _is_of_its_size(file) else "of another size"
    except OSError as error:
        return None if error.errno in NOWHERE else error


def _hashed(results: Path, path: str, known: dict[str, Sum]) -> Sum:
    """Return the checksum of an artefact, which is made once."""
    if path not in known:
        known[path] = sum_now(results / path)
    return known[path]


def _is_described(file: Path) -> bool:
    """Tell whether lineage lies beside what is there, as far as this user may look."""
    with suppress(OSError):
        return is_there(lineage_path(file))
    return False


def _input(results: Path, entry: Mapping[str, Any], known: dict[str, Sum]) -> Sum:
    """Return the checksum of an input.

    What no lineage describes may be of any size, such as a file of holes: more bytes than its job read are not those that it read.
    """
    path, most = entry["path"], entry["most"]
    if path not in known and not _is_described(results / path):
        with suppress(OSError):  # its checksum says so
            if (size := bytes_of(results / path)) > (LARGEST if most is None else most):
                why = f"not checked: {number_of(size, 'byte')}, and nothing says how many its job read"
                return OSError(errno.EFBIG, why) if most is None else "of another size"
    return _hashed(results, path, known)


def require_whole(results: Path, files: Iterable[Path]) -> None:
    """Hash files or folders of these results before they are explained or leave them: they must be what their lineage says.

    Scores of another group may have none.

    Raises:
        InputError: names the first that differs, has no lineage, is gone or cannot be read.
    """
    for file in files:
        lineage, now = sidecar_if_there(lineage_path(file)), sum_now(file)
        if isinstance(now, OSError):
            raise InputError("cannot be read", where=str(file), why=unread(now)) from now
        if lineage is None and origin_files(results, file.relative_to(results).as_posix()):
            continue
        if now is None:
            raise InputError("the file disappeared", where=str(file), do=AGAIN)
        if lineage is None:
            raise InputError("no lineage describes the file", where=str(file), do=SHOWN)
        if now != lineage["artefact"]["sha256"]:
            raise InputError("the file differs from its lineage", where=str(file), why="it is damaged, or was changed by hand", do=SHOWN)


def is_stray(results: Path, sidecar: Path) -> bool:
    """Tell whether a file has the name of a folder's lineage, and lies in no folder that has some."""
    place = sidecar.relative_to(results).parts
    return sidecar.name == FOLDERS and not (len(place) == 3 and place[0] in OF_FOLDERS)


def _within(results: Path, project: Path, place: str) -> bool:
    """Tell whether an input lies where results, what scales share, and the project's own files lie: nothing else is read.

    Results may be another's: a link in them leads to what lineage describes, as when a folder lies on another disk, or to nothing.
    """
    absolute = Path(os.path.normpath((results / place).absolute()))
    if absolute.is_relative_to(os.path.normpath(results.absolute().parent)):
        real = Path(os.path.realpath(absolute))
        inside = any(real.is_relative_to(os.path.realpath(root)) for root in (results, results.absolute().parent))
        return inside or _is_described(absolute)
    return any(absolute.is_relative_to(os.path.normpath(root)) for root in (project.absolute(), CATALOG))


def _place(results: Path, project: Path, path: str, recipe: Any) -> str:
    """Return where an input lies: as lineage names it; absolute where it lies outside of these results."""
    if path.startswith("../"):
        return os.path.normpath((results / path).absolute())
    if "/" in path or is_there(results / path):
        return path
    own = recipe.get("file") if isinstance(recipe, Mapping) else None
    places = [own_or_catalog(project / PUBLISHED / path, PUBLISHED / path)]
    places += [project / own] if isinstance(own, str) and Path(own).name == path else []
    return next((str(place.absolute()) for place in places if is_there(place)), path)


def read_described(results: Path, project: Path, sidecar: Path) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
    """Return where an artefact lies, what its lineage says of it, and its inputs, each with where it lies and how large it may be.

    Scores of another group have no inputs here: what they were made of lies with that group.

    Raises:
        InputError: the lineage cannot be read.
    """
    lineage = read_sidecar(sidecar)
    path = described_by(sidecar).relative_to(results).as_posix()
    if path.startswith("scores/") and origin_files(results, path):
        return path, lineage["artefact"], []
    most = lineage["run"].get("read_bytes")
    placed = (
        {**entry, "path": _place(results, project, entry["path"], lineage.get("recipe")), "most": most} for entry in lineage["inputs"]
    )
    return path, lineage["artefact"], [entry for entry in placed if _within(results, project, entry["path"])]


def artefacts(results: Path, project: Path = Path(), own: Iterable[Finding] = ()) -> Iterator[Finding]:
    """Yield the state of every artefact that has lineage, of what should have some, and of downloads that they were made of.

    Args:
        results: the results folder with its scale.
        project: the project's folder, for its own files and the user's.
        own: of artefacts that are whole, what files outside say of them (`provenance.outside`).

    Raises:
        InputError: the folder holds no lineage at all.
    """
    known: dict[str, Sum] = {}
    outside = {finding.path: finding for finding in own}
    sidecars = list(sidecars_of(results))
    closed = [Finding(path.relative_to(results).as_posix(), UNREAD, unread(error)) for path, error in closed_below(results)]
    if not sidecars and not closed:
        raise InputError("no results here", where=str(results), do=NOT_BUILT)
    yield from closed
    wanted: dict[str, tuple[str, dict[str, Any]]] = {}
    for sidecar in sidecars:
        if is_stray(results, sidecar):
            yield Finding(sidecar.relative_to(results).as_posix(), TOUCHED, STRAY)
            continue
        try:
            path, artefact, inputs = read_described(results, project, sidecar)
            inside, refuted = _state(results, path, artefact, inputs, known), outside.pop(path, None)
            yield refuted if refuted and inside.state == WHOLE else inside
            wanted.update({entry["path"]: (path, entry) for entry in inputs})
        except InputError as error:
            if not is_there(sidecar):  # a job rebuilds its artefact
                continue
            name = sidecar.relative_to(results).as_posix()
            if why := unread(error):
                yield Finding(name, UNREAD, why)
                continue
            yield Finding(name, TOUCHED, "another version wrote it" if "another version" in error.what else "its lineage is damaged")
    for path, (user, entry) in sorted(wanted.items()):
        now = _input(results, entry, known)
        if isinstance(now, OSError):
            if Path(path).is_absolute() or now.errno == errno.EFBIG:  # what is closed within has been said
                yield Finding(path, UNREAD, unread(now))
            continue
        described = is_there(lineage_path(results / path))
        # What lies outside may go once it was used; of a name alone, without a folder, nobody knows where it lies.
        if "/" in path and not Path(path).is_absolute() and not described and not is_there(results / path):
            yield Finding(path, MISSING, f"{user} was made from it")
        elif Path(path).is_absolute() and described:
            with suppress(InputError):
                if now != read_lineage(Path(path))["artefact"]["sha256"]:
                    yield Finding(path, TOUCHED, "its checksum differs from its lineage")  # a download or model
    yield from outside.values()
    yield from _undescribed(results)


def _undescribed(results: Path) -> Iterator[Finding]:
    """Yield what no lineage describes where everything should have some; scores of others say so by their `origin.txt`."""
    found = [path for folder in OF_FILES for path in files_below(results / folder)]
    found += [path for folder in OF_FOLDERS for path in folders_in(results / folder)]
    found += [path for page in PAGES for path in results.glob(f"{page}.*") if not is_unfinished(path.name)]
    for path in sorted(found):
        name = path.relative_to(results)
        if path.name == ORIGIN or path.name.endswith(FOLDERS) or not is_there(path):
            continue
        if not is_there(lineage_path(path)) and not (name.parts[0] == "scores" and origin_files(results, name.as_posix())):
            yield Finding(name.as_posix(), TOUCHED, "no lineage describes it")


def _state(results: Path, path: str, artefact: Mapping[str, Any], inputs: Sequence[Mapping[str, Any]], known: dict[str, Sum]) -> Finding:
    now = _hashed(results, path, known)
    if isinstance(now, OSError):
        return Finding(path, UNREAD, unread(now))
    # Vectors of large sets are removed after their last score (docs/cluster-jobs.md), and all can be computed again.
    if now is None and artefact.get("kind") != "embeddings":
        return Finding(path, MISSING, "its lineage exists, but the file does not")
    if now is not None and now != artefact["sha256"]:
        return Finding(path, TOUCHED, "its checksum differs from its lineage")
    for entry in inputs:
        found = _input(results, entry, known)
        if isinstance(found, str) and found != entry["sha256"]:
            shown = os.path.relpath(entry["path"]) if Path(entry["path"]).is_absolute() else entry["path"]
            return Finding(path, STALE, f"{shown} has changed since")
    return Finding(path, WHOLE if now else REMOVED)
