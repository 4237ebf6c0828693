"""A set made of others has their licences; every other set states its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from crosslign.config.schema import check
from crosslign.config.yaml_files import YamlFile
from crosslign.corpora.evaluation import EvaluationBuilder
from crosslign.errors import InputError
from crosslign.files.lineage import Lineage, read_lineage
from crosslign.jobs.job import Job, all_paths
from crosslign.paths import EVALUATION_FILES
from crosslign.stages.build_evaluation import build_evaluation


def part(folder, name, licences):
    """Write an evaluation corpus of one sentence with its lineage, and return its files."""
    builder = EvaluationBuilder(name)
    builder.item("i", "en", "sentence", "en", f"text of {name}")
    files = {table: folder / name / f"{table}.parquet" for table in EVALUATION_FILES}
    (folder / name).mkdir()
    builder.build().write(files)
    for file in files.values():
        Lineage("build_evaluation", {}, [], folder, licences=licences, stand_in=name == "b").write(file, "evaluation")
    return files


def test_a_joined_set_has_the_licences_of_its_parts(tmp_path):
    parts = {"a": part(tmp_path, "a", ["CC0-1.0"]), "b": part(tmp_path, "b", ["CC-BY-4.0", "MIT"])}
    outputs = {f"{table}_rows": tmp_path / "c" / f"{table}.parquet" for table in EVALUATION_FILES}
    recipe = {"corpus": "c", "entry": {"kind": "evaluation", "of": ["a", "b"], "langs": ["en"]}, "limit": None}
    lineage = Lineage("build_evaluation", recipe, all_paths(parts), tmp_path)
    build_evaluation(Job("build_evaluation", {"parts": parts}, outputs, {"recipe": recipe}, 1, lineage))
    found = read_lineage(outputs["texts_rows"])
    assert found["licences"] == ["CC-BY-4.0", "CC0-1.0", "MIT"]
    assert found["stand_in"] is True


@pytest.mark.parametrize("made", [{"source": "s", "reader": "tsv", "licence": "MIT"}, {"of": ["a"]}, {"of": ["a"], "licence": "MIT"}])
def test_entries_that_say_where_their_licence_stands(made):
    check(YamlFile(Path("c.yaml"), {"sources": {}, "corpora": {"x": {"kind": "evaluation", "langs": ["en"], **made}}}, {}), "corpora")


def test_a_corpus_that_is_read_states_its_licence():
    content = {"sources": {}, "corpora": {"x": {"kind": "mono", "langs": ["en"], "source": "s", "reader": "tsv"}}}
    with pytest.raises(InputError, match="licence"):
        check(YamlFile(Path("c.yaml"), content, {}), "corpora")
