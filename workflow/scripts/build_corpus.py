"""Build one corpus."""

from crosslign.stages.build_corpus import build_corpus
from crosslign.stages.job import execute

execute(
    build_corpus,
    rule=snakemake.rule,
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=snakemake.params.items(),
    threads=snakemake.threads,
    log=snakemake.log[0],
)
