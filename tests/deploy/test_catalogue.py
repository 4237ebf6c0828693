"""The catalogue of Snakemake workflows would take this repository: by its written rules, and by its own checker.

The checker is fetched from GitHub; where that cannot be reached, CROSSLIGN_CATALOGUE names a clone that has its commit.
"""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from project_copy import ROOT, environment
from ruamel.yaml import YAML

CLAIMS = YAML(typ="safe").load((ROOT / ".snakemake-workflow-catalog.yml").read_text(encoding="utf-8"))["usage"]
CATALOGUE, SCRIPT = "snakemake/snakemake-workflow-catalog", "scripts/generate-catalog.py"
COMMIT = "2cac294671d0cd9dc1b84c6c390091fe6341bd48"
STAND_IN = '''
"""What the checker asks GitHub, answered by a folder: all else is its own."""
import os
from datetime import datetime
from types import SimpleNamespace

WHERE = os.environ["CHECKED"]
REPO = SimpleNamespace(full_name="own/crosslign", description="", stargazers_count=0, subscribers_count=0, clone_url=WHERE,
                       updated_at=datetime(2026, 1, 1), get_releases=lambda: [], get_topics=lambda: [])
g = SimpleNamespace(get_repo=lambda name: REPO, render_markdown=lambda text: text)
previous_repos, previous_skips, blacklist, snakefmt_version, offset = {}, {}, set(), "", 0


def call_rate_limit_aware(asked, api_type=""):
    return asked()


def store_data(repos, skips):
    raise AssertionError
'''
CHECK = "import json, runpy, sys; found = runpy.run_path(sys.argv[1]); print('FOUND', json.dumps([found['repos'], found['skips']]))"


def test_the_written_rules_are_kept():
    readme = (ROOT / "README.md").read_text(encoding="utf-8").lower()
    assert "snakemake" in readme
    assert "workflow" in readme
    assert (ROOT / "workflow" / "Snakefile").is_file()
    assert list((ROOT / "workflow" / "rules").glob("*.smk"))
    assert (ROOT / "config" / "README.md").read_text(encoding="utf-8").startswith("# ")
    assert CLAIMS["report"] is True  # `make demo` writes Snakemake's own report
    assert set(CLAIMS) <= {"mandatory-flags", "software-stack-deployment", "report"}


def test_no_way_of_deploying_is_claimed_that_nobody_has_run():
    assert CLAIMS["software-stack-deployment"] == {"conda": False, "apptainer": False}


@pytest.fixture
def checker():
    """The script with which the catalogue looks at a repository."""
    if clone := os.environ.get("CROSSLIGN_CATALOGUE"):
        return subprocess.run(["git", "-C", clone, "show", f"{COMMIT}:{SCRIPT}"], capture_output=True, text=True, check=True).stdout
    try:
        with urllib.request.urlopen(f"https://raw.githubusercontent.com/{CATALOGUE}/{COMMIT}/{SCRIPT}", timeout=30) as answer:
            return answer.read().decode()
    except OSError as error:
        pytest.skip(f"the catalogue's checker cannot be fetched: {error}")


def test_the_catalogues_own_checker_finds_a_standardized_workflow_without_complaints(checker, tmp_path):
    checkout = tmp_path / "crosslign"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(checkout)], check=True)
    (tmp_path / "common.py").write_text(STAND_IN, encoding="utf-8")
    script = tmp_path / "generate-catalog.py"
    script.write_text(checker, encoding="utf-8")
    own = {"CHECKED": str(checkout), "TEST_REPO": "own/crosslign", "LATEST_COMMIT": "1"}
    own["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = [sys.executable, "-c", CHECK, str(script)]
    done = subprocess.run(command, cwd=tmp_path, env=environment(**own), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (found,), skipped = json.loads(done.stdout.rpartition("FOUND")[2])
    assert skipped == []
    assert found["standardized"] is True
    assert found["linting"] is None
    assert found["formatting"] is None
