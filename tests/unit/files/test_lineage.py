import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crosslign.errors import InputError
from crosslign.files import read_json, sha256_file, sha256_folder, write_text
from crosslign.files.lineage import Lineage, licences_and_heads, lineage_path, read_lineage, sidecars_of


def test_lineage_names_inputs_by_hash_and_inherits_licences_and_the_stand_in_mark(tmp_path):
    write_text(tmp_path / "in.txt", "input")
    Lineage("fetch", {}, [], tmp_path, licences=["CC0-1.0"], stand_in=True).write(tmp_path / "in.txt", "download")
    write_text(tmp_path / "out.txt", "output")
    job = Lineage("build", {"a": 1}, [tmp_path / "in.txt"], tmp_path, licences=["MIT"])
    job.inherit()
    job.write(tmp_path / "out.txt", "corpus")
    sidecar = read_json(lineage_path(tmp_path / "out.txt"))
    assert sidecar["inputs"] == [{"path": "in.txt", "sha256": sha256_file(tmp_path / "in.txt")}]
    assert sidecar["artefact"]["sha256"] == sha256_file(tmp_path / "out.txt")
    assert sidecar["licences"] == ["CC0-1.0", "MIT"] == licences_and_heads([tmp_path / "out.txt"])[0]
    assert sidecar["stand_in"] is True


def test_paths_are_relative_to_the_results_and_of_what_lies_outside_the_name_alone(tmp_path, tmp_path_factory):
    results, elsewhere = tmp_path / "results", tmp_path_factory.mktemp("elsewhere")
    scale = results / "laptop"
    inputs = [scale / "corpora/c/all.parquet", results / "downloads/bible/a.whl", elsewhere / "mine.txt"]
    for path in (*inputs, scale / "out.txt"):
        write_text(path, path.name)
    Lineage("build", {}, inputs, scale).write(scale / "out.txt", "corpus")
    named = {entry["path"] for entry in read_json(lineage_path(scale / "out.txt"))["inputs"]}
    assert named == {"corpora/c/all.parquet", "../downloads/bible/a.whl", "mine.txt"}


def test_lineage_files_are_those_of_finished_work_wherever_the_folder_lies(tmp_path):
    results = tmp_path / "old.part"
    for name in ("corpora/a.parquet", "corpora/.b.parquet.part/b.parquet", ".discarded/c.parquet", "systems/A-s1/lineage.json"):
        write_text(results / name if name.endswith("json") else lineage_path(results / name), "{}")
    assert [path.relative_to(results).as_posix() for path in sidecars_of(results)] == [
        "corpora/a.parquet.lineage.json",
        "systems/A-s1/lineage.json",
    ]


def test_a_job_with_several_outputs_reads_its_inputs_once(tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr("crosslign.files.lineage.checksum", lambda path: read.append(path) or sha256_file(path))
    for name in ("in.txt", "first.txt", "second.txt"):
        write_text(tmp_path / name, name)
    job = Lineage("score", {}, [tmp_path / "in.txt"], tmp_path)
    for name in ("first.txt", "second.txt"):
        job.write(tmp_path / name, "scores")
    assert read.count(tmp_path / "in.txt") == 1
    assert read_json(lineage_path(tmp_path / "second.txt"))["inputs"][0]["sha256"] == sha256_file(tmp_path / "in.txt")


def test_the_licences_of_joined_data_are_named_once_each(tmp_path):
    for name, licence in {"verses": "GPL-3.0", "joined": "GPL-3.0; CC0-1.0"}.items():
        write_text(tmp_path / name, name)
        Lineage("fetch", {}, [], tmp_path, licences=[licence]).write(tmp_path / name, "download")
    assert licences_and_heads([tmp_path / "verses", tmp_path / "joined"]) == (["CC0-1.0", "GPL-3.0"], [])


def test_only_the_run_block_differs_between_equal_jobs(tmp_path):
    write_text(tmp_path / "out.txt", "output")
    found = []
    for _ in range(2):
        Lineage("build", {}, [], tmp_path).write(tmp_path / "out.txt", "corpus")
        found.append(read_json(lineage_path(tmp_path / "out.txt")))
    for sidecar in found:
        sidecar.pop("run")
    assert found[0] == found[1]


WITH_A_CHILD = """
import resource, subprocess, sys
from pathlib import Path
from crosslign.files.lineage import Lineage
root = Path(sys.argv[1])
lineage = Lineage("train", {}, [], root)
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024 + 100
subprocess.run([sys.executable, "-c", f"bytearray({most} << 20)[::4096]"], check=True)
lineage.write(root / "out.txt", "system")
print(most)
"""


def test_the_memory_of_a_child_counts(tmp_path):
    """In a process of its own: the child must take more than its parent ever did, and this one has run other tests."""
    write_text(tmp_path / "out.txt", "output")
    done = subprocess.run([sys.executable, "-c", WITH_A_CHILD, str(tmp_path)], check=True, capture_output=True, text=True)
    assert read_json(lineage_path(tmp_path / "out.txt"))["run"]["peak_mb"] >= int(done.stdout)


def test_a_folder_is_summed_without_its_lineage_and_hidden_files(tmp_path):
    write_text(tmp_path / "run" / "a.txt", "a")
    before = sha256_folder(tmp_path / "run")
    Lineage("train", {}, [], tmp_path).write(tmp_path / "run", "system")
    write_text(tmp_path / "run" / ".timestamp", "now")
    assert sha256_folder(tmp_path / "run") == before
    write_text(tmp_path / "run" / "b.txt", "b")
    assert sha256_folder(tmp_path / "run") != before


def changed(path):
    path.write_text("other")


def replaced_with_its_lineage(path):
    changed(path)
    Lineage("build", {}, [], path.parent).write(path, "corpus")


@pytest.mark.parametrize("described", [True, False])
@pytest.mark.parametrize("change", [changed, replaced_with_its_lineage, Path.unlink])
def test_an_input_that_changed_or_went_while_the_job_ran_fails_the_job(tmp_path, change, described):
    for name in ("in.txt", "out.txt"):
        write_text(tmp_path / name, "before")
    if described:
        Lineage("fetch", {}, [], tmp_path).write(tmp_path / "in.txt", "download")
    job = Lineage("build", {}, [tmp_path / "in.txt"], tmp_path)
    change(tmp_path / "in.txt")
    with pytest.raises(InputError, match=r"in\.txt: .*input (changed|disappeared)"):
        job.write(tmp_path / "out.txt", "corpus")
    assert not lineage_path(tmp_path / "out.txt").exists()


def flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("damage", [flipped, cut])
@pytest.mark.parametrize("name", ["in.txt", "run"])
def test_an_input_that_is_not_what_its_lineage_says_is_refused(tmp_path, name, damage):
    file = tmp_path / name if name.endswith(".txt") else tmp_path / name / "weights"
    write_text(file, "before")
    Lineage("fetch", {}, [], tmp_path).write(tmp_path / name, "download")
    Lineage("build", {}, [tmp_path / name], tmp_path).check_inputs()
    damage(file)
    with pytest.raises(InputError, match=rf"{name}: .*lineage.*verify --discard"):
        Lineage("build", {}, [tmp_path / name], tmp_path).check_inputs()


def test_a_file_of_an_input_folder_that_changed_fails_the_job(tmp_path):
    write_text(tmp_path / "run" / "a.txt", "a")
    write_text(tmp_path / "out.txt", "output")
    job = Lineage("embed", {}, [tmp_path / "run"], tmp_path)
    write_text(tmp_path / "run" / ".timestamp", "now")
    job.write(tmp_path / "out.txt", "embeddings")
    write_text(tmp_path / "run" / "b.txt", "b")
    with pytest.raises(InputError, match=r"/run: .*input changed"):
        job.write(tmp_path / "out.txt", "embeddings")


def test_a_new_time_stamp_alone_is_no_change(tmp_path):
    for name in ("in.txt", "out.txt"):
        write_text(tmp_path / name, "before")
    Lineage("fetch", {}, [], tmp_path).write(tmp_path / "in.txt", "download")
    job = Lineage("build", {}, [tmp_path / "in.txt"], tmp_path)
    os.utime(tmp_path / "in.txt", (0, 0))
    job.write(tmp_path / "out.txt", "corpus")
    write_text(tmp_path / "run" / "a.txt", "a")
    Lineage("train", {}, [], tmp_path).write(tmp_path / "run", "system")
    job = Lineage("embed", {}, [tmp_path / "run"], tmp_path)
    os.utime(tmp_path / "run" / "a.txt", (0, 0))
    job.write(tmp_path / "out.txt", "embeddings")


@pytest.mark.parametrize(("name", "value"), [("wall_s", 10**400), ("earlier_s", 1e308), ("peak_mb", float("nan")), ("devices", 10**400)])
def test_numbers_that_no_job_can_have_are_no_lineage(tmp_path, name, value):
    """They can be compared, and neither added nor rounded."""
    (tmp_path / "a.tsv").write_text("x")
    Lineage("rule", None, [], tmp_path).write(tmp_path / "a.tsv", "kind")
    content = json.loads((tmp_path / "a.tsv.lineage.json").read_text())
    content["run"][name] = value
    (tmp_path / "a.tsv.lineage.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=rf"run\.{name} "):
        read_lineage(tmp_path / "a.tsv")
