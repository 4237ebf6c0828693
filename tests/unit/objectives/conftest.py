"""Helpers for the objectives' tests: small models, batches, and the comparison of a loss with its slow twin."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from crosslign.encoders.model import Member, Model
from crosslign.objectives import OBJECTIVES, PARTS
from crosslign.objectives.contract import Batch


class Backbone(nn.Module):
    """Stands in for a transformer: parameters, a buffer, dropout, and the sizes that a member reads."""

    def __init__(self, dimension):
        super().__init__()
        self.dense = nn.Linear(dimension, dimension)
        self.drop = nn.Dropout(0.1)
        self.register_buffer("seen", torch.zeros(1))
        self.config = SimpleNamespace(hidden_size=dimension, num_hidden_layers=1, model_type="bert", max_position_embeddings=16)


@pytest.fixture
def model():
    """Make a model with vectors of a length and members of given names."""

    def make(dimension=2, *names):
        return Model({name: Member(Backbone(dimension), SimpleNamespace()) for name in names or ("main",)})

    return make


@pytest.fixture
def part(model):
    """Make a part and attach it to a small model."""

    def make(kind, dimension=2, seed=0, members=("main",), **options):
        made = PARTS.get(kind)(**options)
        made.attach(model(dimension, *members), seed)
        return made

    return make


@pytest.fixture
def term():
    """Make an objective from its options."""
    return lambda name, **options: OBJECTIVES.get(name)(**options)


@pytest.fixture
def batch():
    """Make a batch; `a` and `b` are short for columns of distinct English and German sentences."""

    def make(rows, columns="ab", step=0, **given):
        made = {}
        for name, lang in zip("abc", ("en", "de", "fr"), strict=True):
            if name in columns:
                made |= {f"{name}_text": [f"{name}{i}" for i in range(rows)], f"{name}_lang": [lang] * rows}
        return Batch([f"row {i}" for i in range(rows)], made | given, step)

    return make


@pytest.fixture
def agree():
    """Check value and gradients of a loss against a slow float64 twin, in float32 too, and that half precision is widened first."""

    def gradients(function, vectors):
        leaves = {name: v.clone().requires_grad_() for name, v in vectors.items()}
        total = function(leaves)
        total.backward()
        return total.detach(), {name: leaf.grad if leaf.grad is not None else torch.zeros_like(leaf) for name, leaf in leaves.items()}

    def check(fast, slow, vectors, single=True):
        """`single` is False where a float32 state takes part, such as the parameters of a part."""
        value, slopes = gradients(fast, vectors)
        expected, expected_slopes = gradients(slow, vectors)
        assert value.dtype == torch.float64
        assert torch.allclose(value, expected, rtol=0, atol=1e-9)
        for name, slope in slopes.items():
            assert torch.allclose(slope, expected_slopes[name], rtol=1e-8, atol=1e-9), name
        if single:
            half, half_slopes = gradients(fast, {name: v.float() for name, v in vectors.items()})
            assert half.dtype == torch.float32
            assert abs(float(half) - float(expected)) < 1e-4
            for name, slope in half_slopes.items():
                assert torch.allclose(slope.double(), expected_slopes[name], rtol=1e-3, atol=1e-4), name
            for narrow in (torch.bfloat16, torch.float16):
                given = {name: v.to(narrow) for name, v in vectors.items()}
                widened, wide_slopes = gradients(fast, {name: v.float() for name, v in given.items()})
                narrowed, narrow_slopes = gradients(fast, given)
                assert narrowed.dtype == torch.float32
                assert torch.equal(narrowed, widened)  # the numbers are those of float32, not of the type that came in
                for name, slope in narrow_slopes.items():
                    assert (slope.float() - wide_slopes[name]).abs().max() <= 0.02 * wide_slopes[name].abs().max(), name
        return value

    return check


@pytest.fixture
def random_vectors():
    """Make float64 vectors by name."""

    def make(dimension=5, seed=0, **rows):
        draw = torch.Generator().manual_seed(seed)
        return {name: torch.randn(count, dimension, generator=draw, dtype=torch.float64) for name, count in rows.items()}

    return make


@pytest.fixture(params=[torch.float64, torch.float32], ids=["float64", "float32"])
def typed(request):
    """Bring vectors by name to a type, and a number's expectation to the tolerance of a loss in it (1e-9, 1e-4)."""

    class Typed:
        dtype = request.param
        tolerance = 1e-9 if request.param is torch.float64 else 1e-4

        def __call__(self, vectors):
            return {name: rows.to(self.dtype) for name, rows in vectors.items()}

        def near(self, expected):
            return pytest.approx(expected, abs=self.tolerance)

    return Typed()
