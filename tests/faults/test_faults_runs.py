"""Faults of a whole run, on the smallest workflow: killed, moved, offline, short of room or devices; the tables stay the same."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from mini_project import Mini, alive, kill_all, make_environment, tree

pytestmark = pytest.mark.workflow


def wait_for(process, condition, seconds=240):
    """Wait until a condition holds while a run is under way."""
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, "the run ended before the fault"
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


def scripts(pid):
    """Return the processes of jobs' scripts below a process."""
    found = []
    for child in tree(pid):
        try:
            line = Path(f"/proc/{child}/cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if "/.snakemake/scripts/" in line and "-m\0snakemake" not in line and "/bin/bash" not in line:
            found.append(child)
    return found


def test_f01_a_job_killed_in_its_work_leaves_no_final_name_and_the_same_command_ends_in_the_same_bytes(undisturbed, tmp_path):
    mini = Mini(tmp_path / "mini")
    run = mini.start("--keep-going")
    try:
        work = mini.results / "checkpoints" / "F-A-s42" / "current"
        wait_for(run, work.exists)
        for pid in scripts(run.pid):
            os.kill(pid, signal.SIGKILL)
        assert run.wait(timeout=240) == 1
    finally:
        kill_all(run)
    assert not (mini.results / "systems" / "F-A-s42").exists()
    assert not (mini.results / "tables").exists()
    assert work.exists()
    mini.finish()
    assert "continuing after step" in (mini.results / "logs/train_system/F-A-s42.log").read_text()
    assert mini.tables() == undisturbed.tables()
    assert mini.artefacts() == undisturbed.artefacts()
    assert mini.leftovers() == []


KILLED_AT = {
    "fetch": 1,
    "prepare_encoder": 1,
    "build_corpus": 2,
    "build_evaluation": 4,
    "build_examples": 2,
    "tokenise": 1,
    "train_system": 1,
    "embed": 2,
    "score": 3,
    "make_table": 4,
}
"""Which rename to a final name each step is killed at: its only one, or one between those of its several files."""
KILL = """
import os, signal, sys
from pathlib import Path
renames, real = 0, Path.replace
def named():
    return getattr(getattr(sys.modules["__main__"], "snakemake", None), "rule", "") == os.environ["KILLED_RULE"]
def replace(self, target):
    global renames
    parts = Path(target).parts
    renames += named() and "checkpoints" not in parts and not any(part.endswith(".part") for part in parts)
    if named() and renames == int(os.environ["KILLED_AT"]):
        Path(os.environ["KILLED_NOTE"]).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, target)
if ".snakemake/scripts" in sys.orig_argv[-1]:
    Path.replace = replace
"""


def test_f01_each_step_killed_at_its_renames_ends_in_the_same_bytes(undisturbed, tmp_path):
    """One run from nothing, in which every step is killed once; the next call goes on to the next step, and is killed there."""
    mini = Mini(tmp_path / "mini")
    (tmp_path / "sitecustomize.py").write_text(KILL, encoding="utf-8")
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    for rule, at in KILLED_AT.items():
        note = tmp_path / f"killed-{rule}"
        done = mini.run("--until", rule, check=False, PYTHONPATH=path, KILLED_RULE=rule, KILLED_AT=str(at), KILLED_NOTE=str(note))
        assert done.returncode != 0, done.stdout[-3000:]
        assert note.exists(), done.stdout[-3000:]
    mini.finish()
    assert mini.tables() == undisturbed.tables()
    assert mini.artefacts() == undisturbed.artefacts()
    assert mini.leftovers() == []


def test_f04_a_killed_engine_takes_its_jobs_along_and_the_next_call_names_the_one_command(undisturbed, copy):
    for folder in ("systems", "embeddings", "scores", "tables"):
        shutil.rmtree(copy.results / folder)
    run = copy.start()
    orphans = []
    try:
        wait_for(run, lambda: scripts(run.pid))
        family = tree(run.pid)
        orphans = scripts(run.pid)
        run.send_signal(signal.SIGKILL)
        run.wait()
        end = time.monotonic() + 60
        while any(map(alive, orphans)) and time.monotonic() < end:
            time.sleep(0.1)
        assert not any(map(alive, orphans)), "a job goes on without its run"
    finally:
        for pid in [*family, *orphans]:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
    refused = copy.run(check=False)
    assert refused.returncode != 0
    assert "cannot be locked" in refused.stdout
    assert "--unlock" in refused.stdout
    copy.finish()
    assert copy.tables() == undisturbed.tables()
    assert copy.artefacts() == undisturbed.artefacts()


def test_f04_a_terminal_that_goes_away_ends_the_run_in_order_and_nothing_stays_locked(undisturbed, copy):
    """As when ssh drops: SIGHUP, and no terminal to print to."""
    for folder in ("systems", "embeddings", "scores", "tables"):
        shutil.rmtree(copy.results / folder)
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(copy.folder)
        os.execve(copy.python, copy.command(), copy.environment())
    os.set_blocking(terminal, False)
    end = time.monotonic() + 240
    while not scripts(pid):
        with suppress(BlockingIOError):
            os.read(terminal, 65_536)
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    copy.run()
    assert copy.tables() == undisturbed.tables()
    assert copy.artefacts() == undisturbed.artefacts()
    assert copy.leftovers() == []


TOLD = """
import asyncio, os, signal, sys
real = asyncio.Runner.run
def run(self, *given, **named):
    if callable(signal.getsignal(signal.SIGTERM)):
        os.kill(os.getpid(), signal.SIGTERM)
    return real(self, *given, **named)
if "snakemake" in sys.orig_argv and "--mode" not in sys.orig_argv:
    asyncio.Runner.run = run
"""
"""Has the engine told to end each time that it looks after jobs, before they start and when they have ended."""


def test_f04_an_engine_that_is_told_to_end_while_it_looks_after_its_jobs_ends(tmp_path):
    mini = Mini(tmp_path / "mini")
    (tmp_path / "sitecustomize.py").write_text(TOLD, encoding="utf-8")
    run = mini.start(PYTHONPATH=os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])))
    try:
        assert run.wait(timeout=180) == 1
    finally:
        kill_all(run)
    assert "Finished jobid" in mini.engine_log()


def test_f11_read_only_results_fail_before_any_download(tmpfs, tmp_path):
    disk = tmpfs("2m")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    mini = Mini(tmp_path / "mini")
    done = mini.run(check=False, config=(f"results={disk}/results",))
    assert done.returncode != 0
    assert "error: " in done.stdout
    assert "Read-only file system" in done.stdout
    assert "Fetching" not in done.stdout


def test_f11_a_folder_without_permission_fails_before_any_download(nobody, tmp_path):
    mini = Mini(tmp_path / "mini")
    (mini.folder / "results").mkdir(mode=0o555)
    done = mini.run(check=False, before=nobody)
    assert done.returncode != 0
    assert "error: " in done.stdout
    assert "Permission denied" in done.stdout
    assert "Fetching" not in done.stdout


def test_f26_no_more_jobs_start_than_there_are_devices_for(tmp_path):
    """Where nobody says `--resources gpu=...`: a job that waited for a device would hold its cores, for a day at most."""
    mini = Mini(tmp_path / "mini")
    runs = [f"results/mini/systems/F-A-s{seed}" for seed in (42, 43)]
    device = f"GPU-{tmp_path.name}-{os.getpid()}"  # that no other test has
    mini.run(*runs, cores="4", config=("gpus=1", "seeds=[42,43]"), CUDA_VISIBLE_DEVICES=device)
    said = mini.engine_log()
    numbers = re.findall(r"^Job (\d+): Training F-A", said, flags=re.MULTILINE)
    order = re.findall(rf"^(?:Job (?:{'|'.join(numbers)}): Training|Finished jobid: (?:{'|'.join(numbers)}))\b", said, flags=re.MULTILINE)
    assert [line.split()[0] for line in order] == ["Job", "Finished", "Job", "Finished"]


def test_f30_without_a_network_everything_runs_once_the_data_are_there(undisturbed):
    """The undisturbed run itself ran in a namespace without any network, where this machine allows one."""
    if not undisturbed.without_network:
        pytest.skip("no network namespaces here")
    assert len(undisturbed.tables()) == 4


def test_f40_other_cores_threads_and_places_give_the_same_tables(undisturbed, tmp_path):
    mini = Mini(tmp_path / "a path with spaces, 'quotes', ümlauts & (brackets)")
    mini.python = make_environment(mini.folder / ".venv")
    mini.run("--keep-going", cores="64", OMP_NUM_THREADS="3", MKL_NUM_THREADS="2")
    assert mini.tables() == undisturbed.tables()
    mini.run("--forcerun", "make_table", cores="1")
    assert mini.tables() == undisturbed.tables()


def test_f40_who_is_not_root_gets_the_same_tables_one_job_at_a_time(nobody, undisturbed, tmp_path):
    mini = Mini(tmp_path / "mini")
    mini.run("-j", "1", before=nobody)
    assert mini.tables() == undisturbed.tables()
    assert mini.artefacts() == undisturbed.artefacts()


def test_f41_twice_is_the_same_bytes_in_every_artefact(undisturbed, copy):
    for folder in ("systems", "embeddings", "scores", "tables"):
        shutil.rmtree(copy.results / folder)
    copy.run(cores="1")
    assert copy.artefacts() == undisturbed.artefacts()
    assert copy.tables() == undisturbed.tables()


def test_f41_training_with_two_threads_stays_within_the_stated_tolerance(undisturbed, copy):
    """Other threads are another recipe: scores move by less than 0.02, and lineage says why."""
    copy.edit("config/papers/faults.yaml", "precision: fp32}", "precision: fp32, threads: 2}")
    copy.run()

    def scores(mini):
        content = json.loads(next(mini.results.glob("scores/**/sts_written.json")).read_text())
        return {(r["subset"], r["metric"]): r["value"] for r in content["records"]}

    one, two = scores(undisturbed), scores(copy)
    assert one.keys() == two.keys()
    assert max(abs(one[key] - two[key]) for key in one) < 0.02
    lineage = json.loads((copy.results / "systems/F-A-s42/lineage.json").read_text())
    assert lineage["threads"] == 2
