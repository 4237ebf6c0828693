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
import sys, torch, torch.distributed as dist
from sentence_transformers import SentenceTransformer
from torch.nn.parallel import DistributedDataParallel
from crosslign.sentence_transformers import ObjectiveLoss, TextCollator
import json, os
folder, out, ranks, rank = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
rows = json.loads(sys.argv[5])
torch.set_num_threads(1)
if ranks > 1:
    dist.init_process_group("gloo", init_method=f"file://{out}.store", world_size=ranks, rank=rank)
model = SentenceTransformer(folder, device="cpu")
loss = ObjectiveLoss(model, json.loads(sys.argv[6]), json.loads(sys.argv[7]))
optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
if ranks > 1:
    loss.model = DistributedDataParallel(model, find_unused_parameters=True)
for step in range(2):
    share = rows[8 * step : 8 * step + 8]
    share = share[:5] if (ranks, rank) == (2, 0) else share[5:] if ranks == 2 else share
    batch = TextCollator(model.preprocess)(share)
    features = [{k.removeprefix(f"{n}_"): v for k, v in batch.items() if k.startswith(f"{n}_")} for n in ("anchor", "positive")]
    optimiser.zero_grad()
    loss(features, None).backward()
    optimiser.step()
queue = loss.parts["queue"].ring.flatten().tolist() if "queue" in loss.parts else []
if rank == 0:
    json.dump([torch.cat([p.detach().flatten() for p in model.parameters()]).tolist(), queue], open(out, "w"))
"""


@pytest.mark.long
@pytest.mark.parametrize("case", ["infonce", "momentum"])
def test_two_ranks_train_as_one_process_does(case, rows, sentence_encoder, tmp_path):  # noqa: F811
    """Shares of the batch differ in size; negatives, queues and gradients are those of the whole batch."""
    term, parts = ({"objective": "infonce"}, {}) if case == "infonce" else (CASES["momentum"][1][0], {"queue": QUEUE})
    sentence_encoder.save(str(tmp_path / "model"))
    data = [dict(zip(rows["pairs"], row, strict=True)) for row in zip(*rows["pairs"].values(), strict=True)]
    given = [json.dumps(data), json.dumps(term), json.dumps(parts)]
    results = []
    for ranks in (1, 2):
        out = tmp_path / f"ranks{ranks}.json"
        command = [sys.executable, "-c", RANK, str(tmp_path / "model"), str(out), str(ranks)]
        running = [subprocess.Popen([*command, str(rank), *given], stderr=subprocess.PIPE, text=True) for rank in range(ranks)]
        errors = [process.communicate(timeout=300)[1] for process in running]
        assert [process.returncode for process in running] == [0] * ranks, errors
        results.append(json.loads(out.read_text()))
    (one, queue), (two, joint_queue) = results
    assert two == pytest.approx(one, abs=2e-6)
    assert joint_queue == pytest.approx(queue, abs=1e-5)


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
            torch.testing.assert_close(killed[name], value, rtol=0, atol=0 if ranks == 1 else 1e-5)
