"""The version of the library: pyproject.toml reads it here, and a workflow of another version refuses the library."""

__version__ = "0.1.0"
