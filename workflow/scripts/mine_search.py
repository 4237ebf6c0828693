"""Find the nearest neighbours of both sides of a user's own mining."""

from _engine import run

from crosslign.stages.mine_search import mine_search

run(mine_search, snakemake)
