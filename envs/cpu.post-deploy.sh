#!/usr/bin/env bash
# Runs in the environment of cpu.yaml, from the repository root. Its text is part of what Snakemake knows the environment by, and so is
# requirements.lock, 965a62fffeb316524129bff3161e4f334ba7a75653125b498744e27c677b7397.
set -euo pipefail
python -m pip install -r envs/requirements.lock
python -m pip install --no-deps -e .
