"""Commands and the last jobs of a run, while others write and remove files in the same results folder.

`python tests/faults/beside.py PROJECT --times 200` takes a project whose run has finished.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from damages import Finished
from fuzz import Try, forked, run, tries, warm, wrong

from crosslign.config.settings import PAGES, read_settings

TAIL = ("count_rows", "make_table", "draw_figure", "measure_overlap", "write_overview", "write_report")
"""Rules of the jobs that come last, when others still write."""
SLOW = ("plan", "snakemake -n")
"""Commands that start Snakemake: they run a tenth as often."""
LOOKING = (
    "verify", "diff, damaged before", "status", "card", "push", "explain", "crate", "mteb", "coverage", "claims", "plan --files", "plan",
    "snakemake -n",
)  # fmt: skip
"""Commands of `fuzz` that may run beside a workflow; those that take away or take over are for its end."""
HALF = b'{"artefact": {"path": "'


def write_halves(rng: random.Random, folder: Path) -> None:
    """Write a half file or folder, as a job, another tool, or NFS would call it, and take it away."""
    name = f"{rng.choice(('report.html', 'faults.csv', 'lineage.json', 'x.json', 'x.tsv', 'F-A-s42', 'notes'))}"
    half = rng.choice((f".{name}.{rng.randrange(16**8):08x}.part", f"{name}.part", f".nfs{rng.randrange(16**16):016x}", f".{name}"))
    place = folder / half
    with suppress(OSError):
        if rng.random() < 0.5:
            place.write_bytes(HALF)
            place.unlink()
            return
        (place / "last" / "main").mkdir(parents=True)
        for inside in ("lineage.json", "x.json.lineage.json", "last/main/config.json"):
            (place / inside).write_bytes(HALF)
    shutil.rmtree(place, ignore_errors=True)


def make_again(rng: random.Random, artefact: Path) -> None:
    """Take an artefact and its lineage away, as the workflow engine does before a job, and bring both back, its lineage first."""
    sidecar = artefact.with_name(f"{artefact.name}.lineage.json")
    with suppress(OSError):
        stamps, found = artefact.stat(), [(path, path.read_bytes()) for path in (sidecar, artefact)]
        for path, _ in found:
            path.unlink()
        for path, content in found:
            half = path.with_name(f".{path.name}.{rng.randrange(16**8):08x}.part")
            half.write_bytes(content)
            os.utime(half, ns=(stamps.st_atime_ns, stamps.st_mtime_ns))
            half.replace(path)


def write(places: Sequence[Path], made: Sequence[Path], seed: int) -> None:
    """Write in such folders at random, and make such artefacts again, until this process is told to end."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    rng = random.Random(seed)
    while True:
        write_halves(rng, rng.choice(places))
        if made and rng.random() < 0.1:
            make_again(rng, rng.choice(made))


@contextmanager
def writers(results: Path, again: bool, number: int = 2) -> Iterator[None]:
    """Have processes write below a results folder while the block runs."""
    paths, at_work = [results, *sorted(results.rglob("*"))], []  # listed once: a walk beside a writer may fail
    places = [path for path in paths if path.is_dir()]
    made = [path for path in paths if path.is_file() and Path(f"{path}.lineage.json").exists()] if again else []
    for seed in range(number):
        if not (child := os.fork()):
            with suppress(BaseException):
                write(places, made, seed)
            os._exit(1)
        at_work.append(child)
    try:
        yield
        assert not any(os.waitpid(child, os.WNOHANG)[0] for child in at_work), "a writer has ended"
    finally:
        for child in at_work:
            with suppress(ProcessLookupError, ChildProcessError):  # it has ended, which is said above
                os.kill(child, signal.SIGTERM)
                os.waitpid(child, 0)


def tail(place: Path, scale: str) -> dict[str, Path]:
    """Make the last jobs of a finished run once more; return the script of each, by its rule: it runs the job again as Snakemake did."""
    wanted = read_settings([place / "config" / "config.yaml"], {})["targets"]
    with_pages = f"targets=[{','.join(dict.fromkeys([*wanted, *PAGES]))}]"
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--skip-script-cleanup", "--forcerun", *TAIL]
    done = subprocess.run(
        [*command, "--config", f"scale={scale}", with_pages], cwd=place, capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Path] = {}
    for path in sorted((place / ".snakemake" / "scripts").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        found |= {rule: path for rule in TAIL if f"/logs/{rule}/" in text}  # each job has a log of its own
    assert {"make_table", "measure_overlap", "write_overview", "write_report"} <= found.keys(), found
    return found


def again(script: Path, folder: Path, said: Path) -> tuple[int | None, str]:
    """Run the script of a job in a fork of this process."""

    def job() -> int:
        sys.argv = [str(script)]
        sys.path.insert(0, str(folder / "workflow" / "scripts"))
        try:
            exec(compile(script.read_text(encoding="utf-8"), str(script), "exec"), {"__name__": "__main__", "__file__": str(script)})
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
        return 0

    return forked(job, folder, said)


def beside(kept: Path, times: int, folder: Path, report: Callable[[str], None], only: Sequence[str] = ()) -> list[str]:
    """Run each command, and each of the last jobs, so often beside writers; return what went wrong.

    Args:
        kept: a project whose run has finished.
        times: of each.
        folder: for the copy.
        report: is told how it goes.
        only: names of commands and rules; none for all.
    """
    finished = Finished(kept, folder / "project")
    scale = finished.results.name
    jobs: Mapping[str, Path] = tail(finished.place, scale) if not only or set(only) & set(TAIL) else {}
    warm(kept, scale)
    found: list[str] = []
    commands = {name: tried for name, tried in tries(kept, finished).items() if name in LOOKING and (not only or name in only)}
    said = folder / "said"

    def note(name: str, codes: list[int | None], number: int, code: int | None, text: str, allowed: tuple[int | None, ...]) -> None:
        codes.append(code)
        problem = wrong(code, text) or (f"exit code {code}: {text.strip()[-300:]}" if code not in allowed else "")
        if problem:
            found.append(f"{name}, {number}: {problem}")
            report(found[-1])

    def once(tried: Try) -> tuple[int | None, str]:
        out = Path(tempfile.mkdtemp(dir=folder))
        try:
            return run([word.replace("{out}", str(out)) for word in tried.arguments], finished.place, said)
        finally:
            shutil.rmtree(out, ignore_errors=True)

    calm = {name: once(tried)[0] for name, tried in commands.items()}
    with writers(finished.results, again=False):
        for name, script in jobs.items():
            if not only or name in only:
                codes: list[int | None] = []
                for number in range(times):
                    note(name, codes, number, *again(script, finished.place, said), (0,))
                report(f"{name}: {times} times, exit codes {sorted(set(codes), key=str)}")
    for made_again in (False, True):
        with writers(finished.results, made_again):
            for name, tried in commands.items():
                codes, often = [], max(1, times // 10) if name in SLOW else times
                for number in range(often):
                    note(name, codes, number, *once(tried), (0, 1, 2) if made_again else (calm[name],))
                beside_what = "artefacts that are made again" if made_again else "half files"
                report(f"{name}: {often} times beside {beside_what}, exit codes {sorted(set(codes), key=str)}")
    return found


def main() -> int:
    """Run all, and say what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("project", type=Path)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--only", nargs="*", default=[])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = beside(args.project.resolve(), args.times, Path(folder), lambda text: print(text, flush=True), args.only)
    print(f"{len(found)} problems")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
