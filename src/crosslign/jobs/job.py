"""What a rule hands to its stage, and how artefacts get their names.

The frame of a job stands beside it: no byte of a result hangs on that, so a change of it makes nothing anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crosslign.files.lineage import FOLDERS, Lineage, lineage_path

Paths = dict[str, Any]


def as_paths(items: Iterable[tuple[str, Any]]) -> Paths:
    """Return named items of a rule as paths, or lists of them."""
    return {name: Path(value) if isinstance(value, str) else [Path(path) for path in value] for name, value in items}


def inputs_of(items: Iterable[tuple[str, Any]]) -> Paths:
    """Return a rule's inputs; of folders whose lineage alone is asked for, as `lineages`, the file inside: the folder is not read."""
    found = as_paths(items)
    if "lineages" in found:
        found["lineages"] = [path / FOLDERS if path.is_dir() else path for path in found["lineages"]]
    return found


@dataclass(frozen=True)
class Job:
    """What a rule hands to its stage.

    Attributes:
        rule: name of the rule, which is that of the stage.
        inputs, outputs: paths by the names that the rule gives them; a list where it gives several.
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

    def by_name(self, names: Iterable[str], paths: Iterable[Path]) -> dict[str, Path]:
        """Pair names that a parameter lists with the paths of an input list."""
        return dict(zip(names, paths, strict=True))

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

        What a killed job left in its temporary folder is removed when it starts again.
        """
        temporary: dict[str, Path] = {}
        counts: dict[str, Any] = {}
        folders = {final: final.with_name(f".{final.name}.part") for final in self.outputs.values()}
        for name, final in self.outputs.items():
            shutil.rmtree(folders[final], ignore_errors=True)
            temporary[name] = folders[final] / final.name
        try:
            yield temporary, counts
            self.write_lineage(kind, temporary.values(), counts, self.outputs.values())
            for name, final in self.outputs.items():
                _move(temporary[name], final)
        finally:
            for folder in folders.values():
                shutil.rmtree(folder, ignore_errors=True)


def _move(temporary: Path, final: Path) -> None:
    """Rename an artefact into place, its lineage first; a folder carries its lineage inside."""
    final.parent.mkdir(parents=True, exist_ok=True)
    if temporary.is_dir():
        shutil.rmtree(final, ignore_errors=True)
    else:
        lineage_path(temporary).replace(lineage_path(final))
    temporary.replace(final)
