"""Make one table."""

from _engine import run

from crosslign.stages.make_table import make_table

run(make_table, snakemake)
