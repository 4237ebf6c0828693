"""The smallest whole workflow as a user of a cluster of several nodes runs it, with jobs that tests can hold and make large."""

import shutil
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

from mini_project import Mini, kill_all
from project_copy import ROOT
from slurm_project import SlurmProject, wait_for

OWN = """\
slurm-init-seconds-before-status-checks: 1
latency-wait: 20
notemp: true
default-resources:
  slurm_partition: cpu
"""
ON_SLURM = ("--profile", "slurm", "--configfile", "config/config.yaml")
STEPS = 100
RUN = "F-A-s42"
TRAINED = f"results/mini/systems/{RUN}"
BEFORE = '''\
"""What the jobs of these tests do before their stage: take memory, and wait until a file goes away, deaf to signals where it says so."""
import os, signal, sys, time

if os.environ.get("SLURM_JOB_ID") and any("/.snakemake/scripts/" in word for word in sys.orig_argv):
    folder = os.path.dirname(__file__)
    hog, hold = os.path.join(folder, "megabytes"), os.path.join(folder, "hold")
    if os.path.exists(hog):
        held = bytearray(int(open(hog).read()) << 20)
        held[::4096] = b"x" * len(held[::4096])
        time.sleep(15)
    if os.path.exists(hold):
        if open(hold).read() == "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open(os.path.join(folder, "waits"), "w").close()
        while os.path.exists(hold):
            time.sleep(0.2)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
'''


class NodesProject(Mini):
    """One such project."""

    jobs, frozen, _logs = SlurmProject.jobs, SlurmProject.frozen, SlurmProject._logs

    def __init__(self, folder):
        super().__init__(folder)
        shutil.copytree(ROOT / "slurm", self.folder / "slurm")
        self.before = self.folder / "before"
        self.before.mkdir()
        (self.before / "sitecustomize.py").write_text(BEFORE)
        self.set_own()
        self.edit("config/papers/faults.yaml", "steps: 12", f"steps: {STEPS}")
        self.edit("config/papers/faults.yaml", "checkpoint_every: 2,", "checkpoint_every: 20,")

    def environment(self, **changes):
        return super().environment(**{"PYTHONPATH": str(self.before), **changes})

    def set_own(self, text=""):
        """Write slurm/local.yaml anew, with a text more."""
        (self.folder / "slurm" / "local.yaml").write_text(OWN + text)

    def hold(self, how="held"):
        """Let each job that starts from now on wait until `release`; `deaf` ones do not hear that they are to end."""
        (self.before / "waits").unlink(missing_ok=True)
        (self.before / "hold").write_text(how)

    def wait_until_held(self):
        """Wait until a job waits for `release`."""
        wait_for((self.before / "waits").exists, 120, "no job waits")

    def take(self, megabytes):
        """Let each job that starts from now on first take so much memory."""
        (self.before / "megabytes").write_text(str(megabytes))

    def release(self):
        """Let jobs go on, and do nothing more before their stage."""
        for name in ("hold", "megabytes"):
            (self.before / name).unlink(missing_ok=True)

    def on_slurm(self, *arguments, **more):
        """Run the command to its end, on the cluster."""
        return self.run(*arguments, *ON_SLURM, **more)

    def crosslign(self, *words):
        """Run the command `crosslign`, and return all that it says."""
        command = [str(Path(sys.executable).with_name("crosslign")), *words]
        done = subprocess.run(command, cwd=self.folder, env=self.environment(), capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def curve(self):
        """Return the number of steps that a running training has written down."""
        steps = 0
        for path in self.results.glob("checkpoints/*/curve.jsonl"):
            with suppress(FileNotFoundError):  # the training has just ended
                steps += path.read_bytes().count(b"\n")
        return steps

    def weights(self):
        """Return the weights of the training, by file."""
        folder = self.results / "systems"
        return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.safetensors"))}

    def is_whole(self):
        """Tell whether tables and weights are those that are known, and nothing holds the folder."""
        locks = list((self.folder / ".snakemake" / "locks").glob("*"))
        return not locks and (self.tables(), self.weights()) == self.known

    def forget_score(self):
        """Forget the one score, and the table of it."""
        for stage in ("tables", "scores"):
            shutil.rmtree(self.results / stage)

    def forget_training(self):
        """Forget the one training; what was made of it stays."""
        for stage in ("systems", "checkpoints"):
            shutil.rmtree(self.results / stage, ignore_errors=True)

    @contextmanager
    def started(self, *arguments, **changes):
        """Start the command, in a process group of its own; whatever is left of it in the end is killed."""
        log = self.folder / "started.log"
        process = self.start(*arguments, *ON_SLURM, log=log, **changes)
        process.said = lambda: log.read_text(encoding="utf-8", errors="replace")
        try:
            yield process
        finally:
            if process.poll() is None:
                kill_all(process)

    def ends_well(self, process, seconds=300):
        """Wait until it has ended, with the table and the weights that are known; return what it said."""
        assert wait_for(lambda: process.poll() is not None, seconds, process.said()[-6000:])
        assert process.returncode == 0, process.said()[-6000:]
        assert self.is_whole()
        return process.said()
