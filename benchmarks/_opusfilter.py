"""What the comparisons with OpusFilter share: the peer's command, the same ten rules on both sides, and real sentence pairs."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from _common import Cost, measured, official_files, peer

VERSION = "3.3.1"
LANGS = ("en", "de")
RULES: list[tuple[str, dict[str, object], str, dict[str, object]]] = [
    ("length", {}, "LengthFilter", {"unit": "word", "min_length": 1, "max_length": 100}),
    ("length_ratio", {}, "LengthRatioFilter", {"unit": "word", "threshold": 3}),
    ("length_ratio", {"unit": "char"}, "LengthRatioFilter", {"unit": "char", "threshold": 3}),
    ("longest_word", {}, "LongWordFilter", {"threshold": 40}),
    ("html_tags", {}, "HtmlTagFilter", {}),
    ("alphabet_ratio", {}, "AlphabetRatioFilter", {"threshold": 0.75}),
    ("character_script", {}, "CharacterScoreFilter", {"scripts": ["Latin", "Latin"], "thresholds": [0.9, 0.9]}),
    ("non_zero_numerals", {}, "NonZeroNumeralsFilter", {"threshold": 0.5}),
    ("terminal_punctuation", {}, "TerminalPunctuationFilter", {"threshold": -2}),
    ("longest_common_substring", {}, "LongestCommonSubstringFilter", {"threshold": 0.9}),
]
"""Our rule and options, and theirs; defaults are equal, so ours are mostly left out."""


def chosen(rules: str) -> list[tuple[str, dict[str, object], str, dict[str, object]]]:
    """Return all rules, or those that count characters only (`no_html`)."""
    return [rule for rule in RULES if rules == "all" or rule[0] != "html_tags"]


def tatoeba(folder: Path, code: str) -> Iterator[tuple[str, str]]:
    """Yield (English, other) of one of the tab-separated exports."""
    with zipfile.ZipFile(folder / "tatoeba-bilingual" / f"{code}-eng.zip") as archive, archive.open(f"{code}.txt") as stream:
        for line in io.TextIOWrapper(stream, encoding="utf-8", newline="\n"):
            english, other, *_ = line.rstrip("\n").split("\t")
            yield english, other


def sides(folder: Path, name: str) -> dict[str, Path]:
    """Return the two files of sentence pairs of a name, by their own names."""
    return {f"{name}.{lang}": folder / f"{name}.{lang}" for lang in LANGS}


def write_copies(folder: Path, pairs: int, size: int) -> int:
    """Write `<size>.en` and `<size>.de`: `size` copies of real pairs, every second one behind its number; return the lines."""
    real = [pair for pair, _ in zip(tatoeba(official_files("tatoeba-bilingual"), "deu"), range(pairs), strict=False)]
    for side, path in enumerate(sides(folder, str(size)).values()):
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for copy in range(size):
                mark = f"{copy} " if copy % 2 else ""
                file.writelines(f"{mark}{pair[side]}\n" for pair in real)
    return len(real) * size


def step(kind: str, inputs: str, outputs: str, folder: Path, **more: Any) -> dict[str, Any]:
    """Return one of OpusFilter's steps, from the two files of a name to those of another."""
    written = [str(path) for path in sides(folder, inputs).values()]
    return {"type": kind, "parameters": {"inputs": written, "outputs": list(sides(folder, outputs)), **more}}


def rules_of_peer(rules: str) -> list[Mapping[str, object]]:
    """Return the chosen rules as OpusFilter names them."""
    return [{theirs: options} for _, _, theirs, options in chosen(rules)]


def by_opusfilter(command: Path, folder: Path, steps: Sequence[Mapping[str, Any]], threads: int = 1) -> Cost:
    """Run steps of OpusFilter and return what they took."""
    path = folder / "peer.yaml"
    path.write_text(json.dumps({"common": {"output_directory": str(folder)}, "steps": steps}), encoding="utf-8")  # JSON is YAML
    return measured([str(command), "--overwrite", "--n-jobs", str(threads), str(path)], TQDM_DISABLE="1", OMP_NUM_THREADS="1")


def by_crosslign(script: str, *arguments: str) -> Cost:
    """Run a benchmark's own part, `--run`, in a process of its own, and return what it took."""
    return measured([sys.executable, script, "--run", *arguments], TQDM_DISABLE="1", OMP_NUM_THREADS="1")


def lines_of(path: Path) -> int:
    """Return the lines of a file."""
    with path.open("rb") as file:
        return sum(1 for _ in file)


def check_rows(folder: Path, ours: str, theirs: str) -> None:
    """End the benchmark unless a file of ours holds the very pairs, in their order, of the peer's two files."""
    from crosslign.files import iter_rows

    left, right = (path.open(encoding="utf-8", newline="\n") for path in sides(folder, theirs).values())
    with left, right:
        for batch in iter_rows(folder / ours, ["a_text", "b_text"]):
            for pair in zip(batch["a_text"].to_pylist(), batch["b_text"].to_pylist(), strict=True):
                if pair != (other := (left.readline()[:-1], right.readline()[:-1])):
                    raise SystemExit(f"they keep different rows: ours {pair}, OpusFilter {other}")
        if left.readline() or right.readline():
            raise SystemExit("OpusFilter keeps more rows")


def opusfilter(folder: Path, given: str | None) -> Path:
    """Return the OpusFilter command, installed into a throw-away environment where none is given."""
    return Path(given or peer(folder, f"opusfilter=={VERSION}", "opusfilter", "--opusfilter"))
