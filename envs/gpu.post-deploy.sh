#!/usr/bin/env bash
# Runs in the environment of gpu.yaml, from the repository root. Its text is part of what Snakemake knows the environment by, and so is
# requirements.lock, 965a62fffeb316524129bff3161e4f334ba7a75653125b498744e27c677b7397.
# PyPI's build of torch for Linux carries CUDA; faiss-cpu would be put over conda's faiss-gpu.
set -euo pipefail
grep -v '^faiss-cpu==' envs/requirements.lock | python -m pip install -r /dev/stdin
python -m pip install --no-deps -e .
