"""The download stage of each paper, rehearsed against servers that fail as publishers do."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from crosslign.corpora.fetch import Patience, fetch_file
from crosslign.corpora.loopback import FAULTS, Publishers, serving
from crosslign.errors import NetworkError

ROOT = Path(__file__).resolve().parents[2]


def rehearse(*words, python=sys.executable):
    """Give the command; the client of the hub reads its variables as it is loaded, and needs a process that loads it."""
    command = [python, "-c", "from crosslign.cli.main import main; raise SystemExit(main())", "rehearse", *words, "--config", "scale=paper"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1400, check=False)


def test_a_small_target_comes_whole_through_failures(forked_python):
    done = rehearse("xcopa_test", "copa_train", "--faults", "0.8", python=forked_python)
    assert done.returncode == 0, done.stdout + done.stderr
    wanted, asked, failed = map(int, re.search(r"(\d+) files, (\d+) requests, (\d+)", done.stdout).groups())
    assert wanted > 10
    assert 0 < failed < asked
    assert f"{wanted} of {wanted} files are right" in done.stdout


def test_base_encoders_come_through_the_hubs_failures():
    done = rehearse("xlm-r", "infoxlm-base", "--faults", "0.5")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2 files are right" in done.stdout


def test_a_target_without_downloads_is_told(forked_python):
    done = rehearse("written_nli", python=forked_python)
    assert (done.returncode, done.stdout) == (0, "these targets download nothing\n")


@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("paper", ["msimcse", "moco_bert", "scl", "mpcl", "emma_x", "bible_test"])
def test_the_downloads_of_a_paper_end_with_every_file_right(paper):
    done = rehearse(paper)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert int(re.search(r"(\d+) of \1 files are right", done.stdout)[1]) > (0 if paper == "bible_test" else 200)
    assert paper == "bible_test" or {*FAULTS, "outage"} <= set(re.findall(r"^  (\w+) +\d+$", done.stdout, re.MULTILINE))


def test_a_publisher_that_has_lost_a_file_is_told(tmp_path, online, waits):
    with serving(Publishers({"/a.txt": b"text"}, 0.0, 1)) as server, pytest.raises(NetworkError, match="404"):
        fetch_file("set", {"url": server.address}, {"name": "b.txt"}, tmp_path / "set" / "b.txt", [], Patience(tries=2))
