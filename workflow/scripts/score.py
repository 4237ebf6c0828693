"""Score one run on one task."""

from _engine import run

from crosslign.stages.score import score

run(score, snakemake)
