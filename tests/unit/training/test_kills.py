"""Every method, killed in a process of its own at random steps and moments: it goes on to the bytes of an undisturbed run."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import fork_server
import pytest
import trial
from methods import SYSTEMS, recipe, write_examples

STEPS = 7
MEMBERS = {"MoCo-BERT with NLI": ("de", "en")}
METHODS = [
    "mSimCSE",
    "MoCo-BERT with NLI",
    "SCL",
    "MVA",
    "CL",
    "SCL retrieval",
    "MPCL",
    "EMMA-X 1",
    "EMMA-X 2",
    "EMMA-X network",
    "regression",
]
"""Of `SYSTEMS`; the last is a fine-tune."""


@pytest.fixture(scope="module")
def server():
    """A process that forks one for each training."""
    unit = Path(__file__).parents[1]
    path = os.pathsep.join([str(unit.parents[1] / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": path}
    command = [sys.executable, str(Path(fork_server.__file__))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def run(server, tiny_encoder, tmp_path, sentence_pairs, pairs_file, groups_file):
    """Train a method in a process of its own; return its exit code."""
    examples = write_examples(tmp_path, sentence_pairs, pairs_file, groups_file)

    def train(method, name, kill=None):
        terms, parts = SYSTEMS[method]
        settings = {
            "recipe": recipe(method, terms, parts, STEPS, precision="bf16"),
            "members": dict.fromkeys(MEMBERS.get(method, ("main",)), str(tiny_encoder / "main")),
            "examples": {entry["examples"]: str(examples[entry["examples"]]) for entry in terms},
            "out": str(tmp_path / name),
            "checkpoints": str(tmp_path / f"{name}-work"),
            "kill": kill,
        }
        server.stdin.write(json.dumps(settings) + "\n")
        server.stdin.flush()
        return int(server.stdout.readline())

    return train


@pytest.mark.parametrize("method", METHODS)
def test_killed_twice_and_resumed_is_bit_identical(method, run, tmp_path):
    draw = random.Random(f"kills of {method}")
    assert run(method, "whole") == 0
    kill = {"signal": "SIGKILL", "step": draw.randrange(1, 4), "moment": draw.choice(list(fork_server.MOMENTS))}
    assert run(method, "killed", kill) == -9, kill
    assert not (tmp_path / "killed").exists()
    term = {"signal": "SIGTERM", "step": draw.randrange(4, STEPS - 1), "moment": draw.choice(list(fork_server.MOMENTS)[:3])}
    assert run(method, "killed", term) == 75, term
    assert (tmp_path / "killed-work" / "current").read_text() == f"step-{term['step'] + 1:08d}\n"
    assert run(method, "killed") == 0
    assert trial.weights(tmp_path / "killed") == trial.weights(tmp_path / "whole"), (kill, term)
