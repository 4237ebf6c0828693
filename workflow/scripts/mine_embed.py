"""Encode one side of a user's own mining."""

from _engine import run

from crosslign.stages.mine_embed import mine_embed

run(mine_embed, snakemake)
