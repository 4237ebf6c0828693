"""Write the pairs of a user's own mining."""

from _engine import run

from crosslign.stages.mine_pairs import mine_pairs

run(mine_pairs, snakemake)
