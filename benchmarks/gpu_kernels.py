"""Whether the project's kernels are right on this GPU, and what a training step on them is made of.

    python benchmarks/gpu_kernels.py                # each kernel beside torch's own function: precisions and heads of the papers' encoders
    python benchmarks/gpu_kernels.py --profile      # and the longest kernels of one step: XLM-R large's shape, 512 pairs

Ends with an error where a kernel fails; the log says which, and why.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from _common import machine, no_gpu, parser, random_encoder, random_sentences, versions
from _training import fit_timed, recipe_of

HEADS = ((12, 32), (12, 64), (16, 64), (8, 128))
"""Number and size of heads: MiniLM, the base and the large encoders, and one whose backward pass is the kernel's largest."""
PROFILED = 9
"""The step that is profiled: those before compile and fill caches."""


def check() -> list[str]:
    """Print which kernels work; return those that do not."""
    import torch

    from crosslign.encoders.packed import fused

    failed = []
    for dtype in fused.HALVES:
        for heads, size in HEADS:
            working = fused.working(torch.device("cuda"), dtype, heads, size)
            print(f"{dtype}, {heads} heads of {size}: {', '.join(sorted(working)) or 'none'}", flush=True)
            failed += [f"{name} ({dtype}, {heads}x{size})" for name in fused.CHECKS.keys() - working if size < 128]
    return failed


def profile(folder: Path, work: Path, kernels: str) -> None:
    """Print the longest kernels of one step."""
    import torch
    from torch.profiler import ProfilerActivity

    from crosslign.encoders.model import Model
    from crosslign.training import fit as module

    options = argparse.Namespace(max_length=128, batch=512, micro_batch=None, precision="bf16", threads=8)
    sentences = random_sentences(2 * options.batch * (PROFILED + 1), options.max_length)
    recipe = recipe_of(options, PROFILED + 1)
    recipe["train"]["kernels"] = kernels
    step, done = module._Run.step, []

    def watched(run: Any) -> Any:
        done.append(1)
        if len(done) != PROFILED:
            return step(run)
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
            result = step(run)
            torch.cuda.synchronize()
        print(found.key_averages().table(sort_by="self_cuda_time_total", row_limit=25, max_name_column_width=60), flush=True)
        return result

    with patch.object(module._Run, "step", watched):
        fit_timed(recipe, Model.load({"main": folder}), {}, list(zip(sentences[::2], sentences[1::2], strict=True)), work)


def main() -> None:
    """Check, then profile."""
    command = parser(__doc__)
    command.add_argument("--profile", action="store_true")
    command.add_argument("--kernels", choices=("off", "on"), default="on", help="of the step that is profiled")
    command.add_argument("--folder", type=Path, help="where the random encoder lies, or is put")
    options = command.parse_args()
    if no_gpu():
        return
    logging.basicConfig(level=logging.WARNING)
    print(f"{machine()}; {versions('torch', 'triton')}", flush=True)
    failed = check()
    with tempfile.TemporaryDirectory() as temporary:
        if options.profile:
            profile(random_encoder(options.folder or Path(temporary), "xlm_r_large"), Path(temporary), options.kernels)
    if failed:
        raise SystemExit(f"kernels that do not work here: {', '.join(failed)}")


if __name__ == "__main__":
    main()
