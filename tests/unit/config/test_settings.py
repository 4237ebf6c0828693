"""Settings in layers: config.yaml, files laid over it, the command line; read by ourselves, so that nothing in them runs."""

from pathlib import Path

import pytest

from crosslign.config.load import load_project
from crosslign.config.settings import parsed, read_settings
from crosslign.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
BASE = "papers: [quickstart, mpcl]\ntargets: [quickstart, overview, report]\nkeep: {embeddings: false}\n"


@pytest.fixture
def read(tmp_path):
    def of(*contents, **given):
        files = [tmp_path / f"{number}.yaml" for number in range(len(contents))]
        for file, content in zip(files, contents, strict=True):
            file.write_text(content)
        return read_settings(files, given)

    return of


def test_later_files_and_the_command_line_lie_on_top(read):
    settings = read(BASE, "scale: paper\nsizes: {emma_x: S}\n", sizes={"mpcl": "M"}, results="elsewhere")
    assert (settings["scale"], settings["results"], settings["keep"]) == ("paper", "elsewhere", {"embeddings": False})
    assert settings["sizes"] == {"emma_x": "S", "mpcl": "M"}


def test_papers_that_are_chosen_are_what_is_built(read):
    assert read(BASE)["targets"] == ["quickstart", "overview", "report"]
    assert read(BASE, papers=["mpcl"])["targets"] == ["mpcl", "overview", "report"]
    assert read(BASE, papers=["mpcl"], targets=["mpcl_table1"])["targets"] == ["mpcl_table1"]
    assert read(BASE, "papers: [mpcl]\ntargets: [all]\n", papers=["scl"])["targets"] == ["all"]


def test_what_snakemake_gives_as_text_has_its_type(read):
    settings = read(BASE, seeds=["42", "43"], keep={"embeddings": "true"})
    assert (settings["seeds"], settings["keep"]) == ([42, 43], {"embeddings": True})


def test_a_command_line_of_ours_is_yaml():
    assert parsed([("seeds", "[1, 2]"), ("scale", "quick"), ("keep", "{embeddings: true}")]) == {
        "seeds": [1, 2],
        "scale": "quick",
        "keep": {"embeddings": True},
    }


def test_norwegian_is_a_language(read):
    side = "{file: a.txt, lang: no}"
    mined = "{source: " + side + ", target: {file: b.txt, lang: en}, system: QS-P}"
    assert read(BASE + f"mine:\n  own: {mined}\n")["mine"]["own"]["source"]["lang"] == "no"


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ("scale: quick\nscale: paper\n", r"1\.yaml:2: .*twice.*'scale'"),
        ("scales: quick\n", r"1\.yaml:1: scales: .*'scales'.*'scale'"),
        ("__use_yte__: true\n__definitions__: [import os]\n", "__use_yte__: .*'__"),
    ],
)
def test_a_file_laid_over_is_checked_as_config_yaml_is(read, over, message):
    with pytest.raises(InputError, match=message):
        read(BASE, over)


def test_a_key_of_the_command_line_is_checked(read):
    with pytest.raises(InputError, match=r"--config.*unknown.*'scales'"):
        read(BASE, scales="quick")


def test_a_mirror_may_begin_with_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("CROSSLIGN_MIRROR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = {"scale": "quick", "papers": ["quickstart"], "mirror": ["~/data"]}
    assert load_project(ROOT, settings).mirrors == (tmp_path / "data",)


def test_one_value_in_the_place_of_a_list_is_shown_in_brackets(read):
    with pytest.raises(InputError, match=r"papers: .*'mpcl'.*\[mpcl\]"):
        read(BASE, papers="mpcl")
    with pytest.raises(InputError, match=r"seeds: found 42.*\[42\]"):
        read(BASE, seeds=42)
