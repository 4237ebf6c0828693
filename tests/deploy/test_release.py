"""A release: sdist and wheel hold what they should, the wheel stands alone, and the tests of the sdist run."""

import shutil
import subprocess
import sys

import pytest
import release
from project_copy import ROOT, environment

from crosslign.cli import COMMANDS
from crosslign.version import __version__

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a release is built from what git knows")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    try:
        python = release.tools(ROOT / ".venv" / "release")
    except RuntimeError as error:
        pytest.skip(f"the tools of a release cannot be installed: {error}")
    return python, *release.build(python, tmp_path_factory.mktemp("dist"))


def test_sdist_and_wheel_hold_what_git_knows_and_nothing_else(built):
    assert release.complaints(*built) == []


def test_a_wheel_of_too_much_and_of_too_little_is_none(built, tmp_path):
    python, sdist, wheel = built
    other = shutil.copy(wheel, tmp_path)
    subprocess.run([sys.executable, "-m", "zipfile", "-e", other, tmp_path / "open"], check=True)
    (tmp_path / "open" / "crosslign" / "py.typed").unlink()
    (tmp_path / "open" / "tests").mkdir()
    (tmp_path / "open" / "tests" / "test_one.py").touch()
    shutil.make_archive(tmp_path / "again", "zip", tmp_path / "open")
    (tmp_path / "again.zip").rename(other)
    said = " ".join(release.complaints(python, sdist, tmp_path / wheel.name))
    assert "wheel: no crosslign/py.typed" in said
    assert "wheel: tests/test_one.py is in it" in said


def test_each_command_is_typed_in_the_empty_folder():
    assert {words[0] for words, _, _ in release.COMMANDS} == {"--version", *COMMANDS.names()}


@pytest.mark.timeout(3600)  # the packages of the lock are a gigabyte
@pytest.mark.parametrize("locked", [False, pytest.param(True, marks=pytest.mark.long)], ids=["borrowed", "locked"])
def test_the_wheel_stands_alone_in_an_empty_folder(built, tmp_path, locked):
    python = release.alone(built[2], tmp_path / "environment", locked)
    assert release.tried(python, tmp_path / "empty") == []
    assert sorted(path.name for path in (tmp_path / "empty").iterdir()) == [
        "a.txt",
        "b.txt",
        "cache",
        "my_loss",
        "pairs.tsv",
        "pairs.tsv.lineage.json",
    ]


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_tests_of_the_sdist_run(built, tmp_path):
    assert release.failures(built[1], tmp_path / "sdist") == []


def test_a_workflow_refuses_a_library_of_another_version_in_one_line(tmp_path):
    (tmp_path / "crosslign").mkdir()
    (tmp_path / "crosslign" / "__init__.py").write_text('__version__ = "9.8.7"\n')
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from snakemake.cli import main; main()"  # before where the library lies
    command = [sys.executable, "-c", program, "--cores", "1", "-n", "--directory", str(ROOT)]
    snakefile = ["--snakefile", str(ROOT / "workflow" / "Snakefile")]
    done = subprocess.run([*command, *snakefile], env=environment(), capture_output=True, text=True, check=False)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error")]
    assert f"this workflow needs crosslign {__version__}; found: 9.8.7 in {tmp_path / 'crosslign'}" in line
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
