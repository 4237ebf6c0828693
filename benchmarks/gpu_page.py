"""What `make gpu` measured, as a page for docs/archive/measurements.md: `python benchmarks/gpu_page.py` prints it.

Reads the lines that the scripts of benchmarks/on_gpu.sh print; of a line that is printed again, as after each turn, it takes the last.
What was not measured is left out; what failed, and what had too little time, is named.
"""

from __future__ import annotations

import re
from pathlib import Path

from _common import parser

PART = re.compile(r"^== (\w+): ([^\n]*)\n(.*?)-- exit status (\d+) after (\d+) s$", re.MULTILINE | re.DOTALL)
"""One that was ended may have stopped within a line."""
STEP = re.compile(r"^(\w+): (.+?): ([\d.]+) ms a step .*?(?:, ([\d.]+%) of the peak)?, (\d+) MiB,", re.MULTILINE)
SPEED = re.compile(r"^(.+?): (\d+) sentences/s, .*?lowest cosine to the default ([\d.]+)$", re.MULTILINE)
MINED = re.compile(r"^(.+?): median ([\d.]+) s, .*? (\d+) MiB above the vectors$", re.MULTILINE)
KERNEL = re.compile(r"^ *(\S.*?)(?: +[\d.]+% +\S+){2} +\S+ +(\S+) +([\d.]+%) +\S+ +\S+ +(\d+) *$", re.MULTILINE)
"""A row of the profiler's table: name, its own time on the GPU and share of it, calls."""
RATIO = re.compile(r"^ratio: ([\d.]+)$", re.MULTILINE)
ENDS = {"0": "", "124": ", then its time was up"}
"""Ways to end, by exit status."""
VERSIONS = r"^(?:versions: |.*; )?(python \d\S*, .*)$"
FACTS = {
    "training": r"^((?:without dropout, losses apart|not measured: ).*)$"
    r"|^(\w+: (?:on|off|attention|flash|peer)[\w, ]*: (?!.* ms a step ).*)$",
    "encoding": r"^(.*, \d+ threads, cuda)$|^(.* with random weights)$|^(seed \d+; \d+ sentences.*)$|^(ours: lowest cosine .*)$"
    r"|^(ours, .* beside .*)$|^(turns beside the default: .*)$",
    "mining": r"^(task: .*)$|^(results: equal.*)$|^(float32 peak: .*)$|^(.+ / ours: .*)$|^(no ratio: .*)$",
    "kernels": r"^(torch\.\w+, \d+ heads of .*)$|^(kernels that do not work here: .*)$",
    "memcheck": r"^=+ (ERROR SUMMARY: .*)$|^(.*compute-sanitizer.*: No such file.*)$",
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
    if name == "profile":
        return table(["of a step", "on the GPU", "share", "calls"], [list(row) for row in KERNEL.findall(said)[:10]])
    if speeds := {row[0]: list(row) for row in SPEED.findall(said)}:
        return table(["encoding", "sentences a second", "lowest cosine to the default peer"], list(speeds.values()))
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
        lines += ["", f"**{name}**, {seconds} s{ENDS.get(status, f', exit status {status}')}: `{command.strip()}`"]
        lines += figures(name, said)
        quoted = [next(filter(None, one.groups())) for one in re.finditer(f"{VERSIONS}|{FACTS[name.removesuffix('_large')]}", said, re.M)]
        facts = list({line.rpartition(": ")[0] or line: f"- {line}" for line in quoted}.values())
        facts += [f"- **ratio: {one}**" for one in RATIO.findall(said)[-1:]]
        lines += ["", *facts] if facts else []
    left = re.search(r"^== (no time was left for all of:.*)$", report, re.MULTILINE)
    return "\n".join([*lines, *(["", f"Not measured, {left[1]}"] if left else [])])


def main() -> None:
    """Print the page."""
    command = parser(__doc__)
    command.add_argument("--report", type=Path, default=Path("gpu.txt"), help="what benchmarks/on_gpu.sh wrote")
    report = command.parse_args().report
    print(page(report.read_text(encoding="utf-8", errors="replace")) if report.is_file() else f"skipped: no report at {report}")


if __name__ == "__main__":
    main()
