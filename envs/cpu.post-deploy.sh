#!/usr/bin/env bash
# Runs in the environment of cpu.yaml, from the repository root. Its text is part of what Snakemake knows the environment by, and so is
# requirements.lock, a18d9aa523ab372f90f5ce16f5c81920a95ebd56412f756c4d9fd73fbe3d95e3.
set -euo pipefail
python -m pip install -r envs/requirements.lock
python -m pip install --no-deps -e .
