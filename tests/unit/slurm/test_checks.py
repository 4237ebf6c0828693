"""A run is refused before it starts where Slurm would refuse its jobs; real processes stand for Slurm's commands."""

from pathlib import Path

import pytest

from crosslign.errors import InputError, ResourceError
from crosslign.slurm.checks import most, require_alone, require_scheduler, require_status, too_long

REFUSED = {"--account=closed": "Invalid account", "--mem=900000": "Requested node configuration is not available"}
PARTITIONS = """\
PartitionName=main AllowGroups=ALL Default=YES QoS=N/A MaxTime=1-00:00:00 State=UP
PartitionName=short AllowGroups=ALL Default=NO QoS=N/A MaxTime=00:30:00 State=UP
"""


@pytest.fixture(autouse=True)
def choosy(slurm):
    """An `sbatch` that refuses an account, much memory, and partition `gpu` without a GPU."""
    cases = "".join(f'*{option}*) echo "{words}" >&2; exit 1;; ' for option, words in REFUSED.items())
    slurm.does("sbatch", f'case "$*" in {cases}*--partition=gpu*--gpus*) ;; *--partition=gpu*) echo "ask for a GPU" >&2; exit 1;; esac')
    slurm.answers("sinfo", "main*\n")
    slurm.answers("scontrol", PARTITIONS)
    slurm.fails("sacctmgr", "no accounting")


def scheduler(*asked):
    require_scheduler({f"rule_{number}": one for number, one in enumerate(asked)})


def test_each_kind_of_job_is_asked_for_once_and_nothing_is_submitted(slurm):
    main = {"slurm_account": "open, other", "slurm_partition": "main", "runtime": 60, "mem_mb": 4000, "nodes": 1, "gpu": 0, "threads": 2}
    extra = "--signal=TERM@120 --comment='two words'"
    scheduler(main, main, {"slurm_partition": "gpu", "gpu": 2, "gpu_model": "a100", "qos": "long", "slurm_extra": extra}, {})
    assert slurm.calls("sinfo") == ["--noheader --format=%P"]
    assert slurm.calls("sbatch") == [
        "--test-only --account=open --partition=main --time=60 --mem=4000 --nodes=1 --cpus-per-task=2 --wrap=true",
        "--test-only --partition=gpu --qos=long --gpus=a100:2 --signal=TERM@120 --comment=two words --wrap=true",
        "--test-only --wrap=true",
    ]


def test_a_partition_that_wants_a_gpu_takes_jobs_that_ask_for_one():
    scheduler({"slurm_partition": "gpu", "gpu": 1})
    with pytest.raises(InputError, match=r"--partition=gpu .*GPU"):
        scheduler({"slurm_partition": "gpu"})


def test_the_largest_job_of_a_rule_is_the_one_that_is_asked_for():
    asked = ((4000, 60, 1), (900_000, 20, 8))
    jobs = [("embed", {"mem_mb": memory, "runtime": runtime, "gpu": 1, "threads": threads}) for memory, runtime, threads in asked]
    assert most(jobs) == {"embed": {"mem_mb": 900_000, "runtime": 60, "gpu": 1, "threads": 8}}
    with pytest.raises(InputError, match=r"embed.*configuration"):
        require_scheduler(most([*jobs, ("score", {"mem_mb": 3000})]))


def test_a_refusal_is_said_in_slurms_words_with_what_to_do():
    with pytest.raises(InputError, match=r"--account=closed .*Invalid account.*slurm/local\.yaml"):
        scheduler({"slurm_account": "closed"})


@pytest.mark.parametrize("words", ["sbatch: error: QOSMaxSubmitJobPerUserLimit", "allocation failure: Resource temporarily unavailable"])
def test_a_full_queue_is_no_refusal(slurm, words):
    slurm.fails("sbatch", words)
    scheduler({"slurm_partition": "main"})


@pytest.mark.parametrize("name", ["clusters", "cluster", "slurm_cluster"])
def test_jobs_of_another_cluster_want_accounting(slurm, name):
    slurm.answers("sacct", "")
    require_status([{"slurm_partition": "main"}], "squeue")
    require_status([{name: "big"}], "sacct")
    with pytest.raises(InputError, match=r"cluster.*slurm-status-command: sacct.*local\.yaml"):
        require_status([{}, {name: "big"}], "squeue")


def test_accounting_that_is_off_is_not_asked_after_jobs(slurm):
    slurm.fails("sacct", "Slurm accounting storage is disabled")
    with pytest.raises(InputError, match=r"disabled.*slurm-status-command: squeue.*local\.yaml"):
        require_status([{}], "sacct")


def test_jobs_that_a_killed_run_left_behind_are_named_with_what_ends_them(slurm, tmp_path):
    record = tmp_path / "slurm_run"
    slurm.answers("squeue", "")
    require_alone("a-1", record)
    slurm.answers("squeue", "1 embed.x.a-1\n2 embed.y.a-1\n3 score.b-2\n")
    for _ in range(2):
        with pytest.raises(ResourceError, match=r"2 jobs .*/a-1/.*scancel$"):
            require_alone("c-3", record)
    slurm.answers("squeue", "b-2\n")
    require_alone("c-3", record)
    assert not [call for call in slurm.calls("squeue") if "COMPLETING" in call]  # they write nothing more
    slurm.answers("squeue", "4 z.c-3\n")
    with pytest.raises(ResourceError, match=r"1 job .*/c-3/.*scancel$"):
        require_alone("d-4", record)


@pytest.mark.parametrize("content", [b"\xff", b"{}", b"a-1\0", b"a-1;rm -rf ."])
def test_a_damaged_record_of_runs_is_not_taken_for_none(slurm, tmp_path, content):
    (tmp_path / "slurm_run").write_bytes(content)
    with pytest.raises(InputError, match=r"slurm_run: .*(UTF-8|record)"):
        require_alone("a-1", tmp_path / "slurm_run")
    assert (tmp_path / "slurm_run").read_bytes() == content


def test_a_queue_that_does_not_answer_holds_up_no_run_and_nothing_is_forgotten(slurm, tmp_path):
    record = tmp_path / "slurm_run"
    require_alone("a-1", record)
    slurm.fails("squeue")
    require_alone("b-2", record)
    slurm.answers("squeue", "1 a-1\n", "2 b-2\n")
    with pytest.raises(ResourceError, match=r"/a-1/.*scancel && .*/b-2/.*scancel$"):
        require_alone("c-3", record)


def test_a_machine_without_slurm_is_told_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(InputError, match=r"sinfo .*login"):
        scheduler()


def test_what_is_asked_for_is_what_is_submitted(slurm):
    scheduler({"mem_mb": 4000, "mem_mb_per_cpu": 900, "threads": 1, "cpus_per_task": 8, "clusters": "big"}, {"cpus_per_task": -1})
    assert slurm.calls("sbatch") == [
        "--test-only --clusters=big --mem-per-cpu=900 --cpus-per-task=8 --wrap=true",
        "--test-only --wrap=true",
    ]


def test_quotes_that_do_not_close_are_told():
    with pytest.raises(InputError, match=r"--comment=\"two words: slurm_extra .*quot"):
        scheduler({"slurm_extra": '--comment="two words'})


def test_a_job_that_asks_for_more_time_than_its_place_ever_gives_is_refused():
    asked = {"slurm_partition": "short", "runtime": 30}
    require_scheduler({"embed": asked})
    with pytest.raises(InputError, match=r"embed .* 31 .*partition short.*`max_runtime: 30`"):
        require_scheduler({"score": asked, "embed": {**asked, "runtime": 31}})


def test_where_further_tries_would_ask_for_more_a_run_is_told():
    assert too_long({"embed": {}, "score": {"slurm_partition": "short"}}, 30) == ""
    said = too_long({"embed": {}, "score": {"slurm_partition": "short"}}, 240)
    assert "up to 240 minutes, but partition short (MaxTime) allows 30 minutes: set `max_runtime: 30`" in said


def test_a_slurm_that_tells_no_limits_has_none(slurm):
    slurm.fails("scontrol", "no contact")
    require_scheduler({"embed": {"runtime": 10**6}})


def test_a_refusal_names_the_rule_and_for_gpus_the_block_of_the_page(slurm):
    slurm.fails("sbatch", "Requested node configuration is not available")
    with pytest.raises(InputError, match=r"embed.*configuration.*docs/cluster\.md"):
        require_scheduler({"embed": {"gpu": 1}})


def test_the_page_has_the_block_that_a_refusal_names():
    assert "where GPUs have a partition of their own" in (Path(__file__).parents[3] / "docs" / "cluster.md").read_text()
