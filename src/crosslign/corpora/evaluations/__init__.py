"""Evaluation sets: official formats, and sets cut from our own corpora."""
