"""Measure the overlap of corpora and evaluation sets."""

from crosslign.stages.job import execute
from crosslign.stages.measure_overlap import measure_overlap

execute(
    measure_overlap,
    rule=snakemake.rule,
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=snakemake.params.items(),
    threads=snakemake.threads,
    log=snakemake.log[0],
)
