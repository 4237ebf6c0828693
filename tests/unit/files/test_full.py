"""A full disk is named as such, however it was reported; other errors stay what they are."""

import errno

import pytest

from crosslign.errors import InputError, ResourceError
from crosslign.files.full import full_disk

REPORTS = [
    OSError(errno.ENOSPC, "No space left on device"),
    OSError(errno.EDQUOT, "Disk quota exceeded"),
    RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)"),
]


def fail(report):
    try:
        raise report
    except Exception as error:
        raise ValueError("could not write") from error


@pytest.mark.parametrize("report", REPORTS, ids=["disk", "quota", "words"])
def test_it_is_said_with_what_to_do(report, tmp_path):
    with pytest.raises(ResourceError, match=r"the disk is full.*MB free.*Make room") as found, full_disk(tmp_path / "not" / "there"):
        fail(report)
    assert found.value.exit_code == 4


@pytest.mark.parametrize("error", [ValueError("no"), InputError("No space left on device is a sentence")], ids=["other", "said"])
def test_others_pass(error, tmp_path):
    with pytest.raises(type(error)) as found, full_disk(tmp_path):
        raise error
    assert found.value is error
