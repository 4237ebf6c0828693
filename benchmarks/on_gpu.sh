#!/bin/sh
# Everything that is measured and tested on a GPU, in one go or by parts, the main figure first:
#
#     sh benchmarks/on_gpu.sh [--part PART]... [REPORT]    # or `make gpu`; the report is gpu.txt unless another file is named
#
# PART is one of training, encoding, mining, tests, kernels, memcheck, row_updates, profile, mining_large, and may be given several times; without, all
# take their turn. The call ends after LIMIT seconds (570): what then had no time is named at the end, with the options for another call.
# All but mining_large took some fifteen minutes on an H100: two calls. SETTINGS holds options of benchmarks/gpu_training.py.
# Needs one CUDA device and a python3 (PYTHON names another) with torch, triton, transformers, accelerate, sentence-transformers, datasets,
# annotated-types, httpx2, pyarrow, sentencepiece, xxhash, pytest and hypothesis. faiss is a peer where it is there. Nothing is fetched. TEXTS, a file
# of sentences, and TOKENIZER, a folder of XLM-R's tokenizer, make the encoded sentences real. All of it is printed and stands in the
# report: machine, driver, versions, seeds, figures; behind it the same as a page, to be pasted into docs/archive/measurements.md. A part
# that fails or takes too long does not stop the others; the exit status is the number of such parts.
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

# Run a command of a part for so many seconds at most; print it, its output, its exit status and its time.
part() {
    name=$1 limit=$2
    shift 2
    case " ${parts:-$name} " in *" $name "*) ;; *) return ;; esac
    began=$(date +%s)
    rest=$((${LIMIT:-570} - began + started))
    if [ $rest -lt 20 ]; then
        case "$left " in *" --part $name "*) ;; *) left="$left --part $name" ;; esac
        return
    fi
    [ $limit -le $rest ] || limit=$rest
    echo "== $name: $*"
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
    encoders="$work/encoders"
    part training 240 "$python" benchmarks/gpu_training.py --folder "$encoders" $SETTINGS
    flash=$("$python" benchmarks/_flash.py "$work")
    real=${TEXTS:+--texts $TEXTS --tokenizer $TOKENIZER}
    for sizes in "16 --sentences 8000" "1 --sentences 2000"; do
        part encoding 230 env PYTHONPATH="$flash:$PYTHONPATH" "$python" benchmarks/encoding.py --device cuda --precision bf16 \
            --shape xlm_r_large --folder "$encoders" --repeats 2 $real --threads $sizes
    done
    mining="benchmarks/mining.py --device cuda --dim 1024 --without-sentence-transformers"
    part mining 120 "$python" $mining --rows 400000 --repeats 2
    # Only files that speak of GPUs, and of no config: others need the whole lock.
    tests=$(grep -rl cuda --include='test_*.py' tests/unit/encoders tests/unit/mining tests/unit/training | xargs grep -L crosslign.config | sort)
    part tests 150 "$python" -m pytest -q -rs -p no:cacheprovider -k "(gpu or cuda) and not generations" tests/gpu $tests
    part kernels 60 "$python" benchmarks/gpu_kernels.py
    command -v compute-sanitizer >/dev/null && part memcheck 60 compute-sanitizer --tool memcheck "$python" benchmarks/gpu_kernels.py
    part row_updates 60 "$python" benchmarks/row_updates.py --device cuda --dim 1024 --tokens 32768
    part profile 60 "$python" benchmarks/gpu_kernels.py --profile --folder "$encoders"
    part mining_large 300 "$python" $mining --rows 1000000 --repeats 1
    [ -z "$left" ] || echo "== no time was left for:$left"
    echo "== $failed parts failed"
    exit "$failed"
}

# A pipe would give the exit status of `tee`.
{ (run) 2>&1; echo $? >"$work.status"; } | tee "$report"
status=$(cat "$work.status")
"$python" benchmarks/gpu_page.py --report "$report" >"$work/page.md" && tee -a "$report" <"$work/page.md"
rm -rf "$work" "$work.status"
exit "$status"
