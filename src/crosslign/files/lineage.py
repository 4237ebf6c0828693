"""Lineage: what an artefact was made of, by what, and what it cost."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crosslign.errors import InputError
from crosslign.files.checksums import sha256_file, sha256_folder
from crosslign.files.own import OwnSums
from crosslign.files.surroundings import commit, machine, versions
from crosslign.files.text import mapped, read_json, write_json
from crosslign.files.walk import files_below, passing_gone

AGAIN = "Wait until no other process writes there, then run the same command again"
DISCARD = "Run crosslign verify --discard, then the same command again"
LONGEST_NAME = 255
"""Bytes that file systems allow a name."""
FOLDERS = "lineage.json"
"""Name of the lineage of a folder, which lies inside it."""
FORMAT = 1
"""Form of the lineage files that this version writes and reads; the first files had it without saying so."""


def sidecar_of(file: Path) -> Path:
    """Return where the lineage of a file lies, whether it is there or not."""
    return file.with_name(file.name + ".lineage.json")


def lineage_path(artefact: Path) -> Path:
    """Return where the lineage of a file or folder lies."""
    artefact = Path(artefact)
    return artefact / FOLDERS if artefact.is_dir() else sidecar_of(artefact)


def is_sidecar(path: Path) -> bool:
    """Tell whether a file is the lineage of another file, or of the folder that it lies in."""
    return path.name == FOLDERS or path.name.endswith(f".{FOLDERS}")


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file or a folder, from its bytes as they lie there now."""
    path = Path(path)
    return sha256_folder(path) if path.is_dir() else sha256_file(path)


def bytes_of(path: Path) -> int:
    """Return the bytes of a file, or of a folder without its lineage."""
    path = Path(path)
    files = [file for file in files_below(path) if file != path / FOLDERS] if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def described_by(sidecar: Path) -> Path:
    """Return the file or folder that a lineage file describes."""
    return sidecar.parent if sidecar.name == "lineage.json" else sidecar.with_name(sidecar.name.removesuffix(".lineage.json"))


def sidecars_of(folder: Path) -> Iterator[Path]:
    """Yield the lineage files below a folder, in the order of their paths, without those of unfinished and of discarded work."""
    yield from filter(is_sidecar, files_below(folder))


MISREAD = (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What comes of settings that have another form than they were written in."""
NUMBER = (int, float)
MOST = 1e18
"""Of seconds, megabytes, bytes and devices: what no job has, and what can still be added, multiplied and rounded."""
FORMS: Mapping[str, Mapping[str, Any]] = {
    "": {"rule": str, "stand_in": bool, "threads": int, "seed": (int, type(None)), "artefact": dict, "inputs": list, "licences": list,
         "versions": dict, "counts": dict, "run": dict, "recipe": object},
    "artefact": {"path": str, "sha256": str, "bytes": int, "kind": str},
    "run": {"commit": str, "started": str, "wall_s": NUMBER, "peak_mb": NUMBER, "device": str},
}  # fmt: skip
"""What a lineage file, its artefact and its run have, and of which type."""
LATER: Mapping[str, Mapping[str, Any]] = {
    "": {"version": str, "settings": dict, "code": str, "heads": list, "own": str},
    "artefact": {},
    "run": {
        "code": str, "earlier_s": NUMBER, "devices": int, "accepted": list, "asked": dict, "read_bytes": NUMBER, "own_bytes": NUMBER,
        "working_bytes": NUMBER, "machine": str,
    },
}  # fmt: skip
"""What files of before do not have."""


def _names_a_file(entry: Any) -> bool:
    """Tell whether an entry holds a path that may be one, and a checksum."""
    if not isinstance(entry, dict) or not all(isinstance(entry.get(key), str) for key in ("path", "sha256")):
        return False
    return "\0" not in entry["path"] and all(len(part.encode()) <= LONGEST_NAME for part in entry["path"].split("/"))


def _problem(content: Mapping[str, Any]) -> str:
    """Return which value of a lineage file is missing or of another form, in words; empty where all are as they were written."""
    for part, forms in FORMS.items():
        values = content[part] if part else content
        later = {key: form for key, form in LATER[part].items() if key in values}
        for key, form in {**forms, **later}.items():
            name = f"{part}.{key}".lstrip(".")
            if key not in values:
                return f"it has no {name}"
            if not isinstance(values[key], form) or (form in (NUMBER, int) and not 0 <= values[key] < MOST):
                return f"{name} has the wrong type"
    texts = [*content["licences"], *content.get("heads", []), *content["versions"].values()]
    notes = [one.get(key) if isinstance(one, dict) else None for one in content["run"].get("accepted", []) for key in ("at", "version")]
    if not all(isinstance(text, str) for text in [*texts, *notes]):
        return "a value that must be text is not"
    if not all(map(_names_a_file, [content["artefact"], *content["inputs"]])):
        return "a value that must be a path is not"
    try:
        datetime.fromisoformat(content["run"]["started"])
    except ValueError:
        return "run.started is not a date"
    return ""


def read_sidecar(path: Path) -> dict[str, Any]:
    """Return what a lineage file holds.

    Raises:
        InputError: it is missing, unreadable, or was written by a version of crosslign whose lineage has another form.
    """
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format", FORMAT) != FORMAT:
        found = content.get("format") if isinstance(content, dict) else "of no kind"
        raise InputError(
            "results of another version of crosslign",
            where=str(path),
            why=f"its lineage has format {found}, this version writes format {FORMAT}",
            do="Move the results folder away, or set another `results:`; the next run rebuilds them",
        )
    if problem := _problem(content):
        raise InputError("not the lineage of an artefact", where=str(path), why=problem, do=DISCARD)
    return content


@contextmanager
def as_written(sidecar: Path) -> Iterator[None]:
    """Read what a lineage file says of a job's settings: what was changed by hand has another form, and is an error that names the file.

    Raises:
        InputError: as the block, and where it meets a value of another form.
    """
    try:
        yield
    except MISREAD as error:
        why = f"its recipe has the wrong format ({type(error).__name__}: {str(error)[:80]})"
        raise InputError("the file is damaged or was changed", where=str(sidecar), why=why, do=DISCARD) from error


def sidecar_if_there(path: Path) -> dict[str, Any] | None:
    """Return what a lineage file holds, None where it is not there, or goes away meanwhile; errors as those of `read_sidecar`."""
    try:
        return read_sidecar(path) if os.path.lexists(path) else None
    except InputError:
        if os.path.lexists(path):
            raise
        return None  # it went away meanwhile


def read_lineage(artefact: Path) -> dict[str, Any]:
    """Return the lineage of a file or folder; errors as those of `read_sidecar`."""
    return read_sidecar(lineage_path(artefact))


def named(path: Path, root: Path) -> str:
    """Return what lineage calls a file or folder: relative to the results, its name alone where it lies outside of them and their kin."""
    place, above = (Path(os.path.normpath(Path(found).absolute())) for found in (path, root))
    return os.path.relpath(place, above) if place.is_relative_to(above.parent) else place.name


BESIDE = ("tasks", "inputs")
"""Parameters that bytes depend on beside the recipe: the tasks that a training selects by, the labels and files of a figure's panels."""


def beside_recipe(params: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """Return a job's parameters that bytes depend on beside its recipe, paths in them relative to the results."""

    def portable(value: Any) -> Any:
        within = isinstance(value, str) and f"{value}{os.sep}".startswith(f"{root}{os.sep}")
        return os.path.relpath(value, root) if within else value

    return {name: mapped(params[name], portable) for name in BESIDE if name in params}


def code_of(lineage: Mapping[str, Any]) -> str:
    """Return the fingerprint of the code that made an artefact; lineage from before there were versions has it in another place."""
    return str(lineage.get("run", {}).get("code") or lineage.get("code", ""))


PEAK_UNITS = 1 << 20 if sys.platform == "darwin" else 1 << 10
"""What a megabyte has of the units in which the system counts peak memory: bytes on macOS, KiB elsewhere."""
Stamps = list[tuple[str, int, int]]
"""Path, time stamp and size of files."""


def _stamps(path: Path) -> Stamps:
    """Return the stamps of a file, or of the files of a folder that its checksum counts."""
    found = []
    for file in [file for file in files_below(path) if file.name != FOLDERS] or [path]:
        with passing_gone():  # its checksum says so
            stat = file.stat()
            found += [(str(file), stat.st_mtime_ns, stat.st_size)] if file.is_file() else []
    return found


@dataclass
class Lineage:
    """What one job knows of itself; `write` puts it beside each artefact.

    Attributes:
        rule: the rule that made the artefact.
        recipe: the resolved settings that the job was given.
        inputs: files and folders that were read.
        derived: those read that were made of `inputs` alone; they are checked, and not listed.
        own: files of the user's own that were read and may go afterwards: one checksum of all is noted.
        own_sum: that checksum, as `own`, once `check_inputs` has read them; nothing where there are none.
        own_bytes: their bytes, as `own_bytes`, in the same way.
        root: `{results}`, which paths are written relative to: `../downloads/...` where scales share a file, and the name alone of what
            lies outside, since equal runs have equal lineage wherever they lie.
        seed: the seed of the job, None where nothing is drawn.
        threads: threads of the job.
        version: versions of the job's stage and of the implementations that it uses, in words.
        settings: parameters that bytes depend on beside the recipe (`beside_recipe`).
        code: fingerprint of the library modules that the job uses; information.
        counts: named counts, such as rows before and after each filter.
        licences: licences of the data behind the artefact, sorted.
        stand_in: whether any input is the project's own synthetic data in place of real data.
        heads: sources of which the beginnings alone were read, sorted, each with how much of a file.
        device: what the job computed on.
        devices: how many of them at once.
        earlier_s: seconds that earlier parts of a job that was stopped and went on took.
        working_bytes: of files that the job needed while it ran, at the most, and gave back.
        asked: what the job asked for: `mem_mb`, `runtime` (minutes) and `disk_mb`; information, as all of `run`.
    """

    rule: str
    recipe: Any
    inputs: list[Path]
    root: Path
    seed: int | None = None
    threads: int = 1
    version: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    code: str = ""
    counts: dict[str, Any] = field(default_factory=dict)
    licences: list[str] = field(default_factory=list)
    stand_in: bool = False
    heads: list[str] = field(default_factory=list)
    device: str = "cpu"
    devices: int = 1
    earlier_s: float = 0.0
    working_bytes: int = 0
    asked: Mapping[str, int] = field(default_factory=dict)
    derived: Sequence[Path] = ()
    own: Sequence[Path] = ()
    started: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        self._seen = {path: (_stamps(path), _stamps(lineage_path(path))) for path in map(Path, [*self.inputs, *self.derived])}
        self._checksums: dict[Path, str] = {}
        self.own_sum: dict[str, str] = {}
        self.own_bytes: dict[str, int] = {}

    def input_checksum(self, path: Path) -> str:
        """Return the SHA-256 of an input, read once while its stamps stay what they were when the job began.

        Raises:
            InputError: it is gone, or its bytes changed while the job read it: nobody knows which of them the artefact was made of; or
                they are not those that its own lineage names.
        """
        files, sidecar = self._seen[path]
        unchanged = files == _stamps(path)
        if unchanged and path in self._checksums:
            return self._checksums[path]
        try:
            found = checksum(path)
        except FileNotFoundError as error:
            raise InputError("an input disappeared while the job ran", where=str(path), do=AGAIN) from error
        # The stamp may be new alone, set by the engine of another run: then its lineage is the old one, and names these bytes.
        described = sidecar and sidecar == _stamps(lineage_path(path))
        whole = described and read_lineage(path)["artefact"]["sha256"] == found
        if not unchanged and not whole:
            raise InputError("an input changed while the job ran", where=str(path), do=AGAIN)
        if described and not whole:
            raise InputError("the file differs from its lineage", where=str(path), why="it is damaged, or was changed by hand", do=DISCARD)
        self._checksums[path] = found
        return found

    def check_inputs(self) -> None:
        """Read all inputs once, before any work: one byte of a file that is not as it was made goes into results in silence.

        Raises:
            InputError: as `input_checksum`.
        """
        for path in self._seen:
            self.input_checksum(path)
        if self.own:  # of what changes while the job reads it the next run finds another sum
            self.own_sum = {"own": OwnSums(self.root).of_all(self.own)}
            self.own_bytes = {"own_bytes": sum(path.stat().st_size for path in self.own)}

    def inherit(self) -> None:
        """Take over licences, the mark of synthetic data and that of beginnings from the lineage of every input."""
        licences, heads = set(self.licences), set(self.heads)
        for path in self.inputs:
            if before := sidecar_if_there(lineage_path(path)):
                licences.update(before["licences"])
                heads.update(before.get("heads", ()))
                self.stand_in = self.stand_in or before["stand_in"]
        self.licences, self.heads = sorted(licences), sorted(heads)

    def write(self, artefact: Path, kind: str, final: Path | None = None) -> None:
        """Write the sidecar of one artefact.

        Args:
            artefact: the file or folder to describe, where it lies now.
            kind: what it is, such as `corpus` or `embeddings`.
            final: where it will lie, when it is still in a temporary place.

        Raises:
            InputError: an input changed or went away since this record began.
        """
        artefact = Path(artefact)
        entry = {"path": named(final or artefact, self.root), "sha256": checksum(artefact), "bytes": bytes_of(artefact), "kind": kind}
        # Ranks and the processes of an encoding are children; the largest one counts, no sum of all at one moment is to be had.
        peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        write_json(
            lineage_path(artefact),
            {
                "format": FORMAT,
                "artefact": entry,
                "inputs": [{"path": named(p, self.root), "sha256": self.input_checksum(p)} for p in sorted(set(map(Path, self.inputs)))],
                "rule": self.rule,
                "recipe": self.recipe,
                "settings": self.settings,
                "seed": self.seed,
                "threads": self.threads,
                "version": self.version,
                "versions": versions(),
                "counts": self.counts,
                "licences": self.licences,
                "stand_in": self.stand_in,
                **({"heads": self.heads} if self.heads else {}),
                **self.own_sum,
                "run": {
                    "commit": commit(),
                    "code": self.code,
                    "started": datetime.fromtimestamp(self.started, UTC).isoformat(timespec="seconds"),
                    "wall_s": round(time.time() - self.started, 3),
                    "peak_mb": round(peak / PEAK_UNITS, 1),
                    "earlier_s": self.earlier_s,
                    "working_bytes": self.working_bytes,
                    "machine": machine(),
                    "device": self.device,
                    "devices": self.devices,
                    "read_bytes": sum(size for files, _ in self._seen.values() for _, _, size in files),
                    **self.own_bytes,
                    "asked": dict(self.asked),
                },
            },
        )


def wall_seconds(run: Mapping[str, Any]) -> float:
    """Return what a job took, from the `run` of its lineage: all parts of one that was stopped and went on."""
    return float(run["wall_s"]) + float(run.get("earlier_s", 0.0))


def gpu_hours(run: Mapping[str, Any]) -> float:
    """Return the GPU-hours of a job, from the `run` of its lineage; none where it computed on a CPU."""
    return 0.0 if str(run["device"]).startswith("cpu") else wall_seconds(run) * int(run.get("devices", 1)) / 3600


def licences_and_heads(paths: Iterable[Path]) -> tuple[list[str], list[str]]:
    """Return what the lineage of the given artefacts names, sorted.

    Returns:
        licences, those of data joined from several sources (`A; B`) one by one; and the sources of which the beginnings alone were read,
        each with how much of a file.
    """
    found = [lineage for path in paths if (lineage := sidecar_if_there(lineage_path(path)))]
    licences = {part for lineage in found for licence in lineage["licences"] for part in licence.split("; ")}
    return sorted(licences), sorted({head for lineage in found for head in lineage.get("heads", ())})
