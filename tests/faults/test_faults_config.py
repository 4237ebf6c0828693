"""Hostile and mistaken configuration: one line that says where, exit code 2, and nothing of it is ever run."""

from __future__ import annotations

import json
import os

import pytest
from mini_project import Mini

from crosslign.cli.main import main
from crosslign.config.load import load_project
from crosslign.config.yaml_files import load_yaml
from crosslign.errors import InputError

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
HOSTILE = [
    "a;touch owned",
    "$(touch owned)",
    "`touch owned`",
    "a b",
    "a\nb",
    "a\n",
    "..",
    "../up",
    "-rf",
    "/abs",
    "bücher",
    "a/b",
    "a\x00b",
    "",
    "x" * 200,
]
CONFIGS = {
    "an unknown key": ("scale: mini", "scael: mini", r"config\.yaml:\d+: .*'scael'.*'scale'"),
    "a wrong type": ("papers: [faults]", "papers: 7", "found 7"),
    "a key twice": ("scale: mini", "scale: mini\nscale: mini", r"config\.yaml:3: .*twice.*'scale'"),
    "a tab": ("scale: mini", "\tscale: mini", r"config\.yaml:\d+: .*YAML"),
    "a Python object": ("scale: mini", "scale: !!python/object/apply:os.system ['touch owned']", "config"),
    "another tag": ("scale: mini", "scale: !secret mini", "config"),
    "a bomb": ("scale: mini", "scale: mini\n" + BOMB, r"config\.yaml:\d+: .*500,000"),
    "bytes that are no UTF-8": ("scale: mini", "scale: \udcff", r"config\.yaml.*UTF-8"),
}


NAMED = [("config/papers/faults.yaml", section) for section in ("systems", "finetunes", "tables", "views", "examples", "figures")]
NAMED += [("config/corpora.yaml", "corpora"), ("config/corpora.yaml", "sources"), ("config/tasks.yaml", "tasks")]
NAMED += [("config/encoders.yaml", "encoders"), ("config/encoders.yaml", "readouts"), ("config/config.yaml", "mine")]
"""Where an entry's name becomes part of a path."""
SMALLEST = {
    "finetunes": {"finetune": {}},
    "views": {"view": {}},
    "figures": {"curve": {"kind": "curves", "title": "Loss", "caption": "Loss.", "from": ["F-A"]}},
    "mine": {"mine": {"system": "F-A", "source": {"path": "a.txt", "lang": "en"}, "target": {"path": "b.txt", "lang": "de"}}},
}


@pytest.fixture
def mini(tmp_path):
    return Mini(tmp_path / "project")


def spoil(mini, file, old, new):
    path = mini.folder / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_bytes(text.replace(old, new, 1).encode("utf-8", "surrogateescape"))


@pytest.mark.parametrize("name", CONFIGS)
def test_f13_a_wrong_configuration_is_refused_in_one_line(mini, capsys, name):
    old, new, message = CONFIGS[name]
    spoil(mini, "config/config.yaml", old, new)
    with pytest.raises(InputError, match=message) as error:
        load_project(mini.folder)
    assert "\n" not in str(error.value)
    assert main(["plan", "--directory", str(mini.folder)]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert not list(mini.folder.rglob("owned"))


@pytest.mark.parametrize("value", [".nan", ".inf", "-.inf"])
def test_f13_numbers_that_are_none_are_refused(mini, value):
    spoil(mini, "config/papers/faults.yaml", "learning_rate: 1e-3", f"learning_rate: {value}")
    with pytest.raises(InputError, match=r"faults\.yaml:\d+: .*learning_rate.*(nan|inf)"):
        load_project(mini.folder)


@pytest.mark.parametrize("value", ["9" * 400, "0x" + "f" * 4000, str(2**63), f"-{2**64}"])
def test_f13_whole_numbers_that_nothing_can_hold_are_refused_and_not_printed(mini, value):
    spoil(mini, "config/papers/faults.yaml", "seeds: [42]", f"seeds: [{value}]")
    with pytest.raises(InputError, match=r"faults\.yaml:\d+: .*large; .*\d{3},\d{3}") as error:
        load_project(mini.folder)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    "folder",
    ["/dev/null/x", "config/config.yaml", "config/config.yaml/deep/er", "{x}", "a\nb", "a\x1b[2J", "x" * 300, "~nobody-of-this-name/x"],
)
def test_f13_results_that_no_folder_can_be_are_refused_before_anything_is_planned(mini, monkeypatch, capsys, folder):
    monkeypatch.chdir(mini.folder)
    spoil(mini, "config/config.yaml", "results: results", f"results: {json.dumps(folder)}")
    assert main(["plan"]) == 2
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize(
    "options", [["--configfile", "config"], ["--configfile", "loop.yaml"], ["--config", "mirror=~nobody-of-this-name/x"]]
)
def test_f13_what_cannot_be_read_is_named_in_one_line(mini, monkeypatch, capsys, options):
    monkeypatch.chdir(mini.folder)
    (mini.folder / "loop.yaml").symlink_to("loop.yaml")
    assert main(["plan", *options]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1


def test_f13_a_file_of_ones_own_that_is_not_there_is_named_before_anything_is_fetched(mini):
    text = "resources/written/sts_de.tsv"
    (mini.folder / text).rename(mini.folder / "sts_de.tsv")
    done = mini.run(check=False)
    assert done.returncode == 2
    assert f"error: config/corpora.yaml: sources.own_texts.local: a file of your own is missing; {text}. " in done.stdout
    assert "Fetching" not in done.stdout
    assert not (mini.results.parent / "downloads").exists()
    (mini.folder / "sts_de.tsv").rename(mini.folder / text)
    assert "Fetching sts_de.tsv" in mini.run("results/downloads/own_texts/sts_de.tsv").stdout


def test_f13_norwegian_and_other_words_of_yaml_1_1_stay_text(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("langs: [no, on, off, yes, y, n]\nversion: 1_0\nrate: 1e-5\ntime: 12:30:45\n", encoding="utf-8")
    content = load_yaml(path).content
    assert content["langs"] == ["no", "on", "off", "yes", "y", "n"]
    assert content["rate"] == 1e-5
    assert content["time"] == "12:30:45"


@pytest.mark.parametrize("name", HOSTILE)
def test_f14_hostile_names_are_refused_wherever_an_id_stands(mini, name):
    from ruamel.yaml import YAML

    for file, section in NAMED:
        path = mini.folder / file
        before = path.read_bytes()
        content = YAML(typ="safe").load(before.decode())
        entries = content.get(section) or SMALLEST[section]
        content[section] = {**entries, name: next(iter(entries.values()))}
        with open(path, "w", encoding="utf-8") as out:
            YAML().dump(content, out)
        with pytest.raises(InputError, match=rf"{section}.*(match|valid|YAML|empty)"):
            load_project(mini.folder)
        path.write_bytes(before)
    assert not list(mini.folder.rglob("owned"))


def test_f14_hostile_file_names_and_urls_are_arguments_never_shell_text(tmp_path, monkeypatch):
    """A file name that a shell would run is fetched (or refused) as a name."""
    from crosslign.corpora.fetch import fetch_file

    monkeypatch.chdir(tmp_path)
    name = "a;touch owned $(touch owned) `touch owned` -rf é.txt"
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / name).write_text("text")
    fetch_file("source", {"local": "there"}, {"name": name}, tmp_path / "out" / name, [])
    assert (tmp_path / "out" / name).read_text() == "text"
    assert not list(tmp_path.rglob("owned"))


def test_f26_a_gpu_that_is_not_there_is_said_before_any_data_work(monkeypatch, tmp_path):
    from crosslign.jobs.leases import gpu_note

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for name in ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"):
        monkeypatch.delenv(name, raising=False)
    note = gpu_note(1, os.environ)
    assert "1 GPU" in note
    assert "such jobs run on the CPU" in note
    assert gpu_note(0, os.environ) == ""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert gpu_note(1, os.environ) == ""
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert gpu_note(1, os.environ) == ""
