"""How long a job may ask to run, as a Slurm of six nodes (22.05) answers, and what it then did with jobs of so many minutes."""

from math import inf

import pytest

from crosslign.slurm.limits import Limits, minutes_of

PARTITIONS = """\
PartitionName=cpu AllowGroups=ALL AllowQos=ALL Default=YES QoS=N/A DefaultTime=NONE MaxNodes=UNLIMITED MaxTime=1-00:00:00 State=UP
PartitionName=short AllowGroups=ALL AllowQos=ALL Default=NO QoS=N/A DefaultTime=NONE MaxNodes=UNLIMITED MaxTime=00:30:00 State=UP
PartitionName=night AllowGroups=ALL AllowQos=ALL Default=NO QoS=brief DefaultTime=NONE MaxNodes=UNLIMITED MaxTime=UNLIMITED State=UP
PartitionName=capped AllowGroups=ALL AllowQos=ALL Default=NO QoS=anytime DefaultTime=NONE MaxNodes=UNLIMITED MaxTime=01:00:00 State=UP
"""
QOS = """\
normal||
tiny|00:10:00|
over|3-00:00:00|DenyOnLimit,PartitionTimeLimit
brief|01:30:00|
outrank|04:00:00|OverPartQOS
anytime||PartitionTimeLimit
"""
ASSOCIATIONS = """\
teaching||root|tiny|02:00:00
lab|short|root||00:15:00
lab||root||
root||root||
"""
ENFORCED = "AccountingStorageEnforce = associations,limits,qos\n"


@pytest.fixture(autouse=True)
def answers(slurm):
    """What `scontrol` and `sacctmgr` say, the latter of a user whose default account is `root`."""

    def say(qos=QOS, enforced=ENFORCED):
        slurm.does("scontrol", f"case \"$*\" in *config*) printf '{enforced}';; *) printf '{PARTITIONS}';; esac")
        slurm.does("sacctmgr", f"case \"$*\" in *qos*format=Name*) printf '{qos}';; *) printf '{ASSOCIATIONS}';; esac")

    say()
    return say


@pytest.mark.parametrize(
    ("asked", "account", "minutes", "limit"),
    [
        ({}, "", 1440, "partition cpu"),
        ({"slurm_partition": "short"}, "", 30, "partition short"),  # 60: PENDING PartitionTimeLimit
        ({"slurm_partition": "short,cpu"}, "", 1440, "partition cpu"),  # 60 of short: COMPLETED
        ({"slurm_partition": "short,night"}, "", 90, "QOS brief"),  # 120: PENDING QOSMaxWallDurationPerJobLimit
        ({"qos": "tiny"}, "", 10, "QOS tiny"),
        ({"slurm_extra": "'--signal=TERM@120 --qos=tiny'"}, "", 10, "QOS tiny"),
        ({"slurm_partition": "short", "qos": "over"}, "", 4320, "QOS over"),  # 60: COMPLETED, 5000: refused, QOSMaxWall...
        ({"slurm_partition": "short", "qos": "anytime"}, "", inf, ""),
        ({"slurm_partition": "short", "qos": "outrank"}, "", 30, "partition short"),  # 60: PENDING PartitionTimeLimit
        ({"slurm_partition": "night"}, "", 90, "QOS brief"),  # 60: COMPLETED, 120: PENDING QOSMaxWallDurationPerJobLimit
        ({"slurm_partition": "night", "qos": "tiny"}, "", 90, "QOS brief"),  # 60: COMPLETED, the partition's QOS comes first
        ({"slurm_partition": "night", "qos": "over"}, "", 90, "QOS brief"),  # 120: refused, QOSMaxWallDurationPerJobLimit
        ({"slurm_partition": "night", "qos": "outrank"}, "", 240, "QOS outrank"),  # 120: COMPLETED, 300: PENDING
        ({"slurm_partition": "capped"}, "", 60, "partition capped"),  # 120: PENDING, the flag of the partition's QOS is none
        ({"slurm_partition": "capped", "qos": "brief"}, "", 60, "partition capped"),
        ({"qos": "normal"}, "teaching", 120, "account teaching"),  # 180: PENDING AssocMaxWallDurationPerJobLimit
        ({}, "teaching", 10, "QOS tiny"),  # the account's default; 60: PENDING QOSMaxWallDurationPerJobLimit
        ({"qos": "over"}, "teaching", 4320, "QOS over"),  # 180: COMPLETED, over the account's 120
        ({"qos": "anytime"}, "teaching", 120, "account teaching"),  # 180: PENDING AssocMaxWallDurationPerJobLimit
        ({"slurm_partition": "short"}, "lab", 15, "account lab"),
        ({}, "lab", 1440, "partition cpu"),
        ({"slurm_partition": "unheard_of"}, "", inf, ""),
    ],
)
def test_the_limit_is_the_one_that_slurm_holds_jobs_to(asked, account, minutes, limit):
    found = Limits().longest(asked, account)
    assert found[0] == minutes
    assert found[1].startswith(limit)


def test_a_job_that_names_no_qos_has_the_usual_one(answers):
    answers(qos=QOS.replace("normal||", "normal|00:45:00|"))
    assert Limits().longest({}) == (45, "QOS normal (MaxWall)")  # 60: PENDING QOSMaxWallDurationPerJobLimit
    assert Limits().longest({"slurm_partition": "short"}, "lab")[0] == 30  # 25: COMPLETED, over the account's 15


def test_limits_of_accounting_that_are_not_enforced_hold_nobody(answers):
    answers(enforced="AccountingStorageEnforce = none\n")
    assert Limits().longest({"slurm_partition": "night", "qos": "tiny"}) == (inf, "")
    assert Limits().longest({"qos": "tiny"}, "teaching")[0] == 1440


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("30", 30), ("30:30", 30.5), ("00:30:00", 30), ("1-00:00:00", 1440), ("1-12", 2160), ("2-03:04", 3064), ("UNLIMITED", inf), ("", inf)],
)
def test_slurms_times_are_read(text, minutes):
    assert minutes_of(text) == minutes
