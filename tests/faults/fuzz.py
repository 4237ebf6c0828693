"""All commands over a finished run that is damaged at random: no traceback, no hang, no loss.

`python tests/faults/fuzz.py PROJECT --damages 1000` takes a project whose run has finished.
"""

from __future__ import annotations

import argparse
import csv
import gc
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from ast import literal_eval
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from hashlib import sha256
from io import StringIO
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from damages import Finished, below
from forks import Server, command_at
from mini_project import Mini
from project_copy import ROOT

from crosslign.files.lineage import is_sidecar

SECONDS = 30.0
"""No command may take longer."""
UNEXPECTED = re.compile(r"Traceback \(most recent|unexpected error|^\w+(Error|Exception) in (file|line|rule)", re.MULTILINE)
SOURCE, TARGET = (f"{{file: resources/written/sts_{lang}.tsv, lang: {lang}}}" for lang in ("en", "de"))
DIED = 70
KNOWN = ("WorkflowError", "MissingInputException", "AmbiguousRuleException", "ProtectedOutputException")


@dataclass(frozen=True)
class Try:
    """One command as it is tried.

    Attributes:
        arguments: what it is given; `{out}` is a new place.
        loses: says in words what it lost, of the files before it and after it; `keeps_all` where it may change none.
    """

    arguments: Sequence[str]
    loses: Callable[[Path, Mapping[Path, tuple], Mapping[int, int]], str]


def keeps_all(place: Path, before: Mapping[Path, tuple], inodes: Mapping[int, int]) -> str:
    """A command that only looks changes nothing."""
    now = below(place)
    return ", ".join(sorted(str(path) for path in now.keys() | before.keys() if now.get(path) != before.get(path)))


def keeps_bytes(place: Path, before: Mapping[Path, tuple], inodes: Mapping[int, int]) -> str:
    """A command that takes away puts every file elsewhere."""
    gone = inodes.keys() - inodes_of(place, before=None).keys()
    return f"{len(gone)} files" if gone else ""


def keeps_results(place: Path, before: Mapping[Path, tuple], inodes: Mapping[int, int]) -> str:
    """A command that takes over changes lineage and time stamps alone."""
    now = below(place)
    return ", ".join(
        sorted(
            str(path)
            for path in now.keys() | before.keys()
            if not is_sidecar(path) and [one and (one[0], one[2]) for one in (now.get(path), before.get(path))].count(None) % 2
        )
    )


def inodes_of(place: Path, before: Mapping[Path, tuple] | None) -> dict[int, int]:
    """Return the size of every file below a folder by its inode."""
    paths = below(place) if before is None else before
    found = [(place / path).lstat() for path in paths]
    return {one.st_ino: one.st_size for one, path in zip(found, paths, strict=True) if not (place / path).is_dir()}


def tries(kept: Path, finished: Finished) -> dict[str, Try]:
    """Return what is tried, by name."""
    results = str(finished.results)
    other = str(kept / finished.results.relative_to(finished.place))
    place = ["--directory", str(finished.place), "--config", f"scale={finished.results.name}"]
    table = next(path for path in sorted((finished.results / "tables").glob("*.csv")) if "score_file" in path.read_text(encoding="utf-8"))
    with table.open(encoding="utf-8") as file:
        cell = next(row for row in csv.DictReader(file) if row["score_file"])
    run = next(path.name for path in sorted((finished.results / "systems").iterdir()))
    return {
        "verify": Try(["verify", results, "--directory", str(finished.place)], keeps_all),
        "verify --discard": Try(["verify", results, "--discard", "--directory", str(finished.place)], keeps_bytes),
        "verify --settle": Try(["verify", results, "--settle"], keeps_results),
        "diff, damaged before": Try(["diff", results, other], keeps_all),
        "diff, damaged after": Try(["diff", other, results], keeps_all),
        "status": Try(["status", *place], keeps_all),
        "card": Try(["card", run, *place], keeps_all),
        "explain": Try(["explain", table.stem, cell["row"], cell["column"], *place], keeps_all),
        "crate": Try(["crate", table.stem, "--out", "{out}/crate", *place], keeps_all),
        "mteb": Try(["mteb", results, "{out}/mteb", *place], keeps_all),
        "coverage": Try(["coverage", *place, "papers=[faults, msimcse]"], keeps_all),
        "claims": Try(["claims", *place, "papers=[faults, msimcse]"], keeps_all),
        "push": Try(["push", run, "lab/tried", "--dry-run", *place], keeps_all),
        "list": Try(["list", "corpora", *place], keeps_all),
        "doctor": Try(["doctor", *place], keeps_all),
        "plan --files": Try(["plan", "--files", *place], keeps_all),
        "plan": Try(["plan", *place], keeps_all),
        "mine": Try(["mine", "m", "--dry-run", *place, f"mine={{m: {{system: {run}, source: {SOURCE}, target: {TARGET}}}}}"], keeps_all),
        "snakemake -n": Try(["snakemake", "-n", "--cores", "2", "--config", f"scale={finished.results.name}"], keeps_all),
    }


def _command(arguments: Sequence[str]) -> int:
    """Run a command in this process; return its exit code."""
    from snakemake.cli import main as snakemake

    from crosslign.cli.main import main

    try:
        if arguments[0] != "snakemake":
            return main(arguments)
        sys.argv = list(arguments)
        snakemake(list(arguments[1:]))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def run(arguments: Sequence[str], folder: Path, said: Path, python: Path | None = None) -> tuple[int | None, str]:
    """Run a command as `forked` does; what it starts by Python's own command runs by `python` where that is given."""

    def work() -> int:
        sys.executable = str(python or sys.executable)
        return _command(arguments)

    return forked(work, folder, said)


def _child(work: Callable[[], int], folder: Path, said: Path) -> int:
    os.setsid()
    opened = os.open(said, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    for number in (1, 2):
        os.dup2(opened, number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8", buffering=1) for number in (1, 2))  # pytest's own are elsewhere
    os.chdir(folder)
    try:
        return work()
    except BaseException:
        traceback.print_exc()
        return DIED


def forked(work: Callable[[], int], folder: Path, said: Path) -> tuple[int | None, str]:
    """Run work in a fork of this process, which has loaded all; return its exit code, None where it did not end in time, and what it said.

    Args:
        work: returns the exit code.
        folder: it works in.
        said: file for what it says.
    """
    sys.stdout.flush()
    if not (child := os.fork()):
        code = DIED
        with suppress(BaseException):
            code = _child(work, folder, said)
        with suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    end = time.monotonic() + SECONDS * float(os.environ.get("CROSSLIGN_PATIENCE", "1"))
    while not (done := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None, said.read_text(errors="replace")
        time.sleep(0.005)
    return os.waitstatus_to_exitcode(done[1]), said.read_text(encoding="utf-8", errors="replace")


def wrong(code: int | None, said: str) -> str:
    """Return in words what a command may not do, of its exit code and what it said; empty where all is well."""
    if code is None:
        return "it hangs"
    if code < 0 or code == DIED:
        return f"it died ({code})"
    lines = [line for line in UNEXPECTED.finditer(said) if not line[0].startswith(KNOWN)]
    # Snakemake has tracebacks of its own, such as for a link to itself; in ours stands a file of ours.
    if lines and re.search(r'File ".*(crosslign/\w+/|\.smk"|/Snakefile")|^\w+ in (file|line|rule)', said, flags=re.MULTILINE):
        return f"{lines[0][0]}: {said.strip().splitlines()[-1][:200]}"
    return f"exit code {code}, and not a word" if code and not said.strip() else ""


def warm(kept: Path, scale: str) -> None:
    """Load here, once, what each command would load and compute of the code: forks have it at once. Of the damaged copy nothing is read."""
    __import__("snakemake.cli")
    from crosslign.cli.main import main
    from crosslign.provenance.code_states import code_lines

    papers = "papers=[faults, msimcse]"
    commands = (["card", "none"], ["status"], ["crate", "none"], ["explain", "none", "a", "b"], ["coverage"], ["plan", "--files"])
    for command, *config in (*((one,) for one in commands), (["coverage"], papers), (["claims"], papers), (["push", "none", "a/b"],)):
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            main([*command, "--directory", str(kept), "--config", f"scale={scale}", *config])
    code_lines(kept / "results" / scale)


def _compile_as_a_dry_run(kept: Path, scale: str, folder: Path) -> None:
    """Load Snakemake's plugins, and keep what a dry run compiles, regular expressions and rules: two thirds of its time."""
    import snakemake.cli
    import snakemake.workflow

    snakemake.cli.get_argument_parser()
    found, parse, compile_one = folder / "compiled", snakemake.workflow.parse, re._compile
    expressions: set[tuple[str, int]] = set()
    parsed: dict[tuple[bytes, int], tuple[str, dict[int, int], int]] = {}

    def noting(pattern, flags):
        if isinstance(pattern, str):
            expressions.add((pattern, int(flags)))
        return compile_one(pattern, flags)

    def parse_once(path, workflow, linemap, overwrite_shellcmd=None, rulecount=0):
        key = (Path(path.get_path_or_uri(secret_free=False)).read_bytes(), rulecount)
        if key not in parsed:
            code, rules = parse(path, workflow, linemap, overwrite_shellcmd, rulecount)
            parsed[key] = code, dict(linemap), rules
        code, lines, rules = parsed[key]
        linemap |= lines
        return code, rules

    def dry_run() -> int:
        re._compile = noting
        code = _command(["snakemake", "-n", "--cores", "2", "--config", f"scale={scale}"])
        found.write_text(repr((sorted(expressions), parsed)), encoding="utf-8")
        return code

    snakemake.workflow.parse = parse_once
    code, said = forked(dry_run, kept, folder / "said")
    assert code == 0, said
    re._MAXCACHE = 10_000
    patterns, rules = literal_eval(found.read_text(encoding="utf-8"))
    parsed |= rules
    for pattern, flags in patterns:
        re.compile(pattern, flags)
    gc.freeze()  # forks would else copy what they share, to count who points at it


@contextmanager
def forking_python() -> Iterator[Path]:
    """Yield a command in the place of Python's own while the block runs: its programs are forks of this process as it is now.

    `crosslign plan` and `mine` start Snakemake, which would else load everything anew each time.
    """
    with tempfile.TemporaryDirectory(prefix="forks-", dir="/tmp") as place:  # a socket's name is short
        address, (end, ended), (begin, begun) = f"{place}/socket", os.pipe(), os.pipe()
        if not (child := os.fork()):
            with suppress(BaseException):
                os.close(ended)
                os.dup2(end, 0)  # it ends with whoever holds the other end
                server = Server(address)
                os.write(begun, b".")
                server.run()
            os._exit(0)
        os.close(end)
        os.read(begin, 1)
        try:
            yield command_at(Path(place), address)
        finally:
            os.close(ended)
            os.waitpid(child, 0)


def fuzz(kept: Path, names: Sequence[str], damages: int, seed: int, folder: Path, report: Callable[[str], None] = print) -> list[str]:
    """Run commands over so many damages each; return what went wrong, with what repeats it.

    Args:
        kept: a project whose run has finished.
        names: commands of `tries`, none for all.
        damages: of each command.
        seed: of the damages.
        folder: for the copy.
        report: is told how it goes.
    """
    kept = with_a_task_of_mteb(kept, folder / "kept")
    finished = Finished(kept, folder / "project")
    warm(kept, finished.results.name)
    _compile_as_a_dry_run(kept, finished.results.name, folder)
    found = []
    chosen = [(name, tried) for name, tried in tries(kept, finished).items() if not names or name in names]
    with forking_python() as python:
        for name, tried in chosen:
            began, codes = time.monotonic(), dict.fromkeys(range(5), 0)
            for number in range(-1, damages):
                rng = random.Random(f"{seed} {name} {number}")
                said = finished.damage(rng) if number >= 0 else []
                before = below(finished.place)
                inodes = inodes_of(finished.place, before)
                out = Path(tempfile.mkdtemp(dir=folder))
                code, text = run([word.replace("{out}", str(out)) for word in tried.arguments], finished.place, folder / "said", python)
                problem = wrong(code, text) or (
                    f"of what is whole it says: {text.strip()[-200:]}" if code and not said and number < 0 else ""
                )
                if not problem and (lost := tried.loses(finished.place, before, inodes)):
                    problem = f"lost or changed: {lost}"
                codes[code or 0] = codes.get(code or 0, 0) + 1
                shutil.rmtree(out, ignore_errors=True)
                if problem:
                    found.append(f"{name}, damage {number} of seed {seed} ({'; '.join(said)}): {problem}")
                    report(found[-1])
                finished.mend()
            report(f"{name}: {damages} damages in {time.monotonic() - began:.0f} s, exit codes {codes}")
    return found


def with_a_task_of_mteb(kept: Path, folder: Path) -> Path:
    """Copy a finished run; a task's scores lie there under a name, and as of a scale, that MTEB has: `mteb` would else read nothing."""
    shutil.copytree(kept, folder, symlinks=True, ignore=shutil.ignore_patterns(".snakemake", "*.log"))
    for path in folder.glob("results/*/scores/**/sts_written.json"):
        data = path.read_bytes()
        renamed = data.replace(b'"profile": "quick"', b'"profile": "paper"')
        for other in [*path.parent.glob("sts_written.*")]:
            content = renamed if other == path else other.read_bytes().replace(*(sha256(of).hexdigest().encode() for of in (data, renamed)))
            other.with_name(other.name.replace("sts_written", "stsb_mteb")).write_bytes(content)
    return folder


def finished_mini(folder: Path) -> Path:
    """Make the smallest workflow, run it to its end, and return its folder."""
    mini = Mini(folder)
    for name in ("CITATION.cff", "LICENSE"):
        shutil.copy(ROOT / name, mini.folder / name)
    mini.run()
    return mini.folder


def main() -> int:
    """Fuzz, and say what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("project", type=Path, nargs="?", help="a project whose run has finished (default: the smallest, made for this)")
    parser.add_argument("--damages", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = args.project or finished_mini(Path(folder) / "mini")
        found = fuzz(project.resolve(), args.only, args.damages, args.seed, Path(folder), lambda text: print(text, flush=True))
    print(f"{len(found)} problems")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
