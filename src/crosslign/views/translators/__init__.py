"""Translators, one a module."""
