"""Golden results: small ones of every stage and implementation, which change only when a version is raised.

`python tests/golden/golden.py` (`make golden`) writes what is not kept yet and never another content under a name that is there;
`python tests/golden/golden.py check objectives.terms/infonce` checks one implementation, or all.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslign.registry import version_of

KEPT = Path(__file__).parent / "kept"
RELATIVE, ABSOLUTE = 1e-4, 1e-6
"""How far a number may lie from the kept one: docs/protocols.md, Tolerance."""


@dataclass(frozen=True)
class Case:
    """One small result.

    Attributes:
        make: makes it: text and whole numbers, which must be equal, and numbers with a point, which must be near.
        others: modules of other implementations that take part; where the version of one was raised, the result may be another.
        relative, absolute: how far a number may lie from the kept one.
    """

    make: Callable[[], Any]
    others: frozenset[str] = frozenset()
    relative: float = RELATIVE
    absolute: float = ABSOLUTE


def module_of(name: str) -> str:
    """Return the module of an implementation as golden results call it: `objectives.terms/infonce`."""
    return f"crosslign.{name.replace('/', '.')}"


def said(modules: Iterable[str]) -> str:
    """Return the versions of modules in words."""
    return " ".join(f"{module.removeprefix('crosslign.')}@{version_of(module)}" for module in sorted(modules))


def kept_file(name: str) -> Path:
    """Return where the results of an implementation's version of today are kept."""
    return KEPT / f"{name}@v{version_of(module_of(name))}.json"


def kept(name: str) -> dict[str, Any]:
    """Return the kept results of an implementation by case: `with`, versions of what else takes part, and `made`."""
    path = kept_file(name)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def same(old: Any, new: Any, relative: float = RELATIVE, absolute: float = ABSOLUTE) -> bool:
    """Tell whether two results are one."""
    if isinstance(old, float) and isinstance(new, float):
        return math.isclose(old, new, rel_tol=relative, abs_tol=absolute) or (math.isnan(old) and math.isnan(new))
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(same(*pair, relative, absolute) for pair in zip(old, new, strict=True))
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(same(old[key], new[key], relative, absolute) for key in old)
    return bool(old == new)


def as_kept(made: Any) -> Any:
    """Return a result as its file holds it: numbers with a point to 8 digits."""
    if isinstance(made, Mapping):
        return {str(key): as_kept(value) for key, value in made.items()}
    if isinstance(made, list | tuple):
        return [as_kept(value) for value in made]
    return float(f"{made:.8g}") if isinstance(made, float) else made


def problems(name: str, cases: Mapping[str, Case]) -> list[str]:
    """Return in words what differs from the kept results of an implementation."""
    file, found = kept(name), []
    short = name.rpartition("/")[2]
    for label, case in cases.items():
        if label not in file:
            found.append(f"{name}: no result of version {version_of(module_of(name))} is kept for {label!r}: run `make golden`")
            continue
        if not same(file[label]["made"], as_kept(case.make()), case.relative, case.absolute):
            if file[label]["with"] != said(case.others):
                found.append(f"{name}: {label!r} depends on another version of something else: run `make golden`")
            else:
                found.append(f"{name}: {label!r} has changed: raise the version of {short}, or keep the result (docs/trust.md)")
    return found


def write(name: str, cases: Mapping[str, Case]) -> list[str]:
    """Write what is not kept, and what rests on another version of something else; return the cases written."""
    file, written = kept(name), []
    for label, case in cases.items():
        if label in file and file[label]["with"] == said(case.others):
            continue
        file[label] = {"with": said(case.others), "made": as_kept(case.make())}
        written.append(label)
    path = kept_file(name)
    for other in path.parent.glob(f"{path.stem.rpartition('@')[0]}@v*.json"):
        if other != path:
            other.unlink()
            written.append(f"{other.name} removed")
    gone = [label for label in file if label not in cases]
    if written or gone:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{json.dumps(label, ensure_ascii=False)}: {json.dumps(file[label], ensure_ascii=False)}" for label in sorted(cases)]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return written


def main(arguments: list[str]) -> int:
    """Write, or with `check` compare; return the number of problems, at most 1."""
    from all_cases import all_cases

    check, *wanted = arguments or [""]
    wrong = 0
    for name, cases in all_cases().items():
        if wanted and name not in wanted:
            continue
        lines = problems(name, cases()) if check == "check" else [f"{name}: {label}" for label in write(name, cases())]
        wrong += len(lines) if check == "check" else 0
        print("\n".join(lines), end="\n" * bool(lines))
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
