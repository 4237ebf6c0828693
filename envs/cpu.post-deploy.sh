#!/usr/bin/env bash
# Runs in the environment of cpu.yaml, from the repository root. Its text is part of what Snakemake knows the environment by, and so is
# requirements.lock, 80b7a19ec9d619ebd8c3b023300fd2830792433fd81f0731216ab096253f1e78.
set -euo pipefail
python -m pip install -r envs/requirements.lock
python -m pip install --no-deps -e .
