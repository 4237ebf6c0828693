"""The examples of docs/sentence-transformers.md: the trainings run, on a tiny encoder, and the configuration takes the terms."""

import re
import sys
from pathlib import Path

import pytest
import sentence_transformers
from ruamel.yaml import YAML
from safetensors.torch import load_file
from test_sentence_transformers import sentence_encoder  # noqa: F401

from crosslign.config.load import load_project

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "sentence-transformers.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_the_trainings_of_the_page_run_one_after_the_other(sentence_encoder, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", lambda name: sentence_encoder)
    assert len(blocks("python")) == 3
    names = {}
    for block in blocks("python"):
        exec(compile(block, "sentence-transformers.md", "exec"), names)
    state = load_file(tmp_path / "out" / "checkpoint-2" / "crosslign_loss.safetensors")
    assert {name.split(".")[0] for name in state} == {"queue", "gmm", "scores", "optimiser_steps", "encoder_checksum"}


@pytest.mark.parametrize("block", blocks("yaml"))
def test_the_terms_of_the_page_are_taken(block, tmp_path, monkeypatch):
    sys.path.insert(0, str(ROOT / "tests" / "unit" / "config"))
    from small_configuration import PAPER, write_project

    folder = write_project(tmp_path)
    yaml = YAML()
    paper = yaml.load(folder / PAPER)
    given = yaml.load(block)
    sets = {"graded_pairs": "rows", "nli_rows": "rows", "verses_parallel": "pairs"}
    terms = [{**term, "examples": sets[term["examples"]]} for term in given["terms"]]
    paper["systems"]["P-C"] |= {**given, "terms": terms}
    yaml.dump(paper, folder / PAPER)
    assert len(load_project(folder).systems["P-C"]["terms"]) == len(terms)
