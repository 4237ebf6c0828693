"""Runs the stage that a rule names, as a job of it; the library knows no workflow engine, and this script hands it what one gives."""

from crosslign.collector import collect_rarely

collect_rarely()  # before a stage is imported, and with it torch

from crosslign.jobs.frame import execute  # noqa: E402
from crosslign.stages import STAGES  # noqa: E402

execute(
    STAGES.get(snakemake.params.stage),
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=snakemake.params.items(),
    resources=snakemake.resources.items(),
    threads=snakemake.threads,
    log=snakemake.log[0],
)
