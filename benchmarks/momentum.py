"""A step of momentum contrast with a queue of 65,536 keys, beside the algorithm written out in plain PyTorch.

No public package trains text encoders this way, so the peer is the pseudo-code of MoCo (He et al. 2020, algorithm 1) with the two
directions of MoCo-BERT: transformers' encoder and a momentum copy of it, batches padded to their longest sentence, one matrix of all
scores, cross-entropy, AdamW without decay, clip 1. Same weights, pairs and their order, queue, length cap, precision, threads; each side
in a process of its own, in turns. Steps without dropout come first, whose losses must agree step by step. Prints machine, versions, seed,
medians in wall and processor time, peak memory, and as its last line `ratio: <peer / ours, processor seconds a step>`.

    python benchmarks/momentum.py --queue 65536 --batch 32
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _common import encoder_folder, machine, parser, versions
from _training import LEARNING_RATE, TOLERANCE, Clock, Pairs, fit_timed, one_side, read_pairs, recipe_of, run

TEMPERATURE, MOMENTUM, SEED = 0.04, 0.999, 1


def ours(folder: Path, pairs: Pairs, options: argparse.Namespace, work: Path) -> tuple[Clock, list[float]]:
    """Train with the project's trainer."""
    from crosslign.encoders.model import Model
    from crosslign.objectives import PARTS

    model = Model.load({"main": folder})
    queue = PARTS.get("momentum_queue")(size=options.queue, momentum=MOMENTUM, queue_init="random")
    queue.attach(model, SEED)
    term = {"objective": "momentum_contrast", "examples": "pairs", "batch": options.batch, "queue": "queue", "temperature": TEMPERATURE}
    return fit_timed({**recipe_of(options, len(pairs) // options.batch), "terms": [term]}, model, {"queue": queue}, pairs, work)


def peer(folder: Path, pairs: Pairs, options: argparse.Namespace, work: Path) -> tuple[Clock, list[float]]:
    """Train by the pseudo-code."""
    import torch
    from torch.nn.functional import cross_entropy, normalize
    from transformers import AutoModel, AutoTokenizer

    tokenizer, query_encoder = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).train()
    key_encoder = copy.deepcopy(query_encoder).requires_grad_(False)
    optimiser = torch.optim.AdamW(query_encoder.parameters(), lr=LEARNING_RATE, weight_decay=0.0)
    steps = len(pairs) // options.batch
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / steps)
    drawn = torch.randn((1, options.queue, query_encoder.config.hidden_size), generator=torch.Generator().manual_seed(SEED))
    queue, pointer, clock, losses = normalize(drawn, dim=-1)[0], 0, Clock(), []

    def encoded(encoder: Any, batch: Any) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=options.precision == "bf16"):
            states = encoder(**batch).last_hidden_state.float()
        mask = batch["attention_mask"].unsqueeze(-1).float()
        return normalize((states * mask).sum(1) / mask.sum(1), dim=-1)

    for step in range(steps):
        rows = pairs[step * options.batch : (step + 1) * options.batch]
        settings = {"padding": True, "truncation": True, "max_length": options.max_length, "return_tensors": "pt"}
        sides = [tokenizer([row[side] for row in rows], **settings) for side in (0, 1)]
        queries = [encoded(query_encoder, side) for side in sides]
        with torch.no_grad():
            for key, query in zip(key_encoder.parameters(), query_encoder.parameters(), strict=True):
                key.mul_(MOMENTUM).add_(query, alpha=1 - MOMENTUM)
            keys = [encoded(key_encoder, side) for side in sides]
        total = torch.zeros(())
        for query, key in zip(queries, reversed(keys), strict=True):
            scores = torch.cat([(query * key).sum(1, keepdim=True), query @ queue.T], 1) / TEMPERATURE
            total = total + cross_entropy(scores, torch.zeros(len(scores), dtype=torch.int64))
        optimiser.zero_grad()
        torch.autograd.backward(total)
        torch.nn.utils.clip_grad_norm_(query_encoder.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        for key in keys:
            queue[torch.arange(pointer, pointer + len(key)) % len(queue)] = key
            pointer = (pointer + len(key)) % len(queue)
        losses.append(float(total.detach()))
        clock.mark()
    return clock, losses


def compare(folder: Path, options: argparse.Namespace, work: Path) -> None:
    """Check the losses of both sides, time them in turns, and print."""
    data = work / "data.json"
    data.write_text(json.dumps(read_pairs(options.pairs, options.batch * options.steps, options.folder or work)))
    found: dict[str, list[dict[str, Any]]] = {"ours": [], "peer": []}
    for repeat in range(options.repeats):
        for side in ("ours", "peer")[:: -1 if repeat % 2 else 1]:
            found[side].append(run(__file__, side, folder, data, options, "queue"))
        own, theirs = (np.array(found[side][-1]["checked"]) for side in ("ours", "peer"))
        apart = float(np.abs(own - theirs).max())
        print(f"without dropout: losses of {options.check} steps agree to {apart:.1e}, {own[0]:.4f} to {own[-1]:.4f}", flush=True)
        if apart > 10 * TOLERANCE[options.precision]:  # scores over a temperature of 0.04, two directions
            raise SystemExit(f"losses differ: ours {own}, peer {theirs}")
    middle = {
        side: {name: statistics.median(r[name] for r in runs) for name in ("wall", "processor", "peak_mb")} for side, runs in found.items()
    }
    for side, values in middle.items():
        took = f"{values['wall']:.2f} s a step, {values['processor']:.2f} processor s"
        print(f"{side}: {took}, {2 * options.batch / values['wall']:.1f} sentences/s, peak {values['peak_mb']:.0f} MB")
    print(f"ratio by wall time: {middle['peer']['wall'] / middle['ours']['wall']:.2f}")
    print(f"ratio: {middle['peer']['processor'] / middle['ours']['processor']:.2f}")


def main() -> None:
    """Compare, or run one side."""
    command = parser(__doc__)
    command.add_argument(
        "--pairs", type=Path, help="parquet of shape pairs, or tab-separated columns; without it, verses in English and German"
    )
    command.add_argument("--folder", type=Path, help="where the encoder lies, or is put")
    command.add_argument("--queue", type=int, default=65_536)
    command.add_argument("--batch", type=int, default=32)
    command.add_argument("--max-length", type=int, default=128)
    command.add_argument("--precision", choices=("fp32", "bf16"), default="bf16")
    command.add_argument("--threads", type=int, default=2)
    command.add_argument("--steps", type=int, default=10)
    command.add_argument("--check", type=int, default=4, help="steps of the check without dropout")
    command.add_argument("--repeats", type=int, default=2)
    command.add_argument("--side", choices=("ours", "peer"), help=argparse.SUPPRESS)
    command.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    options = command.parse_args()
    options.micro_batch = None
    if options.side:
        one_side(options, {"ours": ours, "peer": peer})
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = encoder_folder(options.folder or Path(temporary), "minilm_l6")
        print(f"{machine()}, {options.threads} threads; {versions('torch', 'transformers')}; seed {SEED}")
        print(f"queue of {options.queue:,}, batch {options.batch}, {options.precision}, at most {options.max_length} tokens")
        compare(folder, options, Path(temporary))


if __name__ == "__main__":
    main()
