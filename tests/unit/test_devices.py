"""What other systems lack or have otherwise: Apple's GPUs, macOS's calls. Nothing here has run on a Mac: each case is pretended."""

import os
import sys

import numpy as np
import pytest
import torch

from crosslign import devices
from crosslign.errors import InputError, ResourceError
from crosslign.files.atomic import reserve
from crosslign.mining.backends._faiss import load_faiss
from crosslign.threads import limit_threads
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
    with pytest.raises(ResourceError, match="torch sees no GPU of Apple's"):
        devices.apple_gpu()
    monkeypatch.setenv("CROSSLIGN_DEVICE", "cuda")
    with pytest.raises(InputError, match="no device is called 'cuda'"):
        devices.apple_gpu()


def test_what_apples_gpu_cannot_compute_the_cpu_does(monkeypatch):
    for name in devices.FALLBACK, "OMP_NUM_THREADS":
        monkeypatch.delenv(name, raising=False)
    limit_threads(1)
    assert os.environ[devices.FALLBACK] == "1"
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
