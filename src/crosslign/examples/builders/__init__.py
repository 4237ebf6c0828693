"""Example builders, one a module."""
