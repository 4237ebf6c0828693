"""Files on NFS whose handles another machine makes stale: no command ends by that, whichever file and access it is."""

import builtins
import errno
import io
import os
import random

import pytest

from crosslign.cli.main import main
from crosslign.files import write_json
from crosslign.files.lineage import Lineage, sidecars_of
from crosslign.files.walk import is_there, passing_gone

SCORE = "scores/A-s1/last/mean/task.json"
ACCESSES = ((os, "stat"), (os, "utime"), (io, "open"), (builtins, "open"))


@pytest.fixture
def results(tmp_path):
    """A corpus, a run's folder made of it, and its score."""
    place = tmp_path / "results" / "quick"
    for name in ("corpora/c.parquet", "systems/A-s1/last/weights"):
        (place / name).parent.mkdir(parents=True)
        (place / name).write_text("rows")
    write_json(place / SCORE, {"records": []})
    made = {"corpora/c.parquet": [], "systems/A-s1": ["corpora/c.parquet"], SCORE: ["systems/A-s1"]}
    for path, inputs in made.items():
        Lineage("rule", {}, [place / name for name in inputs], place).write(place / path, "kind")
    return place


def stale_at(monkeypatch, place, share, draw):
    """Have so large a share of all accesses to files below a place end by a stale handle."""
    for module, name in ACCESSES:
        real = getattr(module, name)

        def access(path, *given, real=real, **named):
            if isinstance(path, (str, os.PathLike)) and str(path).startswith(str(place)) and draw.random() < share:
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(path))
            return real(path, *given, **named)

        monkeypatch.setattr(module, name, access)


@pytest.mark.parametrize("command", [["verify"], ["verify", "--settle"], ["verify", "--discard"], ["status"], ["diff"]])
def test_no_command_ends_by_a_stale_handle(results, monkeypatch, capsys, command):
    given = [command[0], str(results), *([str(results)] if command[0] == "diff" else []), *command[1:]]
    for seed in range(40):
        with monkeypatch.context() as patch:
            stale_at(patch, results, 0.1, random.Random(seed))
            status = main(given)
        said = capsys.readouterr()
        assert "Traceback" not in said.err, said.err
        assert status in (0, 1, 2, 4), said.err


def test_what_is_stale_is_not_there(results, monkeypatch):
    path = next(sidecars_of(results))
    assert is_there(path)
    with monkeypatch.context() as patch:
        stale_at(patch, results, 1.0, random.Random(0))
        assert not is_there(path)
        with passing_gone():
            path.read_bytes()
    with pytest.raises(PermissionError), passing_gone():
        raise PermissionError(errno.EACCES, "closed")
