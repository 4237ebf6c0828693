"""`make bench` runs every benchmark without options: none may need one; and what they do on a GPU, at a tiny size on the CPU."""

import ast
import importlib
import os
import platform
import re
import signal
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch

from crosslign.encoders.packed import fused

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
FILES = sorted(FOLDER.glob("[a-z]*.py"))
TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


@pytest.fixture
def benchmark(monkeypatch):
    """Import a benchmark as its command does; shapes of encoders are tiny, and the CPU answers as a GPU would."""
    monkeypatch.syspath_prepend(str(FOLDER))
    common = importlib.import_module("_common")
    monkeypatch.setitem(common.SHAPES, "minilm_l6", {**TINY, "vocab_size": common.WORDS + 5})
    monkeypatch.setattr(common, "ROWS", common.WORDS + 5)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H200")
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda: None)
    return importlib.import_module


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_option_is_required(path):
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    options = [call for call in calls if getattr(call.func, "attr", "") == "add_argument"]
    assert options
    for option in options:
        name = ast.literal_eval(option.args[0])
        given = {keyword.arg for keyword in option.keywords}
        assert name.startswith("-"), f"{name} must be given"
        assert "required" not in given, f"{name} must be given"


@pytest.fixture
def gpu_training(benchmark, monkeypatch):
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 0)
    module = benchmark("gpu_training")
    for name, batch in (("check", None), ("large1024", 3)):
        monkeypatch.setitem(module.SETTINGS, name, {"shape": "minilm_l6", "batch": 4, "micro_batch": batch, "steps": 6})
    return module


@pytest.mark.parametrize("setting", ["check", "large1024"])
def test_ours_and_the_peers_trainings_on_a_gpu_give_their_figures(gpu_training, tmp_path, capsys, setting):
    options = Namespace(precision="fp32", threads=1, max_length=24, device="cpu", folder=tmp_path)
    gpu_training.random_encoder(tmp_path, "minilm_l6")
    found = {
        (name, setting): gpu_training.one(side, name, setting, options)
        for side, name in ((gpu_training.ours, "off"), (gpu_training.peer, "peer, padded"))
    }
    for (name, _), values in found.items():
        gpu_training.report(name, setting, values, 989.0)
    assert "TFLOP/s, 0.0% of the peak" in capsys.readouterr().out
    if setting == "check":
        gpu_training.check(found)
        assert "peer, padded" in capsys.readouterr().out


def test_training_on_a_gpu_ends_where_losses_differ(gpu_training):
    found = {("off", "check"): {"losses": [1.0, 1.0]}, ("on", "check"): {"losses": [1.0, float("nan")]}}
    with pytest.raises(SystemExit, match="losses differ: on"):
        gpu_training.check(found)


def test_trainings_on_a_gpu_whose_time_is_up_are_concluded_from(gpu_training, monkeypatch, tmp_path, capsys):
    """The main figure is not lost with the last of forty trainings."""
    figures = {"ms": 20.0, "mean_ms": 1.0, "host_ms": 1.0, "tokens": 1.0, "tflops": 1.0, "memory": 1.0, "losses": [1.0, 1.0]}

    def run(asked, *_):
        yield from ((name, "check", figures | {"ms": 30.0 if "peer" in name else 20.0}) for name, setting in asked if setting == "check")
        if "on" not in dict(asked):
            os.kill(os.getpid(), signal.SIGTERM)
            pytest.fail("it goes on")

    monkeypatch.setattr(gpu_training, "run", run)
    monkeypatch.setattr(gpu_training, "no_gpu", lambda: False)
    monkeypatch.setattr("sys.argv", ["gpu_training.py", "--settings", "check", "large1024", "--folder", str(tmp_path)])
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit, match="ended before all was measured"):
            gpu_training.main()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert capsys.readouterr().out.splitlines()[-1] == "ratio: 1.50"


def test_a_way_that_fails_on_a_gpu_stops_no_other(gpu_training, capsys):
    gpu_training.report("on", "check", {"error": "OutOfMemoryError: no room"}, 0.0)
    assert capsys.readouterr().out == "check: on: OutOfMemoryError: no room\n"


def test_the_clock_of_a_training_keeps_no_gpu_waiting(benchmark, monkeypatch):
    clock = benchmark("_training").Clock()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: pytest.fail("it waits"))
    for _ in range(6):
        clock.mark()
    assert clock.per_step() >= (0.0, 0.0)


def test_faiss_is_tried_on_a_gpu_before_it_is_a_peer_there(benchmark, monkeypatch):
    """Built for CPUs it has no GPU at all; built for others than this one it ends the process that asks."""
    mining, faiss = benchmark("mining"), importlib.import_module("faiss")
    assert mining.searches_on("cpu")
    assert not mining.searches_on("cuda")
    monkeypatch.setattr(faiss, "StandardGpuResources", object, raising=False)
    assert not mining.searches_on("cuda")
    monkeypatch.setattr(mining, "TRIAL", "print()")
    assert mining.searches_on("cuda")


@pytest.mark.parametrize("found", [True, False], ids=["faiss for CPUs", "no faiss"])
def test_mining_without_faiss_for_gpus_measures_what_it_can_and_gives_no_ratio(benchmark, monkeypatch, capsys, found):
    mining = benchmark("mining")
    monkeypatch.setattr(mining, "searches_on", lambda device: found and device == "cpu")
    monkeypatch.setattr(mining, "no_gpu", lambda: False)
    monkeypatch.setattr(mining, "float32_peak", lambda dim, _, real=mining.float32_peak: real(dim, "cpu"))
    monkeypatch.setattr(mining, "neighbours", lambda x, y, k, device, real=mining.neighbours: real(x, y, k, device="cpu"))
    monkeypatch.setattr(mining, "by_torch", lambda x, y, k, _, real=mining.by_torch: real(x, y, k, "cpu"))
    monkeypatch.setattr(mining, "by_sentence_transformers", lambda x, y, k, _, real=mining.by_sentence_transformers: real(x, y, k, "cpu"))
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: True)
    monkeypatch.setattr("sys.argv", ["mining.py", "--device", "cuda", "--rows", "300", "--dim", "16", "--threads", "1", "--repeats", "1"])
    mining.main()
    printed = capsys.readouterr().out
    assert "candidates swapped within 1e-06: {'ours': 0" in printed
    assert f"{mining.FLAT} / ours: " in printed
    assert ("faiss on the CPU / ours: " in printed) == found
    assert "sentence-transformers / ours: " in printed
    assert printed.splitlines()[-1].startswith("no ratio: no faiss here searches on cuda")


def test_a_package_that_is_missing_costs_no_measurement(benchmark):
    """`mining.py --without-sentence-transformers` names its version at the end, too."""
    assert benchmark("_common").versions("no-such-package", "numpy").endswith(f", no no-such-package, numpy {np.__version__}")


def test_encoding_on_a_gpu_needs_no_package_and_no_file(benchmark, monkeypatch, capsys):
    encoding = benchmark("encoding")
    monkeypatch.setattr(encoding, "no_gpu", lambda: False)
    real = encoding.measure

    def on_cpu(texts, folder, options):  # settings are those of a GPU
        options.device = "cpu"
        for table in (encoding.BATCHES, encoding.PRECISIONS):
            monkeypatch.setitem(table, "cpu", table["cuda"])
        real(texts, folder, options)

    monkeypatch.setattr(encoding, "measure", on_cpu)
    monkeypatch.setattr("sys.argv", ["encoding.py", "--device", "cuda", "--shape", "minilm_l6", "--sentences", "60", "--threads", "1"])
    encoding.main()
    printed = capsys.readouterr().out
    assert "60 sentences, " in printed
    assert "peer, bfloat16, batch 512: " in printed
    assert "lowest cosine to the peer's float32 fp32 1.000000" in printed
    assert float(printed.splitlines()[-1].removeprefix("ratio: ")) > 0


def test_operations_are_those_of_the_products(benchmark):
    """One block of width w, inner layer i, over t tokens: 2t(4ww + 2wi) for the weights and 4ttw for attention; backward is twice that."""
    forward = sum(2 * t * (4 * 8 * 8 + 2 * 8 * 32) + 4 * t * t * 8 for t in (3, 5))
    assert benchmark("gpu_training").flops(np.array([3, 5]), layers=7, width=8, inner=32) == 3 * 7 * forward


NAMES = {"NVIDIA H200": 989.0, "NVIDIA H100 80GB HBM3": 989.0, "NVIDIA H100 PCIe": 756.0, "NVIDIA A100-SXM4-80GB": 312.0, "NVIDIA T4": 0.0}


@pytest.mark.parametrize(("name", "peak"), NAMES.items())
def test_the_peak_of_a_gpu_is_found_by_its_name(benchmark, name, peak):
    assert benchmark("gpu_training").peak_of(name) == peak


PYTHON = """#!/bin/sh
case "$*" in
*mining.py*) echo no room; exit 3 ;;
*) echo "given $*" ;;
esac
"""


def test_on_a_gpu_one_command_measures_all_and_a_part_that_fails_stops_no_other(tmp_path):
    python, report = tmp_path / "python", tmp_path / "report.txt"
    python.write_text(PYTHON)
    python.chmod(0o755)
    done = subprocess.run(
        ["sh", FOLDER / "on_gpu.sh", report], env={**os.environ, "PYTHON": str(python)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert report.read_text() == done.stdout
    for name in ("gpu_training", "encoding", "gpu_kernels", "gpu_page"):
        assert f"given benchmarks/{name}.py " in done.stdout
        assert (FOLDER / f"{name}.py").is_file()
    assert "no room\n-- exit status 3 after " in done.stdout
    files = re.search(r"given -m pytest .*", done.stdout)[0].split(" not generations ")[1].split()
    assert "tests/unit/encoders/test_encode.py" in files
    assert f"== 2 parts failed\ngiven benchmarks/gpu_page.py --report {report}\n" in done.stdout  # mining, and with a million rows
    assert sorted(tmp_path.iterdir()) == [python, report]


ALONE = """
import importlib.machinery, re, sys
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions

def name_of(given):
    return re.sub("[-_.]+", "-", given).lower()

known, asked = set(), [name_of(name) for name in sys.argv.pop(1).split(", ")]
while asked:
    known.add(name := asked.pop())
    try:
        needs = [need for need in distribution(name).requires or () if "extra ==" not in need]
    except PackageNotFoundError:
        continue
    asked += {name_of(re.match(r"[\\w.-]+", need)[0]) for need in needs} - known
others = {top for top, owners in packages_distributions().items() if known.isdisjoint(map(name_of, owners))} - {"crosslign"}
real = importlib.machinery.PathFinder

class Only:
    find_distributions, invalidate_caches = real.find_distributions, real.invalidate_caches

    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name.partition(".")[0] in others else real.find_spec(name, path, target)

sys.meta_path[:] = [Only if finder is real else finder for finder in sys.meta_path]
import pytest
sys.exit(pytest.main([*sys.argv[1:], "--collect-only", "-p", "no:cacheprovider"]))
"""
"""Collects tests on a machine that has, beside Python's own, the packages of the first argument and what these need."""


def test_the_tests_of_a_gpu_need_the_packages_that_the_one_command_names(tmp_path):
    """One that is missing would end the whole part when its tests are collected."""
    said = " ".join(line.lstrip("# ") for line in (FOLDER / "on_gpu.sh").read_text().splitlines() if line.startswith("#"))
    packages = re.search(r"a python3 \(.*?\) with (.*?)\. ", said)[1].replace(" and ", ", ")
    python, report = tmp_path / "python", tmp_path / "report.txt"
    python.write_text(PYTHON)
    python.chmod(0o755)
    command = ["sh", FOLDER / "on_gpu.sh", "--part", "tests", report]
    subprocess.run(command, env={**os.environ, "PYTHON": str(python)}, capture_output=True, check=False)
    files = re.search(r"given -m pytest .*", report.read_text())[0].split(" not generations ")[1].split()
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(FOLDER.parent / "src")}
    done = subprocess.run(
        [sys.executable, "-c", ALONE, packages, *files], cwd=FOLDER.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_on_a_gpu_a_part_can_be_asked_for_alone(tmp_path):
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    command = ["sh", FOLDER / "on_gpu.sh", "--part", "kernels", "--part", "tests", tmp_path / "report.txt"]
    done = subprocess.run(command, env={**os.environ, "PYTHON": str(python)}, capture_output=True, text=True, check=False)
    assert re.findall(r"^== (\w+): ", done.stdout, re.MULTILINE) == ["tests", "kernels"]
    assert done.returncode == 0


def test_on_a_machine_without_gpu_the_one_command_says_so(tmp_path):
    command, hidden = ["sh", FOLDER / "on_gpu.sh", tmp_path / "report.txt"], {"PYTHON": sys.executable, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, env={**os.environ, **hidden}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "sees no CUDA device" in done.stdout
    assert "parts failed" not in done.stdout


def test_a_call_on_a_gpu_ends_in_time_and_says_what_is_left_for_another(tmp_path):
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\ncase "$*" in *gpu_training*) sleep 3 ;; esac\n')
    python.chmod(0o755)
    environment = {**os.environ, "PYTHON": str(python), "LIMIT": "21"}
    command = ["sh", FOLDER / "on_gpu.sh", "--part", "training", "--part", "encoding", "--part", "mining", tmp_path / "report.txt"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert re.findall(r"^== (\w+): ", done.stdout, re.MULTILINE) == ["training"]
    assert "== no time was left for: --part encoding --part mining\n== 0 parts failed\n" in done.stdout


SPOKEN = """#!/bin/sh
case "$*" in
*gpu_page*) exec {python} "$@" ;;
*gpu_training*) cat {folder}/training ;;
*encoding.py*) cat {folder}/encoding ;;
*mining.py*) cat {folder}/mining; exit 3 ;;
*gpu_kernels*) cat {folder}/kernels; exit 1 ;;
*row_updates*) cat {folder}/row_updates ;;
*) ;;
esac
"""


def test_the_report_of_a_gpu_ends_with_a_page_of_its_figures(benchmark, tmp_path, monkeypatch, capsys):
    """The lines are printed by the benchmarks' own functions."""
    training, encoding, mining = (benchmark(name) for name in ("gpu_training", "encoding", "mining"))
    found = {"ms": 36.6, "mean_ms": 37.0, "host_ms": 30.0, "tokens": 1e5, "tflops": 99.0, "memory": 812.0, "losses": [2.0, 1.0]}
    training.report("on", "base64", found, 990.0)
    training.report("peer, unpadded", "base64", found | {"ms": 70.2}, 990.0)
    training.report("on", "large128", found | {"ms": 65.25}, 0.0)
    training.report("flash", "large128", {"error": "out of memory"}, 0.0)
    (tmp_path / "training").write_text(capsys.readouterr().out + "ratio: 1.92\n")
    encoding.describe(["a b"], Namespace(threads=1, device="cuda", shape="xlm_r_large"))
    encoding.alternate(dict.fromkeys(("ours, bf16", "default"), lambda texts: np.eye(3, dtype=np.float32)), ["a", "b", "c"], 1)
    (tmp_path / "encoding").write_text(capsys.readouterr().out)
    monkeypatch.setattr("sys.argv", ["mining.py", "--rows", "300", "--dim", "16", "--threads", "1", "--repeats", "1"])
    mining.main()
    (tmp_path / "mining").write_text(capsys.readouterr().out)
    kernels, rows = benchmark("gpu_kernels"), benchmark("row_updates")
    monkeypatch.setattr(kernels, "no_gpu", lambda: False)
    monkeypatch.setattr(fused, "working", lambda _, dtype, heads, size: frozenset(fused.CHECKS.keys() - ({"gelu"} if size == 32 else ())))
    monkeypatch.setattr("sys.argv", ["gpu_kernels.py"])
    with pytest.raises(SystemExit) as failed:
        kernels.main()
    (tmp_path / "kernels").write_text(f"{capsys.readouterr().out}{failed.value}\n")
    monkeypatch.setattr("sys.argv", ["row_updates.py", "--dim", "4", "--tokens", "8", "--steps", "2"])
    rows.main()
    (tmp_path / "row_updates").write_text(capsys.readouterr().out)
    python, report = tmp_path / "python", tmp_path / "report.txt"
    python.write_text(SPOKEN.format(python=sys.executable, folder=tmp_path))
    python.chmod(0o755)
    subprocess.run(["sh", FOLDER / "on_gpu.sh", report], env={**os.environ, "PYTHON": str(python)}, capture_output=True, check=False)
    printed, page = report.read_text().split("## On a GPU\n")
    assert "| a step; share of the peak | base64 | large128 |\n| --- | ---: | ---: |\n| on | 36.6 ms; 10.0% | 65.2 ms |\n" in page
    assert "| peer, unpadded | 70.2 ms; 10.0% | – |" in page
    assert "- **ratio: 1.92**" in page
    assert re.search(r"^\| ours, bf16 \| \d+ \| 1\.000000 \|$", page, re.MULTILINE)
    assert re.search(r"^\| ours \| [\d.]+ \| \d+ \|$", page, re.MULTILINE)
    assert re.search(r"^\*\*mining\*\*, \d s, exit status 3: `", page, re.MULTILINE)
    assert "- task: random-cluster vectors, seeds 1 and 2, 300 x 300 x 16" in page
    assert f"commit {re.search('commit (.*)', printed)[1]}" in page
    assert "- large128: flash: out of memory\n" in page
    assert "- torch.bfloat16, 12 heads of 64: add_norm, attention, gelu\n" in page
    assert "- kernels that do not work here: gelu (torch.bfloat16, 12x32), gelu (torch.float16, 12x32)\n" in page
    assert "- 100% of the rows used: ours " in page
    version = f"- python {platform.python_version()}, "
    assert page.count(version) == 2 + 2 + 3 + 1  # encodings, mining, kernels and profile (memcheck, where it is installed), rows
