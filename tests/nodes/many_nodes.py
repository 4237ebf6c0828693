"""A real Slurm of six nodes on one machine, with accounting, a partition of 30 minutes and a QOS with limits, started by hand."""

import os
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager

from slurm_by_hand import AGE, Cluster, free_port, missing

SLURM = """\
ClusterName=many
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire=15
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
MailProg=/bin/true
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=2
JobAcctGatherParams=OverMemoryKill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=1
MinJobAge={age}
MaxJobCount={most}
MessageTimeout=60
SlurmdTimeout=600
KillWait=10
ReturnToService=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
GresTypes=gpu
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={accounting}
AccountingStoragePass={folder}/munge.sock
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu
"""
PARTITIONS = """\
PartitionName=cpu Nodes={cpus} Default=YES MaxTime=24:00:00 State=UP PriorityTier=1
PartitionName=gpu Nodes={gpus} MaxTime=24:00:00 State=UP PriorityTier=1
PartitionName=short Nodes=ALL MaxTime=00:30:00 State=UP PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=1:00:00 State=UP PriorityTier=10 PreemptMode=OFF
PartitionName=spare Nodes=ALL MaxTime=24:00:00 State=UP PriorityTier=1 PreemptMode=CANCEL
"""
ACCOUNTING = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
DbdHost=localhost
DbdPort={accounting}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
"""
USER = "slurm@'127.0.0.1'"
SQL = f"create database slurm; create user {USER} identified by 'slurm'; grant all on slurm.* to {USER}; flush privileges;"
NODES = {"n1": 0, "n2": 0, "n3": 0, "n4": 0, "g1": 2, "g2": 2}
"""Each node with its devices."""


def lacking():
    """Say why no such Slurm can be started here, or nothing."""
    absent = [name for name in ("slurmdbd", "mariadbd", "mariadb-install-db") if not shutil.which(name)]
    more = f"{', '.join(absent)} not installed: apt-get install -y --no-install-recommends slurmdbd mariadb-server" if absent else ""
    return missing() or more


class ManyNodes(Cluster):
    """The daemons of six nodes, of their controller and of its accounting."""

    files = (*Cluster.files, "slurmdbd.conf")
    daemons = (*(f"slurmd.{node}" for node in NODES), "slurmctld", "slurmdbd", "database", "munge")

    def start(self):
        """Start all, and wait until every node is idle."""
        for name in ("state", "spool", *(f"spool/{node}" for node in NODES)):
            (self.folder / name).mkdir()
        host = socket.gethostname().split(".")[0]
        self.settings = {"folder": self.folder, "host": host, "most": 10000, "age": AGE}
        self.settings |= {name: free_port() for name in ("controller", "accounting", "database", *NODES)}
        self._configure()
        self._make_devices()
        self._link()
        self._start_munge()
        self._start_accounting()
        self._daemon("slurmctld", "-c")
        for node in NODES:
            self._daemon("slurmd", "-c", "-N", node)
        idle = {f"{node} idle" for node in NODES}
        self._wait(lambda: set(self.ask("sinfo", "-h", "-N", "-o", "%N %T").splitlines()) == idle, "slurmctld.log")
        return self

    def _configure(self):
        host, lines = self.settings["host"], []
        for node, gpus in NODES.items():
            size = "CPUs=64 RealMemory=512000" + (f" Gres=gpu:a100:{gpus}" if gpus else "")  # as if: this machine has less
            lines.append(f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={self.settings[node]} {size} State=UNKNOWN\n")
        places = {"cpus": ",".join(node for node in NODES if not NODES[node]), "gpus": ",".join(filter(NODES.get, NODES))}
        (self.folder / "slurm.conf").write_text(SLURM.format(**self.settings) + "".join(lines) + PARTITIONS.format(**places))

    def _change(self, settings):
        super()._change(settings)
        if "most" in settings:  # of all settings the one that is read at the start alone
            self.restart_controller()

    def _make_devices(self):
        devices = {self.folder / f"{node}-gpu{number}": node for node, gpus in NODES.items() for number in range(gpus)}
        for device in devices:
            os.mknod(device, 0o600 | 0o020000, os.makedev(1, 3))
        lines = [f"NodeName={node} Name=gpu Type=a100 File={device}\n" for device, node in devices.items()]
        (self.folder / "gres.conf").write_text("".join(lines))
        accounting = self.folder / "slurmdbd.conf"
        accounting.write_text(ACCOUNTING.format(**self.settings))
        accounting.chmod(0o600)

    def _start_accounting(self):
        data, user = self.folder / "database", ["--user=root"]
        self._daemon("mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal", *user)
        options = [f"--datadir={data}", f"--socket={self.folder}/database.sock", f"--port={self.settings['database']}"]
        options += ["--bind-address=127.0.0.1", f"--pid-file={self.folder}/database.pid", "--innodb-buffer-pool-size=64M"]
        with open(self.folder / "database.log", "w") as log:
            subprocess.Popen(["mariadbd", "--no-defaults", *options, *user], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        sql = ["mariadb", "--no-defaults", f"--socket={self.folder}/database.sock", "-e"]
        self._wait(lambda: subprocess.run([*sql, "select 1"], capture_output=True, check=False).returncode == 0, "database.log")
        subprocess.run([*sql, SQL], check=True)
        self._daemon("slurmdbd")
        self._wait(lambda: "many" in self.manage("add", "cluster", "many") or "many" in self.manage("show", "cluster"), "slurmdbd.log")
        for words in ("add account lab", "add user root account=lab", "add qos tiny", "modify user root set qos+=tiny"):
            self.manage(*words.split())
        self.manage("modify", "qos", "tiny", "set", "MaxWall=10", "MaxSubmitJobsPerUser=10")

    @contextmanager
    def without_accounting(self):
        """Have accounting not answer for a while."""
        self._end("slurmdbd.pid")
        try:
            yield
        finally:
            self._daemon("slurmdbd")
            self._wait(lambda: "many" in self.manage("show", "cluster"), "slurmdbd.log")

    def manage(self, *words):
        """Let sacctmgr do something."""
        return self.ask("sacctmgr", "-i", *words)

    def _wait(self, condition, log):
        deadline = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < deadline, (self.folder / log).read_text()[-2000:]
            time.sleep(0.5)

    def wait_until_idle(self):
        """Wait until no job is left."""
        self._wait(lambda: not self.active(), "slurmctld.log")
