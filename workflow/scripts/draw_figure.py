"""Draw one figure."""

from _engine import run

from crosslign.stages.draw_figure import draw_figure

run(draw_figure, snakemake)
