"""Archives: what is asked for comes out; what is hostile, damaged or too large is refused by name and leaves nothing."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import struct
import tarfile
import warnings
import zipfile
import zlib

import pyarrow as pa
import pytest

from crosslign.corpora.archives import extract_folder, extract_member, member_names, open_member
from crosslign.errors import InputError

CONTENT = {"data/a.txt": b"alpha\n" * 1000, "data/deep/b.txt": b"beta", "README": b"read me"}


def pack(data: bytes, suffix: str) -> bytes:
    if suffix in (".gz", ".tgz"):
        return gzip.compress(data)
    if suffix == ".bz2":
        return bz2.compress(data)
    if suffix == ".xz":
        return lzma.compress(data)
    return bytes(pa.Codec("zstd").compress(data, asbytes=True)) if suffix == ".zst" else data


def tar_of(path, entries):
    """Write a tar of (TarInfo or name, bytes)."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for info, data in entries:
            member = tarfile.TarInfo(info) if isinstance(info, str) else info
            if member.isreg():
                member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    path.write_bytes(pack(stream.getvalue(), path.suffix))
    return path


def zip_of(path, entries):
    """Write a zip of (ZipInfo or name, bytes)."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # zipfile warns of the names that we write twice on purpose
        for name, data in entries:
            archive.writestr(name, data)
    return path


def make(path, entries):
    return (zip_of if path.suffix in (".zip", ".whl") else tar_of)(path, entries)


FORMATS = ["a.zip", "a.whl", "a.tar", "a.tar.gz", "a.tgz", "a.tar.bz2", "a.tar.xz", "a.tar.zst"]


@pytest.mark.parametrize("name", FORMATS)
def test_members_come_out_of_every_format(tmp_path, name):
    archive = make(tmp_path / name, list(CONTENT.items()))
    assert member_names(archive) == list(CONTENT)
    extract_member(archive, "data/deep/b.txt", tmp_path / "b", 4)
    assert (tmp_path / "b").read_bytes() == b"beta"
    assert extract_folder(archive, "data/", tmp_path / "out", 10_000) == [tmp_path / "out/data/a.txt", tmp_path / "out/data/deep/b.txt"]
    assert (tmp_path / "out/data/a.txt").read_bytes() == CONTENT["data/a.txt"]
    assert not (tmp_path / "out/README").exists()


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_a_packed_tar_may_be_called_as_one_that_is_not(tmp_path, suffix):
    archive = tar_of(tmp_path / "a.tar", CONTENT.items())
    archive.write_bytes(pack(archive.read_bytes(), suffix))
    assert member_names(archive) == list(CONTENT)
    assert opened(archive, "data/deep/b.txt") == b"beta"


def test_a_leading_dot_is_no_part_of_a_member_of_a_tar(tmp_path):
    folder = tarfile.TarInfo("./data")
    folder.type = tarfile.DIRTYPE
    archive = tar_of(tmp_path / "a.tar.gz", [(folder, b""), *((f"./{name}", data) for name, data in CONTENT.items())])
    assert member_names(archive) == list(CONTENT)
    with open_member(archive, "data/deep/b.txt") as stream:
        assert stream.read() == b"beta"
    assert extract_folder(archive, "data/", tmp_path / "out", 10_000) == [tmp_path / "out/data/a.txt", tmp_path / "out/data/deep/b.txt"]
    with pytest.raises(InputError, match=r"b\.tar: .*'[^']*/etc/passwd'.*outside"):
        extract_folder(tar_of(tmp_path / "b.tar", [(".//etc/passwd", b"x")]), "", tmp_path / "other", 10)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_a_file_packed_alone(tmp_path, suffix):
    archive = tmp_path / f"text.txt{suffix}"
    archive.write_bytes(pack(b"hello", suffix))
    extract_member(archive, "text.txt", tmp_path / "out", 5)
    assert (tmp_path / "out").read_bytes() == b"hello"
    with pytest.raises(InputError, match=r"'text\.txt'.*larger.* 4 "):
        extract_member(archive, "text.txt", tmp_path / "out2", 4)
    assert not (tmp_path / "out2").exists()


def link(name, kind, target="/etc/passwd"):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def special_zip(name, mode):
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


OUTSIDE = ["../evil", "data/../../evil", "/etc/evil", "data/..\\..\\evil", "C:\\evil", "\\evil"]


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz"])
@pytest.mark.parametrize("member", OUTSIDE)
def test_a_member_that_would_land_outside_is_refused_by_name(tmp_path, name, member):
    archive = make(tmp_path / name, [("good", b"x"), (member, b"evil")])
    with pytest.raises(InputError, match=rf"{name}: .*outside") as error:
        extract_folder(archive, "", tmp_path / "sub" / "out", 100)
    assert repr(member) in str(error.value)
    with pytest.raises(InputError, match=rf"{name}: .*outside"):
        extract_member(archive, member, tmp_path / "sub" / "one", 100)
    assert sorted(path.name for path in tmp_path.rglob("*")) == [name, "sub"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tar_are_refused_by_name(tmp_path, kind):
    archive = tar_of(tmp_path / "a.tar.gz", [(link("data", kind), b""), ("data/a", b"x")])
    with pytest.raises(InputError, match=r"'data'.*link"):
        extract_folder(archive, "", tmp_path / "out", 100)
    with pytest.raises(InputError, match=r"'data'.*link"):
        extract_member(archive, "data", tmp_path / "one", 100)
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar.gz"]


@pytest.mark.parametrize("mode", [stat.S_IFLNK | 0o777, stat.S_IFCHR | 0o600, stat.S_IFIFO | 0o600])
def test_links_and_devices_in_a_zip_are_refused_by_name(tmp_path, mode):
    archive = zip_of(tmp_path / "a.zip", [(special_zip("data", mode), b"/etc/passwd")])
    with pytest.raises(InputError, match=r"'data'.*link"):
        extract_folder(archive, "", tmp_path / "out", 100)


def test_an_unneeded_link_does_not_hinder(tmp_path):
    archive = tar_of(tmp_path / "a.tar", [(link("latest", tarfile.SYMTYPE), b""), ("data/a", b"x")])
    assert extract_folder(archive, "data/", tmp_path / "out", 100) == [tmp_path / "out/data/a"]


@pytest.mark.parametrize("name", ["a.zip", "a.tar.xz"])
def test_a_name_that_occurs_twice_is_refused(tmp_path, name):
    archive = make(tmp_path / name, [("x/a", b"first"), ("x/a", b"second")])
    with pytest.raises(InputError, match=r"'x/a'.*twice"):
        extract_member(archive, "x/a", tmp_path / "one", 100)
    with pytest.raises(InputError, match=r"'x/a'.*twice"):
        extract_folder(archive, "", tmp_path / "out", 100)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_that_is_also_a_folder_is_refused(tmp_path):
    for entries in ([("x", b"file"), ("x/a", b"inside")], [("x/a", b"inside"), ("x", b"file")], [("x/a", b"1"), ("x/./a", b"2")]):
        archive = tar_of(tmp_path / "a.tar", entries)
        with pytest.raises(InputError, match=r"a\.tar: .*twice"):
            extract_folder(archive, "", tmp_path / "out", 100)


@pytest.mark.parametrize("name", FORMATS)
def test_a_bomb_is_refused_by_name(tmp_path, name):
    archive = make(tmp_path / name, [("small", b"x"), ("bomb", bytes(2_000_000))])
    with pytest.raises(InputError, match=r"'bomb'.*2,000,000 "):
        extract_member(archive, "bomb", tmp_path / "one", 1_999_999)
    with pytest.raises(InputError, match=r"'bomb'.*1,999,999 "):
        extract_folder(archive, "", tmp_path / "out", 2_000_000)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_zip_that_lies_about_sizes_gives_no_more_than_it_declared(tmp_path):
    body = bytes(500_000)
    archive = zip_of(tmp_path / "a.zip", [("bomb", body)])
    data = archive.read_bytes().replace(struct.pack("<I", len(body)), struct.pack("<I", 10))
    archive.write_bytes(data)
    with pytest.raises(InputError, match=r"a\.zip: damaged"):
        extract_member(archive, "bomb", tmp_path / "one", 100)
    assert not (tmp_path / "one").exists()


@pytest.mark.parametrize("name", [*FORMATS, "text.gz", "text.bz2", "text.xz", "text.zst"])
def test_truncated_archives_are_named_and_leave_nothing(tmp_path, name):
    archive = tmp_path / name
    noise = b"".join(struct.pack("<I", zlib.crc32(struct.pack("<I", number))) for number in range(20_000))
    if name in FORMATS:
        make(archive, [("text", noise)])
    else:
        archive.write_bytes(pack(noise, archive.suffix))
    archive.write_bytes(archive.read_bytes()[:-4_000][:60_000])
    with pytest.raises(InputError, match=rf"{name}: damaged") as error:
        extract_member(archive, "text", tmp_path / "out", 1_000_000)
    assert str(archive) in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("packed", ["a.tar", "a.tar.gz"])
@pytest.mark.parametrize("broken", ["cut before a header", "cut in a header", "a flipped bit in a header"])
def test_a_tar_that_ends_without_its_end_is_not_whole(tmp_path, packed, broken):
    """tarfile, and so the reading of its members, ends there without a word."""
    whole = tar_of(tmp_path / "whole.tar", [("first", b"1"), ("second", b"2"), ("third", b"3")]).read_bytes()
    header = 2 * tarfile.BLOCKSIZE  # the second member's
    end = {"cut before a header": header, "cut in a header": header + 100}.get(broken, len(whole))
    content = bytearray(whole[:end])
    if end == len(whole):
        content[header] ^= 1
    archive = tmp_path / packed
    archive.write_bytes(pack(bytes(content), archive.suffix))
    with pytest.raises(InputError, match=rf"{packed}: [^']*member"):
        member_names(archive)
    with pytest.raises(InputError, match=rf"{packed}: damaged"):
        extract_folder(archive, "", tmp_path / "out", 100)
    assert not (tmp_path / "out").exists()
    archive.write_bytes(pack(whole[: 6 * tarfile.BLOCKSIZE] + bytes(tarfile.BLOCKSIZE), archive.suffix))
    assert member_names(archive) == ["first", "second", "third"]


@pytest.mark.parametrize("name", [*FORMATS, "text.gz", "text.bz2", "text.xz", "text.zst"])
def test_noise_is_no_archive(tmp_path, name):
    (tmp_path / name).write_bytes(b"<html>sign in, please, before you download this</html>" * 30)
    with pytest.raises(InputError, match=rf"{name}: damaged"):
        extract_member(tmp_path / name, "text", tmp_path / "out", 1_000)


def test_other_mistakes_have_one_line(tmp_path):
    archive = zip_of(tmp_path / "a.zip", [("a", b"x")])
    with pytest.raises(InputError, match=r"a\.zip: .*'b'.*archive"):
        extract_member(archive, "b", tmp_path / "out", 10)
    with pytest.raises(InputError, match=r"a\.zip: .*'b/'"):
        extract_folder(archive, "b/", tmp_path / "out", 10)
    with pytest.raises(InputError, match=r"a\.rar: .*\.tar\.zst"):
        member_names(tmp_path / "a.rar")
    with pytest.raises(InputError, match=r"gone\.zip: .*missing"):
        extract_member(tmp_path / "gone.zip", "a", tmp_path / "out", 10)
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("a", b"x")
    data = bytearray(archive.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    archive.write_bytes(bytes(data))
    with pytest.raises(InputError, match=r"a\.zip: .*encrypted"):
        extract_member(archive, "a", tmp_path / "out", 10)


def opened(archive, member):
    with open_member(archive, member) as stream:
        return stream.read()


@pytest.mark.parametrize("name", FORMATS)
def test_members_are_read_without_landing_anywhere(tmp_path, name):
    archive = make(tmp_path / name, CONTENT.items())
    for member, data in CONTENT.items():
        assert opened(archive, member) == data
    with pytest.raises(InputError, match=rf"{name}: .*'data/c\.txt'.*archive"):
        opened(archive, "data/c.txt")
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    with pytest.raises(InputError, match=rf"{name}: damaged"):
        opened(archive, "README")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_what_is_no_plain_file_is_not_opened(tmp_path):
    archive = tar_of(tmp_path / "a.tar.gz", [(link("data", tarfile.SYMTYPE), b"")])
    with pytest.raises(InputError, match=r"'data'.*link"):
        opened(archive, "data")
    archive = zip_of(tmp_path / "a.zip", [(special_zip("data", stat.S_IFLNK | 0o777), b"/etc/passwd"), ("../up", b"x")])
    with pytest.raises(InputError, match=r"'data'.*link"):
        opened(archive, "data")
    with pytest.raises(InputError, match=r"a\.zip: .*'\.\./up'.*outside"):
        opened(archive, "../up")


def test_a_member_with_flipped_bits_is_named(tmp_path):
    archive = zip_of(tmp_path / "a.zip", [("a.txt", bytes(range(256)) * 40)])
    raw = bytearray(archive.read_bytes())
    raw[60] ^= 0xFF
    archive.write_bytes(raw)
    with pytest.raises(InputError, match=r"a\.zip: damaged"):
        opened(archive, "a.txt")


@pytest.mark.parametrize("place", [-10, -6])
def test_a_zip_whose_directory_is_said_to_lie_elsewhere_is_damaged(tmp_path, place):
    """The last record of a zip says how long its directory is and where it begins: with a wrong figure a seek fails, not the disk."""
    archive = zip_of(tmp_path / "a.zip", [("a.txt", b"alpha")])
    raw = bytearray(archive.read_bytes())
    raw[place : place + 4] = struct.pack("<I", struct.unpack_from("<I", raw, len(raw) + place)[0] + 7)
    archive.write_bytes(raw)
    with pytest.raises(InputError, match=r"a\.zip: damaged"):
        opened(archive, "a.txt")


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
def test_a_header_that_would_fill_the_memory_is_refused(tmp_path, kind):
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, 3 << 20
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(gzip.compress(header.tobuf() + bytes(header.size) + tarfile.TarInfo("a").tobuf() + bytes(1024)))
    with pytest.raises(InputError, match=r"a\.tar\.gz: .*3,145,728.*1,048,576"):
        member_names(archive)


def test_names_longer_than_a_header_has_place_for_are_read(tmp_path):
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        name, stream = "deep/" * 60 + "a.txt", io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
            archive.addfile(tarfile.TarInfo(name))
        (tmp_path / "a.tar").write_bytes(stream.getvalue())
        assert member_names(tmp_path / "a.tar") == [name]
