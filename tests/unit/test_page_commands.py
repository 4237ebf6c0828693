"""Commands on the pages: each can be typed as it is printed, and stands behind what it needs."""

import functools
import json
import re
import shlex
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from snakemake.cli import get_argument_parser

from crosslign.cli.main import parser
from crosslign.config.load import load_project
from crosslign.config.mining import mine_recipe
from crosslign.config.settings import parsed, read_settings
from crosslign.config.targets import target_files
from crosslign.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "config" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PLACEHOLDERS = ("my_mine", "pair_de_hsb", "TABLE", "margin_pairs")
"""Names that a page's reader gives: such a command is parsed, and its targets are not looked for."""


def commands(page):
    """Yield the commands of a page's blocks, and those between backticks in the README's tables, with the place where each begins."""
    text = page.read_text(encoding="utf-8")
    # a fence of another language has no commands; indented blocks have none
    shell = re.sub(r"^```(?!sh\n)\w+\n.*?^```", lambda found: " " * len(found[0]), text, flags=re.MULTILINE | re.DOTALL)
    yield from ((found[1], found.start()) for found in re.finditer(r"^(?: {4})?((?:crosslign|snakemake) .*)$", shell, flags=re.MULTILINE))
    if page == ROOT / "README.md":
        yield from ((found[1], found.start()) for found in re.finditer(r"`((?:crosslign|snakemake) [^`]*)`", text))


ALL = [(page.relative_to(ROOT), command) for page in PAGES for command, _ in commands(page) if "is a Snakemake workflow" not in command]


def settings_of(words, cwd):
    """Return the settings and the targets of a command of Snakemake, as it reads its words."""
    args = get_argument_parser().parse_args(words)
    profile = Path(args.profile[0]) if args.profile else None
    assert profile is None or (cwd / profile / "config.yaml").exists(), f"no profile {profile}"
    files = [*map(Path, args.configfile or [])]
    if profile == Path("slurm") and not files:
        files = [Path("config/paper.yaml")]
    given = parsed([tuple(text.split("=", 1)) for text in args.config or []])
    return read_settings([Path("config/config.yaml"), *files], given), args.targets


@functools.cache
def project_of(settings):
    """Read a project once for all commands that differ in targets alone."""
    return load_project(ROOT, {**json.loads(settings), "targets": ["all"]})


@pytest.mark.parametrize(("page", "command"), ALL, ids=[f"{page}: {command}" for page, command in ALL])
def test_a_command_can_be_typed_as_it_is_printed(monkeypatch, capsys, page, command):
    monkeypatch.chdir(ROOT)
    program, *words = shlex.split(command, comments=True)
    if program == "crosslign":
        parser().parse_args(words)
        return
    settings, targets = settings_of(words, ROOT)
    if not any(name in command for name in PLACEHOLDERS):
        targets = targets or settings.pop("targets")
        assert target_files(project_of(json.dumps({**settings, "targets": []}, sort_keys=True)), targets)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_environment_is_named_before_the_first_command(page):
    text = page.read_text(encoding="utf-8")
    places = [place for command, place in commands(page) if (page.relative_to(ROOT), command) in ALL]
    assert not places or "source .venv/bin/activate" in text[: min(places)]


def test_the_documented_entry_of_mine_stops_no_run_of_other_papers(monkeypatch):
    monkeypatch.chdir(ROOT)
    (block,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "mine-your-own.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    settings = read_settings([Path("config/config.yaml"), Path("config/paper.yaml")], YAML(typ="safe").load(block))
    assert "quickstart" not in settings["papers"]
    project = load_project(ROOT, settings)
    assert target_files(project, ["msimcse_table1"])
    with pytest.raises(InputError, match=r"mine\.my_mine.*'QS-P'.*`papers`"):
        mine_recipe(project, "my_mine")


def test_there_are_commands_to_check():
    assert len(ALL) > 25
    assert not [name for name in ("README.md", "docs/cluster.md", "docs/one-paper-table.md") if name not in {str(page) for page, _ in ALL}]
