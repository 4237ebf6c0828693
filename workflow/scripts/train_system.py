"""Train one run."""

from crosslign.config.entry_keys import PACE
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
    pace={key: snakemake.resources.get(key) for key in PACE},
    log=snakemake.log[0],
)
