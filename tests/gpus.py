"""GPUs for tests: the machine's own, or pretend ones where it has none."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

FIXTURES = {"cuda", "two_gpus"}


def pytest_collection_modifyitems(items):
    """Put the guard of pretend devices in its place before any test runs a backward pass."""
    if any(FIXTURES.intersection(getattr(item, "fixturenames", ())) for item in items):
        import torch

        if not torch.cuda.is_available():
            from pretend_cuda import add_device_guard

            add_device_guard()


@pytest.fixture
def cuda(monkeypatch):
    """The name of a CUDA device."""
    import torch

    if torch.cuda.is_available():
        yield "cuda"
        return
    from pretend_cuda import pretend_cuda

    with pretend_cuda(monkeypatch):
        yield "cuda"


@pytest.fixture
def two_gpus(monkeypatch):
    """The names of two CUDA devices; a machine with one GPU skips the test."""
    import torch

    names = ["cuda:0", "cuda:1"]
    if torch.cuda.is_available():
        if torch.cuda.device_count() < 2:
            pytest.skip("this machine has one GPU")
        yield names
        return
    from pretend_cuda import pretend_cuda

    with pretend_cuda(monkeypatch, count=2):
        yield names


@pytest.fixture
def on_a_cpu():
    """Gives a context in which there is no GPU, for what is to be compared: `with on_a_cpu(): fit(...)`."""
    import torch
    from accelerate.state import AcceleratorState, PartialState

    def forget():
        PartialState._reset_state()
        AcceleratorState._reset_state()

    @contextmanager
    def hidden():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.cuda, "is_available", lambda: False)
            patch.setattr(torch.cuda, "device_count", lambda: 0)
            forget()
            yield
            forget()

    return hidden
