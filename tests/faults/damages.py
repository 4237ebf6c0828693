"""A finished run whose sidecars, benchmarks and configuration are damaged at random, and put right again."""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

ODD = (
    None, True, 7, -1, 0.5, 10**400, 1e308, "", "x" * 5000, "é\u202e\x1b[2J", "a\0b", "/dev/zero", "../../../../etc/passwd", "nan",
    [], {}, [[]], [7], {"": {}}, "2026-13-45T99:99:99", math.nan, -math.inf, "7", 2**63, "\ud800", "a\nb", "2999-01-01T00:00:00+00:00",
)  # fmt: skip
"""Values of all types, in the place of one that a document holds."""
WORDS = ("NA", "-", "nan", "inf", "-1", "", "1e999", "\t", "é", '"', "\0")
LINES = (
    "nonsense: 1", "\tx: 1", "a: !!python/object/apply:os.system ['true']", "&a [*a]", "- x", "? {", "key: [1, 2", "<<: 7",
    "%YAML 9", "---", "x: &y {z: *y}", '"', "null: null", "2026-11-24: 1", "true: 1", "[a, b]: 1", "x: 2026-11-24", "scale: no",
    "12:30:45: 0x7", "1e400: .nan",
)  # fmt: skip
LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
"""YAML of a kilobyte that stands for more than there is room for."""
NAMES = ("a\nb", "x.lineage.json", os.fsdecode(b"\xff.json"), "-rf", "$(touch x)", ".nfs0001", "x" * 250)

Damage = Callable[[random.Random, Path], None]


def bit(rng: random.Random, path: Path) -> None:
    content = bytearray(path.read_bytes() or b"x")
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def cut(rng: random.Random, path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: rng.randrange(len(content) + 1)])


def noise(rng: random.Random, path: Path) -> None:
    content = path.read_bytes()
    at = rng.randrange(len(content) + 1)
    path.write_bytes(content[:at] + rng.randbytes(rng.choice((1, 20, 3000))) + content[at:])


def twice(rng: random.Random, path: Path) -> None:
    path.write_bytes(path.read_bytes() * 2)


def empty(rng: random.Random, path: Path) -> None:
    path.write_bytes(b"")


def deep(rng: random.Random, path: Path) -> None:
    path.write_bytes(rng.choice((b"[", b'{"a":', b"- ", b"{a: ")) * 20_000)


def words(rng: random.Random, path: Path) -> None:
    """Put odd words in the place of one word of a line."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() or [""]
    at = rng.randrange(len(lines))
    parts = lines[at].split("\t" if "\t" in lines[at] else " ")
    parts[rng.randrange(len(parts))] = rng.choice(WORDS)
    lines[at] = "\t".join(parts) if "\t" in lines[at] else " ".join(parts)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def lines(rng: random.Random, path: Path) -> None:
    """Take out, double, shift or add a line."""
    found = path.read_text(encoding="utf-8", errors="replace").splitlines() or [""]
    at = rng.randrange(len(found))
    kind = rng.randrange(4)
    found[at : at + 1] = ([], [found[at]] * 2, [" " + found[at]], [rng.choice(LINES), found[at]])[kind]
    path.write_text("\n".join(found) + "\n", encoding="utf-8")


def _places(content: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container and key of a document."""
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in items:
        yield content, key
        yield from _places(value)


def value(rng: random.Random, path: Path) -> None:
    """Put an odd value in the place of one of a JSON document, or take the key out."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):  # damaged before
        return bit(rng, path)
    # Near the top first: most of a recipe's leaves are of no command's interest.
    places = [*_places(content)]
    near = [place for place in places if place[0] is content or place[0] in (content.get("run"), content.get("artefact"))]
    holder, key = rng.choice(near if near and rng.random() < 0.5 else places) if places else ([None], 0)
    if rng.random() < 0.3:
        del holder[key]
    else:
        holder[key] = rng.choice(ODD)
    path.write_text(json.dumps(content), encoding="utf-8")
    return None


def marked(rng: random.Random, path: Path) -> None:
    """Write it as editors of other systems do: with a mark of byte order, in UTF-16, or with other ends of lines."""
    text = path.read_text(encoding="utf-8", errors="replace")
    path.write_bytes(
        rng.choice(
            (b"\xef\xbb\xbf" + text.encode(), text.encode("utf-16"), text.replace("\n", "\r\n").encode(), text.replace("\n", "\r").encode())
        )
    )


def laughs(rng: random.Random, path: Path) -> None:
    path.write_text(rng.choice((LAUGHS, path.read_text(encoding="utf-8", errors="replace") + "\n" + LAUGHS)), encoding="utf-8")


def doubled(rng: random.Random, path: Path) -> None:
    """Write one of a document's keys twice, with another value."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if keys := list(re.finditer(r'(?m)^(\s*)("[^"]*"|\w+):', text)):
        key = rng.choice(keys)
        text = (
            text[: key.start()]
            + f"{key[1]}{key[2]}: {rng.choice(WORDS[:6]) or 7}{',' * key[2].startswith(chr(34))}\n"
            + text[key.start() :].lstrip("\n")
        )
    path.write_text(text, encoding="utf-8")


def moved(rng: random.Random, path: Path) -> None:
    """Set its time to one that cannot be."""
    os.utime(path, (rng.choice((-1, 0, 4e9, 2**33)),) * 2)


def beside(rng: random.Random, path: Path) -> None:
    """Put beside it what no job wrote: a copy with an odd name, a folder, or a way in a circle."""
    there = path.parent / rng.choice(NAMES)
    kind = rng.randrange(4)
    if os.path.lexists(there):
        return
    if kind == 0:
        shutil.copy(path, there)
    elif kind == 1:
        there.mkdir()
    else:
        there.symlink_to(rng.choice((".", "..", there.name)))


def gone(rng: random.Random, path: Path) -> None:
    path.unlink()


def folder(rng: random.Random, path: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(rng: random.Random, path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def link(rng: random.Random, path: Path) -> None:
    path.unlink()
    path.symlink_to(rng.choice((path.name, "/dev/zero", "/dev/null", "nowhere", "..", "/etc/passwd")))


def locked(rng: random.Random, path: Path) -> None:
    path.chmod(0)


def closed(rng: random.Random, path: Path) -> None:
    """Close its folder to all but root."""
    path.parent.chmod(rng.choice((0, 0o400, 0o100, 0o500)))


TEXT: tuple[Damage, ...] = (bit, cut, noise, twice, empty, deep, words, lines, marked, laughs, doubled)
PLACES: tuple[Damage, ...] = (gone, folder, pipe, link, locked, closed, moved, beside)
Stamp = tuple[int, int, int]


def _stamp(path: Path) -> Stamp:
    found = path.lstat()
    return (found.st_mode, found.st_mtime_ns if not stat.S_ISDIR(found.st_mode) else 0, found.st_size if stat.S_ISREG(found.st_mode) else 0)


def below(place: Path) -> dict[Path, Stamp]:
    """Return what lies below a folder, as a path relative to it, with mode, time and size; Snakemake's own folder left out."""
    found = {}
    for top, folders, files in os.walk(place):
        folders[:] = [name for name in folders if name not in (".snakemake", "__pycache__")]
        for name in (*folders, *files):
            path = Path(top, name)
            with suppress(PermissionError):  # in a folder that is closed
                found[path.relative_to(place)] = _stamp(path)
    return found


class Finished:
    """A finished run of which a copy is damaged.

    Args:
        kept: the project with its results, which stays as it is.
        place: where the copy lies.
    """

    def __init__(self, kept: Path, place: Path) -> None:
        self.kept, self.place = kept, place
        shutil.copytree(kept, place, symlinks=True, ignore=shutil.ignore_patterns(".snakemake", "*.log"))
        (self.results,) = [path for path in (place / "results").iterdir() if path.is_dir() and (path / "scores").is_dir()]
        self._before = below(place)
        files = [path for path, (mode, *_) in self._before.items() if stat.S_ISREG(mode)]
        of_results = [path for path in files if path.is_relative_to(self.results.relative_to(place))]
        self.kinds = {
            "sidecar": [path for path in of_results if path.name.endswith("lineage.json")],
            "benchmark": [path for path in of_results if "benchmarks" in path.parts],
            "configuration": [path for path in files if path.parts[0] == "config" and path.suffix == ".yaml"],
            "result": [path for path in of_results if path.parts[2] in ("scores", "tables") and not path.name.endswith("lineage.json")],
        }

    def damage(self, rng: random.Random) -> list[str]:
        """Damage one to three files; return in words what was done."""
        said = []
        for _ in range(rng.choice((1, 1, 2, 3))):
            kind = rng.choice([name for name, files in self.kinds.items() if files])
            path = rng.choice(self.kinds[kind])
            there = self.place / path
            if not all(os.access(one, os.R_OK | os.W_OK) for one in (there.parent, there)) or not there.is_file():
                continue
            more = (value,) * 6 if path.suffix == ".json" else ()
            done = rng.choice((*TEXT, *more, *PLACES[: len(PLACES) if rng.random() < 0.5 else 1]))
            done(rng, there)
            said.append(f"{done.__name__} {path}")
        return said

    def mend(self) -> None:
        """Put everything back."""
        for top, folders, _ in os.walk(self.place):
            for name in folders:
                path = Path(top, name)
                mode, *_ = self._before.get(path.relative_to(self.place), (0o755,))
                if not path.is_symlink():
                    path.chmod(stat.S_IMODE(mode))
        now = below(self.place)
        for path in sorted(now.keys() | self._before.keys(), key=lambda path: len(path.parts)):
            before, there = self._before.get(path), self.place / path
            if now.get(path) == before:
                continue
            if there.is_symlink() or not there.is_dir():
                there.unlink(missing_ok=True)
            elif before is None or not stat.S_ISDIR(before[0]):
                shutil.rmtree(there)
            if before is not None and stat.S_ISDIR(before[0]):
                there.mkdir(exist_ok=True)
            elif before is not None:
                shutil.copy2(self.kept / path, there)
        assert below(self.place) == self._before
