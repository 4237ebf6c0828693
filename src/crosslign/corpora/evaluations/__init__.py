"""Evaluation corpora: official formats, and sets cut from our own corpora."""
