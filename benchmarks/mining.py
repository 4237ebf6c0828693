"""Exact two-direction mining beside faiss and sentence-transformers.

Three ways to the same scored pairs: `neighbours`, which looks at every pair once; faiss IndexFlatIP searched once in each direction, as
LASER and XTREME do; and `semantic_search` of sentence-transformers in each direction. All get the same unit vectors, k and threads, take
turns, and end with the same ratio margin and `max` retrieval; neighbours are checked equal up to swaps within 1e-6. Prints machine,
versions, medians, the share of the measured float32 matrix-product peak, peak memory, and as its last line `ratio: <faiss / ours>`.

    python benchmarks/mining.py                                             # 50,000 x 50,000 x 768 random-cluster vectors
    python benchmarks/mining.py --real MIRROR --encoder FOLDER --rows 24000  # Tatoeba and FLORES-200 sentences, a BERT-like encoder
    python benchmarks/mining.py --device cuda                               # faiss-gpu and torch on one GPU
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from _common import machine, parser, versions
from _mining import TOLERANCE, Run, centres, check, float32_peak, run, vectors

from crosslign.mining import Neighbours, mine, neighbours
from crosslign.threads import limit_threads

READOUT = {"pooling": "mean", "layer": -1, "max_length": 64, "normalise": True, "precision": "bf16", "prefix": ""}


def real_sentences(mirror: Path, rows: int) -> tuple[list[str], list[str]]:
    """Return distinct foreign and distinct English sentences of Tatoeba v1 and FLORES-200, evenly thinned out to `rows` each."""
    english, foreign = [], []
    for path in sorted((mirror / "tatoeba-v1").glob("tatoeba.*-eng.*")):
        (english if path.suffix == ".eng" else foreign).extend(path.read_text(encoding="utf-8").splitlines())
    for path in sorted((mirror / "flores200" / "devtest").glob("*.devtest")):
        (english if path.name.startswith("eng") else foreign).extend(path.read_text(encoding="utf-8").splitlines())
    distinct = (list(dict.fromkeys(line for line in side if line.strip())) for side in (foreign, english))
    thinned = [[side[at] for at in np.linspace(0, len(side) - 1, min(rows, len(side))).astype(int)] for side in distinct]
    return thinned[0], thinned[1]


def encoded(texts: list[str], encoder: Path) -> np.ndarray:
    """Return unit vectors of sentences."""
    from crosslign.encoders.encode import encode
    from crosslign.encoders.model import Model

    return encode(Model.load({"main": encoder}), texts, ["en"] * len(texts), READOUT)


def by_faiss(x: np.ndarray, y: np.ndarray, k: int, device: str) -> Neighbours:
    """Search a flat inner-product index in each direction."""
    import faiss

    found = []
    for base, queries in ((y, x), (x, y)):
        index: Any = faiss.IndexFlatIP(base.shape[1])
        if device != "cpu":
            index = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, index)
        index.add(base)
        scores, indices = index.search(queries, k)
        found += [indices, scores]
    return Neighbours(*found)


def by_sentence_transformers(x: np.ndarray, y: np.ndarray, k: int, device: str) -> Neighbours:
    """Search in each direction with `semantic_search`, which returns lists of dictionaries."""
    import torch
    from sentence_transformers.util import dot_score, semantic_search

    found = []
    for base, queries in ((y, x), (x, y)):
        hits = semantic_search(torch.from_numpy(queries).to(device), torch.from_numpy(base).to(device), top_k=k, score_function=dot_score)
        found += [
            np.array([[hit["corpus_id"] for hit in row] for row in hits]),
            np.array([[hit["score"] for hit in row] for row in hits], dtype=np.float32),
        ]
    return Neighbours(*found)


def contestants(x: np.ndarray, y: np.ndarray, args: argparse.Namespace) -> dict[str, Callable[[], Neighbours]]:
    """Return each way to find and score the pairs, by name; the last is left out where it is not asked for."""
    searches: dict[str, Callable[[], Neighbours]] = {
        "ours": lambda: neighbours(x, y, args.k, device=args.device),
        "faiss": lambda: by_faiss(x, y, args.k, args.device),
        "sentence-transformers": lambda: by_sentence_transformers(x, y, args.k, args.device),
    }
    if args.without_sentence_transformers:
        del searches["sentence-transformers"]

    def scored(search: Callable[[], Neighbours]) -> Neighbours:
        found = search()
        mine(found, "ratio", "max")
        return found

    return {name: lambda search=search: scored(search) for name, search in searches.items()}  # type: ignore[misc]


def compare(x: np.ndarray, y: np.ndarray, args: argparse.Namespace) -> tuple[dict[str, list[Run]], dict[str, int]]:
    """Let all take turns; return their runs, and the swaps of candidates against ours."""
    ways = contestants(x, y, args)
    runs: dict[str, list[Run]] = {name: [] for name in ways}
    swaps: dict[str, int] = {}
    for _ in range(args.repeats):
        last = {name: run(work) for name, work in ways.items()}
        for name, one in last.items():
            swaps[name] = check(last["ours"].found, one.found)
            runs[name].append(replace(one, found=None))
        print("   ".join(f"{name} {one.seconds:.2f} s" for name, one in last.items()), flush=True)
    return runs, swaps


def arguments() -> argparse.Namespace:
    """Return the command line."""
    command = parser(__doc__)
    command.add_argument("--rows", type=int, default=50_000, help="vectors on each side")
    command.add_argument("--dim", type=int, default=768)
    command.add_argument("--k", type=int, default=4)
    command.add_argument("--repeats", type=int, default=3)
    command.add_argument("--threads", type=int, default=os.cpu_count())
    command.add_argument("--device", default="cpu")
    command.add_argument("--without-sentence-transformers", action="store_true")
    command.add_argument("--real", type=Path, metavar="MIRROR", help="folder that holds tatoeba-v1 and flores200")
    command.add_argument("--encoder", type=Path, help="folder of a prepared encoder, for --real")
    return command.parse_args()


def main() -> None:
    """Run the comparison."""
    args = arguments()
    limit_threads(args.threads)
    import faiss
    import torch

    from crosslign.mining.knn import product_dtype

    if args.device.startswith("cuda") and not (torch.cuda.is_available() and hasattr(faiss, "StandardGpuResources")):
        missing = "no CUDA device" if not torch.cuda.is_available() else "faiss was built without GPUs"
        print(f"skipped: {missing}; nothing was measured")
        return
    torch.set_num_threads(args.threads)
    faiss.omp_set_num_threads(args.threads)
    if args.real:
        x, y = (encoded(side, args.encoder) for side in real_sentences(args.real, args.rows))
        what = "Tatoeba and FLORES-200 sentences"
    else:
        middle = centres(args.rows // 4, args.dim)
        x, y = vectors(args.rows, args.dim, middle, 1), vectors(args.rows, args.dim, middle, 2)
        what = "random-cluster vectors"
    peak = float32_peak(x.shape[1], args.device)
    neighbours(x[:2048], y[:2048], args.k, device=args.device)
    runs, swaps = compare(x, y, args)
    median = {name: statistics.median(one.seconds for one in of) for name, of in runs.items()}
    cpu = {name: statistics.median(one.cpu for one in of) for name, of in runs.items()}
    once = 2 * len(x) * len(y) * x.shape[1] / peak
    print(f"machine: {machine()}; seeds 1 and 2")
    print(f"versions: {versions('numpy', 'torch', 'sentence-transformers')}, faiss {faiss.__version__}")
    print(f"task: {what}, {len(x)} x {len(y)} x {x.shape[1]}, k = {args.k}, {args.threads} threads, {args.device}")
    print(f"tiles in {product_dtype(torch.device(args.device))}")
    print(f"results: equal; candidates swapped within {TOLERANCE}: {swaps} of {(len(x) + len(y)) * args.k}")
    print(f"float32 peak: {peak / 1e9:.0f} GFLOP/s; one product of all pairs at this peak: {once:.2f} s")
    for name, seconds in median.items():
        memory = max(one.peak for one in runs[name]) / 2**20
        share = once / seconds
        print(
            f"{name}: median {seconds:.2f} s, {cpu[name]:.2f} s of processor, {share:.2f} of that peak, {memory:.0f} MiB above the vectors"
        )
    for name in list(median)[1:]:
        print(f"{name} / ours: {median[name] / median['ours']:.2f}, by processor time {cpu[name] / cpu['ours']:.2f}")
    print(f"ratio: {median['faiss'] / median['ours']:.2f}")


if __name__ == "__main__":
    main()
