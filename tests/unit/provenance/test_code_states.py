"""What `verify` says of the code behind results, and what `--settle` takes over."""

import pytest

from crosslign.config.versions import code_behind
from crosslign.files.fingerprint import fingerprint
from crosslign.files.lineage import Lineage, read_lineage
from crosslign.provenance.code_states import code_lines, made
from crosslign.provenance.settle import settle

NOW = fingerprint(*code_behind("measure_overlap", {}).values())


@pytest.fixture
def results(tmp_path):
    """Tables: of today's code, of other code, of another version, touched, and a download of another version beside the results."""
    folder = tmp_path / "results" / "quick"
    for name, version, code in (
        ("same", "measure_overlap@1", NOW),
        ("other", "measure_overlap@1", "0123456789abcdef"),
        ("early", "", ""),
        ("raised", "measure_overlap@7", NOW),
        ("touched", "measure_overlap@7", NOW),
    ):
        path = folder / "tables" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        Lineage("measure_overlap", {}, [], folder, version=version, code=code).write(path, "table")
    (folder / "tables" / "touched.md").write_text("by hand")
    shared = tmp_path / "results" / "downloads" / "a.tsv"
    shared.parent.mkdir()
    shared.write_text("a")
    Lineage("fetch", {"entry": {"local": "x"}}, [], folder.parent, version="fetch@1 local@3", code="x").write(shared, "download")
    return folder


def test_other_code_of_the_same_version_and_other_versions_are_counted_apart(results):
    do = "the next run rebuilds them; crosslign verify --settle accepts them"
    assert code_lines(results) == [
        "other code, same version: 2 artefacts; nothing needs to be done",
        f"another version (local@3 → local@1): 1 artefact; {do}",
        f"another version (measure_overlap@7 → measure_overlap@1): 2 artefacts; {do}",
    ]


def test_what_is_whole_is_taken_over_with_a_note_and_what_is_not_stays_as_it_is(results):
    number, taken = settle(results)
    assert number == 4
    assert taken == {"measure_overlap@7 → measure_overlap@1": 1, "local@3 → local@1": 1}
    lineage = read_lineage(results / "tables" / "raised.md")
    assert lineage["version"] == "measure_overlap@1"
    (note,) = lineage["run"]["accepted"]
    assert note["version"] == "measure_overlap@7"
    assert read_lineage(results / "tables" / "touched.md")["version"] == "measure_overlap@7"
    assert [one.path.name for one in made(results) if one.changes] == ["touched.md"]
    assert settle(results)[1] == {}


def test_lineage_that_names_what_is_no_longer_there_says_nothing(results):
    path = results / "tables" / "odd.md"
    path.write_text("odd")
    Lineage("score", {"task_entry": {"scorer": "gone"}}, [], results).write(path, "scores")
    Lineage("build_view", {"entry": None}, [], results).write(results / "tables" / "same.md", "table")
    assert {one.path.name for one in made(results)} == {"early.md", "other.md", "raised.md", "touched.md", "a.tsv"}
