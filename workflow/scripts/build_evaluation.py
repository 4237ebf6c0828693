"""Build one evaluation set."""

from _engine import run

from crosslign.stages.build_corpus import build_evaluation

run(build_evaluation, snakemake)
