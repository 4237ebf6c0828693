"""Official files as publishers also give them out: with blank last lines, and JSON lines as one array."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile

import pyarrow.parquet as pq
import pytest
from test_evaluation_sets import PROJECT, Bench

_ENDED = """
xnli_test xnli_15way xnli_mt tatoeba tatoeba_en-zh bucc2018_sample sts17_extended social_iqa_dev qe_test21 sts17 flores200_devtest
muse_en-de simcse_wiki
"""
ENDED = _ENDED.split()
LISTED = ["snli_train", "xcopa_test", "mtop", "multi_eurlex_dev", "mewsli_x_mentions", "copa_val"]


def ended(data):
    return data + (b"" if data.endswith(b"\n") else b"\n") + b"\n"


def listed(data):
    lines = data.decode("utf-8").splitlines()
    return json.dumps([json.loads(line) for line in lines]).encode() if lines[0].startswith("{") else data


def altered(path, change):
    """Change every file of text in an archive, or the file itself."""
    name, data, out = path.name, path.read_bytes(), io.BytesIO()
    if name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(data)) as found, zipfile.ZipFile(out, "w") as made:
            for member in found.infolist():
                made.writestr(member, change(found.read(member)))
    elif ".tar" in name:
        with tarfile.open(fileobj=io.BytesIO(data)) as found, tarfile.open(fileobj=out, mode=f"w:{name.partition('.tar')[2][1:]}") as made:
            for member in filter(tarfile.TarInfo.isfile, found):
                content = change(found.extractfile(member).read())
                member.size = len(content)
                made.addfile(member, io.BytesIO(content))
    else:
        out.write(change(data))
    path.write_bytes(out.getvalue())


class Altered(Bench):
    def __init__(self, folder, change):
        super().__init__(folder)
        self.change = change

    def file(self, source, file):
        fresh = not (self.folder / "downloads" / source / file["name"]).exists()
        path = super().file(source, file)
        if fresh:
            altered(path, self.change)
        return path


def tables(bench, name):
    if PROJECT.corpora[name]["kind"] == "evaluation":
        return [pq.read_table(path) for path in bench.evaluation(name).values()]
    return [pq.read_table(bench.corpus(name))]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return Bench(tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize(("change", "name"), [*((ended, name) for name in ENDED), *((listed, name) for name in LISTED)])
def test_the_same_rows_are_read(plain, tmp_path, change, name):
    assert all(one.equals(other) for one, other in zip(tables(Altered(tmp_path, change), name), tables(plain, name), strict=True))
