"""Build one corpus."""

from _engine import run

from crosslign.stages.build_corpus import build_corpus

run(build_corpus, snakemake)
