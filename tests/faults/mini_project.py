"""The smallest whole workflow, in a folder of its own: run it, disturb it, run it again, compare."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from project_copy import WORKFLOW, copy_project, environment, own_copy

from crosslign.paths import CATALOG

WRITTEN = ("nli_en.tsv", "sts_en.tsv", "sts_de.tsv")


def make_project(target: Path) -> Path:
    """Copy the workflow, the small configuration and the texts that it needs to `target`."""
    copy_project(target, WORKFLOW)
    shutil.copytree(Path(__file__).parent / "mini" / "config", target / "config", dirs_exist_ok=True)
    (target / "resources" / "written").mkdir(parents=True, exist_ok=True)
    (target / "resources" / "published").mkdir(exist_ok=True)
    for name in WRITTEN:
        shutil.copy(CATALOG / "resources" / "written" / name, target / "resources" / "written" / name)
    return target


def make_environment(folder: Path) -> str:
    """Make an environment with this one's packages; return its interpreter."""
    venv.create(folder, symlinks=True)
    (own,) = folder.glob("lib/python*/site-packages")
    (own / "these.pth").write_text(f"import site; site.addsitedir({sysconfig.get_paths()['purelib']!r})\n", encoding="utf-8")
    return str(folder / "bin" / "python")


class Mini:
    """One such project."""

    def __init__(self, folder: Path) -> None:
        self.folder = make_project(folder)
        self.results = self.folder / "results" / "mini"
        self.python = sys.executable

    def command(self, *arguments: str, cores: str = "2", config: tuple[str, ...] = ()) -> list[str]:
        """Return the command that builds everything."""
        extra = ["--config", *config] if config else []
        return [self.python, "-m", "snakemake", "--cores", cores, *arguments, *extra]

    def environment(self, **changes: str) -> dict[str, str]:
        """Return the environment of a run: no network, one thread a library."""
        return environment(**{"OMP_NUM_THREADS": "1", **changes})

    def start(self, *arguments: str, log: Path | None = None, **changes: str) -> subprocess.Popen[str]:
        """Start a run in a process group of its own."""
        out = open(log or self.folder / "run.log", "w", encoding="utf-8")  # noqa: SIM115
        with out:
            return subprocess.Popen(
                self.command(*arguments),
                cwd=self.folder,
                env=self.environment(**changes),
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )

    def run(
        self, *arguments: str, check: bool = True, cores: str = "2", config: tuple[str, ...] = (), before: tuple[str, ...] = (), **env: str
    ):
        """Run to the end; `before` is put before the command (`unshare` …). Returns the finished process, its output joined."""
        done = subprocess.run(
            [*before, *self.command(*arguments, cores=cores, config=config)],
            cwd=self.folder,
            env=self.environment(**env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=900,
        )
        if check:
            assert done.returncode == 0, done.stdout[-6000:]
        return done

    def engine_log(self) -> str:
        """Return the engine's own log of the latest run, which keeps what the screen is spared."""
        return max((self.folder / ".snakemake" / "log").iterdir()).read_text(encoding="utf-8")

    def finish(self) -> None:
        """Give the same command again, after the one `--unlock` that the message names where it names it, until it ends well."""
        for _ in range(4):
            done = self.run(check=False)
            if done.returncode == 0:
                return
            if "--unlock" in done.stdout:
                assert "cannot be locked" in done.stdout, done.stdout[-3000:]
                assert self.run("--unlock", check=False).returncode == 0
        raise AssertionError(done.stdout[-6000:])

    def tables(self) -> dict[str, str]:
        """Return the SHA-256 of every file of every table but its lineage, by name."""
        files = sorted((self.results / "tables").glob("*"))
        return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in files if not f.name.endswith("lineage.json")}

    def artefacts(self) -> dict[str, str]:
        """Return the SHA-256 of every artefact as its lineage names it, by path."""
        sidecars = self.results.rglob("*lineage.json")
        entries = [json.loads(path.read_text(encoding="utf-8"))["artefact"] for path in sidecars]
        return {entry["path"]: entry["sha256"] for entry in entries}

    def leftovers(self) -> list[str]:
        """Return what no finished run may leave behind."""
        places = (self.folder / "results", self.folder / "downloads")
        found = (path for place in places for path in place.rglob("*") if path.name.endswith((".part", ".download", ".state", ".wrong")))
        return sorted(str(path.relative_to(self.folder)) for path in found)

    def edit(self, file: str, old: str, new: str) -> None:
        """Replace a text that must be there."""
        path = own_copy(self.folder, file)
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")


def tree(pid: int) -> list[int]:
    """Return a process and all that descend from it, from /proc."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting.extend(children.get(one, []))
    return found


def alive(pid: int) -> bool:
    """Tell whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill_all(process: subprocess.Popen[str]) -> None:
    """End what is left of a run that a test started."""
    for pid in tree(process.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()
