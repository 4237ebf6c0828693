"""The commands of docs/cluster.md, as they stand there."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from project_copy import ROOT
from ruamel.yaml import YAML
from slurm_project import OWN

PAGE = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")


def commands():
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.S)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


def run(project, command, *more):
    words = [*shlex.split(command), *more]
    words[0] = str(Path(sys.executable).parent / words[0])
    done = subprocess.run(words, cwd=project.folder, env=project.environment, capture_output=True, text=True, check=False, timeout=600)
    return done.returncode, done.stdout + done.stderr


def test_the_pages_local_file_is_the_one_that_these_tests_use():
    first, _ = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.S)
    page, own = YAML(typ="safe").load(first), YAML(typ="safe").load(OWN)
    assert page["default-resources"] == own["default-resources"]


def test_the_page_sends_every_rule_that_uses_gpus_to_their_partition():
    _, block = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.S)
    rules = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "workflow" / "rules").glob("*.smk")))
    asking = {part.split(":")[0] for part in re.split(r"(?m)^rule ", rules)[1:] if re.search(r"\bgpu=", part)}
    assert YAML(typ="safe").load(block)["set-resources"].keys() == asking | {"embed_large"}  # which is `embed` with another output


def test_the_command_of_the_first_table_is_the_one_that_built_it(first):
    assert shlex.join(first.command()) in [shlex.join(shlex.split(line)) for line in commands()]


@pytest.mark.long
@pytest.mark.parametrize("start", ["crosslign doctor", "crosslign plan", "crosslign status"])
def test_the_other_commands_run(cluster, first, start):
    command = next(line for line in commands() if line.startswith(start))
    code, said = run(first, command.replace("results/paper", "results/quick"))  # where the project of these tests has its own
    assert code == 0, said[-3000:]
    expected = {"crosslign doctor": "Slurm MinJobAge", "crosslign plan": "GPU-hours", "crosslign status": "train_system"}
    assert expected[start] in said


@pytest.mark.long
def test_the_papers_are_planned(cluster, first):
    (command,) = (line for line in commands() if line == "snakemake --cores all --profile slurm")
    code, said = run(first, command, "--dry-run")
    assert code == 0, said[-3000:]
    assert said.count(": Training ") > 200


@pytest.mark.long
def test_the_workstation_plans_the_same_table(cluster, first):
    (command,) = (line for line in commands() if "profiles/workstation" in line)
    code, said = run(first, command, "--dry-run", "--forceall")
    assert code == 0, said[-3000:]
    assert said.count(": Training MB-") == 2
