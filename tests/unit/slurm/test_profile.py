"""What stands in one's own slurm/local.yaml reaches Snakemake, and Slurm, as it is meant."""

import pytest
from snakemake.resources import Resource

from crosslign.errors import InputError
from crosslign.slurm.profile import own_profile


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("jobs: 5\nqos: long\n", r"local\.yaml:2: qos: 'qos' is a resource.*under `default-resources`"),
        (
            "default-resources:\n  mem_mb_per_cpu: 4000\n",
            r"local\.yaml:2: .*mem_mb_per_cpu",
        ),
        (
            "default-resources: [slurm_partition=main]\n",
            r"local\.yaml:1: default-resources: .*mapping.*slurm_partition=main",
        ),
        ("jobs: 5\nslurm_account: mine\n", r"local\.yaml:2: slurm_account: .*`default-resources`"),
        ("- jobs\n", r"local\.yaml: .*mapping"),
        ("jobs 50\n", r"local\.yaml: .*mapping"),
        ("jobs: 5\njobs: 6\n", r"local\.yaml:2"),
    ],
)
def test_a_file_of_other_content_is_refused_by_name_and_line(tmp_path, monkeypatch, text, said):
    with pytest.raises(InputError, match=said):
        own(tmp_path, monkeypatch, text)
