"""Prepare one base encoder."""

from _engine import run

from crosslign.stages.prepare_encoder import prepare_encoder

run(prepare_encoder, snakemake)
