"""Tokenise a training set."""

from _engine import run

from crosslign.stages.tokenise import tokenise

run(tokenise, snakemake)
