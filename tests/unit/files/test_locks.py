"""Locks between users of a shared folder: the group can open them, and one that cannot be opened stops the job."""

from __future__ import annotations

import os
import stat

import pytest
from filelock import FileLock

from crosslign.errors import ResourceError
from crosslign.files.locks import locked


@pytest.mark.parametrize(("umask", "folder", "mode"), [(0o022, 0o2775, 0o664), (0o077, 0o755, 0o664), (0o022, 0o777, 0o666)])
def test_whoever_shares_the_folder_can_open_a_lock_whatever_the_umask_is(tmp_path, umask, folder, mode):
    tmp_path.chmod(folder)
    before = os.umask(umask)
    try:
        with locked(tmp_path / "a.lock"):
            assert stat.S_IMODE((tmp_path / "a.lock").stat().st_mode) == mode
    finally:
        os.umask(before)


@pytest.mark.parametrize("number", [1, 13])  # EPERM, EACCES
def test_a_lock_that_cannot_be_opened_stops_and_says_whose_it_is(tmp_path, monkeypatch, number):
    (tmp_path / "a.lock").touch()

    def refuse(*arguments, **named):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(FileLock, "acquire", refuse)
    with pytest.raises(ResourceError, match=r"a\.lock: .*'s\. .*`chmod g\+rw"):
        locked(tmp_path / "a.lock")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_meets_the_lock_and_one_of_an_unopenable_file_stops(tmp_path):
    tmp_path.chmod(0o777)
    for parent in list(tmp_path.parents)[:3]:
        parent.chmod(parent.stat().st_mode | 0o711)
    (tmp_path / "closed.lock").touch(0o600)
    with locked(tmp_path / "a.lock"):
        child = os.fork()
        if not child:
            code = 1
            try:
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
                try:
                    locked(tmp_path / "a.lock", 0.0)
                except TimeoutError:
                    code = 2
                try:
                    locked(tmp_path / "closed.lock", 0.0)
                except ResourceError:
                    code += 3
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
