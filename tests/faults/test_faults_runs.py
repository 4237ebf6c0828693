"""Faults of a whole run, on the smallest workflow: killed, moved, mis-timed, edited, offline; the tables stay the same."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from mini_project import Mini, alive, kill_all, tree
from project_copy import ROOT

from crosslign.provenance.discard import discard
from crosslign.provenance.settle import settle
from crosslign.provenance.verify import verify

pytestmark = pytest.mark.workflow


def planned(mini, *arguments, config=()):
    """Return the rules that a dry run would start."""
    said = mini.run("-n", *arguments, config=config).stdout
    jobs = re.search(r"^Job stats:\n.*?\n-.*?\n(.*?)\n\n", said, flags=re.MULTILINE | re.DOTALL)
    return {line.split()[0] for line in jobs[1].splitlines()} - {"total", "all"} if jobs else set()


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
    assert "going on after step" in (mini.results / "logs/train_system/F-A-s42.log").read_text()
    assert mini.tables() == undisturbed.tables()
    assert mini.artefacts() == undisturbed.artefacts()
    assert mini.leftovers() == []


KILLED_AT = {
    "fetch": 1,
    "prepare_encoder": 1,
    "build_corpus": 2,
    "build_evaluation": 4,
    "build_examples": 2,
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
def replace(self, target):
    global renames
    parts = Path(target).parts
    renames += not {"checkpoints", "tokenised"} & set(parts) and not any(part.endswith(".part") for part in parts)
    if renames == int(os.environ["KILLED_AT"]):
        Path(os.environ["KILLED_NOTE"]).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, target)
if sys.orig_argv[-1].endswith("." + os.environ["KILLED_RULE"] + ".py"):
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


def test_f11_read_only_results_fail_before_any_download(tmpfs, tmp_path):
    import subprocess

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


DAMAGED = (
    ("scores/**/sts_written.json", "make_table"),
    ("embeddings/**/sts_written.npy", "score"),
    ("systems/F-A-s42/last/main/model.safetensors", "embed"),
    ("encoders/tiny/main/model.safetensors", "train_system"),
    ("examples/nli.parquet", "train_system"),
    ("corpora/written_nli/*.parquet", "build_examples"),
    ("corpora/sts_written/texts.parquet", "build_examples"),
    ("../downloads/written/nli_en.tsv", "build_corpus"),
)
"""One file of each kind of artefact, from the last to the first, and the rule that reads it."""


def test_f23_one_damaged_byte_of_any_artefact_is_refused_by_name_and_mended_by_discarding_it(undisturbed, copy):
    for number, (pattern, rule) in enumerate(DAMAGED):
        (path,) = copy.results.glob(pattern)
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content if number % 2 else content[:-1])
        done = copy.run("--until", rule, check=False)
        assert done.returncode != 0, done.stdout[-3000:]
        assert "not what its lineage says; damaged, or changed by hand" in done.stdout, done.stdout[-3000:]
        assert not verify(copy.results)[1]
        assert discard(copy.results)
    shutil.rmtree(copy.results / ".discarded")
    copy.finish()
    assert copy.tables() == undisturbed.tables()
    assert copy.artefacts() == undisturbed.artefacts()


def test_f26_no_more_jobs_start_than_there_are_devices_for(tmp_path):
    """Where nobody says `--resources gpu=...`: a job that waited for a device would hold its cores, for a day at most."""
    mini = Mini(tmp_path / "mini")
    runs = [f"results/mini/systems/F-A-s{seed}" for seed in (42, 43)]
    device = f"GPU-{tmp_path.name}-{os.getpid()}"  # that no other test has
    said = mini.run(*runs, cores="4", config=("gpus=1", "seeds=[42,43]"), CUDA_VISIBLE_DEVICES=device).stdout
    numbers = re.findall(r"^Job (\d+): Training F-A", said, flags=re.MULTILINE)
    order = re.findall(rf"^(?:Job (?:{'|'.join(numbers)}): Training|Finished jobid: (?:{'|'.join(numbers)}))\b", said, flags=re.MULTILINE)
    assert [line.split()[0] for line in order] == ["Job", "Finished", "Job", "Finished"]


def test_f28_time_stamps_and_clocks_that_lie_make_no_needless_rerun_and_hashes_find_the_missing_one(undisturbed, copy):
    for folder, stamp in (("corpora", 4e9), ("scores", 0)):
        for path in (copy.results / folder).rglob("*"):
            os.utime(path, (stamp, stamp))
    by_time_alone = ("--max-checksum-file-size", "0")  # as Snakemake judges large files; of small ones it compares the bytes
    assert planned(copy) == set()
    assert planned(copy, *by_time_alone)
    settle(copy.results)
    assert planned(copy, *by_time_alone) == set()
    score = next(copy.results.glob("scores/**/sts_written.json"))
    before = score.read_bytes()
    # A file changed by hand that looks old: time stamps see nothing, hashes do.
    content = json.loads(before)
    content["records"][0]["value"] = 0.5
    score.write_text(json.dumps(content))
    os.utime(score, (0, 0))
    text, whole = verify(copy.results)
    assert not whole
    assert "touched by hand: scores/" in text
    discard(copy.results)
    copy.finish()
    assert score.read_bytes() == before
    assert verify(copy.results)[1], verify(copy.results)[0]
    assert copy.tables() == undisturbed.tables()


def test_f30_without_a_network_everything_runs_once_the_data_are_there(undisturbed):
    """The undisturbed run itself ran in a namespace without any network, where this machine allows one."""
    if not undisturbed.without_network:
        pytest.skip("no network namespaces here")
    assert len(undisturbed.tables()) == 4


def test_f31_an_edited_stage_reruns_what_depends_on_it_and_nothing_else(copy):
    """The library is changed under the workflow's feet: a constant of the scorer of this table's task."""
    shutil.copytree(Path(__file__).parents[2] / "src" / "crosslign", copy.folder / "src" / "crosslign")
    path = copy.folder / "src" / "crosslign" / "tasks" / "scorers" / "sts.py"
    environment = {"PYTHONPATH": str(copy.folder / "src")}
    assert "Nothing to be done" in copy.run("-n", **environment).stdout
    path.write_text(path.read_text(encoding="utf-8") + "\n# a comment\n", encoding="utf-8")
    assert "Nothing to be done" in copy.run("-n", **environment).stdout
    path.write_text(path.read_text(encoding="utf-8") + "\nCHANGED = 1\n", encoding="utf-8")
    said = copy.run("-n", **environment).stdout
    assert set(re.findall(r"^(score|make_table|embed|train_system|build_\w+|fetch|prepare_encoder) +\d+$", said, flags=re.MULTILINE)) == {
        "score",
        "make_table",
    }


ALL = {"build_examples", "train_system", "embed", "score", "make_table"}
EDITS = {
    "a filter": ("config/corpora.yaml", "min_words: 2", "min_words: 3", {"build_corpus", *ALL}),
    "an evaluation": ("config/corpora.yaml", "pairs: [en-en, de-de, en-de]", "pairs: [de-de, en-en, en-de]", {"build_evaluation", *ALL}),
    "an encoder": ("config/encoders.yaml", "seed: 0", "seed: 1", {"prepare_encoder", "train_system", "embed", "score", "make_table"}),
    "a seed of examples": ("config/papers/faults.yaml", "langs: [en], seed: 42", "langs: [en], seed: 43", ALL),
    "a learning rate": ("config/papers/faults.yaml", "1e-3", "2e-3", ALL - {"build_examples"}),
    "a readout": ("config/encoders.yaml", "max_length: 32", "max_length: 31", ALL - {"build_examples"}),
    "an average": ("config/tasks.yaml", "mono: [en-en, de-de]", "mono: [en-en]", {"score", "make_table"}),
    "a title": ("config/papers/faults.yaml", "The table of the", "A table of the", {"make_table"}),
    "a comment": ("config/papers/faults.yaml", "# One system", "# A system", set()),
    "a comment of a script": ("workflow/scripts/train_system.py", "Train one run.", "Train a run.", set()),
    "a citation": ("config/corpora.yaml", "Written for crosslign; in the form", "Written by hand, in the form", set()),
    "a citation of a source": ("config/corpora.yaml", "crosslign, resources/written", "resources/written", set()),
    "a citation of an encoder": ("config/encoders.yaml", "random weights", "weights at random", set()),
    "a rough size": ("config/corpora.yaml", "{name: nli_en.tsv}", "{name: nli_en.tsv, about_bytes: 50000}", set()),
    "a file of the user's own": (
        "resources/written/nli_en.tsv",
        "Marta simmered",
        "Marta stirred",
        {"fetch", "prepare_encoder", "build_corpus", *ALL},
    ),
    "how often a training is saved": ("config/papers/faults.yaml", "checkpoint_every: 2", "checkpoint_every: 3", set()),
}


@pytest.mark.parametrize("name", EDITS)
def test_f32_an_edited_value_reruns_its_rules_and_no_others(copy, name):
    file, old, new, expected = EDITS[name]
    copy.edit(file, old, new)
    assert planned(copy) == expected


def test_f32_a_file_of_the_users_own_that_is_gone_once_it_was_copied_makes_nothing_anew(copy):
    shutil.rmtree(copy.folder / "resources" / "written")
    assert planned(copy) == set()


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
        assert "of_hub' could not be had from the hub" in failed.stdout, failed.stdout[-3000:]
    code = f"from crosslign.cli.main import main; print([main(command) for command in {COMMANDS!r}])"
    environment = copy.environment(**given)
    command = subprocess.run([sys.executable, "-c", code], cwd=copy.folder, env=environment, capture_output=True, text=True, check=True)
    assert command.stdout.splitlines()[-1] in ("[0, 0, 0, 0, 0]", "[1, 0, 0, 0, 0]"), command.stdout[-3000:] + command.stderr[-3000:]
    said += [at_hub.stdout, at_proxy.stdout, command.stdout, command.stderr]
    assert {path.name for path in copy.results.iterdir()} >= {"report.html", "snakemake_report.html", "figures", "crates"}
    places = [*((f"output {number}", text.encode()) for number, text in enumerate(said)), *_contents(copy.folder)]
    assert [name for name, content in places if any(secret.encode() in content for secret in secrets)] == []


def test_f40_other_cores_threads_and_places_give_the_same_tables(undisturbed, tmp_path):
    mini = Mini(tmp_path / "a path with spaces, ümlauts & (brackets)")
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
