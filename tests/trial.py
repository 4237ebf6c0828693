"""What the trainer's tests train: small objectives and parts, a recipe, and a program that trains in a process of its own."""

from __future__ import annotations

import copy
import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from crosslign.errors import CrosslignError
from crosslign.objectives import OBJECTIVES, PARTS
from crosslign.objectives.contract import Input, Loss, Part


class Paired:
    """InfoNCE of a against b, through a head where one is named; `scale` spoils the loss from one step on."""

    shape = "pairs"

    def __init__(self, head=None, temperature=0.05, poison_at=None, name="", draws=False):
        self.head, self.temperature, self.poison_at, self.name, self.draws = head, temperature, poison_at, name, draws
        self.seen = []

    def inputs(self, batch, draw):
        columns = batch.columns
        self.seen.append((list(batch.ids), int(torch.randint(1 << 30, (1,), generator=draw))))
        return {
            f"{self.name}a": Input(columns["a_text"], columns["a_lang"]),
            f"{self.name}b": Input(columns["b_text"], columns["b_lang"]),
        }

    def loss(self, vectors, batch, parts):
        a, b = vectors[f"{self.name}a"], vectors[f"{self.name}b"]
        if self.head:
            a, b = parts[self.head](a), parts[self.head](b)
        similarities = F.normalize(a, dim=1) @ F.normalize(b, dim=1).T
        total = F.cross_entropy(similarities / self.temperature, torch.arange(len(a), device=a.device))
        if self.poison_at is not None and batch.step >= self.poison_at:
            total = total * float("nan")
        return Loss(total, {"similarity": float(similarities.detach().diagonal().mean())})


class Head(Part):
    """A dense layer with dropout, and a counter that the trainer's order of calls moves."""

    def __init__(self, dropout=0.1):
        super().__init__()
        self.dropout = dropout
        self.register_buffer("commits", torch.zeros((), dtype=torch.int64))

    def attach(self, model, seed):
        self.dense = nn.Linear(model.dimension, model.dimension)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            nn.init.normal_(self.dense.weight, std=0.1)
        nn.init.zeros_(self.dense.bias)

    def forward(self, vectors):
        return F.dropout(torch.tanh(self.dense(vectors)), self.dropout, self.training)

    def commit(self, vectors):
        self.commits += 1


class Momentum(Part):
    """A momentum copy of the encoder that records the order of calls."""

    def __init__(self, momentum=0.5):
        super().__init__()
        self.momentum, self.calls = momentum, []

    def attach(self, model, seed):
        self._online = [model]
        self.copies = nn.ModuleDict({name: copy.deepcopy(member) for name, member in model.members.items()})
        self.copies.requires_grad_(False)
        self.register_buffer("kept", torch.zeros(4, model.dimension))

    def key_member(self, name):
        self.calls.append("key")
        return self.copies[name]

    @torch.no_grad()
    def before_keys(self):
        self.calls.append("before_keys")
        for name, copied in self.copies.items():
            for key, query in zip(copied.parameters(), self._online[0].members[name].parameters(), strict=True):
                key.lerp_(query, 1 - self.momentum)

    def commit(self, vectors):
        self.calls.append("commit")
        assert not vectors["key"].requires_grad
        self.kept.copy_(vectors["key"][:4])


class Keyed:
    """Queries against the keys of a momentum copy and what a part kept."""

    shape = "pairs"

    def inputs(self, batch, draw):
        columns = batch.columns
        return {
            "query": Input(columns["a_text"], columns["a_lang"]),
            "key": Input(columns["b_text"], columns["b_lang"], keys=True, pooling="cls"),
        }

    def loss(self, vectors, batch, parts):
        part = parts["momentum"]
        part.calls.append("loss")
        keys = torch.cat([vectors["key"], part.kept])
        similarities = F.normalize(vectors["query"], dim=1) @ F.normalize(keys, dim=1, eps=1e-6).T
        return Loss(F.cross_entropy(similarities / 0.1, torch.arange(len(similarities))))


class Grouped:
    """All members of a group against all of the next: lists of texts instead of columns."""

    shape = "groups"

    def inputs(self, batch, draw):
        columns = batch.columns
        return {f"member{i}": Input([t[i] for t in columns["texts"]], [lang[i] for lang in columns["langs"]]) for i in range(2)}

    def loss(self, vectors, batch, parts):
        return Loss(F.mse_loss(vectors["member0"], vectors["member1"]))


PROGRAM = f"import runpy; runpy.run_path({__file__!r}, run_name='__main__')"
"""This file as a program, for a process of its own."""
KINDS = {"trial_paired": Paired, "trial_keyed": Keyed, "trial_grouped": Grouped}
PART_KINDS = {"trial_head": Head, "trial_momentum": Momentum}


def register() -> None:
    """File the kinds above beside the project's own."""
    OBJECTIVES._entries.update(KINDS)
    PARTS._entries.update(PART_KINDS)


def recipe(**changes):
    """Return a small resolved recipe; `train` and `readout` are merged."""
    base = {
        "system": "trial",
        "run_id": "trial-s1",
        "seed": 1,
        "parts": {},
        "terms": [{"objective": "trial_paired", "weight": 1.0, "examples": "pairs", "batch": 8}],
        "train": {
            "steps": 6,
            "learning_rate": 1e-3,
            "schedule": "linear",
            "warmup_steps": 0,
            "weight_decay": 0.01,
            "clip": 1.0,
            "precision": "fp32",
            "max_length": 16,
            "threads": 1,
            "checkpoint_every": 2,
        },
        "select": {},
        "readout": {"pooling": "mean", "layer": -1, "max_length": 16, "normalise": True, "precision": "fp32", "prefix": ""},
    }
    merged = {key: changes.pop(key, {}) for key in ("train", "readout")}
    return {**base, **changes, "train": base["train"] | merged["train"], "readout": base["readout"] | merged["readout"]}


def weights(folder: Path) -> dict[str, bytes]:
    """Return every file of a run's folder by its name."""
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def kill_when(done: int, number: int) -> None:
    """Send this process a signal in the middle of the step after `done`, after its backward pass."""
    from crosslign.training.step import Stepper

    real = Stepper.run

    def run(self, step, *rest):
        result = real(self, step, *rest)
        if step == done:
            os.kill(os.getpid(), number)
        return result

    Stepper.run = run


def little_memory(sentences: int) -> None:
    """Give the encoder memory for so many sentences at a time."""
    from crosslign.encoders.model import Member

    real = Member.forward

    def forward(self, features, *rest):
        if len(features["input_ids"]) > sentences:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(self, features, *rest)

    Member.forward = forward


class Evaluations:
    """Dev scores by a function of the model. Its vectors are the numbers of 7 rows, of which each rank has its share.

    Of rank `cut_rank`, the encoding of number `cut_encoding` gets SIGTERM.
    """

    def __init__(self, function, cut_encoding=0, cut_rank=0):
        self.function, self.cut_encoding, self.cut_rank, self.encoded = function, cut_encoding, cut_rank, 0

    def encode(self, model, rank, ranks):
        self.encoded += 1
        if self.encoded == self.cut_encoding and rank == self.cut_rank:
            os.kill(os.getpid(), signal.SIGTERM)
        return [np.arange(21, dtype=np.float32).reshape(7, 3)[rank::ranks]]

    def score(self, model, encoded):
        assert [one.tolist() for one in encoded] == [np.arange(21).reshape(7, 3).tolist()]
        return self.function(model)


def scored(dev, model):
    """Score a model as one rank alone does."""
    return dev.score(model, dev.encode(model, 0, 1))


def evaluation_cut_short(number: int):
    """Return a function that scores models, and gets SIGTERM in its dev evaluation of this number; nothing of it is left undone then."""
    evaluations = []

    def dev(model):
        evaluations.append(1)
        if len(evaluations) == number:
            os.kill(os.getpid(), signal.SIGTERM)
        print("looked", file=sys.stderr)
        return {"best": -abs(float(next(model.parameters()).detach().double().sum()))}

    return dev


def main(arguments: dict) -> int:
    """Train as `arguments` says; print the error of a stopped run and return its exit code."""
    from tokenise import tokenised

    from crosslign.encoders.model import Model
    from crosslign.threads import limit_threads
    from crosslign.training import reduction
    from crosslign.training.checkpoint import Checkpoints
    from crosslign.training.fit import fit
    from crosslign.training.terms import build_parts

    register()
    limit_threads(1)
    if arguments.get("keep"):
        Checkpoints.clear = lambda self: None
    if "kill" in arguments and arguments["kill"].get("rank") in (None, os.environ.get("RANK")):
        kill_when(arguments["kill"]["after"], getattr(signal, arguments["kill"]["signal"]))
    if "room" in arguments:
        little_memory(arguments["room"])
    reduction.BUCKET_BYTES = arguments.get("bucket", reduction.BUCKET_BYTES)
    model = Model.load({"main": Path(arguments["encoder"]) / "main"})
    for member in model.members.values():
        for module in member.modules():
            if isinstance(module, nn.Dropout) and "dropout" in arguments:
                module.p = arguments["dropout"]
    parts = build_parts(arguments["recipe"], model)
    sets = f"sets{os.environ.get('RANK', '')}"  # a rule makes them before ranks start: here each rank has its own
    examples = tokenised(arguments["recipe"], arguments["examples"], model, Path(arguments["out"]).with_name(sets))
    try:
        dev = None
        if "cut_short" in arguments:
            dev = Evaluations(evaluation_cut_short(arguments["cut_short"]), arguments.get("cut_encoding", 0), arguments.get("cut_rank", 0))
        fit(arguments["recipe"], examples, model, parts, dev, Path(arguments["out"]), Path(arguments["checkpoints"]))
    except CrosslignError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    given = json.loads(Path(sys.argv[1]).read_text())
    sys.exit(max(main(one) for one in (given if isinstance(given, list) else [given])))
