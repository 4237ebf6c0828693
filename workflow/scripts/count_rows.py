"""Count what stands behind one table."""

from _engine import run

from crosslign.stages.count_rows import count_rows

run(count_rows, snakemake)
