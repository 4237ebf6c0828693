"""Lines a second out of a packed bitext, both sides in step, beside the commands that people unpack with.

The peer is `paste <(UNPACK a) <(UNPACK b) | wc -l`, the two commands side by side; UNPACK is the first of rapidgzip, pigz and gzip
that is there for gz, of lbzip2, pbzip2 and bzip2 for bz2, `xz -T0` for xz, `zstd` for zst. Ours gives columns of text, checked to be
UTF-8, a thread unpacking each side ahead; `in turn` is the same without threads. Real words of the mirror, drawn again and again. Prints
seconds of each, and as its last line `ratio: <peer seconds / our seconds>` of the format given by --last.

    python benchmarks/unpacking.py --lines 1000000
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import zstandard
from _common import machine, official_files, parser, versions

from crosslign.corpora.readers._lines import read_columns

COMMANDS = {
    "gz": [["rapidgzip", "-dc"], ["pigz", "-dc"], ["gzip", "-dc"]],
    "bz2": [["lbzip2", "-dc"], ["pbzip2", "-dc"], ["bzip2", "-dc"]],
    "xz": [["xz", "-T0", "-dc"]],
    "zst": [["zstd", "-dc"]],
}
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lambda data: lzma.compress(data, preset=3),
    "zst": lambda data: zstandard.ZstdCompressor().compress(data),
}


def write_sides(folder: Path, lines: int) -> list[Path]:
    """Write two aligned files of so many lines, packed in each format."""
    source = official_files("tatoeba-v1") / "tatoeba-v1"
    made, written = random.Random(1), []
    for side in ("deu", "eng"):
        words = (source / f"tatoeba.deu-eng.{side}").read_text(encoding="utf-8").split()
        text = "\n".join(" ".join(made.choices(words, k=made.randrange(8, 30))) for _ in range(lines)).encode() + b"\n"
        for suffix, pack in PACK.items():
            written.append(folder / f"{side}.{suffix}")
            written[-1].write_bytes(pack(text))
    return written


def ours(paths: list[Path]) -> int:
    """Read both sides as the reader of Moses files does; return the number of lines."""
    return sum(len(own) for own, _ in zip(*(read_columns(path, 8192) for path in paths), strict=True))


@contextmanager
def in_turn() -> Any:
    """Have no thread unpack ahead."""
    with patch("crosslign.corpora.readers._parts.ahead", lambda stream: stream):
        yield


def theirs(command: list[str], paths: list[Path]) -> int:
    """Return the number of lines that the peer's commands give."""
    sides = " ".join(f"<({' '.join(command)} '{path}')" for path in paths)
    return int(subprocess.run(["bash", "-c", f"paste {sides} | wc -l"], check=True, capture_output=True, text=True).stdout)


def seconds(work: Callable[[], int], lines: int, tries: int) -> float:
    """Return the least seconds of some tries, each of which must find all lines."""
    found = []
    for _ in range(tries):
        began = time.perf_counter()
        assert work() == lines
        found.append(time.perf_counter() - began)
    return min(found)


def main() -> None:
    """Measure every format."""
    options = parser(__doc__)
    options.add_argument("--lines", type=int, default=300_000)
    options.add_argument("--tries", type=int, default=3)
    options.add_argument("--last", choices=sorted(COMMANDS), default="xz", help="whose ratio is the last line")
    given = options.parse_args()
    print(f"{machine()}; {versions('zstandard', 'pyarrow')}")
    ratios = {}
    with tempfile.TemporaryDirectory() as name:
        written = write_sides(Path(name), given.lines)
        for suffix, commands in COMMANDS.items():
            paths = [path for path in written if path.suffix == f".{suffix}"]
            command = next((one for one in commands if shutil.which(one[0])), None)
            threads = seconds(partial(ours, paths), given.lines, given.tries)
            with in_turn():
                turn = seconds(partial(ours, paths), given.lines, given.tries)
            said = f"{suffix}: ours {threads:.2f} s ({given.lines / threads:,.0f} pairs a second), in turn {turn:.2f} s"
            if command:
                other = seconds(partial(theirs, command, paths), given.lines, given.tries)
                ratios[suffix] = other / threads
                said += f", {command[0]} {other:.2f} s: ratio {ratios[suffix]:.2f}"
            print(said)
    print(f"ratio: {ratios[given.last]:.2f}" if given.last in ratios else f"skipped: no command for {given.last}")


if __name__ == "__main__":
    main()
