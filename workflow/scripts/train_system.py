"""Train one run."""

from _engine import run

from crosslign.stages.train_system import train_system

run(train_system, snakemake)
