"""What Snakemake asks anew for each job, though it is the same for all jobs of a rule: the number of jobs multiplies none of it."""

import subprocess
import sys
from pathlib import Path

RULES = Path(__file__).resolve().parents[2] / "workflow" / "rules"
COUNTED = """
import inspect, sys
from snakemake import cli
from snakemake.sourcecache import SourceCache
found = {"signature": 0, "open": 0}
def counted(place, name):
    as_it_was = getattr(place, name)
    def count(*given, **named):
        found[name] += 1
        return as_it_was(*given, **named)
    setattr(place, name, count)
counted(inspect, "signature")
counted(SourceCache, "open")
try:
    cli.main(["--dry-run", "--quiet", "--cores", "1", *sys.argv[1:]])
finally:
    print("counted", *found.values())
"""


def planned(folder, script, jobs):
    """A dry run of so many jobs of one rule with a script: what it printed, and how often signatures and sources were asked for."""
    text = f"""
include: "{RULES / "patches.smk"}"
ask_once()
rule all:
    input: [f"{{number}}.txt" for number in range({jobs})]
rule made:
    input: lambda w: []
    output: "{{number}}.txt"
    params: doubled=lambda w: 2 * w.number
    resources: mem_mb=lambda w, attempt: 100 * attempt
    script: "{script}"
"""
    (folder / "Snakefile").write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", COUNTED], cwd=folder, capture_output=True, text=True, check=False)
    counted = next(line for line in done.stdout.splitlines() if line.startswith("counted"))
    return done.stdout + done.stderr, counted


def test_more_jobs_of_a_rule_ask_for_no_more_signatures_and_sources(tmp_path):
    (tmp_path / "one.py").write_text("print()\n")
    assert planned(tmp_path, "one.py", jobs=2)[1] == planned(tmp_path, "one.py", jobs=9)[1]


def test_scripts_that_wildcards_choose_are_each_looked_for(tmp_path):
    (tmp_path / "0.py").write_text("print()\n")
    assert "No such file" not in planned(tmp_path, "{wildcards.number}.py", jobs=1)[0]
    assert "No such file" in planned(tmp_path, "{wildcards.number}.py", jobs=2)[0]
