"""Measure the overlap of corpora and evaluation sets."""

from _engine import run

from crosslign.stages.measure_overlap import measure_overlap

run(measure_overlap, snakemake)
