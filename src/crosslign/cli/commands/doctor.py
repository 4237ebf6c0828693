"""`crosslign doctor`: what this machine has, and what to do about what it lacks."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from importlib import metadata, util
from pathlib import Path

from crosslign.cli import COMMANDS
from crosslign.cli.project import project_arguments, read_project
from crosslign.config.scheduler import ask
from crosslign.config.yaml_files import load_yaml
from crosslign.corpora.sources._network import is_offline
from crosslign.errors import InputError

OK, NOTE, BAD = "ok", "note", "bad"
STATUS_SECONDS = "slurm-init-seconds-before-status-checks"
Finding = tuple[str, str, str]
"""State, what was looked at, what was found and what to do."""


def _status_seconds() -> int:
    """Return when a job is first asked after, in seconds: as slurm/local.yaml says, else slurm/config.yaml, else the executor."""
    for path in (Path("slurm/local.yaml"), Path("slurm/config.yaml")):
        try:
            given = load_yaml(path).content
        except (InputError, OSError):
            continue
        if isinstance(given, Mapping) and isinstance(given.get(STATUS_SECONDS), int):
            return int(given[STATUS_SECONDS])
    return 40


def python_and_packages() -> Iterator[Finding]:
    """Check Python and the packages that compute."""
    version = platform.python_version()
    known = sys.version_info >= (3, 11)
    yield (OK if known else BAD, "python", version if known else f"{version}: 3.11 or newer is needed")
    for package in ("torch", "transformers", "snakemake", "faiss-cpu", "snakemake-executor-plugin-slurm"):
        try:
            yield OK, package, metadata.version(package)
        except metadata.PackageNotFoundError:
            needed = package in ("torch", "transformers", "snakemake")
            yield (BAD if needed else NOTE), package, "not installed: pip install -r envs/requirements.lock"


def devices() -> Iterator[Finding]:
    """Check GPUs, their driver, and what torch makes of them."""
    if shutil.which("nvidia-smi"):
        query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
        said, complaint = ask(query)
        yield from ((OK, "GPU", line.strip()) for line in said.splitlines())
        if complaint:
            yield BAD, "GPU", f"nvidia-smi fails: {complaint}: is the driver loaded?"
    if util.find_spec("torch") is None:
        return
    import torch

    if torch.cuda.is_available():
        yield OK, "torch on GPU", f"{torch.cuda.device_count()} devices, bf16 {'yes' if torch.cuda.is_bf16_supported() else 'no'}"
    elif shutil.which("nvidia-smi"):
        yield BAD, "torch on GPU", "torch sees no GPU: install the CUDA build (README, Which torch)"
    else:
        yield NOTE, "GPU", f"none: everything runs on {os.cpu_count()} cores, at scale laptop or quick"


def storage(results: Path, mirrors: tuple[Path, ...]) -> Iterator[Finding]:
    """Check free space, mirrors and the hub's cache."""
    folder = next(parent for parent in (results.absolute(), *results.absolute().parents) if parent.exists())
    free = shutil.disk_usage(folder).free / 1e9
    yield (
        (OK if free > 20 else NOTE),
        "disk",
        f"{free:.0f} GB free at {folder}" + ("" if free > 20 else ": corpora of the papers need hundreds"),
    )
    for mirror in mirrors:
        there = mirror.is_dir()
        yield (OK if there else BAD), "mirror", f"{mirror}" + ("" if there else " is not there: mend `mirror:` or CROSSLIGN_MIRROR")
    if not mirrors:
        yield NOTE, "mirror", "none: files come from their publishers"
    yield OK, "hub cache", os.environ.get("HF_HOME", str(Path.home() / ".cache" / "huggingface"))


def network() -> Iterator[Finding]:
    """Check whether publishers' hosts can be reached, unless downloads are switched off."""
    if is_offline():
        yield NOTE, "network", "switched off by CROSSLIGN_OFFLINE"
        return
    for host in ("pypi.org", "huggingface.co", "object.pouta.csc.fi"):
        try:
            socket.create_connection((host, 443), timeout=3).close()
            yield OK, "network", f"{host} answers"
        except OSError as error:
            yield NOTE, "network", f"{host} does not ({error}): put files into a mirror (docs/add-a-corpus.md)"


def scheduler() -> Iterator[Finding]:
    """Check for Slurm."""
    if not shutil.which("sbatch"):
        yield NOTE, "Slurm", "no sbatch here: --profile slurm needs a login node"
        return
    said, complaint = ask(["sinfo", "--noheader", "--format=%P %a %G"])
    if complaint:
        yield BAD, "Slurm", f"sinfo fails: {complaint}"
        return
    yield from ((OK, "Slurm partition", line.strip()) for line in said.splitlines())
    yield from _slurm_settings()


def _slurm_settings() -> Iterator[Finding]:
    """Check what the executor asks Slurm for: accounting that answers, finished jobs that are remembered, a local file."""
    said, complaint = ask(["scontrol", "show", "config"])
    if complaint:
        yield BAD, "Slurm", f"scontrol fails: {complaint}"
    settings = dict(re.findall(r"^(\w+)\s*=\s*(\S+)", said, flags=re.MULTILINE))
    accounting = shutil.which("sacct") and not settings.get("AccountingStorageType", "none").endswith("none")
    if shutil.which("sacct") and not accounting:
        text = "sacct is there and answers nothing: keep `slurm-status-command: squeue`, or the run waits for ever"
        yield NOTE, "Slurm accounting", text
    age = re.match(r"\d+", settings.get("MinJobAge", ""))
    if age:
        short = int(age[0]) < 3 * _status_seconds() and not accounting  # with accounting the executor then asks that
        more = f": set slurm-init-seconds-before-status-checks to {max(1, int(age[0]) // 3)} or less in slurm/local.yaml" if short else ""
        yield (BAD if short else OK), "Slurm MinJobAge", f"{age[0]} s{more}"
    own = Path("slurm/local.yaml")
    yield (OK if own.exists() else NOTE), "slurm/local.yaml", "found" if own.exists() else "not there: partition and account are guessed"


@COMMANDS.register
class Doctor:
    """Looks at Python, packages, GPU, disk, mirrors, network and Slurm."""

    help = "check this machine and say what to do"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare the project."""
        project_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Print what was found; 1 where something stands in the way."""
        project = read_project(args)
        checks = (python_and_packages(), devices(), storage(project.paths.results, project.mirrors), network(), scheduler())
        found = [finding for check in checks for finding in check]
        for state, what, text in found:
            print(f"{state:<5} {what:<34} {text}")
        bad = sum(state == BAD for state, _, _ in found)
        print(f"{bad} thing{'' if bad == 1 else 's'} to mend" if bad else "nothing stands in the way")
        return 1 if bad else 0
