"""Build one evaluation set."""

from crosslign.stages.build_corpus import build_evaluation
from crosslign.stages.job import execute

execute(
    build_evaluation,
    rule=snakemake.rule,
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=snakemake.params.items(),
    threads=snakemake.threads,
    log=snakemake.log[0],
)
