"""Draw one figure."""

from crosslign.stages.draw_figure import draw_figure
from crosslign.stages.job import execute

execute(
    draw_figure,
    rule=snakemake.rule,
    inputs=snakemake.input.items(),
    outputs=snakemake.output.items(),
    params=snakemake.params.items(),
    threads=snakemake.threads,
    log=snakemake.log[0],
)
