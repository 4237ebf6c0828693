"""Why an artefact of two results folders differs: the first inputs, settings and code that differ behind it, by lineage alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.config.versions import raised
from crosslign.files.lineage import code_of, lineage_path, sidecar_if_there

LONGEST = 60
"""Characters of a value that are shown."""
ABSENT = "(absent)"
OTHER_CODE = "other code, same version"


def _short(value: Any) -> str:
    text = ABSENT if value is ABSENT else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def changed_keys(old: Any, new: Any, key: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield (key, value before, value after) of every setting that differs, keys joined by dots, places of a list in brackets."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in sorted(old.keys() | new.keys()):
            yield from changed_keys(old.get(name, ABSENT), new.get(name, ABSENT), f"{key}.{name}" if key else str(name))
    elif _lists(old, new) and len(old) == len(new):
        for place, pair in enumerate(zip(old, new, strict=True)):
            yield from changed_keys(*pair, f"{key}[{place}]")
    elif old != new:
        yield key, old, new


def _lists(*values: Any) -> bool:
    return all(isinstance(value, Sequence) and not isinstance(value, str) for value in values)


def _own(path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield what differs in an artefact's own facts; code and versions are the same for all artefacts of a rule or run."""
    for key, before, after in changed_keys(old["recipe"], new["recipe"]):
        yield f"{path}: recipe key {key}, {_short(before)} → {_short(after)}"
    settings = new.get("settings", {})
    for key, before, after in changed_keys({**settings, **old.get("settings", {})}, settings):
        yield f"{path}: setting {key}, {_short(before)} → {_short(after)}"
    for fact in ("seed", "threads"):
        if old[fact] != new[fact]:
            yield f"{path}: {fact} {old[fact]} → {new[fact]}"
    versions = raised(_version(old), _version(new))
    yield from (f"version of the code: {before} → {after}" for before, after in versions)
    if not versions and code_of(old) != code_of(new):
        yield f"{OTHER_CODE} in the rule {new['rule']}: {code_of(old) or 'unknown'} → {code_of(new) or 'unknown'}"
    for package, before, after in changed_keys(old["versions"], new["versions"]):
        yield f"version of {package}: {before} → {after}"


def other_code(before: Path, after: Path, files: Iterable[str]) -> int:
    """Return how many artefacts of both folders other code of the same version has made, whether their bytes differ or not."""
    pairs = ([sidecar_if_there(lineage_path(folder / file)) for folder in (before, after)] for file in files)
    found = [(old, new) for old, new in pairs if old and new]
    return sum(code_of(old) != code_of(new) and not raised(_version(old), _version(new)) for old, new in found)


def _version(lineage: Mapping[str, Any]) -> str:
    return str(lineage.get("version", ""))


class Causes:
    """Finds what differs first behind the artefacts of two results folders.

    Args:
        before, after: the `{results}` folders.
    """

    def __init__(self, before: Path, after: Path) -> None:
        self.folders = (before, after)
        self._known: dict[str, tuple[str, ...]] = {}

    def of(self, path: str) -> tuple[str, ...]:
        """Return, for an artefact of both folders, all that differs first on the way back: settings, seeds, code, versions, or bytes.

        Args:
            path: where it lies, relative to its folder.
        """
        if path not in self._known:
            self._known[path] = ()  # lineage has no circles; a folder tampered with must not turn for ever
            self._known[path] = tuple(dict.fromkeys(self._find(path)))
        return self._known[path]

    def _find(self, path: str) -> Iterator[str]:
        old, new = (sidecar_if_there(lineage_path(folder / path)) for folder in self.folders)
        if not (old and new):
            yield f"{path}: only one side has lineage" if old or new else f"{path}: no lineage on either side"
            return
        if old["artefact"]["sha256"] == new["artefact"]["sha256"]:
            return
        # The three tables of an evaluation corpus are made by one job: what differs is said once, of their folder.
        name = path.rpartition("/")[0] if new["artefact"]["kind"] == "evaluation" else path
        found = [*self._inputs(name, old, new), *_own(name, old, new)]
        yield from found
        if not found:
            yield f"{path}: different bytes from equal inputs, settings, code and versions"

    def _inputs(self, path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
        inputs = [{entry["path"]: entry["sha256"] for entry in lineage["inputs"]} for lineage in (old, new)]
        for name in inputs[0].keys() & inputs[1].keys():
            if inputs[0][name] != inputs[1][name]:
                known = all(lineage_path(folder / name).exists() for folder in self.folders)
                hashes = f"{inputs[0][name][:12]} → {inputs[1][name][:12]}"
                yield from (self.of(name) if known else ()) or (f"{name}: different bytes, sha256 {hashes}",)
        for before, after, side in ((0, 1, "before"), (1, 0, "after")):
            only = sorted(inputs[before].keys() - inputs[after].keys())
            if only:
                more = f" and {len(only) - 3} more" if len(only) > 3 else ""
                yield f"{path}: read {', '.join(only[:3])}{more} only {side}"
