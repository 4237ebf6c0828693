"""A run is refused before it starts where Slurm would refuse its jobs; real processes stand for Slurm's commands."""

import os

import pytest
from snakemake.resources import Resource

from crosslign.config.scheduler import most, own_profile, require_alone, require_scheduler, require_status
from crosslign.errors import InputError, ResourceError

REFUSED = {"--account=closed": "Invalid account", "--mem=900000": "Requested node configuration is not available"}


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Commands that write down how they were called; `sbatch` refuses an account, much memory, and partition `gpu` without a GPU."""
    cases = "".join(f'*{option}*) echo "{words}" >&2; exit 1;; ' for option, words in REFUSED.items())
    body = f'case "$*" in {cases}*--partition=gpu*--gpus*) ;; *--partition=gpu*) echo "ask for a GPU" >&2; exit 1;; esac'
    for name, script in {"sinfo": "", "sbatch": body}.items():
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {tmp_path}/calls\n{script}\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def test_each_kind_of_job_is_asked_for_once_and_nothing_is_submitted(slurm):
    main = {"slurm_account": "open, other", "slurm_partition": "main", "runtime": 60, "mem_mb": 4000, "nodes": 1, "gpu": 0, "threads": 2}
    extra = "--signal=TERM@120 --comment='two words'"
    require_scheduler([main, main, {"slurm_partition": "gpu", "gpu": 2, "gpu_model": "a100", "qos": "long", "slurm_extra": extra}, {}])
    calls = (slurm / "calls").read_text().splitlines()
    assert calls == [
        "sinfo --noheader --format=%P",
        "sbatch --test-only --account=open --partition=main --time=60 --mem=4000 --nodes=1 --cpus-per-task=2 --wrap=true",
        "sbatch --test-only --partition=gpu --qos=long --gpus=a100:2 --signal=TERM@120 --comment=two words --wrap=true",
        "sbatch --test-only --wrap=true",
    ]


def test_a_partition_that_wants_a_gpu_takes_jobs_that_ask_for_one(slurm):
    require_scheduler([{"slurm_partition": "gpu", "gpu": 1}])
    with pytest.raises(InputError, match="ask for a GPU"):
        require_scheduler([{"slurm_partition": "gpu"}])


def test_the_largest_job_of_a_rule_is_the_one_that_is_asked_for(slurm):
    jobs = [("embed", {"mem_mb": memory, "runtime": runtime, "gpu": 1}) for memory, runtime in ((4000, 60), (900_000, 20))]
    assert most(jobs) == [{"mem_mb": 900_000, "runtime": 60, "gpu": 1}]
    with pytest.raises(InputError, match="node configuration is not available"):
        require_scheduler(most([*jobs, ("score", {"mem_mb": 3000})]))


def test_a_refusal_is_said_in_slurms_words_with_what_to_do(slurm):
    with pytest.raises(InputError, match=r"takes no jobs.*Invalid account.*slurm/local\.yaml"):
        require_scheduler([{"slurm_account": "closed"}])


def test_a_full_queue_is_no_refusal(slurm):
    (slurm / "sbatch").write_text('#!/bin/sh\necho "sbatch: error: QOSMaxSubmitJobPerUserLimit" >&2\nexit 1\n')
    require_scheduler([{"slurm_partition": "main"}])


@pytest.mark.parametrize("name", ["clusters", "cluster", "slurm_cluster"])
def test_jobs_of_another_cluster_want_accounting(slurm, name):
    (slurm / "sacct").write_text("#!/bin/sh\n")
    (slurm / "sacct").chmod(0o755)
    require_status([{"slurm_partition": "main"}], "squeue")
    require_status([{name: "big"}], "sacct")
    with pytest.raises(InputError, match=r"another cluster.*slurm-status-command: sacct.*local\.yaml"):
        require_status([{}, {name: "big"}], "squeue")


def test_accounting_that_is_off_is_not_asked_after_jobs(slurm):
    (slurm / "sacct").write_text("#!/bin/sh\necho Slurm accounting storage is disabled >&2\nexit 1\n")
    (slurm / "sacct").chmod(0o755)
    with pytest.raises(InputError, match=r"storage is disabled.*slurm-status-command: squeue.*local\.yaml"):
        require_status([{}], "sacct")


@pytest.fixture
def queue(slurm):
    """Gives the function that puts jobs into the queue by the names of their runs, or has it not answer."""

    def holds(*names, answers=True):
        asked = f'echo "$*" >> {slurm}/calls'
        (slurm / "squeue").write_text(f"#!/bin/sh\n{asked}\nprintf '%s\\n' {' '.join(names)}\n" if answers else "#!/bin/sh\nexit 1\n")
        (slurm / "squeue").chmod(0o755)

    return holds


def test_jobs_that_a_killed_run_left_behind_are_named_with_what_ends_them(queue, tmp_path):
    record = tmp_path / "slurm_run"
    queue()
    require_alone("a-1", record)
    queue("a-1", "a-1", "b-2")
    for _ in range(2):
        with pytest.raises(ResourceError, match=r"2 jobs of a run that was killed.*scancel --name=a-1$"):
            require_alone("c-3", record)
    queue("b-2")
    require_alone("c-3", record)
    assert "COMPLETING" not in (tmp_path / "calls").read_text()  # they write nothing more
    queue("a-1", "c-3")
    with pytest.raises(ResourceError, match=r"1 jobs .*scancel --name=c-3$"):
        require_alone("d-4", record)


def test_a_queue_that_does_not_answer_holds_up_no_run_and_nothing_is_forgotten(queue, tmp_path):
    record = tmp_path / "slurm_run"
    require_alone("a-1", record)
    queue(answers=False)
    require_alone("b-2", record)
    queue("a-1", "b-2")
    with pytest.raises(ResourceError, match=r"scancel --name=a-1 && scancel --name=b-2$"):
        require_alone("c-3", record)


def test_a_machine_without_slurm_is_told_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="no sinfo here: start the run on a login node"):
        require_scheduler([])


def own(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slurm").mkdir(exist_ok=True)
    (tmp_path / "slurm" / "local.yaml").write_text(text)
    return own_profile()


def test_ones_own_file_is_laid_over_the_profile(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert own_profile() == {}
    wanted = {"jobs": 50, "default-resources": {"slurm_partition": "'main'"}, "set-resources": {"embed": {"slurm_partition": "'gpu'"}}}
    text = "jobs: 50\ndefault-resources: {slurm_partition: main}\nset-resources:\n  embed: {slurm_partition: gpu}\n"
    assert own(tmp_path, monkeypatch, text) == wanted
    for empty in ("", "# nothing yet\n", "default-resources:\n"):
        assert own(tmp_path, monkeypatch, empty).get("default-resources", {}) == {}


def as_snakemake_reads(name, value):
    found = Resource.from_cli_expression(name, str(value), with_threads_arg=False)
    return found.evaluate(rulename="", wildcards=None, input=None, attempt=2, async_run=None).value if found.is_evaluable() else found.value


def test_the_clusters_own_words_reach_slurm_as_they_are(tmp_path, monkeypatch):
    given = {"slurm_partition": "all", "slurm_account": "2021-5-12", "qos": "max", "constraint": "a100|h100", "gres": "nvme:1"}
    lines = "".join(f'  {name}: "{value}"\n' for name, value in given.items())
    found = own(tmp_path, monkeypatch, f"default-resources:\n{lines}set-resources:\n  embed: {{slurm_partition: open, runtime: 60}}\n")
    assert {name: as_snakemake_reads(name, value) for name, value in found["default-resources"].items()} == given
    embed = found["set-resources"]["embed"]
    assert (as_snakemake_reads("slurm_partition", embed["slurm_partition"]), embed["runtime"]) == ("open", 60)


def test_an_expression_stays_one(tmp_path, monkeypatch):
    text = (
        """default-resources: {slurm_partition: "'long' if attempt > 1 else 'short'", slurm_extra: "'--nice=5'", mem_mb: 100 * attempt}\n"""
    )
    found = own(tmp_path, monkeypatch, text)["default-resources"]
    assert {name: as_snakemake_reads(name, value) for name, value in found.items()} == {
        "slurm_partition": "long",
        "slurm_extra": "--nice=5",
        "mem_mb": 200,
    }


def test_what_is_asked_for_is_what_is_submitted(slurm):
    require_scheduler([{"mem_mb": 4000, "mem_mb_per_cpu": 900, "threads": 1, "cpus_per_task": 8, "clusters": "big"}, {"cpus_per_task": -1}])
    assert (slurm / "calls").read_text().splitlines()[1:] == [
        "sbatch --test-only --clusters=big --mem-per-cpu=900 --cpus-per-task=8 --wrap=true",
        "sbatch --test-only --wrap=true",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("jobs: 5\nqos: long\n", r"local\.yaml:2: qos: 'qos' is a resource.*below `default-resources`"),
        (
            "default-resources:\n  mem_mb_per_cpu: 4000\n",
            r"local\.yaml:2: .*no mem_mb_per_cpu.*as many CPUs",
        ),
        (
            "default-resources: [slurm_partition=main]\n",
            r"local\.yaml:1: default-resources: resources are a mapping here.*slurm_partition=main",
        ),
        ("jobs: 5\nslurm_account: mine\n", r"local\.yaml:2: slurm_account: 'slurm_account' is a resource.*below `default-resources`"),
        ("- jobs\n", r"local\.yaml: this is no mapping"),
        ("jobs 50\n", r"local\.yaml: this is no mapping"),
        ("jobs: 5\njobs: 6\n", r"local\.yaml:2"),
    ],
)
def test_a_file_of_other_content_is_refused_by_name_and_line(tmp_path, monkeypatch, text, said):
    with pytest.raises(InputError, match=said):
        own(tmp_path, monkeypatch, text)
