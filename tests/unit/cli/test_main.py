"""The command line as shells use it: closed streams, readers that go, signals, numbers that are none."""

import csv
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import crosslign
from crosslign.cli.main import main

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-c", "import sys; from crosslign.cli.main import main; sys.exit(main(sys.argv[1:]))"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUNBUFFERED": ""}
SNAKEMAKE = """
import pathlib, signal, sys, time
def stop(number, frame):
    time.sleep(1)
    pathlib.Path("stopped").touch()
    sys.exit(7)
signal.signal(signal.SIGINT, stop), signal.signal(signal.SIGTERM, stop)
pathlib.Path("started").touch()
time.sleep(100)
"""


def test_a_reader_that_goes_is_no_error():
    with subprocess.Popen([*COMMAND, "--help"], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert (process.stderr.read(), process.wait(timeout=120)) == ("", 0)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_closed_streams_are_no_error(closed):
    done = subprocess.run(
        ["sh", "-c", f'"$@" {closed}', "sh", *COMMAND, "--help"], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("asked", [["--help"], ["status", "."]])
def test_a_full_disk_behind_the_output_is_an_error_in_words(tmp_path, unbuffered, asked):
    (tmp_path / "benchmarks").mkdir()
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [*COMMAND, *asked],
            cwd=tmp_path,
            env={**ENVIRONMENT, "PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.stderr, done.returncode) == ("error: <stdout>: the output of the command cannot be written; No space left on device\n", 4)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("asked", [["nope"], ["verify", "nowhere"]])
def test_messages_that_nobody_can_read_change_no_exit_code(unbuffered, asked):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([*COMMAND, *asked], env={**ENVIRONMENT, "PYTHONUNBUFFERED": unbuffered}, stderr=full, check=False)
    assert done.returncode == 2


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_without_utf_8_shows_what_it_can(monkeypatch, encoding):
    shown = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", shown)
    monkeypatch.setattr("crosslign.cli.main._run", lambda _: print("xx→en", flush=True))
    main([])
    assert shown.buffer.getvalue().decode(encoding) == ("xx→en\n" if encoding == "utf-8" else "xx?en\n")


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.5", ""])
@pytest.mark.parametrize("option", ["--cores", "--gpus"])
def test_a_plan_is_for_one_device_or_more(capsys, option, number):
    with pytest.raises(SystemExit) as ended:
        main(["plan", f"{option}={number}"])
    assert ended.value.code == 2
    assert "is not a number of 1 or more" in capsys.readouterr().err


def test_the_version_and_exit_codes_are_told(capsys):
    for option, said in (("--version", f"crosslign {crosslign.__version__}"), ("--help", "130 Ctrl-C")):
        with pytest.raises(SystemExit) as ended:
            main([option])
        assert ended.value.code == 0
        assert said in " ".join(capsys.readouterr().out.split())


def test_a_target_behind_config_is_told_where_it_belongs(capsys):
    assert main(["plan", "--directory", str(ROOT), "--config", "scale=quick", "mpcl_table1"]) == 2
    assert "--config 'mpcl_table1' has no value. Write KEY=VALUE; put targets and files before --config" in capsys.readouterr().err


def test_a_plan_lists_its_files(capsys):
    paper = ["--config", "scale=paper", "papers=[moco_bert]"]
    assert main(["plan", "--directory", str(ROOT), "--files", "cwmt_neu2017_en-zh", *paper]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [(row["source"], row["in_mirror"], row["state"]) for row in rows] == [
        ("cwmt", "cwmt/neu2017.zip", "fetch"),
    ]


@pytest.mark.parametrize(("number", "to_all"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_a_mining_that_is_stopped_waits_for_snakemake(tmp_path, number, to_all):
    """As Ctrl-C does, which a terminal sends to both, and `kill`; a Snakemake that is killed would leave its lock behind."""
    (tmp_path / "config").mkdir()
    for path in (*(ROOT / "config").iterdir(), ROOT / "workflow"):
        (tmp_path / path.relative_to(ROOT)).symlink_to(path)
    (tmp_path / "config" / "config.yaml").unlink()
    side = "{{file: {0}.txt, lang: {0}}}"
    mine = f"{{system: tiny_bert, source: {side.format('en')}, target: {side.format('de')}}}"
    (tmp_path / "config" / "config.yaml").write_text(f"scale: quick\nmine: {{m: {mine}}}\n", encoding="utf-8")
    for lang in ("en", "de"):
        (tmp_path / f"{lang}.txt").write_text("text\n", encoding="utf-8")
    (tmp_path / "snakemake.py").write_text(SNAKEMAKE, encoding="utf-8")
    with subprocess.Popen([*COMMAND, "mine", "m"], cwd=tmp_path, env=ENVIRONMENT, start_new_session=True) as process:
        end = time.monotonic() + 120
        while not (tmp_path / "started").exists() and time.monotonic() < end:
            time.sleep(0.05)
        (os.killpg if to_all else os.kill)(process.pid, number)
        assert process.wait(timeout=120) == 7
    assert (tmp_path / "stopped").exists()
