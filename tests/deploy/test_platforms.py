"""The lock on other machines: macOS on arm64, Linux on aarch64 (Grace): each pin has a wheel there, as the index says."""

import re
import subprocess
import sys

import pytest
from project_copy import ROOT

PLATFORMS = {
    "macOS on arm64": [f"macosx_{version}_0_arm64" for version in (11, 12, 13, 14)],
    "Linux on aarch64": [
        f"manylinux{version}_aarch64" for version in ("2014", "_2_17", "_2_24", "_2_26", "_2_27", "_2_28", "_2_31", "_2_34")
    ],
}
"""Tags of wheels that a current system of the kind takes."""
FROM_SOURCE = {"connection_pool"}
"""Pure Python, without a wheel for any machine: pip builds it anywhere."""


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_each_pin_of_the_lock_has_a_wheel(platform, tmp_path):
    pins = [line for line in (ROOT / "envs" / "requirements.lock").read_text(encoding="utf-8").splitlines() if line.strip()]
    wanted = [pin for pin in pins if re.split(r"[=;]", pin)[0] not in FROM_SOURCE]
    assert len(wanted) > 100
    (tmp_path / "lock").write_text("\n".join(wanted) + "\n")
    tags = [word for tag in PLATFORMS[platform] for word in ("--platform", tag)]
    options = [
        "--dry-run",
        "--quiet",
        "--ignore-installed",
        "--no-deps",
        "--only-binary=:all:",
        "--python-version",
        "3.11",
        "--implementation",
        "cp",
    ]
    command = [sys.executable, "-m", "pip", "install", *options, *tags, "--target", tmp_path / "none", "-r", tmp_path / "lock"]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if "Could not fetch URL" in done.stderr or "Name or service not known" in done.stderr:
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr[-2000:]
