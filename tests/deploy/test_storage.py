"""Jobs that see no shared folder: results lie in a store, jobs begin in a checkout without any, started by another scheduler."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from mini_project import Mini
from other_version import renamed
from project_copy import ROOT

PLUGINS = (
    "snakemake-executor-plugin-cluster-generic==1.0.9",
    "snakemake-storage-plugin-fs==1.1.3",
    "snakemake-storage-plugin-s3==0.3.6",
    "sysrsync", "toml", "boto3", "botocore", "s3transfer", "jmespath", "reretry", "throttler",
)  # fmt: skip
SUBMIT = """#!/bin/bash
# Starts a job on a node that has a checkout of its own at the project's place, and no results; prints its name.
node=$(mktemp -d {nodes}/XXXXXX)
echo "$(basename $0) $*" >$node/asked
cp "${{@: -1}}" $node/job.sh
mkdir $node/checkout
cp -r {project}/{{Snakefile,workflow,config,profiles,resources,envs}} $node/checkout/
run="mount --make-rprivate / && mount --bind $node/checkout {project} && cd {project} && bash $node/job.sh"
( setsid unshare -m bash -c "$run" </dev/null >$node/log 2>&1; echo $? >$node/code ) >/dev/null 2>&1 &
basename $node
"""
SIGNED = "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8").split("## Other schedulers\n")[1].split("\n## ")[0]
PROFILE = re.search(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)[1]
SUBMITS = {"PBS": re.search(r"submit-cmd: (.*)\n", PROFILE)[1], **dict(re.findall(r"^\| (\w+) \| `(.*)` \|$", PAGE, flags=re.MULTILINE))}
"""The page's command for each scheduler."""
ASKED = {
    "PBS": r"qsub -l select=1:ncpus=\d+:mem=\d+mb:ngpus=\d+ -l walltime=00:\d+:00 /\S+",
    "LSF": r"bsub -n \d+ -M \d+MB -W \d+ -R rusage\[ngpus_physical=\d+\] /\S+",
    "SGE": r"qsub -cwd -pe smp \d+ -l mem_free=\d+M,h_rt=00:\d+:00,gpu=\d+ /\S+",
}
"""What reaches it of a job."""
STATUS = """#!/bin/bash
[ -e {nodes}/$1/code ] || {{ echo running; exit; }}
[ $(cat {nodes}/$1/code) = 0 ] && echo success || echo failed
"""


@pytest.fixture(scope="module")
def plugins(tmp_path_factory, installed):
    return installed(tmp_path_factory.mktemp("plugins"), "--no-deps", *PLUGINS)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The tables of the smallest workflow, as an ordinary run makes them."""
    mini = Mini(tmp_path_factory.mktemp("shared") / "mini")
    mini.run()
    return {path.name: path.read_bytes() for path in sorted((mini.results / "tables").iterdir()) if not path.name.endswith("lineage.json")}


@pytest.fixture(params=["PBS"])
def scheduler(request):
    return request.param


@pytest.fixture
def project(tmp_path, plugins, scheduler):
    """A project, and the options of a run of it whose jobs are started by a scheduler of two scripts, as the page says."""
    if os.getuid() or shutil.which("unshare") is None:
        pytest.skip("a folder can be hidden from jobs by root alone")
    nodes, mini = tmp_path / "nodes", Mini(tmp_path / "mini")
    nodes.mkdir()
    scripts, profile = tmp_path / "scripts", tmp_path / "profile"
    scripts.mkdir()
    for name, text in (("qsub", SUBMIT), ("bsub", SUBMIT), ("status", STATUS)):
        (scripts / name).write_text(text.format(nodes=nodes, project=mini.folder), encoding="utf-8")
        (scripts / name).chmod(0o755)
    profile.mkdir()
    (profile / "config.yaml").write_text(PROFILE.replace(SUBMITS["PBS"], SUBMITS[scheduler]), encoding="utf-8")
    options = ["--profile", str(profile), "--jobs", "2", "--shared-fs-usage", "none", "--seconds-between-status-checks", "1"]
    return mini, nodes, [*options, "--cluster-generic-status-cmd", str(scripts / "status")]


def run(project, scheduler, *storage, **variables):
    """Run to the end; show what went wrong on a node."""
    mini, nodes, options = project
    own = {"PATH": f"{nodes.parent}/scripts:{Path(sys.executable).parent}:{os.environ['PATH']}", **variables}
    done = mini.run(*options, "--default-storage-provider", *storage, check=False, **own)
    logs = "".join(path.read_text()[-1500:] for path in nodes.glob("*/log") if (path.parent / "code").read_text().strip() != "0")
    assert done.returncode == 0, done.stdout[-3000:] + logs
    asked = [path.read_text().strip() for path in nodes.glob("*/asked")]
    assert len(asked) > 5, "jobs ran elsewhere"
    assert [line for line in asked if not re.fullmatch(ASKED[scheduler], line)] == []
    assert not (mini.results / "tables").exists(), "a result lies in the shared folder"


@pytest.mark.parametrize("scheduler", ["PBS", pytest.param("SGE", marks=pytest.mark.long)], indirect=True)
def test_a_store_on_a_disk_gets_the_same_tables(project, scheduler, plugins, tables, tmp_path):
    if shutil.which("rsync") is None:
        pytest.skip("the storage fs copies by rsync, which is not here")
    store = tmp_path / "store"
    store.mkdir()
    run(project, scheduler, "fs", "--default-storage-prefix", str(store), PYTHONPATH=plugins)
    assert {name: (store / "results" / "mini" / "tables" / name).read_bytes() for name in tables} == tables


@pytest.fixture(scope="module")
def s3(tmp_path_factory, installed):
    """The address of a loopback server that speaks S3's protocol."""
    packages = installed(tmp_path_factory.mktemp("moto"), "moto[s3,server]==5.2.5")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": packages}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(300):
        try:
            urllib.request.urlopen(urllib.request.Request(f"{address}/bench", method="PUT"))
            break
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    yield address
    server.kill()


def of_s3(address):
    """Options and variables of a run whose results lie in this store."""
    keys = ["--storage-s3-endpoint-url", address, "--storage-s3-access-key", "a", "--storage-s3-secret-key", "b"]
    return ["s3", "--default-storage-prefix", "s3://bench", *keys], {"AWS_EC2_METADATA_DISABLED": "true", "NO_PROXY": "127.0.0.1"}


@pytest.mark.long
@pytest.mark.parametrize("scheduler", ["LSF"], indirect=True)
def test_a_store_in_s3_gets_the_same_tables(project, scheduler, plugins, tables, s3):
    options, variables = of_s3(s3)
    run(project, scheduler, *options, PYTHONPATH=plugins, **variables)
    for name, expected in tables.items():
        asked = urllib.request.Request(f"{s3}/bench/results/mini/tables/{name}", headers={"Authorization": SIGNED})
        with urllib.request.urlopen(asked) as answer:
            assert answer.read() == expected


def test_a_storage_that_nobody_has_tried_is_left_as_it_is_with_one_warning(project, plugins, s3, tmp_path):
    (tmp_path / "other").mkdir()
    other = renamed(tmp_path / "other", "snakemake-storage-plugin-s3", "0.99.0", plugins)
    mini, _, more = project
    options, variables = of_s3(s3)
    planned = [
        mini.run("-n", *more, "--default-storage-provider", *options, PYTHONPATH=path, **variables).stdout
        for path in (f"{other}:{plugins}", plugins)
    ]
    warning = "warning: snakemake-storage-plugin-s3 0.99.0 is not 0.3.x"
    assert [said.count(warning) for said in planned] == [1, 0]
