"""A release: sdist and wheel from what git knows, checked, and the wheel tried alone in an empty folder (`make release`).

Files go to `dist/`. Nothing is uploaded: `twine upload dist/*` is a person's command.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("build==1.6.1", "twine==7.0.0", "setuptools==84.2.1")
GENERATED = r"PKG-INFO|setup\.cfg|src/crosslign\.egg-info/.*"
"""Files of an sdist that no one wrote."""
SUBSET = (
    "tests/unit/test_registry.py",
    "tests/unit/test_environments.py",
    "tests/unit/test_pages.py",
    "tests/unit/test_publish.py",
    "tests/unit/test_losses_in_trainings.py",
    "tests/unit/cli",
    "tests/unit/mining",
)
"""Tests that are run in the sdist."""
COMMANDS = (
    (["--version"], 0, "crosslign "),
    (["list", "objectives"], 0, "multi_positive_infonce"),
    (["doctor"], None, "python"),
    (["mine", "a.txt", "b.txt", "--config", "scale=quick", "--allow-tiny"], 0, "pairs.tsv"),
    (["new", "objective", "my_loss"], 0, "my_loss/my_loss.py"),
    (["verify", "results/laptop"], 2, "no results here"),
    (["diff", "results/one", "results/other"], 2, "no scores here"),
    (["mteb", "results/laptop", "out"], 2, "no scores here"),
    *(
        (words.split(), 2, "no project here")
        for words in ("plan", "status", "verify", "claims", "coverage", "rehearse", "crate quickstart", "explain quickstart row column",
                      "card QS-P", "push QS-P lab/name", "pair de-hsb", "mine verses", "doctor --sources")
    ),
)  # fmt: skip
"""What the library does with no project: words, exit code (None where it depends on the machine), a piece of its output."""


def run(*command: str | Path, cwd: Path | None = None, check: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command; where it must not fail, end with what it said."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    done = subprocess.run([*map(str, command)], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done


def files_of_git() -> list[str]:
    """Return the files that git knows or would take, links to folders as the files behind them."""
    said = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).stdout
    names = [name for name in said.split("\0") if name and (ROOT / name).exists()]
    behind = [path for name in names if (ROOT / name).is_dir() for path in (ROOT / name).iterdir()]
    return sorted([*(name for name in names if (ROOT / name).is_file()), *(str(path.relative_to(ROOT)) for path in behind)])


def tools(folder: Path) -> Path:
    """Return an environment with the tools that build and check, made where it is not there; they stand apart from the locked packages."""
    python = folder / "bin" / "python"
    if not (folder / ".installed").exists():
        run(sys.executable, "-m", "venv", "--clear", folder)
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *TOOLS)
        (folder / ".installed").touch()
    return python


def build(python: Path, out: Path) -> tuple[Path, Path]:
    """Build the sdist from a copy of git's files, and the wheel from the sdist; return both."""
    with tempfile.TemporaryDirectory(prefix="crosslign-release-") as place:
        for name in files_of_git():
            target = Path(place, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
        run(python, "-m", "build", "--no-isolation", "--outdir", out, place)
    (sdist,), (wheel,) = out.glob("crosslign-*.tar.gz"), out.glob("crosslign-*.whl")
    return sdist, wheel


def complaints(python: Path, sdist: Path, wheel: Path) -> list[str]:
    """Return what is wrong with the contents of an sdist and a wheel; nothing where they may be published."""
    found = []
    if (done := run(python, "-m", "twine", "--no-color", "check", "--strict", sdist, wheel, check=False)).returncode:
        found.append(f"twine: {done.stdout}{done.stderr}")
    names, git = files_in(sdist), set(files_of_git())
    own = {name for name in names if not re.fullmatch(GENERATED, name)}
    found += [f"sdist: {name} is not there" for name in sorted(git - own)] + [f"sdist: {name} is in it" for name in sorted(own - git)]
    wanted = {name.removeprefix("src/") for name in git if name.startswith("src/")}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
        words = "".join(archive.read(name).decode() for name in archive.namelist() if name.endswith(("METADATA", "entry_points.txt")))
    found += [f"wheel: {name} is not there" for name in sorted(wanted - packed)] + [f"wheel: {name} is in it" for name in packed - wanted]
    found += [f"wheel: no {name}" for name in ("crosslign/py.typed",) if name not in packed]
    version = re.search(r"^Version: (.*)$", words, flags=re.MULTILINE)[1]
    found += [f"{file} has another version than {version}" for file, pattern in VERSIONS.items() if stated(file, pattern) != version]
    found += [
        f"wheel: {text} is not declared" for text in ("crosslign = crosslign.cli.main:main", "License-File: LICENSE") if text not in words
    ]
    return found


VERSIONS = {"CITATION.cff": r"^version: (\S+)$", "workflow/Snakefile": r'^LIBRARY = "(\S+)"$'}
"""Files that state the version."""


def stated(file: str, pattern: str) -> str:
    """Return the version that a file states."""
    return re.search(pattern, (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE)[1]


def files_in(sdist: Path) -> set[str]:
    """Return the files of an sdist, without its folder's name."""
    with tarfile.open(sdist) as archive:
        return {member.name.partition("/")[2] for member in archive if member.isfile()}


def alone(wheel: Path, folder: Path, locked: bool) -> Path:
    """Return the Python of a fresh environment that has the wheel.

    Args:
        wheel: what is installed.
        folder: where the environment goes.
        locked: the wheel's dependencies are installed, in the versions of the lock; else those of this environment are borrowed.
    """
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "venv", *([] if locked else ["--without-pip"]), folder)
    if locked:
        run(python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "envs" / "requirements.lock", wheel)
    else:
        run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel)
        site = next((folder / "lib").glob("python*")) / "site-packages"
        (site / "borrowed.pth").write_text(f"{metadata.distribution('torch').locate_file('')}\n", encoding="utf-8")
    place = run(python, "-c", "import crosslign; print(crosslign.__file__)", cwd=folder).stdout.strip()
    if not Path(place).is_relative_to(folder):
        raise RuntimeError(f"the library comes from {place}, not from the wheel")
    return python


def tried(python: Path, folder: Path) -> list[str]:
    """Run the commands that need no project in a folder with two files; return what they did otherwise than they should."""
    folder.mkdir()
    for name, lines in (("a.txt", ["Das Haus ist alt.", "Guten Tag!"]), ("b.txt", ["Good morning!", "The house is old."])):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = []
    for words, code, piece in COMMANDS:
        variables = {"XDG_CACHE_HOME": str(folder / "cache"), "CROSSLIGN_OFFLINE": "1"}
        done = run(python.with_name("crosslign"), *words, cwd=folder, check=False, **variables)
        said = done.stdout + done.stderr
        if "Traceback" in said or piece not in said or (code is not None and done.returncode != code):
            found.append(f"crosslign {' '.join(words)}: exit code {done.returncode}: {said[-2000:]}")
        if code == 2 and len(done.stderr.splitlines()) != 1:
            found.append(f"crosslign {' '.join(words)}: more than one line: {done.stderr}")
    return found


def failures(sdist: Path, folder: Path) -> list[str]:
    """Run tests of an unpacked sdist, on its own library; return what failed."""
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)  # not in Python 3.11.2
        archive.extractall(folder)
    (unpacked,) = folder.iterdir()
    command = (sys.executable, "-m", "pytest", "-q", "-m", "not long", *SUBSET)
    done = run(*command, cwd=unpacked, check=False, PYTHONPATH=str(unpacked / "src"), CUDA_VISIBLE_DEVICES="")
    return [f"tests of the sdist: {done.stdout[-6000:]}{done.stderr[-2000:]}"] if done.returncode else []


def main() -> int:
    """Build, check and try a release; 1 where it is none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument(
        "--borrowed", action="store_true", help="try the wheel on the packages of this environment, not on a fresh install of the lock"
    )
    args = parser.parse_args()
    if changed := run("git", "status", "--porcelain", cwd=ROOT).stdout:
        print(f"error: commit first; changed:\n{changed}", file=sys.stderr)
        return 2
    shutil.rmtree(args.out, ignore_errors=True)
    python = tools(ROOT / ".venv" / "release")
    sdist, wheel = build(python, args.out.resolve())
    with tempfile.TemporaryDirectory(prefix="crosslign-alone-") as place:
        found = complaints(python, sdist, wheel)
        found = found or tried(alone(wheel.resolve(), Path(place, "environment"), not args.borrowed), Path(place, "empty"))
        found = found or failures(sdist, Path(place, "sdist"))
    print("\n".join(found) if found else f"{sdist} and {wheel} may be published")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
