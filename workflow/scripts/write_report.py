"""Write the report."""

from _engine import run

from crosslign.stages.write_report import write_report

run(write_report, snakemake)
