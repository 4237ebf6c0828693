"""Build one training set."""

from _engine import run

from crosslign.stages.build_examples import build_examples

run(build_examples, snakemake)
