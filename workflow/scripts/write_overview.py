"""Write the overview of tables and figures."""

from _engine import run

from crosslign.stages.write_overview import write_overview

run(write_overview, snakemake)
