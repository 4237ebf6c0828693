"""Exact two-direction mining beside faiss and sentence-transformers.

Three ways to the same scored pairs: `neighbours`, which looks at every pair once; faiss IndexFlatIP searched once in each direction, as
LASER and XTREME do; and `semantic_search` of sentence-transformers in each direction. All get the same unit vectors, k and threads, take
turns, and end with the same ratio margin and `max` retrieval; neighbours are checked equal up to swaps within 1e-6. Prints machine,
versions, medians, the share of the measured float32 matrix-product peak, peak memory, and as its last line `ratio: <faiss / ours>`.

On a GPU each way first runs once at full size outside the clock, unless `--repeats 1` asks for one turn alone, and vectors start in host
memory. faiss must be built for GPUs there: conda's `faiss-gpu` (envs/gpu.yaml); PyPI's `faiss-gpu-cu12` has code for compute capability 7
and 8, none for Hopper's 9, and needs libraries of CUDA 12. Where none works, a flat search written in torch takes its place: float32
products without TF32, in tiles, and the k largest of each row, once in each direction. It is no faiss, and the last line then says so
instead of a ratio; faiss for CPUs, where that is installed, takes its turn too, so that the neighbours are checked against it. The brute
force of cuVS (`cuvs-cu12`, `cuvs-cu13`) takes part where it is installed and works.

    python benchmarks/mining.py                                             # 50,000 x 50,000 x 768 random-cluster vectors
    python benchmarks/mining.py --real --rows 24000                         # Tatoeba and FLORES-200 sentences, encoded
    python benchmarks/mining.py --device cuda                               # faiss-gpu and torch on one GPU
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from _common import encoder_folder, gpu_memory, machine, no_gpu, official_files, parser, versions
from _mining import Run, centres, check, float32_peak, run, tolerance, vectors

from crosslign.mining.knn import neighbours
from crosslign.mining.lists import Neighbours
from crosslign.mining.margin import mine
from crosslign.threads import limit_threads

READOUT: Any = {"pooling": "mean", "layer": -1, "max_length": 64, "normalise": True, "precision": "bf16", "prefix": ""}


def real_sentences(mirror: Path, rows: int) -> tuple[list[str], list[str]]:
    """Return distinct foreign and distinct English sentences of Tatoeba v1 and FLORES-200, evenly thinned out to `rows` each."""
    english: list[str] = []
    foreign: list[str] = []
    for path in sorted((mirror / "tatoeba-v1").glob("tatoeba.*-eng.*")):
        (english if path.suffix == ".eng" else foreign).extend(path.read_text(encoding="utf-8").splitlines())
    for path in sorted((mirror / "flores200" / "devtest").glob("*.devtest")):
        (english if path.name.startswith("eng") else foreign).extend(path.read_text(encoding="utf-8").splitlines())
    distinct = (list(dict.fromkeys(line for line in side if line.strip())) for side in (foreign, english))
    thinned = [[side[at] for at in np.linspace(0, len(side) - 1, min(rows, len(side))).astype(int)] for side in distinct]
    return thinned[0], thinned[1]


def real_vectors(args: argparse.Namespace) -> tuple[np.ndarray, ...]:
    """Return unit vectors of both sides' sentences, foreign ones first."""
    from crosslign.encoders.encode import encode
    from crosslign.encoders.model import Model

    sides = real_sentences(official_files("tatoeba-v1", "flores200"), args.rows)
    with tempfile.TemporaryDirectory() as temporary:
        model = Model.load({"main": encoder_folder(args.folder or Path(temporary), args.encoder)})
        return tuple(encode(model, side, ["en"] * len(side), READOUT) for side in sides)


def by_faiss(x: np.ndarray, y: np.ndarray, k: int, device: str) -> Neighbours:
    """Search a flat inner-product index in each direction."""
    import faiss

    found: list[Any] = []
    for base, queries in ((y, x), (x, y)):
        index: Any = faiss.IndexFlatIP(base.shape[1])
        if device != "cpu":
            index = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, index)
        index.add(base)
        scores, indices = index.search(queries, k)
        found += [indices, scores]
    return Neighbours(*found)


FLAT = "flat search in torch"
TILE = 1 << 28
"""Entries of a tile of the flat search in torch: 1 GiB."""


def by_torch(x: np.ndarray, y: np.ndarray, k: int, device: str) -> Neighbours:
    """Search in each direction as a flat index does: float32 products of a block of queries with all vectors, and the best of each row."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    found: list[Any] = []
    for base, queries in ((y, x), (x, y)):
        columns, rows = torch.from_numpy(base).to(device).T, torch.from_numpy(queries).to(device)
        best = [torch.topk(block @ columns, k) for block in torch.split(rows, max(1, TILE // len(base)))]
        found += [torch.cat([one.indices for one in best]).cpu().numpy(), torch.cat([one.values for one in best]).cpu().numpy()]
    return Neighbours(*found)


def by_sentence_transformers(x: np.ndarray, y: np.ndarray, k: int, device: str) -> Neighbours:
    """Search in each direction with `semantic_search`, which returns lists of dictionaries."""
    import torch
    from sentence_transformers.util import dot_score, semantic_search

    found: list[Any] = []
    for base, queries in ((y, x), (x, y)):
        hits = semantic_search(torch.from_numpy(queries).to(device), torch.from_numpy(base).to(device), top_k=k, score_function=dot_score)
        found += [
            np.array([[hit["corpus_id"] for hit in row] for row in hits]),
            np.array([[hit["score"] for hit in row] for row in hits], dtype=np.float32),
        ]
    return Neighbours(*found)


def by_cuvs(x: np.ndarray, y: np.ndarray, k: int, device: str) -> Neighbours:
    """Search in each direction with the brute force of cuVS, float32."""
    import torch
    from cuvs.neighbors import brute_force

    found: list[Any] = []
    for base, queries in ((y, x), (x, y)):
        index = brute_force.build(torch.from_numpy(base).to(device), metric="inner_product")
        scores, indices = brute_force.search(index, torch.from_numpy(queries).to(device), k)
        found += [torch.as_tensor(one, device=device).cpu().numpy() for one in (indices, scores)]
    return Neighbours(*found)


CUVS_TRIAL = """
import torch
from cuvs.neighbors import brute_force
vectors = torch.eye(8, device="cuda")
found = brute_force.search(brute_force.build(vectors, metric="inner_product"), vectors, 1)[1]
assert torch.as_tensor(found, device="cuda")[:, 0].tolist() == list(range(8))
"""
TRIAL = """
import faiss, numpy
vectors = numpy.eye(8, dtype="float32")
index = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, faiss.IndexFlatIP(8))
index.add(vectors)
assert (index.search(vectors, 1)[1][:, 0] == range(8)).all()
"""


def searches_on(device: str) -> bool:
    """Tell whether faiss is installed and searches on a device; a process of its own tries it: faiss aborts on a GPU that it lacks."""
    try:
        import faiss
    except ImportError:
        return False
    if device == "cpu" or not hasattr(faiss, "StandardGpuResources"):
        return device == "cpu"
    return runs_alone(TRIAL)


def runs_alone(trial: str) -> bool:
    """Tell whether a program ends well in a process of its own."""
    return subprocess.run([sys.executable, "-c", trial], capture_output=True, check=False).returncode == 0


def contestants(x: np.ndarray, y: np.ndarray, args: argparse.Namespace) -> dict[str, Callable[[], Neighbours]]:
    """Return each way to find and score the pairs, by name; the last is left out where it is not asked for."""
    device = args.device
    searches: dict[str, Callable[[], Neighbours]] = {"ours": lambda: neighbours(x, y, args.k, device=device)}
    if searches_on(device):
        searches["faiss"] = lambda: by_faiss(x, y, args.k, device)
    else:
        searches[FLAT] = lambda: by_torch(x, y, args.k, device)
        if searches_on("cpu"):
            searches["faiss on the CPU"] = lambda: by_faiss(x, y, args.k, "cpu")
    if device != "cpu" and runs_alone(CUVS_TRIAL):
        searches["cuVS"] = lambda: by_cuvs(x, y, args.k, device)
    searches["sentence-transformers"] = lambda: by_sentence_transformers(x, y, args.k, device)
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
    if args.device != "cpu" and args.repeats > 1:
        for name, work in ways.items():
            gpu_memory()
            work()
            print(f"{name}: {gpu_memory()}, as torch counts", flush=True)
    for _ in range(args.repeats):
        last = {name: run(work) for name, work in ways.items()}
        for name, one in last.items():
            swaps[name] = check(last["ours"].found, one.found, tolerance(x.shape[1]))
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
    command.add_argument("--real", action="store_true", help="sentences of the official files, where CROSSLIGN_MIRROR says, encoded")
    command.add_argument("--encoder", default="minilm_l6", help="for --real: an encoder of the catalog that a package holds")
    command.add_argument("--folder", type=Path, help="where the encoder lies, or is put")
    return command.parse_args()


def main() -> None:
    """Run the comparison."""
    args = arguments()
    limit_threads(args.threads)
    import torch

    from crosslign.mining.knn import product_dtype

    if args.device != "cpu" and no_gpu():
        return
    torch.set_num_threads(args.threads)
    if with_faiss := searches_on("cpu"):
        import faiss

        faiss.omp_set_num_threads(args.threads)
    if args.real:
        x, y = real_vectors(args)
        what = f"Tatoeba and FLORES-200 sentences, {args.encoder},"
    else:
        middle = centres(args.rows // 4, args.dim)
        x, y = vectors(args.rows, args.dim, middle, 1), vectors(args.rows, args.dim, middle, 2)
        what = "random-cluster vectors, seeds 1 and 2,"
    peak = float32_peak(x.shape[1], args.device)
    neighbours(x[:2048], y[:2048], args.k, device=args.device)
    runs, swaps = compare(x, y, args)
    median = {name: statistics.median(one.seconds for one in of) for name, of in runs.items()}
    cpu = {name: statistics.median(one.cpu for one in of) for name, of in runs.items()}
    once = 2 * len(x) * len(y) * x.shape[1] / peak
    print(f"machine: {machine()}")
    faiss_is = f"faiss {faiss.__version__}" if with_faiss else "no faiss"
    print(f"versions: {versions('numpy', 'torch', 'sentence-transformers')}, {faiss_is}")
    print(f"task: {what} {len(x)} x {len(y)} x {x.shape[1]}, k = {args.k}, {args.threads} threads, {args.device}")
    print(f"tiles in {product_dtype(torch.device(args.device))}")
    print(f"results: equal; candidates swapped within {tolerance(x.shape[1]):.3g}: {swaps} of {(len(x) + len(y)) * args.k}")
    print(f"float32 peak: {peak / 1e9:.0f} GFLOP/s; one product of all pairs at this peak: {once:.2f} s")
    for name, seconds in median.items():
        memory = max(one.peak for one in runs[name]) / 2**20
        share = once / seconds
        print(
            f"{name}: median {seconds:.2f} s, {cpu[name]:.2f} s of processor, {share:.2f} of that peak, {memory:.0f} MiB above the vectors"
        )
    for name in list(median)[1:]:
        print(f"{name} / ours: {median[name] / median['ours']:.2f}, by processor time {cpu[name] / cpu['ours']:.2f}")
    if "faiss" in median:
        print(f"ratio: {median['faiss'] / median['ours']:.2f}")
    else:
        print(f"no ratio: no faiss here searches on {args.device}; the {FLAT} stands for none")


if __name__ == "__main__":
    main()
