"""Build one evaluation set."""

from _engine import run

from crosslign.stages.build_evaluation import build_evaluation

run(build_evaluation, snakemake)
