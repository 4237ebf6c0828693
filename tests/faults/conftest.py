"""What the fault tests share: the small tools of the unit tests, a tiny encoder, and one undisturbed run of the smallest workflow."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
UNIT = HERE.parent / "unit"
sys.path[:0] = [str(HERE), str(UNIT / "training"), str(UNIT / "encoders")]

from mini_project import Mini  # noqa: E402


def _load(name: str, path: Path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


_unit = _load("unit_fixtures", UNIT / "conftest.py")
_training = _load("training_fixtures", UNIT / "training" / "conftest.py")
_server = _load("server_fixtures", UNIT / "corpora" / "sources" / "conftest.py")

sentence_pairs, sentence_file = _unit.sentence_pairs, _unit.sentence_file
tiny_encoder, tiny_model = _unit.tiny_encoder, _unit.tiny_model
pairs_file, groups_file = _unit.pairs_file, _unit.groups_file
_trial_kinds, train = _training._trial_kinds, _training.train
globals().update({name: value for name, value in vars(_server).items() if not name.startswith("__") and name not in globals()})

TOKEN = "hf_" + "SecretThatNobodyMaySee" * 2


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """A finished run of the smallest workflow: without a network where the kernel allows it, and with a token in its environment."""
    mini = Mini(tmp_path_factory.mktemp("mini") / "undisturbed")
    alone = ("unshare", "--net", "--map-root-user")
    mini.without_network = subprocess.run([*alone, "true"], capture_output=True, check=False).returncode == 0
    mini.first = mini.run(before=alone if mini.without_network else (), HF_TOKEN=TOKEN, HUGGING_FACE_HUB_TOKEN=TOKEN)
    mini.token = TOKEN
    return mini


@pytest.fixture
def nobody():
    """What is put before a command so that it runs without root's rights, its files still its own; skip where that cannot be."""
    prefix = () if os.geteuid() else ("unshare", "--user", "--map-user=65534")
    if prefix and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces here")
    return prefix


@pytest.fixture
def tmpfs():
    """Make small disks of their own; skip where mounting is not allowed."""
    mounted = []

    def mount(size: str, options: str = "") -> Path:
        folder = Path(tempfile.mkdtemp(prefix="crosslign-tmpfs-"))
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}{options}", "tmpfs", str(folder)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            folder.rmdir()
            pytest.skip("mounting a tmpfs needs root")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=False)
        folder.rmdir()
