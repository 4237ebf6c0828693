#!/bin/sh
# Everything that is measured and tested on a GPU, in one go or by parts, the main figure first:
#
#     sh benchmarks/on_gpu.sh [--part PART]... [REPORT]    # or `make gpu`; the report is gpu.txt unless another file is named
#
# PART is one of training, encoding, mining, kernels, tests, memcheck, profile, row_updates, mining_large, and may be given several times.
# The call ends after LIMIT seconds (570). Without --part the first seven share them, with fewer sentences and turns; a part that is asked
# for is measured whole and has all the time that is left. A part whose time is up keeps what it has printed. What had no time, or too
# little, is named at the end, with the options for another call. SETTINGS holds options of benchmarks/gpu_training.py.
# Needs one CUDA device and a python3 (PYTHON names another) with torch, triton, transformers, accelerate, sentence-transformers, datasets,
# annotated-types, httpx2, pyarrow, sentencepiece, xxhash, pytest and hypothesis. faiss is a peer where it is there; memcheck needs CUDA's
# compute-sanitizer. Nothing is fetched. TEXTS, a file of sentences, and TOKENIZER, a folder of XLM-R's tokenizer, make the encoded
# sentences real. All of it is printed and stands in the report: machine, driver, versions, seeds, figures; behind it the same as a page,
# to be pasted into docs/archive/measurements.md. A part that fails does not stop the others; the exit status is the number of such parts.
# One that was asked for and whose time was up has failed.
cd "$(dirname "$0")/.." || exit 1
python=${PYTHON:-python3}
parts=
while [ "$1" = --part ]; do
    parts="$parts $2"
    shift 2
done
report=${1:-gpu.txt}
work=$(mktemp -d)
export PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error TMPDIR="$work"
failed=0 left= started=$(date +%s)

if [ -n "$parts" ]; then
    sentences=8000 repeats=2
else
    sentences=4000 repeats=1
fi

# Name a part for another call, once.
later() {
    case "$left " in *" --part $1 "*) ;; *) left="$left --part $1" ;; esac
}

# Run a command of a part for its share of seconds, or all that are left; print it, its output, its exit status (124: time was up), its
# time.
part() {
    name=$1 share=$2
    shift 2
    case " ${parts:-$name} " in *" $name "*) ;; *) return ;; esac
    began=$(date +%s)
    rest=$((${LIMIT:-570} - began + started))
    if [ $rest -lt 20 ]; then
        later "$name"
        return
    fi
    [ -n "$parts" ] || [ $share -gt $rest ] || rest=$share
    echo "== $name: $*"
    timeout -k 10 "$rest" "$@" 2>&1 # a training takes a first signal as a request to save
    status=$?
    echo "-- exit status $status after $(($(date +%s) - began)) s"
    [ $status -ne 124 ] || later "$name"
    [ $status -eq 0 ] || [ "$status$parts" = 124 ] || failed=$((failed + 1))
}

run() {
    date -u
    echo "commit $(git rev-parse HEAD 2>/dev/null || echo unknown)"
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv,noheader
    "$python" -c 'import torch; assert torch.cuda.is_available(), f"torch {torch.__version__} sees no CUDA device"' || exit 1
    encoders="$work/encoders"
    part training 160 "$python" benchmarks/gpu_training.py --folder "$encoders" $SETTINGS
    flash=$("$python" benchmarks/_flash.py "$work")
    encoding="benchmarks/encoding.py --device cuda --precision bf16 --shape xlm_r_large --repeats $repeats"
    encoding="$encoding ${TEXTS:+--texts $TEXTS --tokenizer $TOKENIZER}"
    part encoding 90 env PYTHONPATH="$flash:$PYTHONPATH" "$python" $encoding --folder "$encoders" --threads 16 --sentences $sentences
    mining="benchmarks/mining.py --device cuda --dim 1024 --without-sentence-transformers"
    part mining 65 "$python" $mining --rows 400000 --repeats $repeats
    part kernels 40 "$python" benchmarks/gpu_kernels.py
    # Only files that speak of GPUs, and of no config: others need the whole lock.
    tests=$(grep -rl cuda --include='test_*.py' tests/unit/encoders tests/unit/mining tests/unit/training | xargs grep -L crosslign.config | sort)
    part tests 115 "$python" -m pytest -q -rs -p no:cacheprovider -k "(gpu or cuda) and not generations" tests/gpu $tests
    # Each tensor has memory of its own: what is read beyond its end would else be another's, and no error.
    part memcheck 60 env PYTORCH_NO_CUDA_MEMORY_CACHING=1 \
        compute-sanitizer --tool memcheck --error-exitcode 1 "$python" benchmarks/gpu_kernels.py
    part profile 30 "$python" benchmarks/gpu_kernels.py --profile --folder "$encoders"
    part encoding 90 env PYTHONPATH="$flash:$PYTHONPATH" "$python" $encoding --folder "$encoders" --threads 1 --sentences 2000
    part row_updates 60 "$python" benchmarks/row_updates.py --device cuda --dim 1024 --tokens 32768
    part mining_large 300 "$python" $mining --rows 1000000 --repeats 1
    [ -z "$left" ] || echo "== no time was left for all of:$left"
    echo "== $failed parts failed"
    exit "$failed"
}

# A pipe would give the exit status of `tee`.
{ (run) 2>&1; echo $? >"$work.status"; } | tee "$report"
status=$(cat "$work.status")
"$python" benchmarks/gpu_page.py --report "$report" >"$work/page.md" && tee -a "$report" <"$work/page.md"
rm -rf "$work" "$work.status"
exit "$status"
