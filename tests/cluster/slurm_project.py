"""A copy of the project, and the commands that a user of a cluster gives in it."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from project_copy import MESSAGES, environment, own_copy

PATIENCE = float(os.environ.get("CROSSLIGN_PATIENCE", "1"))
"""Factor on every time limit of these tests, for busy machines."""
LITERAL = ("snakemake", "--cores", "all", "--profile", "slurm", "--config", "scale=quick", "papers=[moco_bert]")
TABLE = ("targets=[moco_bert_table5]",)
OWN = """\
slurm-init-seconds-before-status-checks: 1
latency-wait: 20
local-cores: 2
group-components: [scores=1]
default-resources:
  slurm_partition: main
"""


def wait_for(condition, seconds, what):
    """Wait until a condition holds and return what it gives."""
    deadline = time.monotonic() + seconds * PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.3)
    return found


def engine_log(folder):
    """Return Snakemake's own log of the latest run in a folder."""
    return max((folder / ".snakemake" / "log").iterdir()).read_text(encoding="utf-8")


HERE = ("fetch", "write_stand_in", "prepare_encoder", "fetch_model", "make_table", "write_report", "write_overview")
"""Rules whose jobs run where the command is given."""


def most_here(log):
    """Return how many jobs of such rules ran at once, at most, by Snakemake's own log."""
    here, most = set(), 0
    for begun, message, ended in re.findall(r"^(?:Job (\d+): (.*)|Finished jobid: (\d+) .*)$", log, flags=re.MULTILINE):
        here = here - {ended} if ended else here | {begun} if any(re.match(MESSAGES[rule], message) for rule in HERE) else here
        most = max(most, len(here))
    return most


class SlurmProject:
    """A copy of the project, and the commands that a user gives in it."""

    def __init__(self, folder):
        self.folder = folder
        self.results = folder / "results" / "quick"
        bin_folder = Path(sys.executable).parent
        self.environment = environment(PATH=f"{bin_folder}:{os.environ['PATH']}")

    def command(self, *more, config=TABLE, targets=()):
        return [LITERAL[0], *targets, *more, *LITERAL[1:], *config]

    def run(self, *more, config=TABLE, targets=(), check=True, seconds=900):
        """Run the command to its end and return its exit code and all that it said."""
        with self.started(*more, config=config, targets=targets, log="run.log") as process:
            code = process.wait(timeout=seconds * PATIENCE)
        text = process.log.read_text(encoding="utf-8", errors="replace")
        assert not check or code == 0, text[-6000:]
        return code, text

    @contextmanager
    def started(self, *more, config=TABLE, targets=(), log="started.log"):
        """Start the command, in a process group of its own; whatever is left of it in the end is killed."""
        path = self.folder / log
        with open(path, "w") as out:
            process = subprocess.Popen(
                # Of what is started in the background SIGINT is ignored, by all that it starts, too.
                ["env", "--default-signal=INT", *self.command(*more, config=config, targets=targets)],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            process.log = path
            try:
                yield process
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()

    def edit(self, file, old, new):
        path = own_copy(self.folder, file)
        text = path.read_text(encoding="utf-8")
        assert old in text, (file, old)
        path.write_text(text.replace(old, new), encoding="utf-8")

    def system(self, run):
        return self.results / "systems" / run

    def remove(self, run):
        """Forget a training, its checkpoints included."""
        for folder in (self.system(run), self.results / "checkpoints" / run):
            shutil.rmtree(folder, ignore_errors=True)

    def forget_score(self, run, task):
        """Forget one score of a run, and the tables: what a table that is there rests on may be missing."""
        found = list((self.results / "scores" / run).rglob(f"{task}.*"))
        assert found, (run, task)
        for path in found:
            path.unlink()
        shutil.rmtree(self.results / "tables", ignore_errors=True)

    def weights(self, run):
        """Return the bytes of every weight file of a run, by name."""
        folder = self.system(run)
        return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.safetensors"))}

    def curve(self, run):
        """Return the number of steps that a running training has written down."""
        with suppress(FileNotFoundError):  # it has not begun, or has just ended
            return (self.results / "checkpoints" / run / "curve.jsonl").read_bytes().count(b"\n")
        return 0

    @contextmanager
    def frozen(self, rule):
        """Hold the processes of a rule's jobs still, as if they were very slow; signals reach them when they are let go."""
        pids = self.jobs(rule)
        assert pids, f"no {rule} runs"
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def jobs(self, rule):
        """Return the numbers of the processes that have the log of a rule's job open."""
        return [int(folder.parent.name) for folder in Path("/proc").glob("[0-9]*/fd") if self._logs(folder, rule)]

    def _logs(self, folder, rule):
        try:
            return any(str(link.readlink()).startswith(f"{self.results}/logs/{rule}/") for link in folder.iterdir())
        except OSError:
            return False

    def processes(self, file):
        """Return the numbers of the processes whose command names a file of the project."""
        return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if self._names(path, file)]

    def _names(self, path, file):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except (FileNotFoundError, ProcessLookupError):
            return False
        return any(word.startswith(str(self.folder)) and word.endswith(file) for word in words)

    def job_log(self, rule, name):
        return (self.results / "logs" / rule / f"{name}.log").read_text(encoding="utf-8")
