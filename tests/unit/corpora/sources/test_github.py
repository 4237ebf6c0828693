"""Files of a repository on GitHub: one archive for all of them, each held to its own hash, single files where the archive fails."""

from __future__ import annotations

import hashlib
import io
import tarfile

import pytest

from crosslign.corpora.fetch import fetch_file
from crosslign.errors import NetworkError

REVISION = "f" * 40
FILES = {f"tatoeba.{number:03d}.eng": f"sentence {number}\n".encode() for number in range(120)}
SOURCE = {"github": "lab/tools", "revision": REVISION, "folder": "data/v1"}


def archive(files, top="tools"):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name, body in files.items():
            info = tarfile.TarInfo(f"{top}-{REVISION}/data/v1/{name}")
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))
    return file.getvalue()


@pytest.fixture
def web(site, monkeypatch):
    """A copy of the web with the repository's archive."""
    monkeypatch.setenv("CROSSLIGN_WEB_MIRROR", site.url)
    site.body = archive(FILES)
    return site


def get(folder, name, sha="", source=SOURCE, where="set"):
    file = {"name": name, "sha256": sha or hashlib.sha256(FILES[name]).hexdigest()}
    return fetch_file(where, source, file, folder / where / name, [])


def test_one_request_brings_all_files_each_held_to_its_hash(web, tmp_path, waits):
    for name, body in FILES.items():
        get(tmp_path, name)
        assert (tmp_path / "set" / name).read_bytes() == body
    get(tmp_path, "tatoeba.000.eng", where="another_set")
    assert [request["path"] for request in web.requests] == [f"/data/codeload.github.com/lab/tools/tar.gz/{REVISION}"]


def test_a_repository_that_was_renamed_is_read_all_the_same(web, tmp_path, waits):
    web.body = archive(FILES, top="other-name")
    get(tmp_path, "tatoeba.001.eng")


@pytest.mark.parametrize("act", ["drop:300", "short:300", "429", "503"])
def test_an_archive_that_comes_cut_or_late_comes_again(web, tmp_path, waits, act):
    web.plan = [act, "ok"]
    get(tmp_path, "tatoeba.001.eng")
    assert len(web.requests) == 2
    assert len(waits) == 1


def test_what_the_archive_lacks_or_has_otherwise_is_asked_for_alone_and_named(web, tmp_path, waits):
    other = {**FILES, "tatoeba.001.eng": b"others"}
    del other["tatoeba.002.eng"]
    web.body = archive(other)
    with pytest.raises(NetworkError, match=r"tatoeba\.001\.eng .* 2 .*sha256"):
        get(tmp_path, "tatoeba.001.eng")
    with pytest.raises(NetworkError, match=r" 119 .*data/v1/tatoeba\.002\.eng"):
        get(tmp_path, "tatoeba.002.eng")
    assert web.requests[-1]["path"] == f"/data/raw.githubusercontent.com/lab/tools/{REVISION}/data/v1/tatoeba.002.eng"


def test_a_repository_that_is_gone_leaves_its_single_files(web, tmp_path, waits):
    web.answers = [(404, {}, b""), (200, {}, FILES["tatoeba.001.eng"])]
    get(tmp_path, "tatoeba.001.eng")
    assert len(web.requests) == 2
