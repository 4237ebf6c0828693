"""The frame that every job of the workflow runs in: log, threads, devices, and errors that people can read."""

from __future__ import annotations

import logging
import os
import platform
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from crosslign.config.versions import code_behind
from crosslign.console import printable
from crosslign.errors import CrosslignError, InputError
from crosslign.files.atomic import disk_problem
from crosslign.files.fingerprint import fingerprint
from crosslign.files.lineage import AGAIN, Lineage, beside_recipe
from crosslign.files.temporary import NoTemporaryRoomError
from crosslign.jobs.alone import end_with_engine, only_one
from crosslign.jobs.hangup import end_on_hangup
from crosslign.jobs.job import DERIVED, Job, Paths, all_paths, as_paths, at_copies, inputs_of, listed
from crosslign.jobs.leases import lease_gpus
from crosslign.jobs.offline import no_network
from crosslign.progress import ONLY_IN_FILE
from crosslign.threads import do_without_pandas, limit_threads

SLURM_LOG = ".snakemake/slurm_logs/**/{number}.log"
"""Where Slurm's log of a job lies, as a pattern: the executor puts it below a folder of the rule, and of its wildcards where it has any."""


class _Printable(logging.Formatter):
    """Leaves out what a terminal would obey: a line of a corpus may stand in a message."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def start_log(log: Path, rule: str) -> None:
    """Send all messages to the job's log; to the screen all but those of `ONLY_IN_FILE`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    logging.raiseExceptions = False  # on a full disk the log fails too: the message on the screen must not drown in that
    screen = logging.StreamHandler(sys.stderr)
    screen.setFormatter(_Printable(f"[{rule} {log.stem}] %(message)s"))
    screen.addFilter(lambda record: not ONLY_IN_FILE.keys() & vars(record).keys())
    file = logging.FileHandler(log, mode="w", encoding="utf-8")
    file.setFormatter(_Printable("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[file, screen], force=True)
    for noisy in ("httpx", "httpx2", "httpcore2", "filelock", "urllib3", "matplotlib", "PIL", "fontTools"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def slurm_job(environment: Mapping[str, str]) -> str:
    """Return the number of the Slurm job that this process is in, as its log is called; empty outside of one."""
    if "SLURM_ARRAY_JOB_ID" in environment:
        return f"{environment['SLURM_ARRAY_JOB_ID']}_{environment.get('SLURM_ARRAY_TASK_ID', '')}"
    return environment.get("SLURM_JOB_ID", "")


def _name_scheduler() -> None:
    """Say in the job's log which job of Slurm it is, and where Slurm's own log lies; that one names this log."""
    if number := slurm_job(os.environ):
        place = SLURM_LOG.format(number=number)
        logging.getLogger("crosslign").info("Slurm job %s on %s; its log: %s", number, platform.node(), place)


ASKED = ("mem_mb", "runtime", "disk_mb")
"""Resources that lineage keeps: what `crosslign status` sets beside what a job used."""
TOLD_TO_END = "stopped by SIGTERM: the job's time limit was reached, or it was cancelled; a retry asks for more time (docs/cluster.md)"


@contextmanager
def _end_explained() -> Iterator[None]:
    """Let SIGTERM, of which a process dies without a word, leave one in the job's log first; what is forked dies in silence."""
    own = os.getpid()

    def end(number: int, frame: object) -> None:
        if os.getpid() == own:
            logging.getLogger("crosslign").error(TOLD_TO_END)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _check_devices(devices: Sequence[str]) -> None:
    """Warn where torch cannot use the job's devices: days on a CPU look like hours on a GPU until a limit ends them."""
    if not devices:
        return
    import torch

    if not torch.cuda.is_available():
        why = "its build is for CPUs" if torch.version.cuda is None else f"it needs CUDA {torch.version.cuda}: is the driver too old?"
        log = logging.getLogger("crosslign")
        log.warning("this job has GPU %s, but torch %s cannot use it: computing on the CPU; %s", ", ".join(devices), torch.__version__, why)


def execute(
    stage: Callable[[Job], None],
    *,
    inputs: Iterable[tuple[str, Any]],
    outputs: Iterable[tuple[str, Any]],
    params: Iterable[tuple[str, Any]],
    threads: int,
    log: str,
    resources: Iterable[tuple[str, Any]] = (),
) -> None:
    """Run one stage as a job: the only thing that a workflow script calls.

    Args:
        stage: function of a module in `crosslign.stages`, called as its rule is.
        inputs, outputs, params: (name, value) items of the rule.
        threads: threads of the rule; a recipe's own thread count wins, so that `--cores` cannot change bytes.
        log: the job's log file.
        resources: items of the rule, too: no settings, so that a changed one reruns nothing.

    A `CrosslignError` ends the process with its exit code, its message last in the log and on the screen: as CRITICAL where the job's
    input cannot be used, or its node has no room for temporary files, so that it is not tried again.
    """
    end_with_engine(os.environ)
    end_on_hangup()
    try:
        with only_one(Path(log)):
            perform(stage, inputs, outputs, dict(params), threads, Path(log), dict(resources))
    except CrosslignError as error:
        level = logging.CRITICAL if isinstance(error, (InputError, NoTemporaryRoomError)) else logging.ERROR
        logging.getLogger("crosslign").log(level, "%s", error)
        sys.exit(error.exit_code)


def _lineage(rule: str, settings: Paths, given: Paths, threads: int) -> Lineage:
    recipe, root, version = settings.get("recipe"), Path(settings["root"]), str(settings.get("version", ""))
    code = fingerprint(*code_behind(rule, recipe, settings.get("tasks")).values()) if version else ""
    inputs, derived = all_paths(listed(given)), all_paths(given.get(DERIVED, {}))
    settled = beside_recipe(settings, root)
    own = [path for path in map(Path, settings.get("own", ())) if path.is_file()]
    return Lineage(rule, recipe, inputs, root, settings.get("seed"), threads, version, settled, code, derived=derived, own=own)


def perform(
    stage: Callable[[Job], None],
    inputs: Iterable[tuple[str, Any]],
    outputs: Iterable[tuple[str, Any]],
    settings: Paths,
    threads: int,
    log: Path,
    resources: Mapping[str, Any],
) -> None:
    """Do what `execute` does, inside a process that has more to do: alone is what it must be already, and errors leave it as they are.

    Raises:
        CrosslignError: the stage cannot do its work; says why.
    """
    rule = stage.__name__
    threads = int(settings.get("threads", threads))
    start_log(log, rule)
    _name_scheduler()
    limit_threads(threads)
    do_without_pandas()
    os.environ["TQDM_DISABLE"] = "1"  # other libraries' bars; the stages report their own progress
    given, finals = inputs_of(inputs), as_paths(item for item in outputs if item[0] != "lineage")
    settings = at_copies(settings, all_paths(finals))
    lineage = _lineage(rule, settings, given, threads)
    lineage.asked = {name: int(resources[name]) for name in ASKED if name in resources}
    try:
        lineage.check_inputs()
        network = no_network(rule) if settings.get("offline", True) else nullcontext()
        with _end_explained(), network, lease_gpus(int(resources.get("gpu", 0))) as devices:
            _check_devices(devices)
            stage(Job(rule, given, finals, settings, threads, lineage, resources))
    except CrosslignError:
        raise
    except Exception as error:
        if problem := disk_problem(error, Path(getattr(error, "filename", None) or settings["root"])):
            raise problem from error
        if gone := next((path for path in lineage.inputs if not path.exists()), None):
            raise InputError("an input disappeared while the job ran", where=str(gone), do=AGAIN) from error
        logging.getLogger("crosslign").exception("unexpected error in rule %s: please report it with this log", rule)
        sys.exit(1)  # the log has it, clean; the interpreter would print its text as it stands
