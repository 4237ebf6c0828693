"""AdamW of a table of embeddings: of the rows that were ever used alone, as trainings do it, beside torch's fused AdamW over all rows.

Both get the same gradient of `--tokens` tokens, clipped: ours the sparse one that packed trainings have, the peer the dense one of an
ordinary embedding. Shares of the rows, from one in a hundred, as in benchmarks with sentences of few words, to all, were used before.
Weights must agree. Prints machine, versions, processor milliseconds of a step for each share (on a GPU wall time), the share at which
rows alone take as long as all, and as its last line `ratio: <peer / ours where all rows were used>`: the dense case, not the best one.

    python benchmarks/row_updates.py
    python benchmarks/row_updates.py --device cuda --dim 1024 --tokens 32768
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np
from _common import ROWS, machine, no_gpu, parser, versions

SHARES = (0.01, 0.1, 0.25, 0.37, 0.5, 0.75, 1.0)
SEED = 1


def one(sparse: bool, share: float, options: argparse.Namespace) -> tuple[float, Any]:
    """Return the median milliseconds of a step's update, and the table after all."""
    import torch
    from torch import nn
    from torch.nn import functional

    from crosslign.training.optimiser import Optimiser

    module = nn.Embedding(ROWS, options.dim, device=options.device)
    with torch.no_grad():
        module.weight.copy_(torch.linspace(-1, 1, ROWS, device=options.device).unsqueeze(1))
    recipe = {"train": {"learning_rate": 1e-3, "schedule": "constant", "clip": 1.0}, "parts": {}}
    optimiser: Any = Optimiser(recipe, module, {}, options.steps)  # type: ignore[arg-type]
    used, draw = max(1, int(share * ROWS)), np.random.default_rng(SEED)
    places = np.sort(draw.permutation(ROWS)[:used])
    slopes = torch.randn(options.tokens, options.dim, generator=torch.Generator().manual_seed(SEED)).to(options.device)
    times, clock = [], time.process_time if options.device == "cpu" else time.perf_counter
    for step in range(options.steps):
        drawn = places if step == 0 else draw.choice(places, options.tokens)  # the first step makes all of them used
        ids = torch.from_numpy(drawn).to(options.device)
        states = functional.embedding(ids, module.weight, sparse=sparse)
        states.backward(torch.ones_like(states) if step == 0 else slopes)  # type: ignore[no-untyped-call]
        read = np.zeros(ROWS, np.bool_)
        read[drawn] = True
        if options.device != "cpu":
            torch.cuda.synchronize()
        start = clock()
        optimiser.step(step, read={module.weight: read} if options.device != "cpu" else None)
        if options.device != "cpu":
            torch.cuda.synchronize()
        times.append(1e3 * (clock() - start))
    return statistics.median(times[1:]), module.weight.detach()


def break_even(shares: list[float], gains: list[float]) -> str:
    """Return the share at which ours takes as long as the peer, between two that were measured."""
    for at in range(1, len(shares)):
        if gains[at - 1] > 1 >= gains[at]:
            part = (gains[at - 1] - 1) / (gains[at - 1] - gains[at])
            return f"{shares[at - 1] + part * (shares[at] - shares[at - 1]):.0%} of the rows"
    return "none of these shares" if gains[0] > 1 else f"less than {shares[0]:.0%} of the rows"


def main() -> None:
    """Time both at each share, as trainings do it and with rows alone whatever the share."""
    command = parser(__doc__)
    command.add_argument("--device", default="cpu")
    command.add_argument("--dim", type=int, default=384)
    command.add_argument("--tokens", type=int, default=8192)
    command.add_argument("--steps", type=int, default=6)
    options = command.parse_args()
    if options.device != "cpu" and no_gpu():
        return
    import torch

    from crosslign.training import optimiser

    bounds = dict(optimiser.WORTH)
    print(f"{machine()}; {versions('torch')}; seed {SEED}")
    print(f"a table of {ROWS} x {options.dim}, {options.tokens} tokens a step, {options.device}, {torch.get_num_threads()} threads")
    gains, ratio = [], 0.0
    for share in SHARES:
        peer, expected = one(False, share, options)
        ours, found = one(True, share, options)
        if not torch.allclose(expected, found, atol=1e-5):
            raise SystemExit(f"weights differ at {share:.0%}: {float((expected - found).abs().max()):.1e}")
        optimiser.WORTH.update(dict.fromkeys(bounds, 1.0))
        alone, _ = one(True, share, options)
        optimiser.WORTH.update(bounds)
        gains.append(peer / alone)
        ratio = peer / ours
        print(f"{share:.0%} of the rows used: ours {ours:.1f} ms, rows alone {alone:.1f} ms, all rows (peer) {peer:.1f} ms", flush=True)
    print(f"as long at {break_even(list(SHARES), gains)}; ours goes over all rows beyond {bounds[torch.device(options.device).type]:.0%}")
    print(f"ratio: {ratio:.2f}")


if __name__ == "__main__":
    main()
