"""Fetch one file of a source."""

from _engine import run

from crosslign.stages.fetch import fetch

run(fetch, snakemake)
