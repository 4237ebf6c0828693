"""Fetch one translation model."""

from _engine import run

from crosslign.stages.fetch_model import fetch_model

run(fetch_model, snakemake)
