"""A real Slurm of six nodes on one machine, with accounting, a partition of 30 minutes and a QOS with limits, started by hand."""

import os
import shutil
import socket
import subprocess
import time

from slurm_by_hand import Cluster, free_port, missing

SLURM = """\
ClusterName=many
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
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
MinJobAge=7200
MaxJobCount={most}
MessageTimeout=60
SlurmdTimeout=600
KillWait=30
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

    def __init__(self, most=10000):
        super().__init__()
        self.links += [self.links[0].with_name("slurmdbd.conf")]
        self.most = most

    def start(self):
        """Start all, and wait until every node is idle."""
        for name in ("state", "spool", *(f"spool/{node}" for node in NODES)):
            (self.folder / name).mkdir()
        names = {"folder": self.folder, "host": socket.gethostname().split(".")[0], "most": self.most}
        self.settings = {**names, **{name: free_port() for name in ("controller", "accounting", "database")}}
        self._write()
        self.links[0].parent.mkdir(exist_ok=True)
        for link in self.links:
            link.symlink_to(self.folder / link.name)
        self._start_munge()
        self._start_accounting()
        self._daemon("slurmctld", "-c")
        for node in NODES:
            self._daemon("slurmd", "-c", "-N", node)
        self._wait(lambda: self.ask("sinfo", "-h", "-N", "-o", "%N %T").count("idle") >= len(NODES), "slurmctld.log")
        return self

    def _write(self):
        host, lines = self.settings["host"], []
        for node, gpus in NODES.items():
            size = f"CPUs=8 RealMemory=64000 Gres=gpu:a100:{gpus}" if gpus else "CPUs=4 RealMemory=16000"
            port = self.settings.setdefault(node, free_port())
            lines.append(f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} {size} State=UNKNOWN\n")
        places = {"cpus": ",".join(node for node in NODES if not NODES[node]), "gpus": ",".join(filter(NODES.get, NODES))}
        (self.folder / "slurm.conf").write_text(SLURM.format(**self.settings) + "".join(lines) + PARTITIONS.format(**places))
        devices = []
        for node, gpus in NODES.items():
            for number in range(gpus):
                device = self.folder / f"{node}-gpu{number}"
                os.mknod(device, 0o600 | 0o020000, os.makedev(1, 3))
                devices.append(f"NodeName={node} Name=gpu Type=a100 File={device}\n")
        (self.folder / "gres.conf").write_text("".join(devices))
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

    def manage(self, *words):
        """Let sacctmgr do something."""
        return self.ask("sacctmgr", "-i", *words)

    def _wait(self, condition, log):
        deadline = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < deadline, (self.folder / log).read_text()[-2000:]
            time.sleep(0.5)

    def stop(self):
        """Cancel all jobs and end all daemons."""
        try:
            self.ask("scancel", "--user=root")
            deadline = time.monotonic() + 30
            while self.active() and time.monotonic() < deadline:
                time.sleep(0.5)
        finally:
            for name in (*(f"slurmd.{node}.pid" for node in NODES), "slurmctld.pid", "slurmdbd.pid", "database.pid", "munge.pid"):
                self._end(name)
            for link in self.links:
                link.unlink(missing_ok=True)
            shutil.rmtree(self.folder, ignore_errors=True)
