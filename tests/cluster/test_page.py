"""The commands of docs/cluster.md, as they stand there."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import OWN
from project_copy import ROOT
from ruamel.yaml import YAML

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
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.S)
    page, own = YAML(typ="safe").load(block), YAML(typ="safe").load(OWN)
    assert page["default-resources"] == own["default-resources"]


def test_the_command_of_the_first_table_is_the_one_that_built_it(first):
    assert shlex.join(first.command()) in [shlex.join(shlex.split(line)) for line in commands()]


@pytest.mark.long
@pytest.mark.parametrize("start", ["crosslign doctor", "crosslign plan", "crosslign status"])
def test_the_other_commands_run(cluster, first, start):
    (command,) = (line for line in commands() if line.startswith(start))
    code, said = run(first, command)
    assert code == 0, said[-3000:]
    expected = {"crosslign doctor": "Slurm MinJobAge", "crosslign plan": "GPU-hours", "crosslign status": "train_system"}
    assert expected[start] in said


@pytest.mark.long
def test_the_papers_are_planned(cluster, first):
    (command,) = (line for line in commands() if line.endswith("--profile slurm"))
    code, said = run(first, command, "--dry-run")
    assert code == 0, said[-3000:]
    assert said.count(": Training ") > 200


@pytest.mark.long
def test_the_workstation_plans_the_same_table(cluster, first):
    (command,) = (line for line in commands() if "profiles/workstation" in line)
    code, said = run(first, command, "--dry-run", "--forceall")
    assert code == 0, said[-3000:]
    assert said.count(": Training MB-") == 2
