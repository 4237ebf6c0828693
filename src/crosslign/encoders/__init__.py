"""Encoders: load, pool, encode; base encoders as ordinary transformers folders."""
