"""What may not be read, or what a disk cannot give: said as such, and never taken for damage."""

import builtins
import errno
import io
import os

import pytest
from scored_results import SCORE

from crosslign.cli.main import main
from crosslign.files.lineage import Lineage
from crosslign.provenance.discard import discard
from crosslign.provenance.verify import verify

CORPUS, SYSTEM = "corpora/c.parquet", "systems/A-s1"


def closed(monkeypatch, place, number):
    """Have the bytes of a file, or all below a folder, be refused, also to root, who may read everything."""
    below = place.is_dir()
    for module, name in ((io, "open"), (builtins, "open"), (os, "scandir"), (os, "stat")):
        real = getattr(module, name)

        def access(path, *given, real=real, name=name, **named):
            text = os.fsdecode(path) if isinstance(path, (str, os.PathLike)) else ""
            if (text == str(place) and name != "stat") or (below and text.startswith(f"{place}/")):
                raise OSError(number, os.strerror(number), text)
            return real(path, *given, **named)

        monkeypatch.setattr(module, name, access)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO])
@pytest.mark.parametrize(
    ("place", "said"),
    [
        (CORPUS, CORPUS), (f"{SYSTEM}/last/weights", SYSTEM), (f"{SYSTEM}/last", SYSTEM), (SCORE, SCORE), ("scores/A-s1", "scores/A-s1"),
        ("tables/t.csv", "tables/t.csv"), (f"{CORPUS}.lineage.json", f"{CORPUS}.lineage.json"), (f"{SYSTEM}/lineage.json", SYSTEM),
        ("tables", "tables"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said_to_be_so_and_stays_with_all_made_of_it(results, monkeypatch, capsys, place, said, number):
    before = sorted(results.rglob("*"))
    with monkeypatch.context() as patch:
        closed(patch, results / place, number)
        assert main(["verify", str(results)]) == 1
        out = capsys.readouterr().out
        assert f"cannot be read: {said}" in out
        assert f"({os.strerror(number)})" in out
        assert "touched by hand: " not in out
        assert "stale: " not in out
        assert main(["verify", str(results), "--discard"]) == 1
        discarded = capsys.readouterr().out
        assert discarded.startswith("nothing to discard\n")
        assert f"cannot be read, and stays: {said}" in discarded
        assert main(["verify", str(results), "--settle"]) == 0
    assert sorted(results.rglob("*")) == before
    assert verify(results)[1]


def test_a_closed_file_of_the_user_s_own_refutes_nothing(results, monkeypatch, tmp_path_factory):
    own = tmp_path_factory.mktemp("own") / "mine.tsv"
    own.write_text("mine")
    Lineage("rule", {"file": str(own)}, [own], results).write(results / CORPUS, "corpus")
    closed(monkeypatch, own, errno.EACCES)
    text, whole = verify(results, own.parent)
    assert not whole
    assert any(line.startswith("cannot be read: ") and "mine.tsv" in line for line in text.splitlines())
    assert CORPUS not in discard(results, own.parent)[0]


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES, errno.EROFS])
def test_time_stamps_of_another_user_s_files_are_refused_by_name(results, monkeypatch, capsys, number):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))  # without a name, as the interpreter does

    monkeypatch.setattr(os, "utime", refuse)
    assert main(["verify", str(results), "--settle"]) == 4
    error = capsys.readouterr().err
    assert error.startswith(f"error: {results}/")
    assert f"cannot be written; {os.strerror(number)}" in error
