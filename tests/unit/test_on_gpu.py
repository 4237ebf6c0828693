"""The one command for a GPU, benchmarks/on_gpu.sh: with stand-ins for Python and other programs, and its page of figures."""

import os
import platform
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from torch.autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg

from crosslign.encoders.packed import fused

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"

PYTHON = """
case "$*" in
*mining.py*) echo no room; exit 3 ;;
*) echo "given $*" ;;
esac
"""
SANITIZER = """
[ "$1 $2 $3 $4" = "--tool memcheck --error-exitcode 1" ] || exit 9
shift 4
"$@"
echo "========= ERROR SUMMARY: 2 errors"
exit 1
"""


MAIN = ("training", "encoding", "mining", "kernels", "tests", "memcheck", "profile")
"""Parts that a call for all has time for, in their order."""


@pytest.fixture
def on_gpu(command, tmp_path):
    """Run the one command with stand-ins for Python and other programs; its report lies beside them."""

    def run(python, *options, **variables):
        command("python", python)
        command("compute-sanitizer", SANITIZER)
        given = ["sh", FOLDER / "on_gpu.sh", *options, tmp_path / "report.txt"]
        return subprocess.run(
            given, env={**os.environ, "PYTHON": str(tmp_path / "python"), **variables}, capture_output=True, text=True, check=False
        )

    return run


def test_on_a_gpu_one_command_measures_all_and_a_part_that_fails_stops_no_other(on_gpu, tmp_path):
    done, report = on_gpu(PYTHON), tmp_path / "report.txt"
    assert done.returncode == 3
    assert report.read_text() == done.stdout
    for name in ("gpu_training", "encoding", "gpu_kernels", "gpu_page"):
        assert f"given benchmarks/{name}.py " in done.stdout
        assert (FOLDER / f"{name}.py").is_file()
    assert "no room\n-- exit status 3 after " in done.stdout
    assert "given benchmarks/gpu_kernels.py\n========= ERROR SUMMARY: 2 errors\n-- exit status 1 after " in done.stdout
    files = re.search(r"given -m pytest .*", done.stdout)[0].split(" not generations ")[1].split()
    assert "tests/unit/encoders/test_encode.py" in files
    # mining, with a million rows, too, and memcheck
    assert f"== 3 parts failed\ngiven benchmarks/gpu_page.py --report {report}\n" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["compute-sanitizer", "python", "report.txt"]


@pytest.mark.parametrize("parts", [(), ("--part", "encoding", "--part", "mining")], ids=["all", "some"])
def test_every_command_of_a_gpu_is_one_that_its_program_takes(benchmark, on_gpu, monkeypatch, parts):
    said = on_gpu('echo "given $*"\n', *parts, TEXTS="texts", TOKENIZER="folder").stdout
    commands = [line.split()[1:] for line in said.splitlines() if re.match("given benchmarks/[a-z]", line) and "gpu_page" not in line]
    assert len(commands) == (3 if parts else 9)
    for command in commands:
        program, asked = benchmark(Path(command[0]).stem), []
        monkeypatch.setattr(program, "no_gpu", lambda asked=asked: asked.append(1) or True)
        monkeypatch.setattr(program, "limit_threads", lambda _: None, raising=False)
        monkeypatch.setattr("sys.argv", command)
        program.main()
        assert asked, "it is for a GPU"


TIMEOUT = """
[ "$1 $2" = "-k 10" ] || exit 9
echo "seconds: $3"
exit 124
"""


def test_a_call_for_all_on_a_gpu_shares_its_time_and_a_part_that_is_asked_for_has_all(on_gpu, command):
    command("timeout", TIMEOUT)
    done = on_gpu(PYTHON)
    seconds = [int(found) for found in re.findall("^seconds: (.*)", done.stdout, re.MULTILINE)]
    assert re.findall(r"^== (\w+): ", done.stdout, re.MULTILINE)[:7] == [*MAIN]
    assert sum(seconds[:7]) <= 560  # and ten to begin, and for the page
    left = " ".join(f"--part {name}" for name in (*MAIN, "row_updates", "mining_large"))
    assert f"== no time was left for all of: {left}\n== 0 parts failed\n" in done.stdout
    assert done.returncode == 0
    for name in MAIN:
        done = on_gpu(PYTHON, "--part", name)
        assert int(re.search("^seconds: (.*)", done.stdout, re.MULTILINE)[1]) > 560
        assert f"== no time was left for all of: --part {name}\n" in done.stdout
        assert done.returncode > 0


ALONE = """
import importlib.machinery, re, sys
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions

def name_of(given):
    return re.sub("[-_.]+", "-", given).lower()

known, asked = set(), [name_of(name) for name in sys.argv.pop(1).split(", ")]
while asked:
    known.add(name := asked.pop())
    try:
        needs = [need for need in distribution(name).requires or () if "extra ==" not in need]
    except PackageNotFoundError:
        continue
    asked += {name_of(re.match(r"[\\w.-]+", need)[0]) for need in needs} - known
others = {top for top, owners in packages_distributions().items() if known.isdisjoint(map(name_of, owners))} - {"crosslign"}
real = importlib.machinery.PathFinder

class Only:
    find_distributions, invalidate_caches = real.find_distributions, real.invalidate_caches

    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name.partition(".")[0] in others else real.find_spec(name, path, target)

sys.meta_path[:] = [Only if finder is real else finder for finder in sys.meta_path]
import pytest
sys.exit(pytest.main([*sys.argv[1:], "--collect-only", "-p", "no:cacheprovider"]))
"""
"""Collects tests on a machine that has, beside Python's own, the packages of the first argument and what these need."""


def test_the_tests_of_a_gpu_need_the_packages_that_the_one_command_names(on_gpu):
    """One that is missing would end the whole part when its tests are collected."""
    said = " ".join(line.lstrip("# ") for line in (FOLDER / "on_gpu.sh").read_text().splitlines() if line.startswith("#"))
    packages = re.search(r"a python3 \(.*?\) with (.*?)\. ", said)[1].replace(" and ", ", ")
    files = re.search(r"given -m pytest .*", on_gpu(PYTHON, "--part", "tests").stdout)[0].split(" not generations ")[1].split()
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(FOLDER.parent / "src")}
    done = subprocess.run(
        [sys.executable, "-c", ALONE, packages, *files], cwd=FOLDER.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_on_a_gpu_a_part_can_be_asked_for_alone(on_gpu):
    done = on_gpu(PYTHON, "--part", "tests", "--part", "kernels")
    assert re.findall(r"^== (\w+): ", done.stdout, re.MULTILINE) == ["kernels", "tests"]
    assert done.returncode == 0


def test_on_a_machine_without_gpu_the_one_command_says_so(tmp_path):
    command, hidden = ["sh", FOLDER / "on_gpu.sh", tmp_path / "report.txt"], {"PYTHON": sys.executable, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, env={**os.environ, **hidden}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "sees no CUDA device" in done.stdout
    assert "parts failed" not in done.stdout


def test_a_call_on_a_gpu_ends_in_time_and_says_what_is_left_for_another(on_gpu):
    python = 'case "$*" in *gpu_training*) sleep 3 ;; esac\n'
    done = on_gpu(python, "--part", "training", "--part", "encoding", "--part", "mining", LIMIT="21")
    assert re.findall(r"^== (\w+): ", done.stdout, re.MULTILINE) == ["training"]
    assert "== no time was left for all of: --part encoding --part mining\n== 0 parts failed\n" in done.stdout


SPOKEN = """
case "$*" in
*gpu_page*) exec {python} "$@" ;;
*pytest*) printf ...; exit 1 ;;
*gpu_training*) cat {folder}/training ;;
*encoding.py*) cat {folder}/encoding; exit 124 ;;
*mining.py*) cat {folder}/mining; exit 3 ;;
*--profile*) cat {folder}/profile ;;
*gpu_kernels*) cat {folder}/kernels; exit 1 ;;
*row_updates*) cat {folder}/row_updates ;;
*) ;;
esac
"""


def profiled():
    """Return the profiler's own table of a step that calls two kernels, one three times as long as the other."""
    found = []
    for ms, device in ((1, DeviceType.CUDA), (3, DeviceType.CUDA), (2, DeviceType.CPU)):
        event = FunctionEvent(ms, f"void of<{ms}, int>(float*)", 0, 0, 1000 * ms, device_type=device, use_device="cuda", stack=[])
        found.append(FunctionEventAvg().add(event))
    return EventList(found, use_device="cuda").table(sort_by="self_cuda_time_total")


def turns_to_their_end(encoding, encode):
    for medians in encoding.alternate(dict.fromkeys(("ours, bf16", "default"), encode), ["a", "b", "c"], 3):
        encoding.beside(medians, "ours, bf16")
        print("ratio: 1.50")


def test_the_report_of_a_gpu_ends_with_a_page_of_its_figures(benchmark, on_gpu, tmp_path, monkeypatch, capsys):
    """The lines are printed by the benchmarks' own functions."""
    training, encoding, mining = (benchmark(name) for name in ("gpu_training", "encoding", "mining"))
    found = {"ms": 36.6, "mean_ms": 37.0, "host_ms": 30.0, "tokens": 1e5, "tflops": 99.0, "memory": 812.0, "losses": [2.0, 1.0]}
    training.report("on", "base64", found, 990.0)
    training.report("peer, unpadded", "base64", found | {"ms": 70.2}, 990.0)
    training.report("on", "large128", found | {"ms": 65.25}, 0.0)
    training.report("flash", "large128", {"error": "out of memory"}, 0.0)
    (tmp_path / "training").write_text(capsys.readouterr().out + "ratio: 1.92\n")
    encoding.describe(["a b"], Namespace(threads=1, device="cuda", shape="xlm_r_large"))
    calls = [0] * 5  # it ends in the third turn

    def encode(texts):
        calls.pop()
        return np.eye(3, dtype=np.float32)

    with pytest.raises(IndexError):
        turns_to_their_end(encoding, encode)
    (tmp_path / "encoding").write_text(capsys.readouterr().out)
    monkeypatch.setattr("sys.argv", ["mining.py", "--rows", "300", "--dim", "16", "--threads", "1", "--repeats", "1"])
    mining.main()
    (tmp_path / "mining").write_text(capsys.readouterr().out)
    kernels, rows = benchmark("gpu_kernels"), benchmark("row_updates")
    monkeypatch.setattr(kernels, "no_gpu", lambda: False)
    monkeypatch.setattr(fused, "working", lambda _, dtype, heads, size: frozenset(fused.CHECKS.keys() - ({"gelu"} if size == 32 else ())))
    monkeypatch.setattr("sys.argv", ["gpu_kernels.py"])
    with pytest.raises(SystemExit) as failed:
        kernels.main()
    (tmp_path / "kernels").write_text(f"{capsys.readouterr().out}{failed.value}\n")
    monkeypatch.setattr("sys.argv", ["row_updates.py", "--dim", "4", "--tokens", "8", "--steps", "2"])
    rows.main()
    (tmp_path / "row_updates").write_text(capsys.readouterr().out)
    (tmp_path / "profile").write_text(profiled())
    printed, page = on_gpu(SPOKEN.format(python=sys.executable, folder=tmp_path)).stdout.split("## On a GPU\n")
    assert "| a step; share of the peak | base64 | large128 |\n| --- | ---: | ---: |\n| on | 36.6 ms; 10.0% | 65.2 ms |\n" in page
    assert "| peer, unpadded | 70.2 ms; 10.0% | – |" in page
    assert "- **ratio: 1.92**" in page
    assert len(re.findall(r"^\| ours, bf16 \| \d+ \| 1\.000000 \|$", page, re.MULTILINE)) == 2  # encodings; of their turns the last
    assert (
        page.count("- turns beside the default: 2 of 3\n")
        == page.count("- ours, bf16, beside default: ")
        == page.count("- **ratio: 1.50**")
        == 2
    )
    assert re.search(r"^\*\*encoding\*\*, \d s, then its time was up: `", page, re.MULTILINE)
    assert "Not measured, no time was left for all of: --part encoding" in page
    assert re.search(r"^\*\*memcheck\*\*, \d s, exit status 1: `.*\n\n- python .*\n(- .*\n)*- ERROR SUMMARY: 2 errors$", page, re.MULTILINE)
    assert re.search(r"^\*\*tests\*\*, \d s, exit status 1: `", page, re.MULTILINE)
    assert re.search(r"^\| ours \| [\d.]+ \| \d+ \|$", page, re.MULTILINE)
    assert re.search(r"^\*\*mining\*\*, \d s, exit status 3: `", page, re.MULTILINE)
    assert "- task: random-cluster vectors, seeds 1 and 2, 300 x 300 x 16" in page
    assert f"commit {re.search('commit (.*)', printed)[1]}" in page
    assert "- large128: flash: out of memory\n" in page
    assert "- torch.bfloat16, 12 heads of 64: add_norm, attention, gelu\n" in page
    assert "- kernels that do not work here: gelu (torch.bfloat16, 12x32), gelu (torch.float16, 12x32)\n" in page
    assert "- 100% of the rows used: ours " in page
    assert "| void of<3, int>(float*) | 3.000ms | 75.00% | 1 |\n| void of<1, int>(float*) | 1.000ms | 25.00% | 1 |\n" in page
    assert "- Self CUDA time total: 4.000ms" in page
    version = f"- python {platform.python_version()}, "
    assert page.count(version) == 2 + 2 + 2 + 1  # encodings, mining, kernels and memcheck, rows
