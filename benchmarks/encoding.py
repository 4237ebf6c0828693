"""Sentences per second beside `SentenceTransformer.encode`, for the same model and real sentences of mixed length.

Three ways take turns: the project's encoder, the peer's defaults, and the peer's best documented setting, which is the fastest of
several batch sizes and of its `bfloat16` weights that keeps a cosine of 0.9999 to its own float32 vectors (chosen on a tenth of the
sentences). Vectors of all ways are compared. Both get the same folder, threads and sentences in random order; the model is loaded
before the clock starts. Prints machine, versions, medians in wall and in processor time, and as its last line `ratio: <default / ours>`.

    python benchmarks/encoding.py --texts FILE         # one sentence a line; the project's own English sentences without it
    python benchmarks/encoding.py --precision fp32     # ours in float32 (default: bf16 where its cosine is 0.9999)
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from crosslign.config.load import load_project
from crosslign.corpora.fetch import fetch_file
from crosslign.encoders.encode import encode
from crosslign.encoders.model import Model
from crosslign.encoders.prepare import prepare_encoder
from crosslign.threads import limit_threads

ROOT = Path(__file__).resolve().parents[1]
ENCODER = "minilm_l6"
BATCHES = (16, 64, 128)
FLOOR = 0.9999

Encode = Callable[[list[str]], np.ndarray]


def own_sentences() -> list[str]:
    """Return the distinct English sentences that the project holds."""
    files = [ROOT / "resources" / "written" / name for name in ("sts_en.tsv", "nli_en.tsv")]
    cells = (cell for path in files for line in path.read_text(encoding="utf-8").splitlines()[1:] for cell in line.split("\t"))
    return list(dict.fromkeys(cell for cell in cells if " " in cell))


def encoder_folder(folder: Path) -> Path:
    """Fetch and prepare the encoder as the workflow does, or return one that lies in `folder`."""
    project = load_project(ROOT)
    entry = project.encoders[ENCODER]
    source = project.sources[entry["source"]]
    mirrors = [Path(name) for name in os.environ.get("CROSSLIGN_MIRROR", "").split(os.pathsep) if name]
    files = {}
    for file in source["files"]:
        files[file["name"]] = folder / file["name"]
        if not files[file["name"]].exists():
            fetch_file(entry["source"], source, file, files[file["name"]], mirrors)
    if not (folder / ENCODER).exists():
        prepare_encoder(ENCODER, entry, files, folder / ENCODER)
    return folder / ENCODER / "main"


def timed(way: Encode, texts: list[str]) -> tuple[float, float, np.ndarray]:
    """Return wall seconds, processor seconds, and unit vectors."""
    wall, processor = time.perf_counter(), time.process_time()
    vectors = np.asarray(way(texts), dtype=np.float64)
    seconds = time.perf_counter() - wall, time.process_time() - processor
    return *seconds, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def worst_cosine(vectors: np.ndarray, reference: np.ndarray) -> float:
    """Return the lowest cosine of two matrices' rows."""
    return float((vectors * reference).sum(1).min())


def peer_ways(folder: Path) -> dict[str, Encode]:
    """Return the peer's settings: defaults first."""
    import torch
    from sentence_transformers import SentenceTransformer

    plain = SentenceTransformer(str(folder), device="cpu")
    halved = SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": torch.bfloat16})
    ways: dict[str, Encode] = {"default": lambda texts: plain.encode(texts, show_progress_bar=False)}
    for name, model in (("float32", plain), ("bfloat16", halved)):
        for batch in BATCHES:
            ways[f"{name}, batch {batch}"] = lambda texts, m=model, b=batch: (
                m.encode(texts, batch_size=b, convert_to_tensor=True, show_progress_bar=False).float().numpy()
            )  # type: ignore[misc]
    return ways


def best_of(ways: dict[str, Encode], texts: list[str]) -> str:
    """Return the fastest setting that keeps its vectors."""
    speed, reference = {}, timed(ways["default"], texts)[2]
    for name, way in ways.items():
        _, processor, vectors = timed(way, texts)
        cosine = worst_cosine(vectors, reference)
        print(f"peer, {name}: {len(texts) / processor:.0f} sentences per processor second, lowest cosine {cosine:.6f}", flush=True)
        if cosine >= FLOOR:
            speed[name] = processor
    return min(speed, key=lambda name: speed[name])


def main() -> None:
    """Time the ways in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path, help="one sentence a line")
    parser.add_argument("--sentences", type=int, default=4000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--precision", choices=("auto", "fp32", "bf16"), default="auto")
    parser.add_argument("--folder", type=Path, help="where the encoder lies, or is put")
    options = parser.parse_args()
    limit_threads(options.threads)
    lines = own_sentences() if options.texts is None else options.texts.read_text(encoding="utf-8").splitlines()
    texts = list(dict.fromkeys(line for line in lines if line.strip()))
    random.Random(42).shuffle(texts)
    texts = texts[: options.sentences]
    with tempfile.TemporaryDirectory() as temporary:
        measure(texts, encoder_folder(options.folder or Path(temporary)), options)


def measure(texts: list[str], folder: Path, options: argparse.Namespace) -> None:
    """Print what was measured."""
    import sentence_transformers
    import torch
    import transformers

    machine = platform.processor() or platform.machine()
    print(f"{machine}, {os.cpu_count()} processors, {options.threads} threads, load {os.getloadavg()[0]:.1f}")
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, sentence-transformers {sentence_transformers.__version__}")
    words = sorted(len(text.split()) for text in texts)
    print(f"{len(texts)} sentences, {words[0]} to {words[-1]} words, median {words[len(words) // 2]}")
    model = Model.load({"main": folder})
    model.eval()

    def ours(precision: str) -> Encode:
        readout = {"pooling": "mean", "max_length": 256, "normalise": True, "precision": precision}
        return lambda texts: encode(model, texts, ["en"] * len(texts), readout)

    ways = peer_ways(folder)
    sample = texts[: max(100, len(texts) // 10)]
    reference = timed(ways["default"], sample)[2]
    cosines = {precision: worst_cosine(timed(ours(precision), sample)[2], reference) for precision in ("fp32", "bf16")}
    print("ours: lowest cosine to the peer's float32 " + ", ".join(f"{name} {value:.6f}" for name, value in cosines.items()))
    precision = options.precision if options.precision != "auto" else "bf16" if cosines["bf16"] >= FLOOR else "fp32"
    best = best_of(ways, sample)
    print(f"best setting of the peer: {best}; ours: {precision}")
    turns = {"ours": ours(precision), "default": ways["default"], "best": ways[best]}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in turns}
    vectors = {}
    for _ in range(options.repeats):
        for name, way in turns.items():
            wall, processor, vectors[name] = timed(way, texts)
            taken[name].append((wall, processor))
    worst = worst_cosine(vectors["ours"], vectors["default"])
    print(f"lowest cosine of {len(texts)} sentences: {worst:.6f}")
    if worst < FLOOR:
        raise SystemExit(f"vectors differ: {worst:.6f} is below {FLOOR}")
    medians = {name: tuple(statistics.median(column) for column in zip(*runs, strict=True)) for name, runs in taken.items()}
    for name, (wall, processor) in medians.items():
        print(f"{name}: {len(texts) / wall:.0f} sentences/s, {len(texts) / processor:.0f} per processor second")
    for at, clock in ((1, "processor time"), (0, "wall time")):
        print(f"{clock}: {medians['best'][at] / medians['ours'][at]:.2f} times the best setting", end=", ")
        print(f"{medians['default'][at] / medians['ours'][at]:.2f} times the default")
    print(f"ratio: {medians['default'][0] / medians['ours'][0]:.2f}")


if __name__ == "__main__":
    main()
