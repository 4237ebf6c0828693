"""Plans: jobs from a dry run's words, times from benchmark files, GPU-hours from recipes, files by state."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from crosslign.cli import dry_run
from crosslign.cli.commands import status
from crosslign.cli.main import main
from crosslign.config.data_plan import FileNeed
from crosslign.config.load import load_project
from crosslign.config.loads import examples_mb
from crosslign.config.resolve import run_recipe
from crosslign.config.resources import job_need
from crosslign.config.tokenised import copies, copy_of, key_of
from crosslign.files import write_json
from crosslign.paths import Paths
from crosslign.planning.cost import (
    START_HOURS,
    correction,
    cost_of,
    cost_text,
    encoding_correction,
    encoding_hours,
    measured_hours,
    no_memory,
    no_room,
    too_long,
)
from crosslign.planning.graph import Planned, behind, counts, read_graph
from crosslign.planning.plan import measured, plan_text, status_text
from crosslign.planning.times import tasks_of, wall_lines

ROOT = Path(__file__).resolve().parents[3]
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
HEAD = "s\th:m:s\tmax_rss\n"
DOT = r"""digraph snakemake_dag {
    graph[bgcolor=white, margin=0];
	0[label = "all", color = "0.5 0.6 0.85", style="rounded"];
	1[label = "embed_large\ncheckpoint: last\ntext_set: bucc", color = "0.5 0.6 0.85", style="rounded"];
	2[label = "train_system\nrun: MS-E-s42", color = "0.5 0.6 0.85", style="rounded"];
	3[label = "build_examples\nexamples: nli", color = "0.5 0.6 0.85", style="rounded,dashed"];
	1 -> 0
	2 -> 1
	3 -> 2
}
"""


@pytest.fixture(scope="module")
def read_once():
    return load_project(ROOT, {"scale": "paper", "papers": ["msimcse"], "targets": ["all"]})


@pytest.fixture
def project(read_once, tmp_path):
    loaded = replace(read_once, paths=Paths(tmp_path, "paper"))
    for rule, name, seconds, memory in (("embed", "a", 10, 500), ("embed", "b", 30, 900), ("score", "a", 2, "-")):
        path = loaded.paths.benchmark(rule, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{HEAD}{seconds}\t0:00:10\t{memory}\n")
    return loaded


def test_a_graph_is_read_with_the_wildcards_that_it_leaves_out():
    graph = read_graph(DOT)
    assert [job.rule for job in graph.values()] == ["all", "build_examples", "embed_large", "train_system"]
    _, examples, embedded, trained = graph
    assert graph[embedded].wildcards == {"run": "MS-E-s42", "examples": "nli", "checkpoint": "last", "text_set": "bucc"}
    assert (graph[embedded].after, graph[examples].to_run, graph[trained].to_run) == ({trained}, False, True)
    assert counts(graph, {"all"}, to_run=True) == {"embed": 1, "train_system": 1}
    assert counts(graph, {"all"}, to_run=False) == {"build_examples": 1}
    assert list(behind(graph, [trained])) == [examples, trained]
    assert read_graph("digraph snakemake_dag {}") == {}


def test_a_graph_is_the_same_whatever_numbers_its_jobs_had():
    numbers = {"0": "2", "1": "3", "2": "0", "3": "1"}
    other = re.sub(r"(?<![\w.#\"])([0-3])(?=\[| ->|$)", lambda found: numbers[found[1]], DOT, flags=re.MULTILINE)
    assert other != DOT
    assert list(read_graph(other).items()) == list(read_graph(DOT).items())


def test_the_chain_that_decides_is_told_and_devices_share_the_rest(project):
    def job(rule, after=(), **wildcards):
        return Planned(rule, wildcards, True, frozenset(after))

    graph = {
        "data": job("build_corpus", corpus="simcse_nli"),
        "a": job("train_system", ["data"], run="MS-E-s42"),
        "b": job("train_system", ["data"], run="MS-H2-s42"),
        "table": job("make_table", ["a", "b"], table="msimcse_table1"),
        "target": job("msimcse_table1", ["table"]),
    }
    tasks = tasks_of(project, graph, {"build_corpus": 360, "make_table": 0})
    one, two = ([*wall_lines(project, graph, tasks, gpus, 4)] for gpus in (1, 2))
    # six minutes of data, then 0.2 and 0.35 hours, one after the other or both at once
    assert (one[0].split(",")[0], two[0].split(",")[0]) == (
        "about 39 min 00 s on 1 GPU and 4 cores",
        "about 27 min 00 s on 2 GPUs and 4 cores",
    )
    chain = [
        "critical path, on any number of GPUs: 27 min 00 s:",
        "  build_corpus simcse_nli  6 min 00 s",
        "  train_system MS-H2-s42  21 min 00 s",
    ]
    assert one[1:] == two[1:] == chain
    assert [*wall_lines(project, {}, {}, 1, 1)] == []


def test_benchmark_files_are_added_up(project):
    rows = measured(project.paths.results)
    assert (rows["embed"].jobs, rows["embed"].mean, rows["embed"].peak_mb) == (2, 20.0, 900.0)
    assert rows["score"].peak_mb == 0.0
    assert "embed                  2 jobs" in status_text(project.paths.results)


def training(run):
    return ("train_system", {"run": run})


def test_hours_come_from_the_recipes(project):
    cost = cost_of(project, [training("MS-E-s42"), training("MS-H2-s42")])
    assert (cost.trainings, cost.unknown, cost.hours) == (2, 0, pytest.approx(0.55))
    assert cost.peak_mb > cost.kept_mb > 0


def test_a_running_training_has_checkpoints_on_disk(project):
    parameters = 560
    cost = cost_of(project, [training("MS-E-s42")])
    assert cost.kept_mb == 8 * parameters  # last and best, four bytes a parameter
    # Three checkpoints of weights and two moments (KEPT and the one in the making), best weights.
    assert cost.peak_mb - cost.kept_mb > (3 * 12 + 4) * parameters


def test_tokenised_examples_are_on_disk_once_for_all_trainings_that_share_them(project):
    copy = ("tokenise", {"examples": "nli_english", "key": "0"})
    jobs = [training(run) for run in ("MS-E-s42", "MS-H2-s42")]
    without, with_copy = cost_of(project, jobs), cost_of(project, [*jobs, copy])
    assert with_copy.kept_mb == without.kept_mb
    assert with_copy.peak_mb - without.peak_mb == pytest.approx(2.2 * examples_mb(project, "nli_english"), abs=2)
    assert examples_mb(project, "nli_english") > 10
    trained = copies(project, run_recipe(project, "MS-E-s42"))["nli_english"]
    shared = copies(project, run_recipe(project, "MS-H2-s42"))["nli_english"]
    assert key_of(trained) == key_of(shared)
    assert copy_of(project, "nli_english", key_of(trained)) == trained


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_what_snakemake_says_against_a_plan_is_told_wherever_it_prints_it(tmp_path, monkeypatch, capsys, stream):
    said = (
        f"import sys; print('Using workflow specific profile x', file=sys.stderr); print('Missing input files: a.txt', file=sys.{stream})"
    )
    monkeypatch.setattr(dry_run, "_snakemake", lambda *_: subprocess.Popen([sys.executable, "-c", f"{said}; sys.exit(1)"], **PIPES))
    assert main(["plan", "--directory", str(ROOT), "--config", "scale=quick"]) == 2
    assert "Snakemake cannot plan this run; Missing input files: a.txt" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_plan_that_is_told_to_end_takes_its_snakemake_along(monkeypatch, number):
    waits, started = f"import os, time; time.sleep(0.5); os.kill({os.getpid()}, {int(number)}); time.sleep(60)", []

    def start(*_):
        started.append(subprocess.Popen([sys.executable, "-c", waits], **PIPES))
        return started[0]

    monkeypatch.setattr(dry_run, "_snakemake", start)
    before = signal.signal(number, signal.SIG_DFL)  # a hang-up that `nohup` ignores stays ignored
    try:
        with pytest.raises(SystemExit) as ended:
            main(["plan", "--directory", str(ROOT), "--config", "scale=quick"])
    finally:
        signal.signal(number, before)
    assert ended.value.code == 128 + number
    assert started[0].wait(10) == -signal.SIGTERM


def test_trainings_that_no_number_of_tries_has_time_for_are_named():
    short = load_project(ROOT, {"scale": "paper", "papers": ["moco_bert"], "targets": ["all"], "max_runtime": 120})
    jobs = [training("MB-base-s42"), ("embed", {"run": "MB-base-s42", "text_set": "sts12"})]  # 14 hours are declared
    assert too_long(short, jobs, 7) == ""
    assert "1 job of train_system, such as MB-base-s42 (14 hours, 4 jobs of 8 in all): raise max_runtime" in too_long(short, jobs, 4)


def test_other_jobs_that_need_more_time_than_is_allowed_are_named_by_rule():
    web = load_project(ROOT, {"scale": "paper", "papers": ["emma_x"], "targets": ["all"], "max_runtime": 240})
    jobs = [
        ("build_corpus", {"file": "a.xz", "corpus": name, "langs": "x"}) for name in ("cc100_sw", "ccmatrix_en-de", "wikipedia_dump_en")
    ]
    said = too_long(web, jobs, 4)
    assert "2 jobs of build_corpus, such as wikipedia_dump_en (" in said
    assert "240 allowed" in said
    plan = plan_text(web, {"build_corpus": 3}, {}, jobs, [])
    assert f"on a cluster: {said}" in plan
    assert "on a cluster:" not in plan_text(replace(web, settings={**web.settings, "max_runtime": 100_000}), {}, {}, jobs, [])


def test_a_job_that_no_node_has_the_memory_for_is_refused_with_the_figure():
    full = load_project(ROOT, {"scale": "paper", "papers": ["emma_x"], "targets": ["all"], "sizes": {"emma_x": "full"}})
    jobs = [("build_examples", {"source": "cc100", "corpus": "cc100_sw", "examples": "ex_monolingual-full"})]  # two are of jobs before it
    refused = r"build_examples: too little memory for ex_monolingual-full; it needs about \d{3,} GB, and the limit of a job is 120"
    assert re.search(refused, str(no_memory(full, jobs)))
    assert re.search(f"a run would fail at its start: {refused}", plan_text(full, {"build_examples": 1}, {}, jobs, []))
    roomy = replace(full, settings={**full.settings, "max_mem_mb": 2_000_000})
    assert no_memory(roomy, jobs) is None
    assert "a run would fail" not in plan_text(roomy, {"build_examples": 1}, {}, jobs, [])


def test_a_place_for_temporary_files_that_is_too_small_is_told(project, monkeypatch):
    jobs = [("build_examples", {"corpus": "a", "examples": "nli_english"}), training("MS-E-s42")]
    asked = job_need(project, *jobs[0], 1).disk_mb
    for free, said in ((asked, False), (asked - 1, True)):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: SimpleNamespace(free=free * 1e6))
        note = no_room(project, jobs)
        assert note.startswith("nli_english may need ") is said
        assert ("set TMPDIR to a folder with enough space" in note) is said
    assert no_room(project, [training("MS-E-s42")]) == ""


def test_finished_trainings_correct_the_hours_of_those_to_come(project):
    assert correction(project) == (1.0, 0)
    path = project.paths.benchmark("train_system", "MS-E-s42")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{HEAD}1440\t0:24:00\t900\n")  # 0.4 hours, where 0.2 are declared
    assert correction(project) == (pytest.approx(2.0), 1)
    cost = cost_of(project, [training("MS-H2-s42")])
    assert cost.hours == pytest.approx(2 * 0.35)
    assert "declared hours times 2.00 as measured" in cost_text(cost)
    assert "took 2.00 times their declared hours" in status_text(project.paths.results, project)


def test_a_training_counts_all_its_parts_and_devices(project):
    path = project.paths.benchmark("train_system", "MS-E-s42")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{HEAD}360\t0:06:00\t900\n")  # the last part alone
    run = {
        "wall_s": 360.0,
        "earlier_s": 1080.0,
        "device": "cuda",
        "devices": 2,
        "commit": "",
        "started": "2026-01-01T00:00:00",
        "peak_mb": 1.0,
    }
    write_json(project.paths.system("MS-E-s42") / "lineage.json", {**LINEAGE, "run": run})
    assert correction(project) == (pytest.approx(2 * 0.4 / 0.2), 1)  # 0.2 are declared
    # With the two encodings of the fixture, 40 s.
    assert "trainings and encodings took 0.81 hours on their devices" in status_text(project.paths.results, project)


def test_finished_encodings_correct_those_to_come(project):
    def embedded(run, text_set, hours):
        path = project.paths.embeddings(run, "last", "cls", text_set).relative_to(project.paths.results / "embeddings")
        path = project.paths.benchmark("embed", str(path.with_suffix("")))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{HEAD}{hours * 3600}\t0:00:10\t900\n")

    small, large = ({"run": "MS-E-s42", "text_set": name} for name in ("sts12", "bucc2018_training"))
    assert START_HOURS < encoding_hours(project, small) < 2 * START_HOURS < encoding_hours(project, large)
    assert encoding_correction(project) == (1.0, 0)
    embedded("MS-E-s42", "sts12", 3 * encoding_hours(project, small))
    embedded("MS-E-s42", "bucc2018_training", 1.5 * encoding_hours(project, large))
    for run, text_set in (("MS-E-s42", "no_such_set"), ("MS-GONE-s42", "sts12"), ("MS-E+gone-s42", "sts12")):
        embedded(run, text_set, 100.0)
    factor, count = encoding_correction(project)
    sizes = encoding_hours(project, small), encoding_hours(project, large)
    assert (factor, count) == (pytest.approx((3 * sizes[0] + 1.5 * sizes[1]) / sum(sizes)), 2)
    jobs = [("embed", {"run": "MS-H2-s42", "text_set": "sts12"}), training("MS-E-s42")]
    cost = cost_of(project, jobs)
    assert cost.hours == pytest.approx(0.2 + factor * encoding_hours(project, {"run": "MS-H2-s42", "text_set": "sts12"}))
    assert f"encodings times {factor:.2f} as measured" in cost_text(cost)
    assert f"2 finished encodings took {factor:.2f} times the expected time" in status_text(project.paths.results, project)


def test_vectors_of_large_sets_are_on_disk_for_a_while_only(project):
    jobs = [("embed", {"run": f"MS-E-s{seed}", "text_set": "bucc2018_training"}) for seed in range(10)]
    cost = cost_of(project, jobs)
    assert cost.kept_mb == 0
    assert 2 * 10_000 < cost.peak_mb < 2 * 20_000  # two of ten at once, of 11 GB each
    keeping = load_project(ROOT, {"scale": "paper", "papers": ["msimcse"], "targets": ["all"], "keep": {"embeddings": True}})
    assert cost_of(keeping, jobs).kept_mb == pytest.approx(5 * cost.peak_mb)


def test_a_plan_names_jobs_by_stage(project):
    text = plan_text(project, {"embed": 3, "score": 4}, {"score": 1, "fetch": 12}, [training("MS-E-s42")], [])
    assert "score                   4       1  8 s in all, measured on 1 job" in text
    assert "fetch                   0      12\n" in text
    assert "embed                   3       0\n" in text  # by size of encoder and text, in the GPU-hours below
    text = plan_text(replace(project, settings={**project.settings, "gpus": 0}), {"embed": 3, "score": 4}, {}, [], [], ["about 34 s"])
    assert "embed                   3       0  1 min 00 s in all, measured on 2 jobs" in text
    assert "about 34 s" in text


def test_a_plan_tells_what_each_search_of_a_mining_compares(tmp_path):
    for name, size in (("a", 100_000_000), ("b", 50_000_000)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
    entry = {side: {"file": str(tmp_path / name), "lang": "en"} for side, name in (("source", "a"), ("target", "b"))}
    own = load_project(ROOT, {"scale": "paper", "papers": ["quickstart"], "mine": {"big": {**entry, "shards": 4}}, "gpus": 0})
    jobs = [("mine_search", {"mine": "big", "part": f"{part}-of-4"}) for part in range(1, 5)]
    text = plan_text(own, {"mine_search": 4}, {}, jobs, [])
    # A line is reckoned as 100 bytes: a million by half a million.
    assert re.search(r"mining big: about 5\.0e\+11 pairs of sentences compared in 4 jobs, .* GB of memory each; .* until", text)


def test_a_plan_without_gpus_counts_no_hours_of_them(project):
    jobs = [training("MS-E-s42"), ("embed", {"run": "MS-E-s42", "text_set": "sts12"}), ("embed", {"run": "MS-U-s42", "text_set": "sts12"})]
    assert cost_text(cost_of(project, jobs)).startswith("about 0.2 GPU-hours (1 training, 2 encodings); disk: ")
    assert "of unknown length" in cost_text(replace(cost_of(project, jobs), unknown=1))
    cores = replace(project, settings={**project.settings, "gpus": 0})
    assert cost_text(replace(cost_of(cores, jobs), unknown=1)).startswith("1 training, 2 encodings; disk: ")
    assert "GPU" not in plan_text(cores, {"train_system": 1}, {}, [training("MS-E-s42")] * 20, [])


def test_files_of_a_plan_say_where_they_come_from(project):
    need = FileNeed("s", "x.zip", Path("results/downloads/s/x.zip"), 2_500_000, None, "", "CC0", "u", "fetch", ("c",))
    hand = FileNeed("t", "y.txt", Path("data/y.txt"), None, None, "", "research", "u", "by hand", ("d",), "ask them")
    text = plan_text(project, {}, {}, [], [need, hand])
    assert "fetch          1 file   2.5 MB\n    s: 1 file, 2.5 MB, CC0, from u; used by c" in text
    assert "by hand        1 file   size unknown\n    t: 1 file, size unknown, research, -> data; used by d" in text
    assert "      put there: y.txt\n      ask them" in text
    assert "nothing to run: all results exist" in text


def test_status_tells_the_chain_of_jobs_that_is_left(project, monkeypatch, capsys):
    monkeypatch.setattr(status, "jobs_as_dot", lambda args: DOT.replace("bucc", "bucc2018_training"))
    asked = ["status", str(project.paths.results), "--left", "--directory", str(ROOT), "--config", "papers=[msimcse]", "targets=[all]"]
    assert main(asked) == 0
    said = capsys.readouterr().out
    assert "left: 2 jobs\ncritical path, on any number of GPUs: " in said  # the training set is there, as DOT has it
    assert "  train_system MS-E-s42  12 min 00 s\n  embed_large MS-E-s42  " in said  # 0.2 hours, as the recipe declares


def test_status_of_nothing_is_an_error(tmp_path, capsys):
    assert main(["status", str(tmp_path)]) == 2
    assert "no finished jobs here. Build first" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"NA\t-\n", b"-\t0:00\t-\n", b"12.5", b"\xff\xfe\x00", b"", b"nan\t0\t1\n", b"-3\t0\t1\n", 1 << 40])
def test_a_damaged_benchmark_or_lineage_stops_no_estimate(tmp_path, content):
    """Cut, of another form, not UTF-8, or a terabyte of holes; what is whole beside it counts."""
    for rule in ("train_system", "score"):
        (tmp_path / "benchmarks" / rule).mkdir(parents=True)
        bad = tmp_path / "benchmarks" / rule / "bad.tsv"
        bad.write_bytes(HEAD.encode() + (b"" if isinstance(content, int) else content))
        os.truncate(bad, content if isinstance(content, int) else bad.stat().st_size)
    (tmp_path / "benchmarks" / "score" / "good.tsv").write_text(HEAD + "30.0\t0:00:30\t-\n")
    lineages = {"A-s1": "{", "B-s1": '{"run": 7}', "C-s1": json.dumps(LINEAGE), "D-s1": json.dumps({**LINEAGE, "run": {"wall_s": "x"}})}
    for name, text in lineages.items():
        (tmp_path / "systems" / name).mkdir(parents=True)
        (tmp_path / "systems" / name / "lineage.json").write_text(text)
    found = measured(tmp_path)
    assert (found["score"].jobs, found["score"].seconds, found["score"].peak_mb) == (1, 30.0, 0.0)
    assert {name: hours for name, hours in measured_hours(tmp_path).items() if name != "bad"} == {}
    assert "1 finished job" in status_text(tmp_path)


LINEAGE = {"artefact": {"path": "x", "sha256": "", "bytes": 1, "kind": "system"}, "inputs": [], "licences": [], "stand_in": False,
           "rule": "r", "threads": 1, "seed": 1, "versions": {}, "counts": {}, "recipe": {}}  # fmt: skip
