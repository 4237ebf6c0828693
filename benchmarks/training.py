"""Sentences per second and peak memory of InfoNCE training beside sentence-transformers with MultipleNegativesRankingLoss.

Each side runs its own trainer, in a process of its own, and they take turns: same folder of weights, pairs and their order, batch,
length cap, precision, threads, AdamW without decay, linear schedule, clip 1. Each first trains a few steps without dropout, whose
losses must agree step by step, then with the dropout of the model, timed from the third step on. Prints medians in wall and processor
time, peak memory of the processes, and as its last line `ratio: <peer / ours, processor seconds a step>`: a busy machine changes wall
time, not that.

    python benchmarks/training.py --pairs FILE                    # a training set of shape pairs (parquet), or two columns (tsv)
    python benchmarks/training.py --micro-batch 32 --batch 256    # in parts, as GradCache does; the peer with its cached loss
    python benchmarks/training.py --device cuda                   # our trainer on one GPU, XLM-R large's shape, random weights, bf16

On a GPU it prints model FLOP utilisation: floating-point operations of the products of an encoder's forward and backward pass over
real tokens (padding and what is computed twice left out), a second, as a share of the GPU's dense bf16 peak (`--peak`, TFLOP/s; known
for A100, H100 and H200), over all steps behind the first eight, which compile and fill caches. Text is tokenised before the clock
starts. Needs no package but torch, transformers and accelerate, and nothing from the network. Where sentence-transformers is
installed, its model and loss in a plain loop must give our losses of a small encoder without dropout, and where `datasets` is too, its
trainer trains the same encoder on the same pairs (`--alone` leaves both out). The last line is `ratio: <utilisation>`.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _common import (
    SHAPES,
    encoder_folder,
    gpu_memory,
    machine,
    no_gpu,
    parser,
    random_encoder,
    random_sentences,
    versions,
)
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
    without_dropout,
)

COLD_ON_GPU = 8
PEAKS = {"A100": 312.0, "H100": 989.0, "H100 PCIe": 756.0, "H100 NVL": 835.0, "H200": 989.0, "H200 NVL": 835.0}


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

    model = SentenceTransformer(str(folder), device=options.device)
    model.max_seq_length = options.max_length
    clock, losses = Clock(), []

    class Timer(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            clock.mark()

    kind, more = (
        (CachedMultipleNegativesRankingLoss, {"mini_batch_size": options.micro_batch})
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
        batch_sampler=in_order,
    )  # fmt: skip
    dataset = Dataset.from_dict({"anchor": [a for a, _ in pairs], "positive": [b for _, b in pairs]})
    loss = Loss(model, scale=1 / TEMPERATURE, **more)
    SentenceTransformerTrainer(model=model, args=arguments, train_dataset=dataset, loss=loss, callbacks=[Timer()]).train()
    return clock, losses


def compare(folder: Path, options: argparse.Namespace, work: Path) -> float:
    """Check the losses of both sides, time them in turns, and return the ratio of their processor times."""
    data = work / "pairs.json"
    data.write_text(json.dumps(read_pairs(options.pairs, options.batch * options.steps, options.folder or work)))
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


def flops(lengths: np.ndarray, layers: int, width: int, inner: int) -> float:
    """Return the operations of the products of a forward and a backward pass over sentences of these lengths, padding left out."""
    weights = layers * (4 * width * width + 2 * width * inner)
    return float(3 * (2 * weights * lengths + 4 * layers * width * lengths**2).sum())


def peak_of(name: str) -> float:
    """Return the dense bf16 peak of a GPU, TFLOP/s; 0 where it is not known."""
    return next((PEAKS[key] for key in sorted(PEAKS, key=len, reverse=True) if all(word in name for word in key.split())), 0.0)


def on_gpu(options: argparse.Namespace, work: Path) -> None:
    """Train an encoder with random weights on one device, and print speed, memory and utilisation; then the peer, where it can."""
    import torch

    shape = SHAPES[options.shape]
    folder = random_encoder(work, options.shape)
    sentences = random_sentences(2 * options.batch * options.steps, options.max_length)
    pairs: Pairs = list(zip(sentences[::2], sentences[1::2], strict=True))
    name = torch.cuda.get_device_name()
    print(f"{machine()}\n{versions('torch', 'transformers', 'accelerate')}; seed {SEED}")
    parts = f"batch {options.batch} pairs in parts of {options.micro_batch or options.batch}"
    print(f"{options.shape} with random weights, {options.precision}, {parts}, {options.steps} steps, the first {COLD_ON_GPU} not counted")
    clock, losses = train_ours(folder, pairs, options, work)
    wall = clock.marks[-1][0] - clock.marks[COLD_ON_GPU - 1][0]
    median = float(np.median(np.diff([at for at, _ in clock.marks[COLD_ON_GPU - 1 :]])))
    steps = options.steps - COLD_ON_GPU
    lengths = np.array([len(sentence.split()) + 2 for sentence in sentences]).reshape(options.steps, -1)[COLD_ON_GPU:]
    own = flops(lengths, shape["num_hidden_layers"], shape["hidden_size"], shape["intermediate_size"]) / wall / 1e12
    padding = 1 - (lengths.mean(1) / lengths.max(1)).mean()
    print(f"{lengths.mean():.1f} tokens a sentence; padding were {padding:.0%} of a batch that is padded to its longest sentence")
    print(f"{lengths.size / wall:.0f} sentences/s, {lengths.sum() / wall:.0f} tokens/s, {own:.0f} TFLOP/s of products, {gpu_memory()}")
    print(f"{wall / steps * 1e3:.1f} ms a step (median {median * 1e3:.1f}), loss {losses[0]:.4f} to {losses[-1]:.4f}", flush=True)
    if not options.alone:
        against_peer(folder, pairs, options, work, wall)
    if peak := options.peak or peak_of(name):
        print(f"model FLOP utilisation: {own / peak:.1%} of {peak:.0f} TFLOP/s")
        print(f"ratio: {own / peak:.3f}")
    else:
        print("this GPU's peak is not known: give it with --peak")


def in_a_loop(folder: Path, pairs: Pairs, options: argparse.Namespace) -> list[float]:
    """Return the losses of sentence-transformers' model and loss in a plain loop; its trainer needs more packages."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from sentence_transformers.util import batch_to_device

    model = SentenceTransformer(str(folder), device=options.device)
    model.max_seq_length = options.max_length
    loss, losses = MultipleNegativesRankingLoss(model.train(), scale=1 / TEMPERATURE), []
    optimiser = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, len(pairs) // options.batch)
    for first in range(0, len(pairs), options.batch):
        sides = zip(*pairs[first : first + options.batch], strict=True)
        features = [batch_to_device(model.preprocess(list(side)), model.device) for side in sides]
        with torch.autocast(options.device, torch.bfloat16, enabled=options.precision == "bf16"):
            value = loss(features, None)
        losses.append(value.item())
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
    return losses


def same_loss(pairs: Pairs, options: argparse.Namespace, work: Path) -> None:
    """Compare our losses of a small encoder without dropout to those of `in_a_loop`; end where they differ."""
    folder = without_dropout(random_encoder(work / "check", "minilm_l6"), work / "check" / "plain")
    checked = pairs[: options.batch * options.check]
    ours, theirs = train_ours(folder, checked, options, work / "check")[1], in_a_loop(folder, checked, options)
    apart = float(np.abs(np.array(ours) - np.array(theirs)).max())
    print(f"minilm_l6 without dropout: losses of {options.check} steps agree to {apart:.1e} with sentence-transformers'", flush=True)
    if not apart <= TOLERANCE[options.precision]:
        sys.exit(f"losses differ: ours {ours}, sentence-transformers' {theirs}")


def against_peer(folder: Path, pairs: Pairs, options: argparse.Namespace, work: Path, ours: float) -> None:
    """Train with the peer on the same device, and print how long it takes beside ours, in seconds."""
    missing = [name for name in ("sentence_transformers", "datasets") if importlib.util.find_spec(name) is None]
    if "sentence_transformers" not in missing:
        same_loss(pairs, options, work)
    if missing:
        print(f"sentence-transformers' trainer was not measured: it needs {' and '.join(missing)}")
        return
    import torch

    gc.collect()  # ours would take the room
    torch.cuda.empty_cache()
    try:
        clock, losses = train_peer(folder, pairs, options, work)
    except torch.OutOfMemoryError:
        print("sentence-transformers' trainer runs out of memory here: give --micro-batch, for both")
        return
    theirs = clock.marks[-1][0] - clock.marks[COLD_ON_GPU - 1][0]
    print(f"sentence-transformers / ours: {theirs / ours:.2f}, its loss {losses[0]:.4f} to {losses[-1]:.4f}, {gpu_memory()}")


def arguments() -> argparse.Namespace:
    """Return the command line's options."""
    command = parser(__doc__)
    command.add_argument("--pairs", type=Path, help="parquet of shape pairs, or two columns with tabs; else verses in English and German")
    command.add_argument("--folder", type=Path, help="where the encoder lies, or is put")
    command.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    command.add_argument("--batch", type=int)
    command.add_argument("--micro-batch", type=int)
    command.add_argument("--max-length", type=int, default=128)
    command.add_argument("--precision", choices=("fp32", "bf16"))
    command.add_argument("--threads", type=int, default=2)
    command.add_argument("--steps", type=int, help="10, or 40 on a GPU")
    command.add_argument("--check", type=int, default=4, help="steps of the check without dropout")
    command.add_argument("--repeats", type=int, default=2)
    command.add_argument("--shape", choices=sorted(SHAPES), default="xlm_r_large", help="of the encoder on a GPU")
    command.add_argument("--alone", action="store_true", help="without sentence-transformers on a GPU")
    command.add_argument("--peak", type=float, help="dense bf16 peak of the GPU, TFLOP/s")
    command.add_argument("--side", choices=("ours", "peer"), help=argparse.SUPPRESS)
    command.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    options = command.parse_args()
    options.batch = options.batch or (512 if options.device == "cuda" else 32)
    options.steps = options.steps or (40 if options.device == "cuda" else 10)
    options.precision = options.precision or "bf16"
    return options


def main() -> None:
    """Compare both sides, or measure ours on a GPU."""
    options = arguments()
    if options.side:
        one_side(options, {"ours": train_ours, "peer": train_peer})
        return
    with tempfile.TemporaryDirectory() as temporary:
        if options.device == "cuda":
            if not no_gpu():
                on_gpu(options, Path(temporary))
            return
        folder = encoder_folder(options.folder or Path(temporary), "minilm_l6")
        print(
            f"{machine()}, {versions('torch', 'sentence-transformers')}; batch {options.batch} in parts of "
            f"{options.micro_batch or options.batch}, {options.precision}, at most {options.max_length} tokens, "
            f"{options.threads} threads, seed {SEED}"
        )
        print(f"ratio: {compare(folder, options, Path(temporary)):.2f}")


if __name__ == "__main__":
    main()
