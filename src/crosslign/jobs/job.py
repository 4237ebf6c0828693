"""A job of a rule: its inputs, outputs and parameters; artefacts are renamed into place when they are whole.

Log, threads and devices: `jobs/frame.py`; they change no bytes.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import socket
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import Timeout

from crosslign.errors import ResourceError
from crosslign.files.atomic import disk_problem, in_words, replace_folder, require_replaceable
from crosslign.files.lineage import FOLDERS, Lineage, lineage_path
from crosslign.files.locks import locked
from crosslign.files.text import mapped

Paths = dict[str, Any]
DERIVED = "derived"
"""Name of inputs that are made of the others alone, and are removed again: they are checked, and lineage has none of them."""
ALIVE = ".alive"
"""File of a temporary folder whose lock its process holds; `host:pid` stands in it."""


def as_paths(items: Iterable[tuple[str, Any]]) -> Paths:
    """Return named items of a rule as paths, or lists of them."""
    return {name: Path(value) if isinstance(value, str) else [Path(path) for path in value] for name, value in items}


def named_inputs(**inputs: Any) -> dict[str, Any]:
    """Return nested inputs under flat names, as a rule declares them: `corpora={"bible": path}` becomes `corpora:bible`."""
    found: dict[str, Any] = {}
    for name, value in inputs.items():
        inner = named_inputs(**value) if isinstance(value, Mapping) else {"": value}
        found |= {f"{name}:{key}".removesuffix(":"): path for key, path in inner.items()}
    return found


def all_paths(paths: Any) -> list[Path]:
    """Return every path of nested inputs, in their order."""
    if isinstance(paths, Mapping):
        return [path for value in paths.values() for path in all_paths(value)]
    return [paths] if isinstance(paths, Path) else list(paths)


def inputs_of(items: Iterable[tuple[str, Any]]) -> Paths:
    """Return a rule's inputs, nested by their names: `corpora:bible` is `["corpora"]["bible"]` (the inverse of `named_inputs`).

    Of folders whose lineage alone is asked for, as `lineages`, it is the file inside: the folder is not read. `lineage` of the other
    inputs is declared to be there, and belongs to them.
    """
    found: Paths = {}
    for name, value in as_paths(item for item in items if item[0] != "lineage").items():
        *above, last = name.split(":")
        place = found
        for key in above:
            place = place.setdefault(key, {})
        place[last] = value
    if "lineages" in found:
        found["lineages"] = [path / FOLDERS if path.is_dir() else path for path in found["lineages"]]
    return found


def at_copies(params: Paths, outputs: Iterable[Path]) -> Paths:
    """Return a rule's parameters with every path below the results leading to this machine's copy of them.

    Where the results lie in object storage, a job gets copies of its inputs and outputs below a folder of its own, and parameters still
    name places as the workflow does. Without such a storage nothing changes.

    Args:
        params: of the rule; `root` is the folder of results, or of what scales share.
        outputs: of the rule.
    """
    root = str(params["root"])
    found = (str(path).partition(f"/{root}/") for path in outputs if not str(path).startswith(f"{root}/"))
    before = next((above for above, there, _ in found if there), "")
    kin = f"{Path(root).parent if Path(root).parent.name else root}/"

    def moved(value: Any) -> Any:
        return f"{before}/{value}" if isinstance(value, str) and f"{value}/".startswith(kin) else value

    return {name: value if name == "recipe" else mapped(value, moved) for name, value in params.items()} if before else params


def listed(inputs: Paths) -> Paths:
    """Return those of a rule's inputs that lineage lists."""
    return {name: value for name, value in inputs.items() if name != DERIVED}


@dataclass(frozen=True)
class Job:
    """What a rule hands to its stage.

    Attributes:
        rule: name of the rule, which is that of the stage.
        inputs, outputs: paths by the names that the rule gives them; a list where it gives several, a mapping where a name has parts
            (`corpora:bible`).
        params: settings by name; `recipe` and `version` enter lineage, `root` the folder of results.
        threads: threads that the job may use.
        lineage: record that the stage completes and writes beside each output.
        resources: settings that change no bytes, such as devices (`gpu`), or how often a training is saved; the lineage has none of them.
    """

    rule: str
    inputs: Paths
    outputs: Paths
    params: Mapping[str, Any]
    threads: int
    lineage: Lineage
    resources: Mapping[str, Any] = field(default_factory=dict)

    def write_lineage(self, kind: str, outputs: Iterable[Path], counts: Mapping[str, Any], finals: Iterable[Path] | None = None) -> None:
        """Complete the lineage with counts and write it beside each output.

        Args:
            kind: what the outputs are.
            outputs: where they lie now.
            counts: numbers worth keeping.
            finals: where they will lie, if elsewhere.
        """
        outputs = list(outputs)
        self.lineage.counts = dict(counts)
        self.lineage.inherit()
        for output, final in zip(outputs, finals or outputs, strict=True):
            self.lineage.write(output, kind, final)

    @contextmanager
    def publish(self, kind: str) -> Iterator[tuple[dict[str, Path], dict[str, Any]]]:
        """Yield temporary paths by output name, and counts to fill; give them their final names, lineage first, at the end.

        They lie in folders of this process alone, `.<name>.<number>.part` beside the outputs. What killed jobs left there is removed
        when one starts again; what a live one writes, on any machine, is not touched.
        """
        temporary: dict[str, Path] = {}
        counts: dict[str, Any] = {}
        with ExitStack() as held, _by_final_names(temporary, self.outputs):
            for name, final in self.outputs.items():
                require_replaceable(final)
                _remove_leftovers(final)
                temporary[name] = held.enter_context(_folder_beside(final)) / final.name
            yield temporary, counts
            self.write_lineage(kind, temporary.values(), counts, self.outputs.values())
            for name, final in self.outputs.items():
                _move(temporary[name], final)


@contextmanager
def _by_final_names(temporary: Mapping[str, Path], finals: Mapping[str, Path]) -> Iterator[None]:
    """Let an error of the block name an output by its final name, where it names the temporary one."""
    try:
        yield
    except Exception as error:
        told = in_words(error)
        for name, place in temporary.items():
            if told is not None:
                told.call(str(place), str(finals[name]))
        if told is None or told is error:
            raise
        raise told from error


@contextmanager
def _folder_beside(final: Path) -> Iterator[Path]:
    """Make a temporary folder, and keep a lock in it while the block runs; it is removed at the end."""
    folder = final.with_name(f".{final.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        try:
            folder.mkdir(parents=True)
            (folder / ALIVE).write_text(f"{socket.gethostname()}:{os.getpid()}", encoding="utf-8")
        except OSError as error:
            raise disk_problem(error, final) or error from error
        with locked(folder / ALIVE):
            yield folder / "new"  # not there yet: stages make folders themselves
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_leftovers(final: Path) -> None:
    """Remove the temporary folders of an output whose processes have ended."""
    own = re.compile(rf"\.{re.escape(final.name)}\.[0-9a-f]{{8}}\.part")
    for folder in [path for path in final.parent.glob(f".{glob.escape(final.name)}.*.part") if own.fullmatch(path.name)]:
        try:
            if not (folder / ALIVE).is_file():
                continue  # no job's, or one that begins this moment
            lock = locked(folder / ALIVE, 0.0)
            with lock:
                if not isinstance(lock, nullcontext) or _ended_here(folder / ALIVE):
                    shutil.rmtree(folder, ignore_errors=True)
        except (Timeout, OSError, ResourceError):  # at work, or another user's, or just gone
            continue


def _ended_here(mark: Path) -> bool:
    """Tell, where there are no locks, whether a process of this machine has ended; of others nobody knows."""
    host, _, number = mark.read_text(encoding="utf-8", errors="replace").rpartition(":")
    if host != socket.gethostname() or not number.isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False


def _move(temporary: Path, final: Path) -> None:
    """Rename an artefact into place, its lineage first; a folder carries its lineage inside."""
    final.parent.mkdir(parents=True, exist_ok=True)
    if temporary.is_dir():
        replace_folder(temporary, final)
    else:
        lineage_path(temporary).replace(lineage_path(final))
        temporary.replace(final)
