#!/bin/sh
# Everything that is measured and tested on a GPU, in one go, in ten minutes at most:
#
#     sh benchmarks/on_gpu.sh [REPORT]       # or `make gpu`; the report is gpu.txt unless another file is named
#
# Needs one CUDA device and a python3 (PYTHON names another) with torch, transformers, accelerate, sentence-transformers, pyarrow,
# sentencepiece, xxhash and pytest; the rest of the lock adds peers (faiss, datasets) and is not asked for. Nothing is fetched. All of it is
# printed and stands in the report: machine, driver, versions, seeds, figures. A part that fails or takes too long does not stop the others;
# the exit status is the number of such parts.
cd "$(dirname "$0")/.." || exit 1
report=${1:-gpu.txt}
python=${PYTHON:-python3}
export PYTHONPATH="$PWD/src" PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1
failed=0

# Run a command for so many seconds at most; print it, its output, its exit status and its time.
part() {
    limit=$1
    shift
    echo "== $*"
    began=$(date +%s)
    timeout "$limit" "$@" 2>&1
    status=$?
    echo "-- exit status $status after $(($(date +%s) - began)) s"
    [ $status -eq 0 ] || failed=$((failed + 1))
}

run() {
    date -u
    echo "commit $(git rev-parse HEAD 2>/dev/null || echo unknown)"
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv,noheader
    "$python" -c 'import torch; assert torch.cuda.is_available(), f"torch {torch.__version__} sees no CUDA device"' || exit 1
    part 120 "$python" benchmarks/training.py --device cuda
    part 90 "$python" benchmarks/mining.py --device cuda
    part 90 "$python" benchmarks/encoding.py --device cuda --shape minilm_l6
    part 120 "$python" benchmarks/encoding.py --device cuda --shape xlm_r_large --sentences 4000
    # Only files that speak of GPUs: others need the whole lock.
    tests=$(grep -rl cuda --include='test_*.py' tests/unit/encoders tests/unit/mining tests/unit/training | sort)
    part 150 "$python" -m pytest -q -rs -p no:cacheprovider -k "gpu or cuda" tests/gpu $tests
    echo "== $failed of 5 parts failed"
    exit "$failed"
}

# A pipe would give the exit status of `tee`.
{ (run) 2>&1; echo $? >"$report.status"; } | tee "$report"
status=$(cat "$report.status")
rm -f "$report.status"
exit "$status"
