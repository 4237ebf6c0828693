"""The tests of whatever works side by side, again and again: under load, then once in each surrounding that a user may have.

`make test-repeat` takes at most 90 minutes. Exit code 1 where anything failed once, 2 where nothing did and there was no time for all.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIDE_BY_SIDE = (
    "tests/unit/files", "tests/unit/jobs", "tests/unit/corpora/sources",
    *(f"tests/unit/provenance/test_{name}.py" for name in ("code_states", "reruns", "stale_handles", "tampering", "verify")),
    *(f"tests/unit/cli/test_{name}.py" for name in ("main", "result_folders")),
    "tests/unit/training/test_tokenised.py", "tests/unit/mining/test_interrupted_search.py", "tests/unit/views/test_translated.py",
    "tests/unit/encoders/test_matrices.py",
)  # fmt: skip
SLOW_DISK = 8 * 2**20
"""Bytes that are written and flushed without end beside the tests."""
NOBODY = 65534
WELL, NO_TIME = "well", "no time"
STARTS = "import pytest, subprocess, sys; subprocess.run([sys.executable, '-c', ''], check=True)"


@contextmanager
def load(folder: Path) -> Iterator[None]:
    """Keep two processes busy, and the disk with a third, while the block runs."""
    at_work = []
    for number in range(3):
        if not (child := os.fork()):
            while True:
                if number == 2:
                    with open(folder / "load", "wb") as file:
                        file.write(os.urandom(SLOW_DISK))
                        os.fsync(file.fileno())
        at_work.append(child)
    try:
        yield
    finally:
        for child in at_work:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def run(name: str, tests: list[str], seconds: float, python: str = sys.executable, before: tuple[str, ...] = (), **given) -> str:
    """Run the tests once; say how that ended, `well`, `FAILED` or `no time`, and show what failed; return it."""
    folder, options, variables = (given.get(key, default) for key, default in (("folder", ROOT), ("options", []), ("variables", {})))
    command = [*before, python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long and not workflow", *options, *tests]
    settings: Mapping[str, str] = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "CROSSLIGN_PATIENCE": "3", **variables}
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, cwd=folder, env=settings, stdout=said, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            ended = "FAILED" if process.wait(max(1.0, seconds)) else WELL
        except subprocess.TimeoutExpired:
            ended = NO_TIME
        finally:
            with suppress(ProcessLookupError):  # also what its tests had started
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        print(f"{name}: {ended}, {time.monotonic() - began:.0f} s", flush=True)
        if ended == "FAILED":
            said.seek(0)
            print(said.read()[-8000:], flush=True)
    return ended


def exported(folder: Path) -> Path:
    """Return a copy of the project as an archive of it gives it, without `.git`."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    folder.mkdir(parents=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return folder


def surroundings(folder: Path) -> Iterator[tuple[str, dict]]:
    """Yield each surrounding by name, with what `run` takes; with `skip` where it cannot be had."""
    yield "random order", {"variables": {"CROSSLIGN_TEST_ORDER": str(int(time.time()))}}
    yield "reverse order", {"variables": {"CROSSLIGN_TEST_ORDER": "reverse"}}
    yield "another time zone", {"variables": {"TZ": "Pacific/Chatham"}}
    yield "locale C", {"variables": {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0"}}
    yield "umask 077", {"before": ("sh", "-c", 'umask 077; exec "$@"', "sh")}
    odd = folder / "Größe der Öfen"
    odd.mkdir()
    yield "a path with spaces and umlauts", {"options": ["--basetemp", str(odd / "t")]}
    yield "another user than root", other_user(folder)
    if (ROOT / ".git").exists():
        yield (
            "an archive without .git",
            {"folder": exported(folder / "archive"), "variables": {"PYTHONPATH": str(folder / "archive" / "src")}},
        )
    else:
        yield "an archive without .git", {"skip": "this is one"}
    for version in ("3.12", "3.13"):
        yield f"Python {version}", {"version": version}


def can_start(before: tuple[str, ...]) -> bool:
    """Tell whether Python starts, and has its packages, behind such a command."""
    command = [*before, sys.executable, "-c", STARTS]
    return bool(shutil.which(before[0])) and not subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode


def other_user(folder: Path) -> dict:
    """Return what runs the tests as nobody, or else without root's rights over their own files; why not, where neither can be."""
    if os.geteuid():
        return {"skip": "needs root: this is another user"}
    befores = (("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"), ("unshare", "--user", f"--map-user={NOBODY}"))
    before = next(filter(can_start, befores), None)
    if before is None:
        return {"skip": f"nobody may not run {Path(sys.executable).resolve()}, and there are no user namespaces"}
    place = folder / "nobody"
    place.mkdir()
    if before[0] == "setpriv":  # in a namespace what is root's is nobody's
        os.chown(place, NOBODY, NOBODY)
    folder.chmod(0o755)
    return {"before": before, "variables": {"HOME": str(place), "TMPDIR": str(place), "HF_HOME": str(place)}}


def other_python(version: str) -> dict:
    """Return an interpreter of another version with this project's packages, made by `make`; why not, where that cannot be."""
    found = shutil.which("pyenv")
    place = subprocess.run([found or "false", "prefix", version], capture_output=True, text=True, check=False).stdout.strip()
    if not place:
        return {"skip": f"pyenv has no Python {version}"}
    environment = f".venv-{version}"
    command = ["make", f"PYTHON={place}/bin/python3", f"VENV={environment}", f"{environment}/.installed"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return {"python": str(ROOT / environment / "bin" / "python")} if not made.returncode else {"skip": made.stdout.strip()[-300:]}


def main() -> int:
    """Run all; return 1 where anything failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=90.0)
    parser.add_argument("--only", nargs="*", help="surroundings, by the beginnings of their names")
    parser.add_argument("tests", nargs="*", default=list(SIDE_BY_SIDE))
    args = parser.parse_args()
    end, ended = time.monotonic() + args.minutes * 60, dict[str, str]()
    with tempfile.TemporaryDirectory(prefix="crosslign-repeat-") as place:
        folder = Path(place)
        rounds = [f"under load, {number} of {args.times}" for number in range(1, args.times + 1)]
        with load(folder), ThreadPoolExecutor(2) as pool:  # two at a time: much of each waits
            ended |= zip(rounds, pool.map(lambda name: run(name, args.tests, end - time.monotonic()), rounds), strict=True)
        for name, given in surroundings(folder):
            if args.only is not None and not name.startswith(tuple(args.only)):
                continue
            asked = other_python(given["version"]) if "version" in given else given  # made only here: that takes minutes
            if "skip" in asked:
                ended[name] = f"skipped, {asked['skip']}"
                print(f"{name}: {ended[name]}", flush=True)
                continue
            ended[name] = run(name, args.tests, end - time.monotonic(), **asked)
    return told(ended)


def told(ended: Mapping[str, str]) -> int:
    """Say what of all that was asked for did not end well; return the exit code."""
    for name, how in ended.items():
        if how != WELL:
            print(f"not run well: {name} ({how})")
    print(f"{sum(how == WELL for how in ended.values())} of {len(ended)} ended well", flush=True)
    return 1 if "FAILED" in ended.values() else 2 if NO_TIME in ended.values() else 0


if __name__ == "__main__":
    sys.exit(main())
