"""Encode one text set."""

from _engine import run

from crosslign.stages.embed import embed

run(embed, snakemake)
