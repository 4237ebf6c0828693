"""Durations in words: `1 h 5 min`."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Return a time in words: `1 h 02 min`, `3 min 20 s`, `12 s`."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 60} min {whole % 60:02d} s" if whole >= 60 else f"{whole} s"
