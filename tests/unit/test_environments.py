"""Profiles and environments, as files: keys with their comments, local settings, versions that agree with the lock."""

import ast
import hashlib
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yte
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
PROFILES = ["slurm/config.yaml", "profiles/workstation/config.yaml", "profiles/ci/config.yaml"]


def lock(package):
    return re.search(rf"^{package}==(\S+)$", (ROOT / "envs" / "requirements.lock").read_text(), flags=re.MULTILINE)[1]


def slurm_profile():
    with open(ROOT / "slurm" / "config.yaml", encoding="utf-8") as file:
        return yte.process_yaml(file, require_use_yte=True)


@pytest.mark.parametrize("profile", PROFILES)
def test_every_key_has_a_comment(profile):
    lines = [line for line in (ROOT / profile).read_text(encoding="utf-8").splitlines() if re.match(r"[a-z-]+:", line)]
    assert len(lines) >= 4
    assert not [line for line in lines if "  # " not in line]


def test_nobodys_partition_or_account_is_named():
    assert not re.search(r"^\s*slurm_(partition|account):", (ROOT / "slurm" / "config.yaml").read_text(), flags=re.MULTILINE)
    assert "slurm/local.yaml" in (ROOT / ".gitignore").read_text().splitlines()


def test_local_settings_replace_keys_and_are_added_to_resources(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plain = slurm_profile()
    assert (plain["executor"], plain["configfile"], plain["retries"]) == ("slurm", "config/paper.yaml", 3)
    assert plain["default-resources"] == {"slurm_extra": "'--signal=TERM@120'", "nodes": 1}
    (tmp_path / "slurm").mkdir()
    (tmp_path / "slurm" / "local.yaml").write_text("jobs: 7\ndefault-resources: {slurm_partition: main}\n")
    own = slurm_profile()
    assert own["default-resources"] == {**plain["default-resources"], "slurm_partition": "'main'"}  # quoted: Snakemake evaluates it
    assert {key for key in plain if plain[key] != own[key]} == {"jobs", "default-resources"}
    (tmp_path / "slurm" / "local.yaml").write_text("# nothing yet\n")
    assert slurm_profile() == plain


def imported(*folders):
    """Return the packages that what lies in some folders imports, standard library left out."""
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in paths]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"crosslign"}


def test_every_package_that_is_imported_is_declared_pinned_and_explained():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.match(r"[\w.-]+", line)[0] for line in project["dependencies"]}
    extra = {line for lines in project["optional-dependencies"].values() for line in lines}
    provided = {name: {found.lower().replace("_", "-") for found in by} for name, by in packages_distributions().items()}
    missing = {name for name in imported("src") - {"fasttext", "triton"} if not provided[name] & (declared | extra)}
    assert not missing
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in (ROOT / "envs" / "requirements.lock").read_text().splitlines()}
    assert declared <= pinned
    reasons = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split("All packages, and why")[1]
    named = set(re.findall(r"[\w.-]+", " ".join(line.split("|")[1] for line in reasons.splitlines() if line.startswith("| "))))
    assert declared | extra <= named
    elsewhere = set().union(*(provided.get(name, set()) for name in imported("tests", "benchmarks", "workflow")))
    assert (elsewhere & pinned) - named == set()


def test_each_package_that_the_project_is_built_on_is_imported_where_its_page_says():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.split("The nine packages")[1].split("All packages, and why")[0]
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| ")][1:]
    assert [row[0] for row in rows] == [
        *("snakemake", "torch", "transformers", "datasets", "opustools", "sacremoses", "faiss", "pandas", "pyarrow"),
    ]
    for package, _, place in rows:
        path = ROOT / place if place.startswith("workflow/") else ROOT / "src" / "crosslign" / place
        assert re.search(rf"^ *(import|from) {package}\b", path.read_text(encoding="utf-8"), flags=re.MULTILINE), (package, place)


@pytest.mark.parametrize("name", ["cpu.yaml", "gpu.yaml"])
def test_conda_environments_agree_with_the_lock(name):
    environment = YAML(typ="safe").load(ROOT / "envs" / name)
    assert {"python=3.11", "pip"} <= set(environment["dependencies"])  # no pip: block: Snakemake solves a copy, where no path leads here
    script = (ROOT / "envs" / name.replace(".yaml", ".post-deploy.sh")).read_text()
    assert hashlib.sha256((ROOT / "envs" / "requirements.lock").read_bytes()).hexdigest() in script
    assert "pip install --no-deps -e ." in script
    if name == "gpu.yaml":
        assert any(part.startswith("faiss-gpu") for part in environment["dependencies"])
        assert f"faiss-cpu=={lock('faiss-cpu')}" not in without_faiss(script)
    else:
        assert "pip install -r envs/requirements.lock" in script


def without_faiss(script):
    """Return what the script gives to pip of the lock."""
    command = re.search(r"^(grep .*) \|", script, flags=re.MULTILINE)[1]
    kept = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert f"torch=={lock('torch')}" in kept
    return kept


def test_a_rule_has_the_environment_with_cuda_where_its_jobs_ask_for_gpus():
    found = {}
    for path in sorted((ROOT / "workflow" / "rules").glob("*.smk")):
        for name, text in re.findall(r"^ *rule *(\w*):\n((?: .*\n|\n)*)", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
            if "script:" in text:
                conda = re.search(r"^ +conda:\n +(.*)$", text, flags=re.MULTILINE)[1]
                asked = re.search(r"^ +gpu=(.*),$", text, flags=re.MULTILINE)
                found[name or f"{path.stem}, without a name"] = (conda, asked and asked[1])
    assert {name for name, (_, asked) in found.items() if asked} == {
        "train_system",
        "embed",
        "build_view",
        "score",
        "mine_embed",
        "mine_search",
    }
    for name, (conda, asked) in found.items():
        assert conda in {None: ["environment()"], "GPUS": ["environment(GPUS)"]}.get(asked, [f"lambda w: environment({asked}(w))"]), name


def test_the_container_recipe_has_its_parts_and_files():
    text = (ROOT / "envs" / "crosslign.def").read_text()
    sections = dict(re.findall(r"^%(\w+)\n((?:(?!^%).*\n)*)", text, flags=re.MULTILINE))
    assert set(sections) == {"files", "post", "environment", "test", "labels"}
    for line in sections["files"].split("\n"):
        assert not line.strip() or (ROOT / line.split()[0]).exists()
    assert f"torch=={lock('torch')}" in sections["post"]
    assert text.startswith("Bootstrap: docker\nFrom: ")
