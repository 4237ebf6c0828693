"""`make bench` runs every benchmark without options: none may need one; and what they do on a GPU, at a tiny size on the CPU."""

import ast
import importlib
import os
import re
import signal
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
FILES = sorted(FOLDER.glob("[a-z]*.py"))


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
    *_, left, checked, ratio = capsys.readouterr().out.splitlines()
    assert ratio == "ratio: 1.50"
    assert checked == "without dropout, losses apart from peer, unpadded: on 0.0e+00, peer, unpadded 0.0e+00"
    assert left.startswith(
        "not measured: on at large1024; peer, unpadded at large1024; off at check; off at large1024; peer, padded at check"
    )


def test_trainings_on_a_gpu_that_are_given_up_leave_no_process(gpu_training, command, monkeypatch, tmp_path):
    command("python", """trap '' TERM; echo "[\\"end\\", \\"on\\", \\"check\\", {\\"pid\\": $$}]"; exec sleep 600""")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    trainings = gpu_training.run([("on", "check"), ("on", "large1024")], Namespace(folder=tmp_path), "")
    *_, told = next(trainings)
    trainings.close()
    with pytest.raises(ProcessLookupError):
        os.kill(told["pid"], 0)


def test_trainings_on_a_gpu_that_never_began_are_a_failure(gpu_training, command, monkeypatch, tmp_path):
    command("python", "exit 1")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(gpu_training, "no_gpu", lambda: False)
    monkeypatch.setattr("sys.argv", ["gpu_training.py", "--settings", "check", "--ways", "on", "--folder", str(tmp_path)])
    with pytest.raises(SystemExit, match="ended before"):
        gpu_training.main()


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


def test_encoding_on_a_gpu_needs_no_package_and_no_file_and_has_its_ratio_after_each_turn(benchmark, monkeypatch, capsys):
    encoding = benchmark("encoding")
    monkeypatch.setattr(encoding, "no_gpu", lambda: False)
    real = encoding.measure

    def on_cpu(texts, folder, options):  # settings are those of a GPU
        options.device = "cpu"
        for table in (encoding.BATCHES, encoding.PRECISIONS):
            monkeypatch.setitem(table, "cpu", table["cuda"])
        real(texts, folder, options)

    def in_time(*given, turns=encoding.alternate):
        yield next(medians := turns(*given))
        if len(given) == 3:  # the main figure's
            sys.exit("time is up")
        yield from medians

    monkeypatch.setattr(encoding, "measure", on_cpu)
    monkeypatch.setattr(encoding, "alternate", in_time)
    monkeypatch.setattr("sys.argv", ["encoding.py", "--device", "cuda", "--shape", "minilm_l6", "--sentences", "60", "--threads", "1"])
    with pytest.raises(SystemExit, match="time is up"):
        encoding.main()
    printed = capsys.readouterr().out
    assert "60 sentences, " in printed
    assert "turns beside the default: 1 of 3\n" in printed
    assert re.search(r"^ours, bf16, beside peer, .*: [\d.]+ wall", printed, re.MULTILINE)
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
