"""A real Slurm of one node, started by hand: no systemd, two fake GPUs, torn down by process id."""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "srun")
ACTIVE = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")
DAEMONS = ("munged", "slurmctld", "slurmd", "slurmdbd", "mariadbd")
CONFIGURED = Path("/etc/slurm")
GPUS = 2
AGE = 7200
"""Seconds that Slurm remembers ended jobs for."""
CONFIGURATION = """\
ClusterName=ci
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
MailProg=/bin/true
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobs.log
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=1
MinJobAge={age}
MessageTimeout=60
SlurmdTimeout=600
ReturnToService=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
GresTypes=gpu
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=32 RealMemory=20000 Gres=gpu:fake:{gpus} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=30:00:00 State=UP PriorityTier=1
PartitionName=spare Nodes={host} MaxTime=30:00:00 State=UP PriorityTier=1 PreemptMode=CANCEL
PartitionName=urgent Nodes={host} MaxTime=1:00:00 State=UP PriorityTier=2 PreemptMode=OFF
"""


def missing():
    """Say why no Slurm can be started here, or nothing."""
    absent = [name for name in NEEDED if not shutil.which(name)]
    if absent:
        return f"{', '.join(absent)} not installed: apt-get install -y --no-install-recommends slurm-wlm munge"
    if os.geteuid():
        return "only root can start a Slurm by hand"
    tidy()
    if (CONFIGURED / "slurm.conf").exists():
        return "/etc/slurm/slurm.conf is there: this machine has a Slurm of its own, or tests of this kind are running"
    return ""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def has_ended(pid):
    """Whether a process is gone; where nobody reaps, an ended one stays as a zombie."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def tidy():
    """End the daemons that tests left when they were killed, and remove their links and folder; any other Slurm stays as it is."""
    link = CONFIGURED / "slurm.conf"
    folder = link.readlink().parent if link.is_symlink() else CONFIGURED
    if not folder.match(f"{tempfile.gettempdir()}/slurm-*"):
        return
    owner = folder / "owner"
    if folder.exists() and not (owner.exists() and has_ended(int(owner.read_text()))):
        return
    for path in folder.glob("*.pid"):
        with suppress(OSError):
            pid = path.read_text().strip()
            if pid and Path(f"/proc/{pid}/comm").read_text().strip() in DAEMONS:
                os.kill(int(pid), signal.SIGKILL)
    for own in CONFIGURED.iterdir():
        if own.is_symlink() and own.readlink().parent == folder:
            own.unlink()
    shutil.rmtree(folder, ignore_errors=True)


class SlurmJob:
    """One job as `scontrol show job` tells of it."""

    def __init__(self, line):
        self.fields = dict(re.findall(r"(\w[\w:/]*)=(\S*)", line))
        self.id = self.fields["JobId"]
        self.state = self.fields["JobState"]
        self.comment = self.fields.get("Comment", "")
        self.tres = dict(part.split("=") for part in self.fields.get("TRES", "").split(",") if part.count("=") == 1)
        asked = re.search(r"\bTresPer\w+=gres:gpu(?::[a-z]\w*)?:(\d+)", line)
        self.gpus = int(asked[1]) if asked else 0

    @property
    def megabytes(self):
        number, unit = re.fullmatch(r"([\d.]+)([MGT])", self.tres["mem"]).groups()
        return float(number) * {"M": 1, "G": 1024, "T": 1024**2}[unit]

    @property
    def minutes(self):
        days, _, clock = self.fields["TimeLimit"].rpartition("-")
        hours, minutes, _ = map(int, clock.split(":"))
        return int(days or 0) * 1440 + hours * 60 + minutes

    def time(self, name):
        return datetime.fromisoformat(self.fields[name]).timestamp()


class Cluster:
    """The daemons, their folder, and the links under /etc/slurm, which jobs need since the plugin drops every SLURM_* variable."""

    files = ("slurm.conf", "gres.conf")
    daemons = ("slurmd", "slurmctld", "munge")

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-"))
        (self.folder / "owner").write_text(str(os.getpid()))
        self.links = [CONFIGURED / name for name in self.files]

    def start(self):
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        host = socket.gethostname().split(".")[0]
        self.settings = {"folder": self.folder, "host": host, "controller": free_port(), "node": free_port(), "gpus": GPUS, "age": AGE}
        self._configure()
        devices = [self.folder / f"gpu{number}" for number in range(GPUS)]
        for device in devices:
            os.mknod(device, 0o600 | 0o020000, os.makedev(1, 3))
        (self.folder / "gres.conf").write_text("".join(f"NodeName={host} Name=gpu Type=fake File={device}\n" for device in devices))
        self._link()
        self._start_munge()
        self._daemon("slurmctld", "-c")
        self._daemon("slurmd", "-c")
        deadline = time.monotonic() + 120
        while "idle" not in self.ask("sinfo", "-h", "-o", "%T"):
            assert time.monotonic() < deadline, (self.folder / "slurmctld.log").read_text()[-2000:]
            time.sleep(0.5)
        return self

    def _link(self):
        CONFIGURED.mkdir(exist_ok=True)
        for link in self.links:
            link.symlink_to(self.folder / link.name)

    def _start_munge(self):
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        ends = {"socket": "sock", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        files = [f"--{name}={self.folder}/munge.{end}" for name, end in ends.items()]
        self._daemon("munged", "--force", f"--key-file={key}", *files)

    def _daemon(self, *command):
        # A daemon that kept our pipes would keep whoever reads them waiting.
        with open(self.folder / "start.log", "a") as log:
            subprocess.run(command, check=True, timeout=60, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def ask(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        return done.stdout

    def jobs(self, *, word="", after=0):
        """Return the jobs whose comment, rule and wildcards, holds a word, in the order of their ids."""
        lines = [line for line in self.ask("scontrol", "show", "jobs", "-o").splitlines() if line.startswith("JobId=")]
        found = [job for job in map(SlurmJob, lines) if word in job.comment and int(job.id) > after]
        return sorted(found, key=lambda job: int(job.id))

    def last(self):
        """Return the number of the newest job."""
        return max((int(job.id) for job in self.jobs()), default=0)

    def active(self):
        return [job for job in self.jobs() if job.state in ACTIVE]

    def _configure(self):
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(**self.settings))

    @contextmanager
    def changed(self, **settings):
        """Let Slurm have other settings for a while: `age`, seconds after which it forgets ended jobs."""
        before = {name: self.settings[name] for name in settings}
        self._change(settings)
        try:
            yield
        finally:
            self._change(before)

    def _change(self, settings):
        self.settings |= settings
        self._configure()
        self.ask("scontrol", "reconfigure")

    def restart_controller(self):
        self._end("slurmctld.pid", signal.SIGTERM)
        self._daemon("slurmctld")

    def _end(self, name, how=signal.SIGTERM):
        path = self.folder / name
        if not path.exists() or not path.read_text().strip():
            return
        pid = int(path.read_text())
        if has_ended(pid):
            return
        os.kill(pid, how)
        deadline = time.monotonic() + 30
        while not has_ended(pid):
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)

    def cancel_all(self):
        self.ask("scancel", f"--user={os.getuid()}")

    def _owns(self, link):
        return link.is_symlink() and link.readlink() == self.folder / link.name

    def stop(self):
        """End what was started; the configuration, jobs and links of another Slurm stay as they are."""
        try:
            if self._owns(self.links[0]):
                self.cancel_all()
                deadline = time.monotonic() + 30
                while self.active() and time.monotonic() < deadline:
                    time.sleep(0.5)
        finally:
            for name in self.daemons:
                self._end(f"{name}.pid")
            for link in filter(self._owns, self.links):
                link.unlink()
            shutil.rmtree(self.folder, ignore_errors=True)


def most_at_once(jobs):
    """Return the largest number of GPUs that these jobs held at one moment."""
    changes = [change for job in jobs for change in ((job.time("StartTime"), job.gpus), (job.time("EndTime"), -job.gpus))]
    held = most = 0
    for _, change in sorted(changes):
        held += change
        most = max(most, held)
    return most
