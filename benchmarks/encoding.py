"""Sentences per second beside `SentenceTransformer.encode`, for the same model and real sentences of mixed length.

The ways take turns: the project's encoder in its best precision and in float32, by the function of the workflow's job, with its files and
checks; the peer's defaults (float32, batches of 32 sorted by
length); the fastest of its documented settings, batch sizes and weights in half precision, that keeps a cosine of 0.9999 to its own float32
vectors; the fastest that keeps 0.999 only, which says how the two compare in the same precision; and the loop of the papers' extraction
scripts, transformers in float32 over batches of 128 in the order given, on a part of the sentences (`--loop`). Settings are chosen on a
quarter of the sentences. All get the same folder, threads and sentences in random order; the model is loaded before the clock starts.
Prints machine, versions, seed, after each turn the medians so far in wall and in processor time, and as its last line
`ratio: <default / ours>`.

On a GPU settings are chosen by wall time, all processor cores may tokenise, larger batches are tried, every way has run at full size
before it is timed, and there are 16,000 sentences. `--shape` takes an encoder with random weights and sentences of random words, which
need no package, no file and no network; with `--tokenizer` and `--texts` sentences are real. There `ours` has no padding, by the
project's kernels, and `ours, padded` is transformers' pass; where `flash_attn` can be imported (`_flash.py` writes a stand-in) the peer
has settings without padding, too.

    python benchmarks/encoding.py --texts FILE         # one sentence a line; without it, verses of the quick start's Bible
    python benchmarks/encoding.py --precision fp32     # ours in float32 (default: bf16 where its cosine is 0.9999)
    python benchmarks/encoding.py --encoder me5_small  # any encoder of the catalog that a package holds
    python benchmarks/encoding.py --device cuda        # the same on a GPU
    python benchmarks/encoding.py --device cuda --shape xlm_r_large    # or minilm_l6: random weights, random sentences
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from _common import (
    SHAPES,
    encoder_folder,
    gpu_memory,
    machine,
    no_gpu,
    parser,
    random_encoder,
    random_sentences,
    timed,
    verses,
    versions,
)

from crosslign.encoders import matrices
from crosslign.encoders.model import Model
from crosslign.files import write_rows
from crosslign.threads import limit_threads

BATCHES = {"cpu": (16, 32, 64, 128), "cuda": (32, 128, 512)}
PRECISIONS = {"cpu": ("bf16",), "cuda": ("bf16", "fp16", "tf32")}
"""What `auto` tries before float32."""
HALVES = {"cpu": ("bfloat16",), "cuda": ("bfloat16", "float16")}
"""Types of the peer's weights beside float32: those of the precisions that ours may take."""
LONGEST = 256
FLOOR, LOOSE_FLOOR = 0.9999, 0.999
LOOP_BATCH = 128
SEED = 42

Encode = Callable[[list[str]], np.ndarray]


def timed_encoding(way: Encode, texts: list[str]) -> tuple[float, float, np.ndarray]:
    """Return wall seconds, processor seconds, and unit vectors."""
    wall, processor, found = timed(lambda: np.asarray(way(texts), dtype=np.float64))
    return wall, processor, found / np.linalg.norm(found, axis=1, keepdims=True)


def worst_cosine(vectors: np.ndarray, reference: np.ndarray) -> float:
    """Return the lowest cosine of two matrices' rows."""
    return float((vectors * reference).sum(1).min())


def papers_loop(folder: Path, device: str) -> Encode:
    """Return the loop of the papers' scripts: batches in the order given, padded to their longest sentence, float32, mean pooling."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).to(device).eval()

    def encode_in_order(texts: list[str]) -> np.ndarray:
        found = []
        for start in range(0, len(texts), LOOP_BATCH):
            batch = tokenizer(texts[start : start + LOOP_BATCH], padding=True, truncation=True, max_length=LONGEST, return_tensors="pt").to(
                device
            )
            with torch.no_grad():
                states = model(**batch).last_hidden_state
            mask = batch["attention_mask"].unsqueeze(-1)
            found.append(((states * mask).sum(1) / mask.sum(1)).cpu().numpy())
        return np.concatenate(found)

    return encode_in_order


def peer_ways(folder: Path, device: str) -> dict[str, Encode]:
    """Return the peer's settings: defaults first."""
    import torch
    from sentence_transformers import SentenceTransformer

    def loaded(**given: Any) -> Any:
        model = SentenceTransformer(str(folder), device=device, model_kwargs=given)
        model.max_seq_length = LONGEST
        return model

    plain = loaded()
    models = {"float32": plain}
    for name in HALVES[device]:
        models[name] = loaded(dtype=getattr(torch, name))
        if device != "cpu" and find_spec("flash_attn"):
            models[f"{name} without padding"] = loaded(dtype=getattr(torch, name), attn_implementation="flash_attention_2")
    ways: dict[str, Encode] = {"default": lambda texts: plain.encode(texts, show_progress_bar=False)}
    for name, model in models.items():
        for batch in BATCHES[device]:
            ways[f"{name}, batch {batch}"] = lambda texts, m=model, b=batch: (
                m.encode(texts, batch_size=b, convert_to_tensor=True, show_progress_bar=False).float().cpu().numpy()
            )  # type: ignore[misc]
    return ways


def best_of(ways: dict[str, Encode], texts: list[str], device: str) -> tuple[str, str]:
    """Return the fastest setting that keeps its vectors to `FLOOR`, and the fastest that keeps them to `LOOSE_FLOOR`."""
    speed, reference = {}, timed_encoding(ways["default"], texts)[2]
    clock = "per processor second" if device == "cpu" else "a second"
    for name, way in ways.items():
        if device != "cpu":
            timed_encoding(way, texts)  # its kernels are loaded now
        wall, processor, vectors = timed_encoding(way, texts)
        taken, cosine = processor if device == "cpu" else wall, worst_cosine(vectors, reference)
        print(f"peer, {name}: {len(texts) / taken:.0f} sentences {clock}, lowest cosine {cosine:.6f}", flush=True)
        speed[name] = (taken, cosine)
    kept = [[name for name in speed if speed[name][1] >= floor] for floor in (FLOOR, LOOSE_FLOOR)]
    strict, loose = (min(names, key=lambda name: speed[name]) for names in kept)
    return strict, loose


def main() -> None:
    """Time the ways in turn."""
    command = parser(__doc__)
    command.add_argument("--texts", type=Path, help="one sentence a line")
    command.add_argument("--sentences", type=int, help="4000, or 16000 on a GPU")
    command.add_argument("--threads", type=int, help="2, or all cores beside a GPU")
    command.add_argument("--repeats", type=int, default=3)
    command.add_argument("--precision", choices=("auto", "fp32", "bf16", "fp16"), default="auto")
    command.add_argument("--encoder", default="minilm_l6")
    command.add_argument("--shape", choices=sorted(SHAPES), help="an encoder with random weights, in the place of --encoder")
    command.add_argument("--tokenizer", type=Path, help="folder of XLM-R's tokenizer, for --shape and real sentences (--texts)")
    command.add_argument("--folder", type=Path, help="where the encoder lies, or is put")
    command.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    command.add_argument("--kernels", choices=("off", "auto", "on"), default="on", help="of ours on a GPU; `off` is padded")
    command.add_argument("--loop", type=int, default=500, help="sentences that the papers' loop is timed on")
    options = command.parse_args()
    options.threads = options.threads or (2 if options.device == "cpu" else os.cpu_count())
    options.sentences = options.sentences or (4000 if options.device == "cpu" else 16000)
    limit_threads(options.threads)
    if options.device == "cuda" and no_gpu():
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        encoder = random_encoder(folder, options.shape, options.tokenizer) if options.shape else encoder_folder(folder, options.encoder)
        measure(sentences_of(options, folder), encoder, options)


def sentences_of(options: argparse.Namespace, folder: Path) -> list[str]:
    """Return the distinct sentences that are encoded, in random order."""
    if options.texts is None and options.shape:
        return list(dict.fromkeys(random_sentences(options.sentences, LONGEST)))
    if options.texts is None:
        return [text for (text,) in verses(folder, ["en"], options.sentences, SEED)]
    texts = list(dict.fromkeys(line for line in options.texts.read_text(encoding="utf-8").splitlines() if line.strip()))
    random.Random(SEED).shuffle(texts)
    return texts[: options.sentences]


def by_the_job(model: Model, folder: Path, texts: list[str], readout: Any, kernels: str, options: argparse.Namespace) -> np.ndarray:
    """Encode as the workflow's job does: texts from a file, in shards, into a matrix on the disk; the model is there already."""
    ids = [str(number) for number in range(len(texts))]
    with (
        tempfile.TemporaryDirectory() as work,
        patch.object(Model, "load", lambda *_: model),
        patch.object(matrices, "encoding_devices", lambda: [options.device if options.device == "cpu" else "cuda:0"]),
    ):
        table = pa.table({"text_id": ids, "lang": ["en"] * len(ids), "text": texts})
        write_rows(Path(work) / "texts.parquet", table, "texts")
        out = Path(work) / "vectors.npy"
        matrices.embed_texts({"main": folder}, Path(work) / "texts.parquet", readout, out, options.threads, kernels=kernels)
        return np.load(out)  # type: ignore[no-any-return]


def measure(texts: list[str], folder: Path, options: argparse.Namespace) -> None:
    """Print what was measured."""
    describe(texts, options)
    model = Model.load({"main": folder})
    model.to(options.device).eval()

    def ours(precision: str, kernels: str = options.kernels) -> Encode:
        readout = {"pooling": "mean", "layer": -1, "max_length": LONGEST, "normalise": True, "precision": precision, "prefix": ""}
        return lambda texts: by_the_job(model, folder, texts, readout, kernels, options)

    ways = peer_ways(folder, options.device)
    sample = texts[: max(100, len(texts) // 4)]
    reference = timed_encoding(ways["default"], texts)[2]
    tried = ("fp32", *PRECISIONS[options.device])
    cosines = {precision: worst_cosine(timed_encoding(ours(precision), texts)[2], reference) for precision in tried}
    print("ours: lowest cosine to the peer's float32 " + ", ".join(f"{name} {value:.6f}" for name, value in cosines.items()))
    precision = options.precision
    if precision == "auto":
        precision = next((name for name in PRECISIONS[options.device] if cosines[name] >= FLOOR), "fp32")
    strict, loose = best_of(ways, sample, options.device)
    turns = {f"ours, {precision}": ours(precision), "ours, fp32": ours("fp32"), "default": ways["default"]}
    if options.device != "cpu":
        turns |= {"ours, tf32": ours("tf32"), f"ours, {precision}, padded": ours(precision, "off")}
    turns |= {f"peer, {strict}": ways[strict], f"peer, {loose}": ways[loose]}
    if options.device != "cpu":
        for name, way in turns.items():
            gpu_memory()
            way(texts)
            print(f"{name}: {gpu_memory()}", flush=True)
    mine, loop = f"ours, {precision}", {"papers' loop": papers_loop(folder, options.device), f"ours, {precision}": ours(precision)}
    for medians in alternate(loop, texts[: options.loop], options.repeats, "papers' loop"):
        beside(medians, mine)
    for medians in alternate(turns, texts, options.repeats):
        beside(medians, mine)
        if precision != "fp32":
            beside({name: medians[name] for name in ("ours, fp32", "default")}, "ours, fp32")
        print(f"ratio: {medians['default'][0] / medians[mine][0]:.2f}", flush=True)


def beside(medians: dict[str, tuple[float, float]], mine: str) -> None:
    """Print how one of ours compares with all that are not."""
    for name, theirs in medians.items():
        if not name.startswith("ours"):
            print(f"{mine}, beside {name}: {theirs[0] / medians[mine][0]:.2f} wall, {theirs[1] / medians[mine][1]:.2f} processor time")


def describe(texts: list[str], options: argparse.Namespace) -> None:
    """Print machine, versions, encoder and text."""
    print(f"{machine()}, {options.threads} threads, {options.device}")
    print(versions("torch", "transformers", "sentence-transformers"))
    print(f"{options.shape} with random weights" if options.shape else options.encoder)
    words = sorted(len(text.split()) for text in texts)
    print(f"seed {SEED}; {len(texts)} sentences, {words[0]} to {words[-1]} words, median {words[len(words) // 2]}")


def alternate(
    turns: dict[str, Encode], texts: list[str], repeats: int, reference: str = "default"
) -> Iterator[dict[str, tuple[float, float]]]:
    """Let ways take turns; after each full turn print and yield their medians so far, wall and processor seconds.

    Raises:
        SystemExit: vectors of ours differ from the reference's.
    """
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in turns}
    for turn in range(repeats):
        vectors, medians = {}, {}
        for name, way in turns.items():
            wall, processor, vectors[name] = timed_encoding(way, texts)
            taken[name].append((wall, processor))
        print(f"turns beside the {reference}: {turn + 1} of {repeats}")
        for name in turns:
            worst = worst_cosine(vectors[name], vectors[reference])
            wall, processor = medians[name] = tuple(statistics.median(column) for column in zip(*taken[name], strict=True))
            speeds = f"{len(texts) / wall:.0f} sentences/s, {len(texts) / processor:.0f} per processor second"
            print(f"{name}: {speeds}, lowest cosine to the {reference} {worst:.6f}", flush=True)
            if name.startswith("ours") and worst < FLOOR:
                raise SystemExit(f"vectors differ: {worst:.6f} is below {FLOOR}")
        yield medians


if __name__ == "__main__":
    main()
