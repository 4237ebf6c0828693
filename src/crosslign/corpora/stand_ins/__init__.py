"""Synthetic data: catalog files in their official format, written from the project's own sentences."""
