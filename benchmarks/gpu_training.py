"""Training steps on one GPU: each of our ways through the blocks beside sentence-transformers', on the same pairs and weights' shape.

Encoders have random weights; pairs are of random words with the lengths of running text, about 36 tokens. Precision is bf16 by autocast
over float32 weights, AdamW, dropout on, text tokenised before the clock starts. Ours: `on`, all kernels of ours; `off`, transformers' own
blocks, padded; `off, compiled`, these compiled block by block; `flash`, packed tokens, torch's flash attention, norms and GELU;
`attention`, our attention of short sentences in the place of flash attention; `attention, inductor`, its norms and GELU compiled by
Inductor. Peers: sentence-transformers' trainer, padded under SDPA, and without padding under flash attention (`_flash.py`), with its
cached loss where a batch goes in parts. At the setting `check` a small encoder's losses without dropout must agree for all ways. Ours
beside the best peer come first, at all settings, then the other ways. One process has ours, another the peers'; what fails is printed,
and the others go on. Told to end by SIGTERM, it concludes from what was measured, and says what was not. Nothing is fetched.

    python benchmarks/gpu_training.py                              # all settings, some minutes
    python benchmarks/gpu_training.py --settings large512 --ways on "peer, unpadded"

Prints milliseconds a step (median of those behind the first ones, which compile and fill caches), tokens a second, memory, and the share
of the GPU's dense bf16 peak that the products of forward and backward pass over real tokens have: padding and what is computed twice
left out. The last line is `ratio: <the best peer's time / that of on, at the last setting where both ran>`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from _common import ROOT, SHAPES, machine, no_gpu, parser, random_encoder, random_sentences, versions
from _flash import install
from _training import SEED, TOLERANCE, Clock, Pairs, fit_timed, recipe_of, without_dropout
from training import train_peer

SETTINGS: dict[str, dict[str, Any]] = {
    "check": {"shape": "minilm_l6", "batch": 64, "steps": 4},
    "large512": {"shape": "xlm_r_large", "batch": 512, "steps": 16},
    "base64": {"shape": "xlm_r_base", "batch": 64, "steps": 40},
    "large128": {"shape": "xlm_r_large", "batch": 128, "steps": 24},
    "large1024": {"shape": "xlm_r_large", "batch": 1024, "micro_batch": 256, "steps": 9},
}
"""Pairs of a batch, of a part, and steps; `check` is without dropout."""
COLD = {"base64": 20, "large128": 12, "large512": 8, "large1024": 4, "check": 1}
"""Steps before those that count: they compile and fill caches."""
ROUNDS = (("on", "peer, unpadded"), ("off", "peer, padded"), ("off, compiled",), ("attention", "flash", "attention, inductor"))
"""Ways, the main figure first: each round goes through all settings before the next begins."""
PEERS = ("peer, padded", "peer, unpadded")
OURS = tuple(name for names in ROUNDS for name in names if name not in PEERS)
PEAKS = {"A100": 312.0, "H100": 989.0, "H100 PCIe": 756.0, "H100 NVL": 835.0, "H200": 989.0, "H200 NVL": 835.0}
"""Dense bf16 peaks, TFLOP/s."""


def flops(lengths: np.ndarray, layers: int, width: int, inner: int) -> float:
    """Return the operations of the products of a forward and a backward pass over sentences of these lengths, padding left out."""
    weights = layers * (4 * width * width + 2 * width * inner)
    return float(3 * (2 * weights * lengths + 4 * layers * width * lengths**2).sum())


def peak_of(name: str) -> float:
    """Return the dense bf16 peak of a GPU, TFLOP/s; 0 where it is not known."""
    return next((PEAKS[key] for key in sorted(PEAKS, key=len, reverse=True) if all(word in name for word in key.split())), 0.0)


def add_norm(branch: Any, bias: Any, states: Any, gain: Any, shift: Any, epsilon: float, p: float) -> Any:
    """Do what `fused.add_norm` does, for a compiler: its module's tensors are arguments, else each module would be compiled anew."""
    from torch.nn import functional

    out = functional.layer_norm(functional.dropout(branch.float() + bias, p) + states, gain.shape, gain, shift, epsilon)
    return out, out.to(branch.dtype)


@contextmanager
def way(name: str, model: Any) -> Iterator[str]:
    """Set up one of `OURS`; yields what `kernels` is to be."""
    import torch

    from crosslign.encoders.packed import fused
    from crosslign.encoders.packed import training as module

    with ExitStack() as stack:
        if name == "off, compiled":
            for layer in model.member("main").backbone.encoder.layer:
                layer.compile(dynamic=True)
        if name.startswith(("attention", "flash")):
            kept = frozenset({"attention"} if name.startswith("attention") else ())
            stack.enter_context(patch.object(fused, "working", lambda *_: kept))
        if name.endswith("inductor"):
            norm, gelu = torch.compile(add_norm, dynamic=True), torch.compile(module._gelu, dynamic=True)

            def of_module(branch: Any, bias: Any, states: Any, of: Any, p: float) -> Any:
                return norm(branch, bias, states, of.weight, of.bias, of.eps, p)

            stack.enter_context(patch.object(module, "_add_norm", of_module))
            stack.enter_context(patch.object(module, "_gelu", gelu))
        yield "off" if name.startswith("off") else "on" if name == "on" else "auto"


def ours(name: str, folder: Path, pairs: Pairs, options: argparse.Namespace, work: Path) -> tuple[Clock, list[float]]:
    """Train by InfoNCE with the project's trainer."""
    from crosslign.encoders.model import Model

    recipe, model = recipe_of(options, len(pairs) // options.batch), Model.load({"main": folder})
    with way(name, model) as kernels:
        recipe["train"]["kernels"] = kernels
        return fit_timed(recipe, model, {}, pairs, work)


def peer(name: str, folder: Path, pairs: Pairs, options: argparse.Namespace, work: Path) -> tuple[Clock, list[float]]:
    """Train with sentence-transformers' trainer."""
    options.attention = "flash_attention_2" if name == "peer, unpadded" else "sdpa"
    return train_peer(folder, pairs, options, work)


def one(side: Callable[..., Any], name: str, setting: str, options: argparse.Namespace) -> dict[str, Any]:
    """Train at one setting, and return its figures."""
    import torch

    values = SETTINGS[setting]
    options.batch, options.micro_batch, options.steps = values["batch"], values.get("micro_batch"), values["steps"]
    sentences = random_sentences(2 * options.batch * options.steps, options.max_length)
    pairs: Pairs = list(zip(sentences[::2], sentences[1::2], strict=True))
    torch.cuda.reset_peak_memory_stats()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder / values["shape"]
        if setting == "check":
            folder = without_dropout(folder, Path(temporary) / "plain")
        clock, losses = side(name, folder, pairs, options, Path(temporary))
    cold = COLD[setting]
    times = np.diff([at for at, _ in clock.marks])[cold - 1 :]
    processor = np.diff([at for _, at in clock.marks])[cold - 1 :]
    lengths = np.array([len(sentence.split()) + 2 for sentence in sentences]).reshape(options.steps, -1)[cold:]
    shape = SHAPES[values["shape"]]
    work = flops(lengths, shape["num_hidden_layers"], shape["hidden_size"], shape["intermediate_size"]) / len(lengths)
    return {
        "ms": float(np.median(times)) * 1e3, "mean_ms": float(times.mean()) * 1e3, "host_ms": float(np.median(processor)) * 1e3,
        "tokens": float(lengths.sum() / len(lengths) / np.median(times)), "tflops": work / float(np.median(times)) / 1e12,
        "memory": torch.cuda.max_memory_allocated() / 2**20, "losses": losses,
    }  # fmt: skip


def side(options: argparse.Namespace) -> None:
    """Train what this process is asked for; print a line of JSON each."""
    import torch

    for name, setting in json.loads(options.side):
        print(json.dumps(["start", name, setting]), flush=True)
        try:
            found: Any = one(ours if name in OURS else peer, name, setting, options)
        except Exception as error:  # the others go on
            found = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"}
        print(json.dumps(["end", name, setting, found]), flush=True)
        gc.collect()
        torch.cuda.empty_cache()
        torch._dynamo.reset()


def run(asked: list[tuple[str, str]], options: argparse.Namespace, path: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Let processes train what is asked; one that dies takes only what it was at."""
    while asked:
        command = [sys.executable, __file__, "--side", json.dumps(asked), "--folder", str(options.folder)]
        environment = {**os.environ, "PYTHONPATH": path, "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        at: tuple[str, str] | None = None
        try:
            for line in process.stdout or ():
                if not line.startswith('["'):
                    continue
                what, name, setting, *found = json.loads(line)
                at = (name, setting) if what == "start" else None
                if what == "end":
                    asked = [pair for pair in asked if pair != (name, setting)]
                    yield name, setting, found[0]
            process.wait()
        finally:
            process.kill()  # asked to stop it would save its state first, beside what is measured next
            process.wait()
        if process.returncode and at:
            asked = [pair for pair in asked if pair != at]
            yield *at, {"error": f"the process ended with status {process.returncode}"}
        elif process.returncode:
            return


def report(name: str, setting: str, found: dict[str, Any], peak: float) -> None:
    """Print one line of figures."""
    if "error" in found:
        print(f"{setting}: {name}: {found['error']}", flush=True)
        return
    share = f", {found['tflops'] / peak:.1%} of the peak" if peak else ""
    losses = found["losses"]
    print(
        f"{setting}: {name}: {found['ms']:.1f} ms a step (mean {found['mean_ms']:.1f}, processor {found['host_ms']:.1f}), "
        f"{found['tokens'] / 1e3:.0f} k tokens/s, {found['tflops']:.0f} TFLOP/s{share}, {found['memory']:.0f} MiB, "
        f"loss {losses[0]:.4f} to {losses[-1]:.4f}",
        flush=True,
    )


def check(found: dict[tuple[str, str], dict[str, Any]]) -> None:
    """Print how far losses without dropout lie apart; end where they differ."""
    checked = {name: np.array(one["losses"]) for (name, setting), one in found.items() if setting == "check" and "losses" in one}
    reference = next((name for name in ("off", *PEERS) if name in checked), "")
    apart = {name: float(np.abs(losses - checked[reference]).max()) for name, losses in checked.items() if reference}
    listed = ", ".join(f"{name} {value:.1e}" for name, value in apart.items())
    print(f"without dropout, losses apart from {reference}: {listed}" if reference else "no losses to compare with", flush=True)
    if worst := [name for name, value in apart.items() if not value <= TOLERANCE["bf16"]]:
        sys.exit(f"losses differ: {', '.join(worst)}")


def main() -> None:
    """Train all ways at all settings."""
    command = parser(__doc__)
    command.add_argument("--settings", nargs="+", choices=sorted(SETTINGS), default=list(SETTINGS))
    command.add_argument("--ways", nargs="+", default=[*OURS, *PEERS], help="some of ours and the peers'")
    command.add_argument("--folder", type=Path, help="where random encoders lie, or are put")
    command.add_argument("--side", help=argparse.SUPPRESS)
    options = command.parse_args()
    options.precision, options.device, options.threads, options.max_length = "bf16", "cuda", 8, 128
    if options.side:
        side(options)
        return
    if no_gpu():
        return
    import torch

    peak = peak_of(torch.cuda.get_device_name())
    print(f"{machine()}\n{versions('torch', 'triton', 'transformers', 'sentence-transformers', 'accelerate', 'datasets')}; seed {SEED}")
    with tempfile.TemporaryDirectory() as temporary:
        options.folder = options.folder or Path(temporary)
        settings = [name for name in SETTINGS if name in options.settings]
        for shape in sorted({SETTINGS[name]["shape"] for name in settings}):
            random_encoder(options.folder, shape)
        src = f"{ROOT / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        flash = f"{install(Path(temporary))}{os.pathsep}{src}"
        found: dict[tuple[str, str], dict[str, Any]] = {}
        sides = [
            ([(name, setting) for setting in settings for name in names if name in group and name in options.ways], path)
            for names in ROUNDS
            for group, path in ((OURS, src), (PEERS, flash))
        ]
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended before all was measured"))  # what was measured is concluded from
        try:
            for group, path in sides:
                for name, setting, values in run(group, options, path):
                    found[name, setting] = values
                    report(name, setting, values, peak)
        finally:
            left = [f"{name} at {setting}" for group, _ in sides for name, setting in group if (name, setting) not in found]
            if left:
                print(f"not measured: {'; '.join(left)}")
            conclude(found, settings)
        if left:
            sys.exit("a process ended before its trainings began")


def conclude(found: dict[tuple[str, str], dict[str, Any]], settings: list[str]) -> None:
    """Print the ratio of what was measured, and end where losses differ."""
    for setting in reversed(settings):
        times = {name: values["ms"] for (name, where), values in found.items() if where == setting and "ms" in values}
        if "on" in times and (rivals := [value for name, value in times.items() if name in PEERS]):
            last = f"ratio: {min(rivals) / times['on']:.2f}"
            break
    else:
        last = "no ratio: no setting had both"
    if any(setting == "check" for _, setting in found):
        check(found)
    print(last, flush=True)


if __name__ == "__main__":
    main()
