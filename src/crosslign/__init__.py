"""Cross-lingual sentence encoders: build their data, train them, compare them.

The package follows one line of data: sources, corpora, views, examples, systems, embeddings, scores, tables.
Each noun is a sub-package; a package imports only from lower layers (docs/architecture.md).

For other programs there are the names of `__all__` (docs/in-python.md) and `crosslign.sentence_transformers`; all else may change.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from crosslign.version import __version__ as __version__

if TYPE_CHECKING:
    from crosslign.errors import CrosslignError
    from crosslign.in_python import Encoder, encoder, evaluate, margin_scores, mine, names, objective
    from crosslign.objectives.contract import Batch
    from crosslign.reporting.frames import scores, table

os.environ.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "1")  # what Apple's GPUs cannot compute the CPU does; torch reads it when it is loaded

__all__ = [
    "Batch",
    "CrosslignError",
    "Encoder",
    "encoder",
    "evaluate",
    "margin_scores",
    "mine",
    "names",
    "objective",
    "scores",
    "table",
]
ELSEWHERE = {
    "Batch": "crosslign.objectives.contract",
    "CrosslignError": "crosslign.errors",
    **dict.fromkeys(("scores", "table"), "crosslign.reporting.frames"),
}
"""Modules of the names that do not come from `crosslign.in_python`."""


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for: `import crosslign` alone loads neither torch nor pandas."""
    if name not in __all__:
        raise AttributeError(f"module 'crosslign' has no attribute {name!r}")
    return getattr(import_module(ELSEWHERE.get(name, "crosslign.in_python")), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
