"""CSV files that list the files of a source: read as they are meant, or refused with their line."""

from pathlib import Path

import pytest

from crosslign.config.file_lists import with_listed_files
from crosslign.errors import InputError

SCHEMAS = Path(__file__).resolve().parents[3] / "workflow" / "schemas"
SHA = "0123456789abcdef" * 4


@pytest.fixture
def read(tmp_path):
    (tmp_path / "workflow").mkdir()
    (tmp_path / "workflow" / "schemas").symlink_to(SCHEMAS)

    def files(text):
        if text is not None:
            (tmp_path / "a.csv").write_bytes(text)
        return with_listed_files(tmp_path, {"s": {"url": "https://a.org", "files_from": "a.csv"}})["s"]

    return files


def test_rows_are_files_and_empty_fields_are_not_known(read):
    found = read(f"name,path,sha256,bytes,about_bytes\nx.gz,d/x.gz,{SHA},12,\ny.gz,,,,34\n".encode())
    assert found == {
        "url": "https://a.org",
        "files": [{"name": "x.gz", "path": "d/x.gz", "sha256": SHA, "bytes": 12}, {"name": "y.gz", "about_bytes": 34}],
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, r"a\.csv: .*missing"),
        (b"", r"a\.csv: .*non-empty"),
        (b"name\n\xff\n", r"a\.csv: .*utf-8.*0xff"),
        (b'name\n"x\n', r"a\.csv: .*CSV"),
        (b"name\nx,y\n", r"a\.csv:2: .*fields.* 1 "),
        (b"name\nx\n../../y\n", r"a\.csv:3: 1\.name: '../../y'.*'\^"),
        (b"name\n..\n", r"a\.csv:2: 0\.name: "),
        (b"nam\nx\n", r"a\.csv:2: .*'nam'.*'name'"),
        (b"name,bytes\nx,12k\n", r"a\.csv:2: 0\.bytes: .*'12k'"),
        (b"name,sha256\nx,abc\n", r"a\.csv:2: 0\.sha256: "),
        (b"name\nx\ny\nx\n", "source 's': .*name.*'x'"),
    ],
)
def test_a_list_that_is_wrong_is_refused_with_its_line(read, text, said):
    with pytest.raises(InputError, match=said):
        read(text)
