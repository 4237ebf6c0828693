"""Sentences per second and peak memory of InfoNCE training beside sentence-transformers with MultipleNegativesRankingLoss.

Each side runs its own trainer, in a process of its own, and they take turns: same folder of weights, pairs and their order, batch,
length cap, precision, threads, AdamW without decay, linear schedule, clip 1. Each first trains a few steps without dropout, whose
losses must agree step by step, then with the dropout of the model, timed from the third step on. Prints medians in wall and processor
time, peak memory of the processes, and as its last line `ratio: <peer / ours, processor seconds a step>`: a busy machine changes wall
time, not that.

    python benchmarks/training.py --pairs FILE                    # a training set of shape pairs (parquet), or two columns (tsv)
    python benchmarks/training.py --micro-batch 32 --batch 256    # in parts, as GradCache does; the peer with its cached loss
    python benchmarks/training.py --shape narrow --batch 4 --threads 1 --steps 60 --precision fp32    # the host alone: tiny products

`gpu_training.py` is its counterpart on a GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from _common import SHAPES, encoder_folder, machine, parser, random_encoder, random_sentences, versions
from _training import (
    LEARNING_RATE,
    SEED,
    TEMPERATURE,
    TOLERANCE,
    Clock,
    Pairs,
    fit_timed,
    one_side,
    read_pairs,
    recipe_of,
    run,
)

BY_TOKENS = "mini_batch_num_tokens"
"""Option of the peer's cached loss, in its newer versions."""


def train_ours(folder: Path, pairs: Pairs, options: argparse.Namespace, work: Path) -> tuple[Clock, list[float]]:
    """Train by InfoNCE with the project's trainer."""
    from crosslign.encoders.model import Model

    return fit_timed(recipe_of(options, len(pairs) // options.batch), Model.load({"main": folder}), {}, pairs, work)


def train_peer(folder: Path, pairs: Pairs, options: argparse.Namespace, work: Path) -> tuple[Clock, list[float]]:
    """Train with sentence-transformers' trainer; the pairs come in the order of `pairs`."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.base.sampler import DefaultBatchSampler
    from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss, MultipleNegativesRankingLoss
    from torch.utils.data import SequentialSampler
    from transformers import TrainerCallback

    attention = {"attn_implementation": getattr(options, "attention", "sdpa")}
    model = SentenceTransformer(str(folder), device=options.device, model_kwargs=attention)
    model.max_seq_length = options.max_length
    clock, losses = Clock(), []

    class Timer(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            clock.mark()

    tokens = {}
    if (
        options.micro_batch
        and attention["attn_implementation"] != "sdpa"
        and BY_TOKENS in signature(CachedMultipleNegativesRankingLoss).parameters
    ):
        # Without padding parts may be packed by tokens: as many as a part's sentences have, a word of random sentences being one.
        tokens[BY_TOKENS] = int(options.micro_batch * (np.mean([len(text.split()) for pair in pairs for text in pair]) + 2))
    kind, more = (
        (CachedMultipleNegativesRankingLoss, {"mini_batch_size": options.micro_batch, **tokens})
        if options.micro_batch
        else (MultipleNegativesRankingLoss, {})
    )

    class Loss(kind):  # type: ignore[misc, valid-type]
        def forward(self, *given: Any, **named: Any) -> Any:
            value = super().forward(*given, **named)
            losses.append((value["loss"] if isinstance(value, dict) else value).detach().item())
            return value

    def in_order(dataset: Any, **given: Any) -> Any:
        return DefaultBatchSampler(SequentialSampler(dataset), **given)

    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(work / "peer"), num_train_epochs=1, per_device_train_batch_size=options.batch, learning_rate=LEARNING_RATE,
        lr_scheduler_type="linear", warmup_steps=0, weight_decay=0.0, max_grad_norm=1.0, bf16=options.precision == "bf16",
        use_cpu=options.device == "cpu", save_strategy="no", logging_strategy="no", report_to=[], disable_tqdm=True, seed=1,
        batch_sampler=in_order, dataloader_num_workers=0 if options.device == "cpu" else 4,
    )  # fmt: skip
    dataset = Dataset.from_dict({"anchor": [a for a, _ in pairs], "positive": [b for _, b in pairs]})
    loss = Loss(model, scale=1 / TEMPERATURE, **more)
    SentenceTransformerTrainer(model=model, args=arguments, train_dataset=dataset, loss=loss, callbacks=[Timer()]).train()
    return clock, losses


def compare(folder: Path, options: argparse.Namespace, work: Path) -> float:
    """Check the losses of both sides, time them in turns, and return the ratio of their processor times."""
    data = work / "pairs.json"
    count = options.batch * options.steps
    words = random_sentences(2 * count, options.max_length) if options.shape else []
    pairs = list(zip(words[::2], words[1::2], strict=True)) or read_pairs(options.pairs, count, options.folder or work)
    data.write_text(json.dumps(pairs))
    found: dict[str, list[dict[str, Any]]] = {"ours": [], "peer": []}
    for repeat in range(options.repeats):
        for side in ("ours", "peer") if repeat % 2 == 0 else ("peer", "ours"):
            found[side].append(run(__file__, side, folder, data, options, "micro_batch"))
        ours, theirs = (np.array(found[side][-1]["checked"]) for side in ("ours", "peer"))
        apart = float(np.abs(ours - theirs).max())
        print(f"without dropout: losses of {options.check} steps agree to {apart:.1e}, {ours[0]:.4f} to {ours[-1]:.4f}", flush=True)
        if apart > TOLERANCE[options.precision]:
            sys.exit(f"losses differ: ours {ours}, peer {theirs}")
    kept = ("wall", "processor", "peak_mb")
    middle = {side: {name: statistics.median(r[name] for r in runs) for name in kept} for side, runs in found.items()}
    for side, values in middle.items():
        loss = np.mean([r["losses"] for r in found[side]])
        print(
            f"{side}: {2 * options.batch / values['wall']:.1f} sentences/s, {1 / values['wall']:.2f} steps/s, "
            f"{values['processor']:.2f} processor s a step, peak {values['peak_mb']:.0f} MB, mean loss {loss:.4f}"
        )
    print(f"ratio by wall time: {middle['peer']['wall'] / middle['ours']['wall']:.2f}")
    return float(middle["peer"]["processor"] / middle["ours"]["processor"])


def arguments() -> argparse.Namespace:
    """Return the command line's options."""
    command = parser(__doc__)
    command.add_argument("--pairs", type=Path, help="parquet of shape pairs, or two columns with tabs; else verses in English and German")
    command.add_argument("--folder", type=Path, help="where the encoder lies, or is put")
    command.add_argument("--shape", choices=sorted(SHAPES), help="an encoder with random weights, and sentences of random words")
    command.add_argument("--batch", type=int, default=32)
    command.add_argument("--micro-batch", type=int)
    command.add_argument("--max-length", type=int, default=128)
    command.add_argument("--precision", choices=("fp32", "bf16"), default="bf16")
    command.add_argument("--threads", type=int, default=2)
    command.add_argument("--steps", type=int, default=10)
    command.add_argument("--check", type=int, default=4, help="steps of the check without dropout")
    command.add_argument("--repeats", type=int, default=2)
    command.add_argument("--side", choices=("ours", "peer"), help=argparse.SUPPRESS)
    command.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    options = command.parse_args()
    options.device = "cpu"
    return options


def main() -> None:
    """Compare both sides."""
    options = arguments()
    if options.side:
        one_side(options, {"ours": train_ours, "peer": train_peer})
        return
    with tempfile.TemporaryDirectory() as temporary:
        place = options.folder or Path(temporary)
        folder = random_encoder(place, options.shape) if options.shape else encoder_folder(place, "minilm_l6")
        print(
            f"{machine()}, {versions('torch', 'sentence-transformers')}; batch {options.batch} in parts of "
            f"{options.micro_batch or options.batch}, {options.precision}, at most {options.max_length} tokens, "
            f"{options.threads} threads, seed {SEED}"
        )
        print(f"ratio: {compare(folder, options, Path(temporary)):.2f}")


if __name__ == "__main__":
    main()
