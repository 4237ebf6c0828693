"""Tokens and passwords of the environment, in whole runs: they stand in no file that a run makes, and in nothing that it says."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile

import pytest
from project_copy import ROOT

pytestmark = pytest.mark.workflow


def test_f38_tokens_of_the_environment_stand_nowhere(undisturbed):
    secret = undisturbed.token.encode()
    places = [undisturbed.results, undisturbed.folder / ".snakemake" / "log"]
    assert secret not in undisturbed.first.stdout.encode()
    for place in places:
        assert place.exists()
        assert [str(path) for path in place.rglob("*") if path.is_file() and secret in path.read_bytes()] == []


FIGURE = "figures:\n  curve: {kind: curves, title: Loss, caption: Loss., from: [F-A]}"
HUB = "encoders:\n  of_hub: {hub: owner/model, revision: main, readout: mean, licence: none, citation: none}"
COMMANDS = (["doctor"], ["crate", "faults"], ["card", "F-A-s42"], ["explain", "faults", "F-A", "mono"], ["verify"])


def _contents(folder):
    """Yield every file below a folder, and every member of every archive, as bytes."""
    for path in (path for path in folder.rglob("*") if path.is_file()):
        yield str(path), path.read_bytes()
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                yield from ((f"{path}:{name}", archive.read(name)) for name in archive.namelist())


def test_f38_secrets_of_the_environment_stand_in_no_page_archive_or_message(copy, site):
    """A figure, the report, Snakemake's own, a crate, a card, and fetches from the hub that fail: at the hub, and at the proxy."""
    secrets, dead = ("hf_" + "AnotherSecret" * 3, "PasswordOfTheProxy"), {"CROSSLIGN_OFFLINE": "0", "HF_HUB_OFFLINE": "0"}
    given = {"HF_TOKEN": secrets[0], "HTTPS_PROXY": f"http://user:{secrets[1]}@{site.url[7:-6]}", "NO_PROXY": "127.0.0.1"}
    given |= {"HF_HOME": str(copy.folder / "home")}
    copy.edit("config/papers/faults.yaml", "figures: {}", FIGURE)
    copy.edit("config/encoders.yaml", "encoders:", HUB)
    for name in ("CITATION.cff", "LICENSE"):
        shutil.copy2(ROOT / name, copy.folder / name)
    said = [copy.run("curve", "report", **given).stdout]
    said.append(copy.run("--report", "results/mini/snakemake_report.html", "faults", **given).stdout)
    site.plan = ["401"]
    at_hub = copy.run("results/mini/encoders/of_hub", check=False, **given, **dead, HF_ENDPOINT=site.url[:-6])
    assert any(secrets[0] in request.get("authorization", "") for request in site.requests), at_hub.stdout[-3000:]
    at_proxy = copy.run("results/mini/encoders/of_hub", check=False, **given, **dead)
    for failed in (at_hub, at_proxy):
        assert "of_hub' could not be downloaded from the hub" in failed.stdout, failed.stdout[-3000:]
    code = f"from crosslign.cli.main import main; print([main(command) for command in {COMMANDS!r}])"
    environment = copy.environment(**given)
    command = subprocess.run([sys.executable, "-c", code], cwd=copy.folder, env=environment, capture_output=True, text=True, check=True)
    assert command.stdout.splitlines()[-1] in ("[0, 0, 0, 0, 0]", "[1, 0, 0, 0, 0]"), command.stdout[-3000:] + command.stderr[-3000:]
    said += [at_hub.stdout, at_proxy.stdout, command.stdout, command.stderr]
    assert {path.name for path in copy.results.iterdir()} >= {"report.html", "snakemake_report.html", "figures", "crates"}
    places = [*((f"output {number}", text.encode()) for number, text in enumerate(said)), *_contents(copy.folder)]
    assert [name for name, content in places if any(secret.encode() in content for secret in secrets)] == []
