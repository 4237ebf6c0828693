"""Stage figures: one figure as PNG and SVG, its numbers as CSV."""

from __future__ import annotations

from crosslign.jobs.job import Job
from crosslign.reporting.figures._draw import draw
from crosslign.stages import STAGES


@STAGES.register(version=3)
def draw_figure(job: Job) -> None:
    """Draw one figure."""
    recipe = job.params["recipe"]
    with job.publish("figure") as (out, _):
        draw(recipe, job.params["inputs"], out)
