"""Every method, killed in a process of its own at random steps and moments: it goes on to the bytes of an undisturbed run."""

from __future__ import annotations

import json
import random

import kill_moments
import pytest
import trial
from methods import SYSTEMS, recipe, write_examples

STEPS = 7
PROGRAM = f"import runpy; runpy.run_path({kill_moments.__file__!r}, run_name='__main__')"
MEMBERS = {"MoCo-BERT with NLI": ("de", "en")}


@pytest.fixture
def run(forks, tiny_encoder, tmp_path, sentence_pairs, pairs_file, groups_file):
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
        done = forks.run(PROGRAM, json.dumps(settings))
        assert done.returncode in (0, 75, -9), done.stderr
        return done.returncode

    return train


def test_every_moment_is_a_function_of_the_trainer():
    """A method draws some: without this a moment that has another name by now fails in the long tests alone."""
    assert all(callable(getattr(owner, name, None)) for owner, name in kill_moments.MOMENTS.values())


EACH_TIME = ("mSimCSE", "MoCo-BERT with NLI", "MPCL", "EMMA-X network")
"""Methods whose kills every run of the tests tries; together they have heads, queues, copies, groups and two encoders."""


@pytest.mark.parametrize("method", [pytest.param(name, marks=[] if name in EACH_TIME else pytest.mark.long) for name in SYSTEMS])
def test_killed_twice_and_resumed_is_bit_identical(method, run, tmp_path):
    draw = random.Random(f"kills of {method}")
    assert run(method, "whole") == 0
    kill = {"signal": "SIGKILL", "step": draw.randrange(1, 4), "moment": draw.choice(list(kill_moments.MOMENTS))}
    assert run(method, "killed", kill) == -9, kill
    assert not (tmp_path / "killed").exists()
    term = {"signal": "SIGTERM", "step": draw.randrange(4, STEPS - 1), "moment": draw.choice(list(kill_moments.MOMENTS)[:3])}
    assert run(method, "killed", term) == 75, term
    assert (tmp_path / "killed-work" / "current").read_text() == f"step-{term['step'] + 1:08d}\n"
    assert run(method, "killed") == 0
    assert trial.weights(tmp_path / "killed") == trial.weights(tmp_path / "whole"), (kill, term)
