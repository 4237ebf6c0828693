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
    if not BESIDE.is_dir() and np.lib.NumpyVersion(np.__version__) >= "2.4.0":
        pytest.skip("a numpy that Triton's interpreter works with is missing: make triton")
    return _with_triton("interpreted_kernels.py")


def _with_triton(script, *arguments):
    """Return what a script of this folder prints, which runs where Triton can be imported."""
    if not BESIDE.is_dir() and importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is missing: make triton")
    paths = [str(BESIDE)] * BESIDE.is_dir() + [path for path in sys.path if path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, Path(__file__).with_name(script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


SHARED = {"80": 166912, "86": 101376, "90": 232448, "120": 101376}
"""Bytes of shared memory that a program may have, by compute capability (CUDA C++ Programming Guide, Technical Specifications)."""


@pytest.mark.long
@pytest.mark.parametrize("half", ["bf16", "fp16"])
@pytest.mark.parametrize("architecture", SHARED)
def test_kernels_compile_for_gpus_of_four_generations(architecture, half):
    """Heads of 128 have too large a backward pass for two of them: there flash attention takes these, and the other kernels stay."""
    found = _with_triton("compiled_kernels.py", architecture, half)
    assert len(found) == 4 + 2 * 4
    too_large = {name for name, shared in found.items() if shared > SHARED[architecture]}
    assert too_large == ({"attention_backward 8x128"} if SHARED[architecture] < 131072 else set())


def test_kernels_compute_what_torch_does(interpreted):
    assert interpreted["checked"] == dict.fromkeys(fused.CHECKS, True)


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
    assert fused.working(torch.device("cuda", 0), dtype, heads, size) == fused.CHECKS.keys()


@pytest.fixture
def checks(monkeypatch):
    """Put checks into the place of the kernels' own; no answer of another test is remembered."""

    def put(**own):
        fused.working.cache_clear()
        monkeypatch.setattr(fused, "CHECKS", {**dict.fromkeys(fused.CHECKS, lambda *_: True), **own})

    yield put
    fused.working.cache_clear()


def test_a_kernel_that_fails_takes_no_other_with_it_is_told_once_and_changes_no_draw(checks, caplog):
    def fails(*_):
        raise OSError("no C compiler")

    checks(gelu=fails, add_norm=lambda *_: bool(torch.rand(3).sum()))
    torch.manual_seed(7)
    for _ in range(2):
        assert fused.working(CPU, torch.bfloat16, 2, 16) == {"add_norm", "attention"}
    drawn = torch.rand(4)
    torch.manual_seed(7)
    assert torch.equal(drawn, torch.rand(4))
    assert len(caplog.records) == 1
    assert "gelu" in caplog.text
    assert "no C compiler" in caplog.text


def test_a_kernel_that_computes_something_else_is_not_used(checks, caplog):
    checks(add_norm=lambda *_: False)
    assert fused.working(CPU, torch.bfloat16, 2, 16) == {"gelu", "attention"}
    assert "add_norm" in caplog.text


def _square(values, bias):
    return (values.float() + bias).square().to(values.dtype)


def test_the_comparison_sees_another_function(monkeypatch):
    monkeypatch.setattr(fused, "gelu", lambda values, bias: torch.nn.functional.gelu(values.float() + bias).to(values.dtype))
    assert fused._check_gelu(CPU, torch.float16, 2, 16, torch.Generator().manual_seed(1))
    monkeypatch.setattr(fused, "gelu", _square)
    assert not fused._check_gelu(CPU, torch.float16, 2, 16, torch.Generator().manual_seed(1))
