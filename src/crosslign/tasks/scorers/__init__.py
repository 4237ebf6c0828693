"""Scorers, one a module; each takes a `TaskData` and its options, and returns measures."""
