"""What `make gpu` measured, as a page for docs/archive/measurements.md: `python benchmarks/gpu_page.py` prints it.

Reads the lines that the scripts of benchmarks/on_gpu.sh print. What was not measured is left out; what failed is named.
"""

from __future__ import annotations

import re
from pathlib import Path

from _common import parser

PART = re.compile(r"^== (\w+): (.*)\n((?:.*\n)*?)-- exit status (\d+) after (\d+) s$", re.MULTILINE)
STEP = re.compile(r"^(\w+): (.+?): ([\d.]+) ms a step .*?(?:, ([\d.]+%) of the peak)?, (\d+) MiB,", re.MULTILINE)
SPEED = re.compile(r"^(.+?): (\d+) sentences/s, .*?lowest cosine to the default ([\d.]+)$", re.MULTILINE)
MINED = re.compile(r"^(.+?): median ([\d.]+) s, .*? (\d+) MiB above the vectors$", re.MULTILINE)
RATIO = re.compile(r"^ratio: ([\d.]+)$", re.MULTILINE)
VERSIONS = r"^(?:versions: |.*; )?(python \d\S*, .*)$"
FACTS = {
    "training": r"^(without dropout, losses apart .*)$|^(\w+: (?:on|off|attention|flash|peer)[\w, ]*: (?!.* ms a step ).*)$",
    "encoding": r"^(.*, \d+ threads, cuda)$|^(.* with random weights)$|^(seed \d+; \d+ sentences.*)$|^(ours: lowest cosine .*)$",
    "mining": r"^(task: .*)$|^(results: equal.*)$|^(float32 peak: .*)$|^(.+ / ours: .*)$|^(no ratio: .*)$",
    "kernels": r"^(torch\.\w+, \d+ heads of .*)$|^(kernels that do not work here: .*)$",
    "memcheck": r"^=+ (ERROR SUMMARY: .*)$",
    "profile": r"^(Self CUDA time total: .*)$",
    "row_updates": r"^(a table of .*)$|^(\d+% of the rows used: .*)$|^(as long at .*)$",
    "tests": r"^(\d+ (?:passed|failed).*)$",
}
"""Lines that are quoted as they are, by part, behind the versions."""


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return ["", *(f"| {' | '.join(line)} |" for line in lines)]


def steps(said: str) -> list[str]:
    """Return trainings: a row a way, a column a setting."""
    found = {(way, setting): f"{ms} ms" + (f"; {share}" if share else "") for setting, way, ms, share, _ in STEP.findall(said)}
    ways, settings = (list(dict.fromkeys(key[at] for key in found)) for at in (0, 1))
    rows = [[way, *(found.get((way, setting), "–") for setting in settings)] for way in ways]
    return table(["a step; share of the peak", *settings], rows)


def figures(name: str, said: str) -> list[str]:
    """Return the tables of one part."""
    if name == "training":
        return steps(said)
    if speeds := SPEED.findall(said):
        return table(["encoding", "sentences a second", "lowest cosine to the default peer"], [list(row) for row in speeds])
    if mined := MINED.findall(said):
        return table(["mining", "seconds", "MiB above the vectors"], [list(row) for row in mined])
    return []


def page(report: str) -> str:
    """Return the page of a report.

    Args:
        report: what benchmarks/on_gpu.sh printed.
    """
    head = report.split("\n== ", 1)[0].strip().splitlines()
    lines = ["## On a GPU", "", f"`make gpu`: {'; '.join(head)}."]
    for name, command, said, status, seconds in PART.findall(report):
        lines += ["", f"**{name}**, {seconds} s" + ("" if status == "0" else f", exit status {status}") + f": `{command.strip()}`"]
        lines += figures(name, said)
        quoted = re.finditer(f"{VERSIONS}|{FACTS[name.removesuffix('_large')]}", said, re.MULTILINE)
        facts = [f"- {next(filter(None, one.groups()))}" for one in quoted] + [f"- **ratio: {one}**" for one in RATIO.findall(said)]
        lines += ["", *facts] if facts else []
    left = re.search(r"^== (no time was left for:.*)$", report, re.MULTILINE)
    return "\n".join([*lines, *(["", f"Not measured, {left[1]}"] if left else [])])


def main() -> None:
    """Print the page."""
    command = parser(__doc__)
    command.add_argument("--report", type=Path, default=Path("gpu.txt"), help="what benchmarks/on_gpu.sh wrote")
    report = command.parse_args().report
    print(page(report.read_text(encoding="utf-8", errors="replace")) if report.is_file() else f"skipped: no report at {report}")


if __name__ == "__main__":
    main()
