"""Objectives as losses of sentence-transformers in processes of their own: several ranks, and trainings that are killed."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file
from test_sentence_transformers import CASES, QUEUE, rows, sentence_encoder  # noqa: F401

RANK = """
import json, sys, torch, torch.distributed as dist
from sentence_transformers import SentenceTransformer
from torch.nn.parallel import DistributedDataParallel
from crosslign.sentence_transformers import ObjectiveLoss, TextCollator
folder, out, given, ranks, rank = *sys.argv[1:4], *map(int, sys.argv[4:])
torch.set_num_threads(1)
if ranks > 1:
    dist.init_process_group("gloo", init_method=f"file://{out}.store", world_size=ranks, rank=rank)
found = {}
for case, (rows, terms, parts) in json.load(open(given)).items():
    model = SentenceTransformer(folder, device="cpu")
    loss = ObjectiveLoss(model, terms, parts)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    if ranks > 1:
        loss.model = DistributedDataParallel(model, find_unused_parameters=True)
    for step in range(2):
        share = rows[8 * step : 8 * step + 8]
        share = share[:5] if (ranks, rank) == (2, 0) else share[5:] if ranks == 2 else share
        batch = TextCollator(model.preprocess)(share)
        names = [name.removesuffix("_input_ids") for name in batch if name.endswith("_input_ids")]
        features = [{key.removeprefix(f"{name}_"): value for key, value in batch.items() if key.startswith(f"{name}_")} for name in names]
        optimiser.zero_grad()
        total = loss(features, batch.get("label"))
        if total.requires_grad:
            total.backward()
        optimiser.step()
    heads = [part.grad.flatten() for part in loss.parts.parameters() if part.grad is not None]
    moved = [value.detach().flatten() for name, value in sorted(loss.parts.state_dict().items()) if value.is_floating_point()]
    weights = [parameter.detach().flatten() for parameter in model.parameters()]
    found[case] = [torch.cat([torch.zeros(0), *values]).tolist() for values in (weights, heads, moved)]
if rank == 0:
    json.dump(found, open(out, "w"))
"""


@pytest.mark.long
def test_two_ranks_train_as_one_process_does(rows, sentence_encoder, tmp_path):  # noqa: F811
    """Shares of the batch differ in size; encoder, gradients of heads, queues and scores are those of the whole batch."""
    sentence_encoder.save(str(tmp_path / "model"))
    given = {}
    for case, (shape, terms, parts) in CASES.items():
        columns = rows[shape]
        given[case] = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)], terms, parts
    (tmp_path / "given.json").write_text(json.dumps(given))
    results = []
    for ranks in (1, 2):
        out = tmp_path / f"ranks{ranks}.json"
        command = [sys.executable, "-c", RANK, str(tmp_path / "model"), str(out), str(tmp_path / "given.json"), str(ranks)]
        running = [subprocess.Popen([*command, str(rank)], stderr=subprocess.PIPE, text=True) for rank in range(ranks)]
        errors = [process.communicate(timeout=300)[1] for process in running]
        assert [process.returncode for process in running] == [0] * ranks, errors
        results.append(json.loads(out.read_text()))
    for case in CASES:
        (one, heads, moved), (two, joint_heads, joint_moved) = (found[case] for found in results)
        assert two == pytest.approx(one, abs=2e-6), case
        assert joint_heads == pytest.approx(heads, rel=1e-4, abs=1e-5), case
        assert joint_moved == pytest.approx(moved, abs=1e-5), case


TRAINED = """
import json, os, signal, sys, torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from torch.nn.parallel import DistributedDataParallel
from transformers import TrainerCallback
from crosslign.sentence_transformers import LossState, ObjectiveLoss, TextCollator
folder, out, kill, resume, rows, terms, parts = sys.argv[1:]
torch.set_num_threads(1)
ranks = int(os.environ.get("WORLD_SIZE", "1"))
model = SentenceTransformer(folder, device="cpu")
loss = ObjectiveLoss(model, json.loads(terms), json.loads(parts))
class Watch(TrainerCallback):
    def on_step_end(self, args, state, control, **given):
        assert isinstance(loss.model, DistributedDataParallel) == (ranks > 1)
        if state.global_step == int(kill):
            os.kill(os.getpid(), signal.SIGKILL)
arguments = SentenceTransformerTrainingArguments(
    out, max_steps=4, per_device_train_batch_size=8 // ranks, learning_rate=0.1, optim="sgd", save_steps=2, use_cpu=True,
    report_to=[], disable_tqdm=True, seed=3, **({"ddp_backend": "gloo", "ddp_find_unused_parameters": True} if ranks > 1 else {}),
)
trainer = SentenceTransformerTrainer(
    model, arguments, Dataset.from_dict(json.loads(rows)), loss=loss, data_collator=TextCollator(model.preprocess),
    callbacks=[LossState(loss), Watch()],
)
trainer.train(resume_from_checkpoint=resume or None)
"""


@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 2])
def test_the_trainers_own_ranks_that_were_killed_resume_to_the_weights_of_one_process(ranks, rows, sentence_encoder, tmp_path):  # noqa: F811
    """SIGKILL falls after the third step; what is compared are the last checkpoints, encoder and state of the loss."""
    sentence_encoder.save(str(tmp_path / "model"))
    terms = [CASES["momentum"][1][0], {"objective": "infonce", "projection": "mlp"}]
    parts = {"queue": QUEUE, "mlp": {"kind": "mlp_train_only"}}
    columns = {name: (values * 4)[:32] for name, values in rows["pairs"].items()}
    given = [json.dumps(one) for one in (columns, terms, parts)]

    def run(out, kill, resume, ranks, expected):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        command = [sys.executable, "-c", TRAINED, str(tmp_path / "model"), str(out), str(kill), resume, *given]
        places = [{"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
                  for rank in range(ranks)] if ranks > 1 else [{}]  # fmt: skip
        running = [subprocess.Popen(command, env=os.environ | place, stderr=subprocess.PIPE, text=True) for place in places]
        errors = [process.communicate(timeout=500)[1] for process in running]
        assert [process.returncode for process in running] == [expected] * ranks, errors

    run(tmp_path / "whole", 0, "", 1, 0)
    run(tmp_path / "killed", 3, "", ranks, -signal.SIGKILL)
    run(tmp_path / "killed", 0, str(tmp_path / "killed" / "checkpoint-2"), ranks, 0)
    for file in ("model.safetensors", "crosslign_loss.safetensors"):
        whole, killed = (load_file(tmp_path / name / "checkpoint-4" / file) for name in ("whole", "killed"))
        assert whole.keys() == killed.keys()
        for name, value in whole.items():
            if ranks > 1 and name == "encoder_checksum":
                continue  # of weights that are close, not equal
            torch.testing.assert_close(killed[name], value, rtol=0, atol=0 if ranks == 1 else 1e-5)
