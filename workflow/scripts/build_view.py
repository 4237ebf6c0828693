"""Build one view."""

from crosslign.stages.build_view import build_view
from crosslign.stages.job import execute

execute(
    build_view,
    rule=snakemake.rule,
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=snakemake.params.items(),
    threads=snakemake.threads,
    gpus=snakemake.resources.get("gpu", 0),
    log=snakemake.log[0],
)
