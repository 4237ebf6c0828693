"""Profiles and environments, as files: keys with their comments, local settings, versions that agree with the lock."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yte

from crosslign.jobs.engine import KNOWN

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


def test_each_package_that_the_project_is_built_on_is_imported_where_its_page_says():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.split("## The nine packages")[1].split("\n## ")[0]
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| ")][1:]
    assert [row[0] for row in rows] == [
        *("snakemake", "torch", "transformers", "datasets", "opustools", "sacremoses", "faiss", "pandas", "pyarrow"),
    ]
    for package, _, place in rows:
        path = ROOT / place if place.startswith("workflow/") else ROOT / "src" / "crosslign" / place
        assert re.search(rf"^ *(import|from) {package}\b", path.read_text(encoding="utf-8"), flags=re.MULTILINE), (package, place)


def test_all_that_is_replaced_inside_other_packages_stands_on_the_page():
    tree = ast.parse((ROOT / "workflow" / "rules" / "patches.smk").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").split("## Inside Snakemake")[1].split("\n## ")[0]
    changes = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    nodes = [[node for node in ast.walk(change) if isinstance(node, ast.Attribute)] for change in changes]
    set_on = [{node.attr for node in found if isinstance(node.ctx, ast.Store)} for found in nodes]
    named = [set(re.findall(r"`([\w.]+)`", ast.get_docstring(change).split("\n")[0])) for change in changes]
    assert len(changes) > 8
    assert all(ast.get_docstring(change).startswith("Replaces ") for change in changes)
    assert [name for names in (*named, *set_on) for name in sorted(names) if name not in page] == ["_is_dir"]  # of one stored object


def test_every_package_that_is_imported_is_declared_pinned_and_explained():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.match(r"[\w.-]+", line)[0] for line in project["dependencies"]}
    extra = {re.match(r"[\w.-]+", line)[0] for lines in project["optional-dependencies"].values() for line in lines}
    provided = {name: {found.lower().replace("_", "-") for found in by} for name, by in packages_distributions().items()}
    missing = {name for name in imported("src") - {"heliport", "triton"} if not provided[name] & (declared | extra)}
    assert not missing
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in (ROOT / "envs" / "requirements.lock").read_text().splitlines()}
    assert declared <= pinned
    reasons = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").split("All packages, and why")[1]
    named = set(re.findall(r"[\w.-]+", " ".join(line.split("|")[1] for line in reasons.splitlines() if line.startswith("| "))))
    assert declared | extra <= named
    elsewhere = set().union(*(provided.get(name, set()) for name in imported("tests", "benchmarks", "workflow")))
    assert (elsewhere & pinned) - named == set()


def steps(name):
    """Return the commands that a recipe of a container runs, one after another, and the files that it copies."""
    text = (ROOT / "envs" / name).read_text(encoding="utf-8").replace("\\\n", " ")
    if name == "Dockerfile":
        runs = "\n".join(line.removeprefix("RUN ") for line in text.splitlines() if line.startswith("RUN ")).replace("&&", "\n")
        return runs, [path for line in text.splitlines() if line.startswith("COPY ") for path in line.split()[1:-1]]
    sections = dict(re.findall(r"^%(\w+)\n((?:(?!^%).*\n)*)", text, flags=re.MULTILINE))
    assert set(sections) == {"files", "post", "environment", "test", "labels"}
    assert text.startswith("Bootstrap: docker\nFrom: ")
    return sections["post"], [line.split()[0] for line in sections["files"].splitlines() if line.strip()]


def installed(runs):
    """Return what a recipe gives to `pip install`, in order, options and addresses left out."""
    words = [command.split("pip install", 1)[1].split() for command in runs.splitlines() if "pip install" in command]
    taken = {"--index-url", "--extra-index-url", "-r"}
    return [
        (before == "-r", word)
        for line in words
        for before, word in zip(["", *line], line, strict=False)
        if not word.startswith("-") and before not in taken - {"-r"}
    ]


@pytest.mark.parametrize("name", ["Dockerfile", "crosslign.def"])
def test_a_container_has_the_packages_of_the_lock_and_no_others(name):
    runs, copied = steps(name)
    assert installed(runs) == [
        (False, f"torch=={lock('torch')}"),
        (True, "/opt/crosslign/envs/requirements.lock"),
        (False, "/opt/crosslign"),
    ]
    assert {"pyproject.toml", "README.md", "LICENSE", "envs/requirements.lock", "src"} == set(copied)
    assert all((ROOT / path).exists() for path in copied)
    assert f"{'--no-deps /opt/crosslign'}" in runs


def test_both_recipes_ask_debian_for_the_same():
    asked = [re.search(r"apt-get install -y (.*)", steps(name)[0])[1].split() for name in ("Dockerfile", "crosslign.def")]
    assert asked[0] == asked[1]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


ENGINES = {
    "torch": (r"\btorch==(\d[\d.]*\d)", ("Makefile", "README.md", "docs/cluster.md", "envs/Dockerfile", "envs/crosslign.def")),
    "CUDA": (r"\bnvidia/cuda:(\S+)", ("envs/Dockerfile", "envs/crosslign.def")),
    "image": (r"\b(\w+\.sif)\b", ("workflow/Snakefile", "envs/crosslign.def", "docs/deploy.md")),
    "moto": (r"\bmoto(?:\[\S+\]==| )(\d[\d.]*\d)", ("docs/deploy.md", "tests/deploy/test_storage.py")),
    "Python": (
        r"(?:Python 3\.|python:3\.|\(3, |requires-python = \">=3\.)(\d+)",
        ("README.md", "docs/cluster.md", "pyproject.toml", "Makefile", "envs/Dockerfile"),
    ),
}
"""What files and pages name by its version, how, and where; each place names one, the same as the others."""


@pytest.mark.parametrize("engine", ENGINES)
def test_pages_and_files_name_one_version(engine):
    pattern, names = ENGINES[engine]
    found = {name: set(re.findall(pattern, read(name))) for name in names}
    assert len(set().union(*found.values())) == 1, found
    assert all(found.values()), found


def test_the_versions_of_snakemake_and_its_plugins_that_pages_name_are_those_of_the_bounds_the_lock_and_the_changes():
    project = tomllib.loads(read("pyproject.toml"))["project"]
    bounds = [line for lines in (project["dependencies"], *project["optional-dependencies"].values()) for line in lines]
    for package, known in KNOWN.items():
        (lowest,) = (match[1] for line in bounds if (match := re.match(rf"{package}>=(\d+\.\d+)", line)))
        assert known == lowest, package
    snakemake, executor = KNOWN["snakemake"], KNOWN["snakemake-executor-plugin-slurm"]
    assert lock("snakemake").startswith(f"{snakemake}.")
    assert lock("snakemake-executor-plugin-slurm").startswith(f"{executor}.")
    assert f'min_version("{snakemake}")' in read("workflow/Snakefile")
    oldest = re.search(r'^OLDEST = "(\S+)"$', read("tests/deploy/test_engine_versions.py"), flags=re.MULTILINE)[1]
    tried = f"Snakemake {snakemake} ({oldest} and {lock('snakemake')}) and the Slurm executor {executor}"
    assert tried in read("docs/deploy.md")
    assert f"Snakemake {snakemake} and the executor {executor}" in read("docs/dependencies.md")


def test_no_page_or_file_claims_an_environment_of_conda():
    files = [
        path.read_text(encoding="utf-8")
        for path in sorted((ROOT / "workflow").rglob("*"))
        if path.suffix in (".smk", "") and path.is_file()
    ]
    assert not [text for text in files if re.search(r"^\s*conda:", text, flags=re.MULTILINE)]
    assert not [path for path in (ROOT / "envs").iterdir() if path.suffix in (".yaml", ".yml")]
    assert "conda: true" not in read(".snakemake-workflow-catalog.yml")
    assert "There is no conda environment" in read("docs/deploy.md")
