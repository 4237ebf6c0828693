"""The workflow as a part of others: a module from a git address, in a folder with nothing else, and as snakedeploy writes it."""

import shutil
import subprocess
import sys
import venv

import pytest
from mini_project import Mini
from project_copy import ROOT, environment


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """The files of this checkout that git knows, as a repository with a tag."""
    folder = tmp_path_factory.mktemp("github") / "crosslign"
    folder.mkdir()
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if (ROOT / name).exists() or (ROOT / name).is_symlink():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    git = ["git", "-c", "user.name=tests", "-c", "user.email=tests@localhost"]
    for words in (["init", "-q"], ["add", "-A", "-f"], ["commit", "-qm", "all"], ["tag", "v0"]):
        subprocess.run([*git, *words], cwd=folder, check=True)
    return folder


def run(folder, *arguments, check=True, **variables):
    command = [sys.executable, "-m", "snakemake", "--cores", "2", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment(**variables), capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    return done


MODULE = """\
module crosslign:
    snakefile: {snakefile}
    config: {{"scale": "quick", "papers": ["quickstart"], "targets": ["all"]}}


use rule * from crosslign
"""


def test_a_module_from_a_git_address_plans_all_in_an_empty_folder(repository, tmp_path):
    snakefile = f'gitfile("{repository}", path="workflow/Snakefile", tag="v0")'
    (tmp_path / "Snakefile").write_text(MODULE.format(snakefile=snakefile))
    done = run(tmp_path, "-n")
    assert "\ntrain_system " in done.stdout + done.stderr


def test_a_module_from_a_folder_takes_the_config_that_it_is_given(tmp_path):
    (tmp_path / "Snakefile").write_text(MODULE.format(snakefile=repr(str(ROOT / "workflow" / "Snakefile"))))
    done = run(tmp_path, "-n", "--config", "gpus=0")
    assert "results/quick/" in done.stdout + done.stderr


def test_a_run_says_which_entries_are_the_folders_own(tmp_path):
    (tmp_path / "Snakefile").write_text(MODULE.format(snakefile=repr(str(ROOT / "workflow" / "Snakefile"))))
    (tmp_path / "config").mkdir()
    source = "{local: resources/written, files: [{name: sts_en.tsv}], licence: CC0-1.0}"
    corpus = "{kind: evaluation, source: mine, reader: sts_tsv, options: {pairs: [en-en]}, langs: [en], licence: CC0-1.0}"
    (tmp_path / "config" / "corpora.yaml").write_text(f"sources:\n  mine: {source}\ncorpora:\n  mine: {corpus}\n")
    assert "note: config/corpora.yaml adds sources.mine, corpora.mine\n" in run(tmp_path, "-n").stderr


def test_other_rules_may_have_targets_of_their_own_and_prefixed_rules_stay_local(tmp_path):
    text = MODULE.format(snakefile=repr(str(ROOT / "workflow" / "Snakefile"))).replace("* from crosslign", "* from crosslign as x_*")
    (tmp_path / "Snakefile").write_text(text + '\n\nrule own:\n    output: "own_table"\n    shell: "touch {output}"\n')
    run(tmp_path, "own")
    assert (tmp_path / "own_table").exists()
    done = run(tmp_path, "-n", "x_quickstart")
    assert "x_train_system" in done.stdout + done.stderr


OWN = ("config", "resources")
"""What is a user's own: corpora, encoders, tasks, a scale, a system, a table, and the texts that they name."""


@pytest.fixture(scope="module")
def mini(tmp_path_factory):
    """The smallest project with everything of its own, run in a checkout."""
    made = Mini(tmp_path_factory.mktemp("mini") / "project")
    made.run()
    return made


def made_in(folder, mini, *arguments, **variables):
    """Run in a folder, with the user's own of the smallest project, and return its tables."""
    for name in OWN:
        shutil.copytree(mini.folder / name, folder / name, dirs_exist_ok=True)
    done = run(folder, *arguments, **variables)
    assert "  tables " in done.stderr  # which the workflow's own handler says at the end
    own = Mini.__new__(Mini)
    own.results = folder / "results" / "mini"
    return own.tables()


@pytest.mark.long
def test_a_module_makes_the_table_of_the_users_own_corpus_and_system(repository, mini, tmp_path):
    snakefile = f'gitfile("{repository}", path="workflow/Snakefile", tag="v0")'
    module = f"module crosslign:\n    snakefile: {snakefile}\n    config: config\n"
    text = f"configfile: 'config/config.yaml'\n\n\n{module}\n\nuse rule * from crosslign\n"
    (tmp_path / "Snakefile").write_text(text)
    assert made_in(tmp_path, mini) == mini.tables() != {}


@pytest.fixture(scope="module")
def snakedeploy(tmp_path_factory):
    """The command of snakedeploy 0.17.1, in an environment of its own: its packages are no friends of Snakemake's."""
    folder = tmp_path_factory.mktemp("snakedeploy")
    venv.create(folder, with_pip=True)
    done = subprocess.run([folder / "bin" / "pip", "install", "-q", "snakedeploy==0.17.1"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"snakedeploy cannot be installed here: {done.stderr.strip()[-200:]}")
    return folder / "bin" / "snakedeploy"


@pytest.mark.long
def test_what_snakedeploy_deploys_makes_the_table_of_the_users_own_corpus_and_system(repository, snakedeploy, mini, tmp_path):
    own = tmp_path / "deployed"
    # A host that is this disk: git, which both commands use, is told where that address lies.
    hosted = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"url.file://{repository.parent}/.insteadOf"}
    hosted |= {"GIT_CONFIG_VALUE_0": "https://github.com/tests/", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [snakedeploy, "deploy-workflow", "https://github.com/tests/crosslign", own, "--tag", "v0"]
    subprocess.run(command, env=environment(**hosted), check=True, capture_output=True)
    assert 'github("tests/crosslign", path="workflow/Snakefile", tag="v0")' in (own / "workflow" / "Snakefile").read_text()
    assert "$schema=schemas/config.yaml\n" in (own / "config" / "config.yaml").read_text()
    assert (own / "config" / "schemas" / "config.yaml").read_bytes() == (ROOT / "config" / "schemas" / "config.yaml").read_bytes()
    assert made_in(own, mini, **hosted) == mini.tables() != {}
