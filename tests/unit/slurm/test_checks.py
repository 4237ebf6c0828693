"""A run is refused before it starts where Slurm would refuse its jobs; real processes stand for Slurm's commands."""

import pytest

from crosslign.errors import InputError, ResourceError
from crosslign.slurm.checks import most, require_alone, require_scheduler, require_status

REFUSED = {"--account=closed": "Invalid account", "--mem=900000": "Requested node configuration is not available"}


@pytest.fixture(autouse=True)
def choosy(slurm):
    """An `sbatch` that refuses an account, much memory, and partition `gpu` without a GPU."""
    cases = "".join(f'*{option}*) echo "{words}" >&2; exit 1;; ' for option, words in REFUSED.items())
    slurm.does("sbatch", f'case "$*" in {cases}*--partition=gpu*--gpus*) ;; *--partition=gpu*) echo "ask for a GPU" >&2; exit 1;; esac')
    slurm.answers("sinfo", "main*\n")


def test_each_kind_of_job_is_asked_for_once_and_nothing_is_submitted(slurm):
    main = {"slurm_account": "open, other", "slurm_partition": "main", "runtime": 60, "mem_mb": 4000, "nodes": 1, "gpu": 0, "threads": 2}
    extra = "--signal=TERM@120 --comment='two words'"
    require_scheduler([main, main, {"slurm_partition": "gpu", "gpu": 2, "gpu_model": "a100", "qos": "long", "slurm_extra": extra}, {}])
    assert slurm.calls("sinfo") == ["--noheader --format=%P"]
    assert slurm.calls("sbatch") == [
        "--test-only --account=open --partition=main --time=60 --mem=4000 --nodes=1 --cpus-per-task=2 --wrap=true",
        "--test-only --partition=gpu --qos=long --gpus=a100:2 --signal=TERM@120 --comment=two words --wrap=true",
        "--test-only --wrap=true",
    ]


def test_a_partition_that_wants_a_gpu_takes_jobs_that_ask_for_one():
    require_scheduler([{"slurm_partition": "gpu", "gpu": 1}])
    with pytest.raises(InputError, match="ask for a GPU"):
        require_scheduler([{"slurm_partition": "gpu"}])


def test_the_largest_job_of_a_rule_is_the_one_that_is_asked_for():
    jobs = [("embed", {"mem_mb": memory, "runtime": runtime, "gpu": 1}) for memory, runtime in ((4000, 60), (900_000, 20))]
    assert most(jobs) == [{"mem_mb": 900_000, "runtime": 60, "gpu": 1}]
    with pytest.raises(InputError, match="node configuration is not available"):
        require_scheduler(most([*jobs, ("score", {"mem_mb": 3000})]))


def test_a_refusal_is_said_in_slurms_words_with_what_to_do():
    with pytest.raises(InputError, match=r"takes no jobs.*Invalid account.*slurm/local\.yaml"):
        require_scheduler([{"slurm_account": "closed"}])


def test_a_full_queue_is_no_refusal(slurm):
    slurm.fails("sbatch", "sbatch: error: QOSMaxSubmitJobPerUserLimit")
    require_scheduler([{"slurm_partition": "main"}])


@pytest.mark.parametrize("name", ["clusters", "cluster", "slurm_cluster"])
def test_jobs_of_another_cluster_want_accounting(slurm, name):
    slurm.answers("sacct", "")
    require_status([{"slurm_partition": "main"}], "squeue")
    require_status([{name: "big"}], "sacct")
    with pytest.raises(InputError, match=r"another cluster.*slurm-status-command: sacct.*local\.yaml"):
        require_status([{}, {name: "big"}], "squeue")


def test_accounting_that_is_off_is_not_asked_after_jobs(slurm):
    slurm.fails("sacct", "Slurm accounting storage is disabled")
    with pytest.raises(InputError, match=r"storage is disabled.*slurm-status-command: squeue.*local\.yaml"):
        require_status([{}], "sacct")


def test_jobs_that_a_killed_run_left_behind_are_named_with_what_ends_them(slurm, tmp_path):
    record = tmp_path / "slurm_run"
    slurm.answers("squeue", "")
    require_alone("a-1", record)
    slurm.answers("squeue", "a-1\na-1\nb-2\n")
    for _ in range(2):
        with pytest.raises(ResourceError, match=r"2 jobs of a run that was killed.*scancel --name=a-1$"):
            require_alone("c-3", record)
    slurm.answers("squeue", "b-2\n")
    require_alone("c-3", record)
    assert not [call for call in slurm.calls("squeue") if "COMPLETING" in call]  # they write nothing more
    slurm.answers("squeue", "a-1\nc-3\n")
    with pytest.raises(ResourceError, match=r"1 jobs .*scancel --name=c-3$"):
        require_alone("d-4", record)


def test_a_queue_that_does_not_answer_holds_up_no_run_and_nothing_is_forgotten(slurm, tmp_path):
    record = tmp_path / "slurm_run"
    require_alone("a-1", record)
    slurm.fails("squeue")
    require_alone("b-2", record)
    slurm.answers("squeue", "a-1\nb-2\n")
    with pytest.raises(ResourceError, match=r"scancel --name=a-1 && scancel --name=b-2$"):
        require_alone("c-3", record)


def test_a_machine_without_slurm_is_told_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(InputError, match="no sinfo here: start the run on a login node"):
        require_scheduler([])


def test_what_is_asked_for_is_what_is_submitted(slurm):
    require_scheduler([{"mem_mb": 4000, "mem_mb_per_cpu": 900, "threads": 1, "cpus_per_task": 8, "clusters": "big"}, {"cpus_per_task": -1}])
    assert slurm.calls("sbatch") == [
        "--test-only --clusters=big --mem-per-cpu=900 --cpus-per-task=8 --wrap=true",
        "--test-only --wrap=true",
    ]


def test_quotes_that_do_not_close_are_told():
    with pytest.raises(InputError, match=r"--comment=\"two words: slurm_extra is no list of options; No closing quotation"):
        require_scheduler([{"slurm_extra": '--comment="two words'}])
