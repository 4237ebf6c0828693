"""Where a job writes before its artefacts have their names: folders of its own, and what killed jobs left of theirs goes."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from pathlib import Path

import pytest

from crosslign.errors import InputError, ResourceError
from crosslign.files import write_text
from crosslign.files.lineage import Lineage
from crosslign.jobs.job import ALIVE, Job, at_copies, inputs_of


def job(folder, name="a.txt"):
    out = folder / "results" / name
    return Job("score", {}, {"file": out}, {}, 1, Lineage("score", {}, [], folder / "results"))


def leftover(folder, mark, name="a.txt", number="0123abcd"):
    part = folder / "results" / f".{name}.{number}.part"
    part.mkdir(parents=True)
    (part / ALIVE).write_text(mark)
    (part / name).write_text("half")
    return part


def run(made):
    with made.publish("text") as (out, counts):
        write_text(out["file"], "whole")
        counts["lines"] = 1
        return out["file"].parent


def test_a_folder_takes_the_place_of_a_link_to_one_that_stays(tmp_path):
    old, out = tmp_path / "other disk", tmp_path / "results" / "systems" / "A-s1"
    for folder in (old, out.parent):
        folder.mkdir(parents=True)
    out.symlink_to(old)
    with Job("train", {}, {"folder": out}, {}, 1, Lineage("train", {}, [], tmp_path / "results")).publish("system") as (temporary, _):
        write_text(temporary["folder"] / "weights", "new")
    assert sorted(path.name for path in out.iterdir()) == ["lineage.json", "weights"]
    assert list(old.iterdir()) == []


@pytest.mark.parametrize("inner", ["", "/main/config.json"])
def test_an_error_names_an_output_by_its_final_name(tmp_path, inner):
    made = job(tmp_path)
    with pytest.raises(InputError) as caught, made.publish("text") as (out, _):
        raise InputError("no", where=f"{out['file']}{inner}:7", why=f"{out['file']} is odd", do=f"Look at {out['file']}")
    final = made.outputs["file"]
    assert str(caught.value) == f"{final}{inner}:7: no; {final} is odd. Look at {final}"
    assert caught.value.where == f"{final}{inner}:7"


def test_a_full_disk_is_told_of_the_output_not_of_its_temporary_place(tmp_path):
    made = job(tmp_path)
    with pytest.raises(ResourceError, match=r"space.*crosslign plan") as caught, made.publish("text") as (out, _):
        raise OSError(errno.ENOSPC, "No space left on device", str(out["file"] / "a"))
    assert caught.value.where == f"{made.outputs['file']}/a"


def test_two_jobs_at_one_output_do_not_meet_and_nothing_is_left(tmp_path):
    one, other = job(tmp_path), job(tmp_path)
    with one.publish("text") as (first, _):
        write_text(first["file"], "first")
        with other.publish("text") as (second, _):
            assert first["file"].parent != second["file"].parent
            assert first["file"].read_text() == "first"
            write_text(second["file"], "second")
        assert first["file"].read_text() == "first"
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["a.txt", "a.txt.lineage.json"]
    assert (tmp_path / "results" / "a.txt").read_text() == "first"


def test_what_a_killed_job_left_is_removed_and_no_other_output_s(tmp_path):
    dead, others = leftover(tmp_path, "elsewhere:1"), leftover(tmp_path, "elsewhere:1", "a.txt.gz")
    plain = tmp_path / "results" / ".a.txt.89abcdef.part"  # what `atomic_path` is writing
    plain.write_text("half")
    run(job(tmp_path))
    assert not dead.exists()
    assert others.is_dir()
    assert plain.is_file()


@pytest.mark.parametrize(("mark", "stays"), [("elsewhere:1", True), ("{host}:{own}", True), ("{host}:{dead}", False), ("no mark", True)])
def test_without_locks_only_what_is_known_to_have_ended_is_removed(tmp_path, monkeypatch, mark, stays):
    def flock(descriptor, operation):
        raise OSError(errno.ENOLCK, "no locks here")

    monkeypatch.setattr(fcntl, "flock", flock)
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    part = leftover(tmp_path, mark.format(host=socket.gethostname(), own=os.getpid(), dead=child))
    run(job(tmp_path))
    assert part.exists() == stays


def test_a_job_that_fails_leaves_nothing(tmp_path):
    def fails():
        with job(tmp_path).publish("text") as (out, _):
            write_text(out["file"], "half")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fails()
    assert not list((tmp_path / "results").iterdir())


def test_parameters_lead_to_copies_where_the_results_lie_in_a_store():
    params = {"root": "results/mini", "members": {"main": "results/mini/encoders/e/main"}, "recipe": {"note": "results/mini"}, "seed": 1}
    params["models"] = ["results/models/m", "resources/x", "results"]
    copy = Path(".snakemake/storage/s3/bench")
    assert at_copies(params, [Path("results/mini/systems/a")]) == params
    found = at_copies(params, [copy / "results/mini/systems/a"])
    assert found["root"] == f"{copy}/results/mini"
    assert found["members"] == {"main": f"{copy}/results/mini/encoders/e/main"}
    assert found["models"] == [f"{copy}/results/models/m", "resources/x", f"{copy}/results"]
    assert (found["recipe"], found["seed"]) == (params["recipe"], 1)
    assert at_copies({"root": "results", "work": "results/mini/x"}, [copy / "results/downloads/a"])["work"] == f"{copy}/results/mini/x"


def test_lineage_beside_inputs_is_not_an_input_of_its_own():
    assert inputs_of([("texts", "a.parquet"), ("lineage", ["a.parquet.lineage.json"])]) == {"texts": Path("a.parquet")}
