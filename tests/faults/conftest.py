"""What the fault tests share: one undisturbed run of the smallest workflow, its copies, other users, and small disks."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from mini_project import Mini

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
def copy(undisturbed, tmp_path):
    """A finished run that the test may disturb; time stamps and Snakemake's records come along."""
    mini = Mini(tmp_path / "copy")
    for name in ("results", ".snakemake"):
        shutil.copytree(undisturbed.folder / name, mini.folder / name, dirs_exist_ok=True, symlinks=True)
    for file in ("config", "workflow", "resources", "Snakefile"):
        source = undisturbed.folder / file
        (shutil.copytree if source.is_dir() else shutil.copy2)(
            source, mini.folder / file, **({"dirs_exist_ok": True} if source.is_dir() else {})
        )
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
