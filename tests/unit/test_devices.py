"""What other systems lack or have otherwise: Apple's GPUs, macOS's calls. Nothing here has run on a Mac: each case is pretended."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from crosslign import devices
from crosslign.errors import InputError, ResourceError
from crosslign.files.atomic import reserve
from crosslign.mining.backends._faiss import load_faiss
from crosslign.training import accelerator


@pytest.fixture
def apple(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setenv("CROSSLIGN_DEVICE", "mps")


def test_apples_gpu_encodes_where_it_is_asked_for(apple, monkeypatch):
    assert devices.encoding_devices() == ["mps"]
    assert devices.all_devices() == ["cpu"]  # searches stay there
    monkeypatch.delenv("CROSSLIGN_DEVICE")
    assert devices.encoding_devices() == ["cpu"]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert devices.encoding_devices() == devices.all_devices() == ["cuda:0", "cuda:1"]


def test_apples_gpu_trains_in_fp32_where_it_is_asked_for(apple, monkeypatch):
    made = {}
    monkeypatch.setattr("accelerate.Accelerator", lambda **given: made.update(given))
    accelerator.start_accelerator("bf16")
    assert (made["cpu"], made["mixed_precision"]) == (False, "no")
    monkeypatch.delenv("CROSSLIGN_DEVICE")
    monkeypatch.setattr(accelerator, "computed_in", lambda precision, device: precision)  # a CPU with products in bf16
    accelerator.start_accelerator("bf16")
    assert (made["cpu"], made["mixed_precision"]) == (True, "bf16")


def test_a_device_that_is_not_there_is_said(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setenv("CROSSLIGN_DEVICE", "mps")
    with pytest.raises(ResourceError, match=r"CROSSLIGN_DEVICE=mps: .*GPU"):
        devices.apple_gpu()
    monkeypatch.setenv("CROSSLIGN_DEVICE", "cuda")
    with pytest.raises(InputError, match=r"CROSSLIGN_DEVICE: .*'cuda'; .*mps"):
        devices.apple_gpu()


@pytest.mark.parametrize("module", ["in_python", "cli.main", "sentence_transformers", "jobs.frame"])
def test_torch_is_told_before_it_is_loaded_that_the_cpu_stands_in_for_apples_gpu(module):
    """A finder of modules looks at the variable in the moment in which torch is asked for."""
    program = (
        "import importlib, os, sys\nfrom importlib.abc import MetaPathFinder\nclass Watch(MetaPathFinder):\n"
        " def find_spec(self, name, path, target=None):\n"
        "  if name == 'torch': sys.exit(os.environ.get('PYTORCH_ENABLE_MPS_FALLBACK') != '1')\n"
        f"sys.meta_path.insert(0, Watch())\nimportlib.import_module('crosslign.{module}')\nimport torch"
    )
    env = {name: value for name, value in os.environ.items() if name != "PYTORCH_ENABLE_MPS_FALLBACK"}
    assert subprocess.run([sys.executable, "-c", program], env=env, check=False).returncode == 0


def test_what_apples_gpu_cannot_compute_the_cpu_does():
    values = torch.tensor([0.1, 0.2])
    assert torch.equal(devices.wide(values), values.double())
    meta = torch.empty(2, device="meta")
    assert devices.wide(meta).device.type == "meta"


def test_a_file_needs_no_call_that_macos_lacks(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate")
    (tmp_path / "matrix").write_bytes(bytes(8))
    reserve(tmp_path / "matrix")
    assert (tmp_path / "matrix").read_bytes() == bytes(8)


def test_on_macos_faiss_and_torch_compute_with_one_thread_each(monkeypatch):
    faiss = pytest.importorskip("faiss")
    before = faiss.omp_get_max_threads(), torch.get_num_threads()
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setenv("KMP_DUPLICATE_LIB_OK", "")
    try:
        found = load_faiss("faiss_flat")
        assert (found.omp_get_max_threads(), torch.get_num_threads()) == (1, 1)
        index = found.IndexFlatIP(2)
        index.add(np.eye(2, dtype=np.float32))
        assert index.search(np.eye(2, dtype=np.float32), 1)[1].tolist() == [[0], [1]]
    finally:
        faiss.omp_set_num_threads(before[0])
        torch.set_num_threads(before[1])


@pytest.mark.parametrize(("has_kernels", "found"), [(True, "bf16"), (False, "fp32")])
def test_a_cpu_without_products_in_bf16_computes_in_fp32_and_says_so(monkeypatch, caplog, has_kernels, found):
    devices.computed_in.cache_clear()
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: has_kernels)
    assert devices.computed_in("bf16", "cpu") == found
    assert devices.computed_in("bf16", "cuda") == "bf16"
    assert devices.computed_in("fp16", "cpu") == "fp16"
    assert [record.levelname for record in caplog.records] == ["WARNING"] * (not has_kernels)
    devices.computed_in.cache_clear()
