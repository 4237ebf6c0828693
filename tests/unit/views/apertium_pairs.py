"""Whether Apertium is here with the language pairs that the tests translate by (`make apertium`)."""

import shutil
import subprocess

import pytest

PAIRS = {"eng-spa", "es-fr", "es-pt"}


def _installed() -> bool:
    if shutil.which("apertium") is None:
        return False
    listed = subprocess.run(["apertium", "-l"], capture_output=True, text=True, check=True)
    return set(listed.stdout.split()) >= PAIRS


needs_apertium = pytest.mark.skipif(not _installed(), reason="apertium or a pair of its languages is not installed: make apertium")
