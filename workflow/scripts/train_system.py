"""Train one run."""

from crosslign.stages.job import execute
from crosslign.stages.train_system import train_system

execute(
    train_system,
    rule=snakemake.rule,
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=snakemake.params.items(),
    threads=snakemake.threads,
    gpus=snakemake.resources.get("gpu", 0),
    log=snakemake.log[0],
)
