"""Read one side of a user's own mining."""

from _engine import run

from crosslign.stages.mine_texts import mine_texts

run(mine_texts, snakemake)
