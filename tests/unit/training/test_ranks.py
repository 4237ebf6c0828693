"""Two processes on half a batch each equal one process on the joint batch."""

from __future__ import annotations

import json
import socket

import pytest
import trial
from methods import SYSTEMS, recipe, write_examples
from safetensors.torch import load_file

from crosslign.errors import ResourceError
from crosslign.training.checkpoint import Checkpoints


def _free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def _start(forks, settings, path, ranks, code=0):
    path.write_text(json.dumps(settings))
    port, processes = _free_port(), []
    for rank in range(ranks):
        environment = {"ACCELERATE_USE_CPU": "true"}
        if ranks > 1:
            environment |= {
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(ranks),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
            }
        processes.append(forks.start(trial.PROGRAM, path, environment=environment))
    done = [forks.wait(process) for process in processes]
    assert [one.returncode for one in done] == [code] * ranks, [one.stderr for one in done]
    return "".join(one.stderr for one in done)


@pytest.mark.parametrize(
    "batches", [(7, 5), (19, 19), (0, 19)], ids=["uneven shares", "nothing left for the second", "no gradient on the second"]
)
def test_two_processes_equal_one(forks, tiny_encoder, pairs_file, tmp_path, batches):
    """Of 5 sentences one rank encodes 3 and the other 2; of 20 rows in batches of 19 the last has one, and its query one rank alone.

    Where that query is all that has a gradient, the other rank has none for any parameter, and takes the sum.
    """
    paired = {"objective": "trial_paired", "examples": "pairs", "batch": batches[0], "head": "head", "micro_batch": 2}
    terms = [paired] if batches[0] else []
    terms.append({"objective": "trial_keyed", "examples": "more", "batch": batches[1], "weight": 0.5})
    parts = {"head": {"kind": "trial_head", "dropout": 0.2}, "momentum": {"kind": "trial_momentum"}}
    # SGD-like: a large epsilon, so that rounding is not blown up by the division of Adam
    recipe = trial.recipe(terms=terms, parts=parts, train={"steps": 4, "learning_rate": 1e-2, "epsilon": 1.0})
    settings = {
        "encoder": str(tiny_encoder),
        "examples": {"pairs": str(pairs_file), "more": str(pairs_file)},
        "recipe": recipe,
        "dropout": 0.0,
    }
    for ranks in (1, 2):
        out = tmp_path / f"ranks{ranks}"
        _start(forks, settings | {"out": str(out), "checkpoints": f"{out}-work"}, tmp_path / f"{ranks}.json", ranks)
    curves = [[json.loads(line) for line in (tmp_path / f"ranks{r}" / "curve.jsonl").read_text().splitlines()] for r in (1, 2)]
    for one, two in zip(*curves, strict=True):
        assert abs(one["loss"] - two["loss"]) < 2e-6 * max(1.0, one["loss"])  # float32: cosines over 0.05 have steps of 2e-6
        assert abs(one["grad_norm"] - two["grad_norm"]) < 2e-5 * max(
            0.1, one["grad_norm"]
        )  # processors differ in how they sum: 1.1e-5 was seen
    start = load_file(tiny_encoder / "main" / "model.safetensors")
    for file in ("last/main/model.safetensors", "last/parts.safetensors"):
        one, two = (load_file(tmp_path / f"ranks{ranks}" / file) for ranks in (1, 2))
        assert one.keys() == two.keys()
        for name in one:
            assert (one[name] - two[name]).abs().max() < 1e-6, name
        if file.startswith("last/main"):
            assert max(float((one[name] - start[name]).abs().max()) for name in one) > 1e-4  # a hundred times what they may differ by


@pytest.mark.parametrize(
    "cut", [{"cut_short": 2}, {"cut_encoding": 2}, {"cut_encoding": 2, "cut_rank": 1}], ids=["scores", "encodes", "helps"]
)
def test_a_dev_evaluation_that_a_signal_cuts_short_on_one_rank_stops_all_and_is_taken_later(forks, tiny_encoder, pairs_file, tmp_path, cut):
    select = {"best": {"task": "t", "subset": "s", "metric": "m", "every": 2}}
    settings = {
        "encoder": str(tiny_encoder),
        "examples": {"pairs": str(pairs_file)},
        "recipe": trial.recipe(train={"steps": 4}, select=select),
    }
    for name, short, code in (("whole", {}, 0), ("run", cut, 75), ("run", {}, 0)):
        given = {"cut_short": 0, **short, "out": str(tmp_path / name), "checkpoints": str(tmp_path / f"{name}-work")}
        _start(forks, settings | given, tmp_path / "settings.json", 2, code)
    assert trial.weights(tmp_path / "run") == trial.weights(tmp_path / "whole")


def test_a_signal_to_one_rank_stops_both_one_step_later_and_the_run_goes_on(forks, tiny_encoder, pairs_file, tmp_path):
    """What ranks tell each other comes with the numbers of the next step."""
    settings = {
        "encoder": str(tiny_encoder),
        "examples": {"pairs": str(pairs_file)},
        "recipe": trial.recipe(train={"checkpoint_every": 1}),
    }
    kill = {"kill": {"after": 1, "signal": "SIGTERM", "rank": "1"}}
    for name, killed, code in (("whole", {}, 0), ("run", kill, 75), ("run", {}, 0)):
        given = {**killed, "out": str(tmp_path / name), "checkpoints": str(tmp_path / f"{name}-work")}
        said = _start(forks, settings | given, tmp_path / "settings.json", 2, code)
        if killed:  # in the second step
            assert said.count("SIGTERM received: stopping after this step, or after the next where several processes train") == 1
            assert said.count("step 3 of 6: training was asked to stop") == 2
            assert max(path.name for path in (tmp_path / "run-work").glob("step-*")) == "step-00000003"
    assert trial.weights(tmp_path / "run") == trial.weights(tmp_path / "whole")


def test_another_number_of_processes_starts_anew_and_says_so(forks, tiny_encoder, pairs_file, tmp_path):
    select = {"best": {"task": "t", "subset": "s", "metric": "m", "every": 2}}
    settings = {
        "encoder": str(tiny_encoder),
        "examples": {"pairs": str(pairs_file)},
        "recipe": trial.recipe(train={"steps": 4}, select=select),
    }
    said = ""
    for name, ranks, number, code in (("whole", 1, 0, 0), ("run", 2, 2, 75), ("run", 1, 0, 0)):
        given = {"cut_short": number, "out": str(tmp_path / name), "checkpoints": str(tmp_path / f"{name}-work")}
        said = _start(forks, settings | given, tmp_path / "settings.json", ranks, code)
    assert "saved state at step 4 was made with another ranks: starting from the beginning" in said
    assert trial.weights(tmp_path / "run") == trial.weights(tmp_path / "whole")


def test_too_little_memory_on_two_processes_names_half_of_what_each_encodes(forks, tiny_encoder, pairs_file, tmp_path):
    settings = {"encoder": str(tiny_encoder), "examples": {"pairs": str(pairs_file)}, "room": 4, "out": str(tmp_path / "run")}
    terms = [{"objective": "trial_paired", "examples": "pairs", "batch": 8}]
    given = {"recipe": trial.recipe(terms=terms, train={"steps": 2}), "checkpoints": str(tmp_path / "work")}
    said = _start(forks, settings | given, tmp_path / "settings.json", 2, ResourceError.exit_code)
    assert "number of examples encoded together: {'pairs': 4}" in said
    assert "Set micro_batch of the terms to {'pairs': 2} or less" in said


def test_too_little_memory_on_two_processes_is_answered_by_a_new_start_with_half(forks, tiny_encoder, pairs_file, tmp_path):
    settings = {"encoder": str(tiny_encoder), "examples": {"pairs": str(pairs_file)}, "room": 4}
    runs = [("run", {}, ResourceError.exit_code), ("run", {}, 0), ("half", {"micro_batch": 2}, 0)]
    for name, micro_batch, code in runs:
        terms = [{"objective": "trial_paired", "examples": "pairs", "batch": 8, **micro_batch}]
        given = {"recipe": trial.recipe(terms=terms, train={"steps": 2, "auto_micro_batch": True})}
        given |= {"out": str(tmp_path / name), "checkpoints": str(tmp_path / f"{name}-work")}
        said = _start(forks, settings | given, tmp_path / "settings.json", 2, code)
        assert ("continues from the saved state with half as many" in said) == bool(code)
    assert trial.weights(tmp_path / "run") == trial.weights(tmp_path / "half")


def test_halves_are_those_of_the_very_run_that_they_were_written_for(tmp_path):
    key = {"recipe": {"seed": 1, "train": {}}, "ranks": 2}
    Checkpoints(tmp_path, key).note_halves({"pairs": 4})
    assert Checkpoints(tmp_path, key).halves() == {"pairs": 4}
    for other in ({**key, "ranks": 3}, {**key, "recipe": {"seed": 2, "train": {}}}):
        assert Checkpoints(tmp_path, other).halves() == {}
    assert Checkpoints(tmp_path / "none", key).halves() == {}


METHODS = list(SYSTEMS)


@pytest.fixture(scope="module")
def folder(forks, tmp_path_factory, tiny_encoder, sentence_pairs, pairs_file, groups_file):
    """Runs of the methods by one process and by two, each number of them started once: `ranks<n>/<method>`."""
    folder = tmp_path_factory.mktemp("methods")
    examples = write_examples(folder, sentence_pairs, pairs_file, groups_file)
    for ranks in (1, 2):
        settings = []
        for method in METHODS:
            terms, parts = SYSTEMS[method]
            if method == "MPCL":  # rescaled scores of 20 times the cosine are too steep for float32 to agree to 1e-6
                terms = [entry | {"temperature": 1.0} for entry in terms]
            # one larger step and the ranks of phase 2 are settled: nothing is left to learn, and rounding decides how far
            rate = 2e-3 if method in ("EMMA-X 2", "EMMA-X network") else 1e-2
            out = folder / f"ranks{ranks}" / method
            settings.append(
                {
                    "encoder": str(tiny_encoder),
                    "examples": {entry["examples"]: str(examples[entry["examples"]]) for entry in terms},
                    "recipe": recipe(method, terms, parts, 4, learning_rate=rate, epsilon=1.0, checkpoint_every=3),
                    "dropout": 0.0,
                    "keep": True,
                    "bucket": 4096,  # bytes: the tiny encoder's gradients are several sums
                    "out": str(out),
                    "checkpoints": f"{out}-work",
                }
            )
        _start(forks, settings, folder / f"{ranks}.json", ranks)
    return folder


@pytest.mark.parametrize("method", METHODS)
def test_two_processes_equal_one_for_every_kind_of_objective(folder, tiny_encoder, method):
    """Momentum keys and queues, several positives, both labels of the mixture, labels: all see the joint batch."""
    curves = [
        [json.loads(line) for line in (folder / f"ranks{ranks}" / method / "curve.jsonl").read_text().splitlines()] for ranks in (1, 2)
    ]
    assert len(curves[0]) == 4
    for one, two in zip(*curves, strict=True):
        assert abs(one["loss"] - two["loss"]) < 2e-6 * max(1.0, one["loss"])  # float32: cosines over 0.05 have steps of 2e-6
        assert two["grad_norm"] == pytest.approx(one["grad_norm"], rel=1e-5)
    names = ("last/main/model.safetensors", "last/parts.safetensors")
    kept = [f"{method}-work/step-00000003/{name}.safetensors" for name in ("model", "parts", "optimiser")]
    for name in [*(f"{method}/{name}" for name in names), *kept]:
        _same(*(load_file(folder / f"ranks{ranks}" / name) for ranks in (1, 2)))
    start, end = load_file(tiny_encoder / "main" / "model.safetensors"), load_file(folder / "ranks1" / method / names[0])
    assert max(float((end[name] - start[name]).abs().max()) for name in end) > 1e-4  # a hundred times what they may differ by
    parts = load_file(folder / "ranks1" / kept[1])
    if "queue" in SYSTEMS[method][1]:  # what was enqueued, in which order, and the momentum copies
        assert {"queue.ring", "queue.pointer"} < parts.keys()
        assert any("embeddings" in name for name in parts)
        assert parts["queue.ring"].abs().sum() > 0


def _same(one, two):
    """Compare tensors, to 2e-6 of the largest number of each where that is above 1: processors differ in how they sum float32."""
    assert one.keys() == two.keys()
    for name in one:
        a, b = one[name].double(), two[name].double()
        assert a.numel() == 0 or (a - b).abs().max() < 2e-6 * max(1.0, float(a.abs().max())), name
