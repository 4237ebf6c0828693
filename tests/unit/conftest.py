"""What the tests of benchmarks share."""

import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


@pytest.fixture
def benchmark(monkeypatch):
    """Import a benchmark as its command does; shapes of encoders are tiny, and the CPU answers as a GPU would."""
    import torch

    monkeypatch.syspath_prepend(str(FOLDER))
    common = importlib.import_module("_common")
    monkeypatch.setitem(common.SHAPES, "minilm_l6", {**TINY, "vocab_size": common.WORDS + 5})
    monkeypatch.setattr(common, "ROWS", common.WORDS + 5)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H200")
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda: None)
    return importlib.import_module
