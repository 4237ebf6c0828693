"""Build one view."""

from _engine import run

from crosslign.stages.build_view import build_view

run(build_view, snakemake)
