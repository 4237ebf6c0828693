"""`crosslign doctor`: what this machine has, and what to do about what it lacks."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import metadata, util
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from crosslign.cli import COMMANDS
from crosslign.cli.project import project_arguments, read_project
from crosslign.config.project import Project
from crosslign.config.resources import most
from crosslign.console import number_of
from crosslign.corpora.sources._network import is_offline, require_network
from crosslign.errors import InputError
from crosslign.jobs.engine import KNOWN as ENGINE
from crosslign.jobs.engine import unknown_version
from crosslign.planning.cost import no_room
from crosslign.slurm.checks import require_scheduler, too_long
from crosslign.slurm.commands import accounting_complaint, ask
from crosslign.slurm.executor import LONGEST_PAUSE
from crosslign.slurm.profile import OWN_PROFILE, places

OK, NOTE, BAD = "ok", "note", "bad"
NEEDED = ("torch", "transformers", "snakemake")
Finding = tuple[str, str, str]
"""State, what was looked at, what was found and what to do."""


def missing(package: str) -> str:
    """Say how a package is installed: with the locked ones of a checkout, or alone."""
    lock = Path("envs", "requirements.lock")
    return f"not installed: pip install {f'-r {lock}' if lock.exists() else package}"


def python_and_packages() -> Iterator[Finding]:
    """Check Python and the packages that compute."""
    version, new = platform.python_version(), sys.version_info >= (3, 11)
    yield (OK if new else BAD, "python", version if new else f"{version}: crosslign needs 3.11 or newer")
    for package in (*NEEDED, "snakemake-executor-plugin-slurm"):
        try:
            other = unknown_version(package) if package in ENGINE else ""
            yield (NOTE if other else OK), package, other or metadata.version(package)
        except metadata.PackageNotFoundError:
            yield (BAD if package in NEEDED else NOTE), package, missing(package)
    if util.find_spec("faiss") is None:  # conda and pip call its package otherwise
        yield NOTE, "faiss", missing("faiss-cpu")
        return
    from crosslign.mining.backends._faiss import load_faiss

    faiss = load_faiss("doctor")
    yield OK, "faiss", f"{faiss.__version__}, GPUs: {faiss.get_num_gpus()}"


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
        bf16 = "yes" if torch.cuda.is_bf16_supported(including_emulation=False) else "no"
        yield OK, "torch on GPU", f"{number_of(torch.cuda.device_count(), 'device')}, bf16 {bf16}"
    elif shutil.which("nvidia-smi"):
        yield BAD, "torch on GPU", "torch sees no GPU: install the CUDA build (README, Install)"
    elif torch.backends.mps.is_available():
        yield NOTE, "GPU", "Apple's: CROSSLIGN_DEVICE=mps encodes and trains on it (docs/install.md)"
    else:
        yield NOTE, "GPU", f"none: everything runs on {number_of(os.cpu_count() or 1, 'core')}, at scale laptop or quick"


def storage(results: Path, mirrors: tuple[Path, ...]) -> Iterator[Finding]:
    """Check free space, mirrors and the hub's cache."""
    folder = next(parent for parent in (results.absolute(), *results.absolute().parents) if parent.exists())
    free = shutil.disk_usage(folder).free / 1e9
    yield (
        (OK if free > 20 else NOTE),
        "disk",
        f"{free:.0f} GB free at {folder}" + ("" if free > 20 else ": the papers' corpora need hundreds"),
    )
    for mirror in mirrors:
        there = mirror.is_dir()
        yield (OK if there else BAD), "mirror", f"{mirror}" + ("" if there else " does not exist: fix `mirror:` or CROSSLIGN_MIRROR")
    if not mirrors:
        yield NOTE, "mirror", "none: files come from their publishers"
    yield OK, "hub cache", os.environ.get("HF_HOME", str(Path.home() / ".cache" / "huggingface"))


def temporary(project: Project) -> Iterator[Finding]:
    """Check the room for temporary files of the largest training set of the configuration."""
    note = no_room(project, [("build_examples", {"examples": name}) for name in project.examples])
    yield (NOTE, "temporary files", note) if note else (OK, "temporary files", f"enough room in {tempfile.gettempdir()}")


def network() -> Iterator[Finding]:
    """Check whether publishers' hosts can be reached, unless downloads are switched off."""
    if is_offline():
        yield NOTE, "network", "switched off by CROSSLIGN_OFFLINE"
        return
    for host in ("pypi.org", "huggingface.co", "object.pouta.csc.fi"):
        proxy = urlsplit("" if proxy_bypass(host) else getproxies().get("https", ""))
        asked = (proxy.hostname, proxy.port or 80) if proxy.hostname else (host, 443)
        name = f"{host}, by its proxy {asked[0]}:{asked[1]}," if proxy.hostname else host  # the rest of its address may hold a password
        try:
            socket.create_connection(asked, timeout=3).close()
            yield OK, "network", f"{name} answers"
        except OSError as error:
            yield NOTE, "network", f"{name} does not answer ({error}): put files into a mirror (docs/downloads.md)"


def scheduler(most_minutes: int = 0) -> Iterator[Finding]:
    """Check for Slurm, and that it gives jobs the time that any of them may ask for (`max_runtime`)."""
    if not shutil.which("sbatch"):
        yield NOTE, "Slurm", "no sbatch here: --profile slurm needs a login node"
        return
    said, complaint = ask(["sinfo", "--noheader", "--format=%P %a %G"])
    if complaint:
        yield BAD, "Slurm", f"sinfo fails: {complaint.splitlines()[-1]}: use another login node, or ask your administrators"
        return
    yield from ((OK, "Slurm partition", line.strip()) for line in said.splitlines())
    yield from _slurm_settings(most_minutes)


def _slurm_settings(most_minutes: int) -> Iterator[Finding]:
    """Check what the executor asks Slurm for: accounting that answers, ended jobs that are remembered, a local file."""
    accounting = not accounting_complaint()
    if not accounting:
        yield NOTE, "Slurm accounting", "sacct does not answer: keep `slurm-status-command: squeue`"
    said, complaint = ask(["scontrol", "show", "config"])
    if complaint:
        yield BAD, "Slurm", f"scontrol fails: {complaint.splitlines()[-1]}"
    if age := re.search(r"^MinJobAge\s*=\s*(\d+)", said, flags=re.MULTILINE):
        forgets = 0 < int(age[1]) < LONGEST_PAUSE
        more = (
            "with `slurm-status-command: sacct` in slurm/local.yaml it is known"
            if accounting
            else "a forgotten job counts as done if its files exist"
        )
        text = f"{age[1]} s: Slurm may forget how a job ended before the run asks; {more}" if forgets else f"{age[1]} s"
        yield (NOTE if forgets else OK), "Slurm MinJobAge", text
    yield _own_file()
    with suppress(InputError):  # it is told already
        if note := too_long(places() if OWN_PROFILE.exists() else {"all jobs": {}}, most_minutes):
            yield NOTE, "Slurm time limits", note


def _own_file() -> Finding:
    """Check that slurm/local.yaml can be read, and that Slurm takes a job of each rule with the names in it, in the time that it gives."""
    name = str(OWN_PROFILE)
    if not OWN_PROFILE.exists():
        return NOTE, name, "missing: jobs use Slurm's default partition and account"
    try:
        asked = places()
        require_scheduler(asked)
    except InputError as error:
        return BAD, name, str(error)
    return OK, name, f"found: Slurm accepts jobs with its settings ({', '.join(asked)})"


def _sources(project: Project, targets: Sequence[str]) -> int:
    """Print what publishers say of the files of targets; 1 where one is lost at all of its addresses.

    Raises:
        NetworkError: downloads are switched off.
    """
    from crosslign.config.data_plan import data_plan
    from crosslign.corpora.survey import lost, survey, survey_lines

    require_network("the heads of the files", "doctor --sources")
    heads = survey(project, data_plan(project, targets))
    print("\n".join(survey_lines(heads)))
    files = lost(heads)
    print(f"{number_of(len(heads), 'address')} checked; files without a working address: {len(files)}")
    return 1 if files else 0


@COMMANDS.register()
class Doctor:
    """Looks at Python, packages, GPU, disk, mirrors, network and Slurm."""

    help = "check this machine and say what to do"

    def arguments(self, parser: ArgumentParser) -> None:
        """Declare the project, and whether publishers are asked."""
        parser.add_argument("targets", nargs="*", help="with --sources: targets as for `plan` (default: those of the configuration)")
        parser.add_argument("--sources", action="store_true", help="ask publishers whether the files of the targets are there")
        project_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Print what was found; 1 where there is a problem."""
        project = read_project(args, needed=args.sources)
        if args.sources:
            return _sources(project, args.targets or project.settings["targets"])
        checks = (
            python_and_packages(), devices(), storage(project.paths.results, project.mirrors), temporary(project), network(),
            scheduler(most(project)[1]),
        )  # fmt: skip
        found = [finding for check in checks for finding in check]
        for state, what, text in found:
            print(f"{state:<5} {what:<34} {text}")
        bad = sum(state == BAD for state, _, _ in found)
        print(f"{number_of(bad, 'problem')} to fix" if bad else "no problem found")
        return 1 if bad else 0
