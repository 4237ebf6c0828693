"""Rules, scripts and stages go by one name each: what a job is called in its lineage and its log is what the workflow calls it."""

import re
from pathlib import Path

from crosslign.config.resources import STAND_IN_RULE

WORKFLOW = Path(__file__).resolve().parents[3] / "workflow"


def test_each_rule_has_a_script_of_its_name_that_runs_the_stage_of_that_name():
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted((WORKFLOW / "rules").glob("*.smk")))
    rules = {}
    for rule in re.split(r"^ *rule\b", text, flags=re.MULTILINE)[1:]:
        name = re.match(r" (\w+):", rule)
        rules[name[1] if name else STAND_IN_RULE] = re.search(r"scripts/(\w+)\.py", rule)[1]
    scripts = {path.stem: path.read_text(encoding="utf-8") for path in (WORKFLOW / "scripts").glob("[a-z]*.py")}
    assert rules == {name: name for name in scripts}
    for name, script in scripts.items():
        assert f"\nfrom crosslign.stages.{name} import {name}\n" in script
        assert script.endswith(f"\nrun({name}, snakemake)\n")
