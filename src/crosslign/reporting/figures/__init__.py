"""Kinds of figures, found by name; each draws PNG and SVG and writes its numbers as CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from crosslign.registry import Registry

Draw = Callable[[Mapping[str, Any], Mapping[str, Any], Mapping[str, Path]], None]

FIGURES: Registry[Draw] = Registry("kind of figure", "crosslign.reporting.figures")
