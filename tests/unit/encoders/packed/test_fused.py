"""The fused kernels compute what torch's own functions do; where they cannot be used, training goes on without them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from crosslign.encoders.packed import fused

CPU = torch.device("cpu")
BESIDE = Path(sys.prefix) / "triton"
"""Where `make triton` puts Triton, and a numpy that its interpreter works with."""


@pytest.fixture(scope="module")
def interpreted():
    """Return what Triton's interpreter finds."""
    if not BESIDE.is_dir() and (importlib.util.find_spec("triton") is None or np.lib.NumpyVersion(np.__version__) >= "2.4.0"):
        pytest.skip("Triton, or a numpy that its interpreter works with, is missing: make triton")
    paths = [str(BESIDE)] * BESIDE.is_dir() + [path for path in sys.path if path]
    script = Path(__file__).with_name("interpreted_kernels.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_kernels_compute_what_torch_does(interpreted):
    assert interpreted["checked"] == {"_check_norm": True, "_check_gelu": True, "_check_attention": True}


def test_gelu_is_exact_to_the_rounding_of_half_precision(interpreted):
    assert interpreted["gelu"] < 2 * 2**-10


def test_states_and_gradients_of_the_whole_pass_are_those_of_the_plain_one(interpreted):
    assert len(interpreted["pass"]) == 1 + 5 + 2 * 15  # states; the embeddings; each block without its keys' bias
    assert max(interpreted["pass"].values()) < 0.01


def test_a_pass_that_is_done_again_draws_the_same_dropout(interpreted):
    assert interpreted["passes"] == {"same": True, "other": False}


def test_dropout_of_attention_has_its_share_and_differs_by_seed_head_and_token(interpreted):
    found = interpreted["dropout"]
    spread = 5 * (0.25 * 0.75 / (64 * 32)) ** 0.5
    assert found["kept"] == pytest.approx(0.75, abs=spread)
    assert found["factor"] == pytest.approx(1 / 0.75, rel=1e-3)
    for pair in ("seeds", "heads", "tokens"):
        assert found[pair] == pytest.approx(0.75**2 + 0.25**2, abs=2 * spread)


def test_what_is_dropped_has_the_share_that_was_asked_for():
    """A draw is one of 2³² numbers."""
    for p in (0.1, 0.25, 0.75):
        found = fused._drop(p)
        assert found["least"] / 2**32 == pytest.approx(p, abs=2**-32)
        assert found["factor"] == pytest.approx(1 / (1 - p))
        assert found["DROP"]
    assert not fused._drop(0.0)["DROP"]
    assert fused._drop(1.0)["least"] == 2**32 - 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("dtype", fused.HALVES)
@pytest.mark.parametrize(("heads", "size"), [(16, 64), (12, 32)])
def test_kernels_work_on_this_gpu(dtype, heads, size):
    assert fused.works(torch.device("cuda", 0), dtype, heads, size)


def test_a_failure_is_told_once_and_changes_no_draw(monkeypatch, caplog):
    def fails(*_):
        raise OSError("no C compiler")

    fused.works.cache_clear()
    monkeypatch.setattr(fused, "_check_gelu", fails)
    monkeypatch.setattr(fused, "_check_norm", lambda *_: bool(torch.rand(3).sum()))
    torch.manual_seed(7)
    assert not fused.works(CPU, torch.bfloat16, 2, 16)
    assert not fused.works(CPU, torch.bfloat16, 2, 16)
    drawn = torch.rand(4)
    torch.manual_seed(7)
    assert torch.equal(drawn, torch.rand(4))
    assert [record.message for record in caplog.records] == [
        "the fused kernels cannot be used here, training goes on with torch's, slower (no C compiler)"
    ]
    fused.works.cache_clear()


def test_a_kernel_that_computes_something_else_is_not_used(monkeypatch, caplog):
    fused.works.cache_clear()
    monkeypatch.setattr(fused, "_check_norm", lambda *_: False)
    assert not fused.works(CPU, torch.bfloat16, 2, 16)
    assert "add_norm is not what torch computes" in caplog.text
    fused.works.cache_clear()


def _square(values, bias):
    return (values.float() + bias).square().to(values.dtype)


def test_the_comparison_sees_another_function(monkeypatch):
    monkeypatch.setattr(fused, "gelu", lambda values, bias: torch.nn.functional.gelu(values.float() + bias).to(values.dtype))
    assert fused._check_gelu(CPU, torch.float16, 2, 16, torch.Generator().manual_seed(1))
    monkeypatch.setattr(fused, "gelu", _square)
    assert not fused._check_gelu(CPU, torch.float16, 2, 16, torch.Generator().manual_seed(1))
