"""The list of faults as a page: `python tests/faults/fault_list.py` writes docs/faults.md."""

from __future__ import annotations

import ast
from pathlib import Path

from ruamel.yaml import YAML

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "faults.md"
HEAD = """\
# Faults, and their results

Tests inject each fault for real: they kill processes by signal, mount small disks, and run faulty servers on loopback; archives and
configurations are hostile. Then they type the same command again, and compare the hashes of all tables with those of an
undisturbed run. `make test` runs the tests that take seconds, `make test-faults` all of them; `make soak` kills a run at 25 random moments.
[Promises](promises.md) lists what follows. This page is generated from `tests/faults/faults.yaml`.

| | fault | result | tests |
|---|---|---|---|
"""


def faults() -> dict[str, dict]:
    """Return the list by number."""
    return dict(YAML(typ="safe").load((HERE / "faults.yaml").read_text(encoding="utf-8")))


def names_by_fault() -> dict[str, list[tuple[Path, str]]]:
    """Return the tests of this folder by the fault that their name begins with."""
    found: dict[str, list[tuple[Path, str]]] = {}
    for path in sorted(HERE.glob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_f") and node.name[6:8].isdigit():
                found.setdefault(f"F{int(node.name[6:8])}", []).append((path, node.name))
    return found


def page() -> str:
    """Return docs/faults.md."""
    tests, lines = names_by_fault(), []
    for number, entry in faults().items():
        files = [*dict.fromkeys(path.relative_to(ROOT).as_posix() for path, _ in tests.get(number, [])), *entry.get("also", [])]
        links = ", ".join(f"[{Path(file).stem.removeprefix('test_')}](../{file})" for file in files)
        lines.append(f"| {number} | {entry['fault']} | {entry['expected']} | {links} |")
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
