"""The real thing end to end on stand-ins, and what runs again after a change."""

import csv
import json
import os
import re
import shutil

import pytest
from project_copy import Workflow, jobs_of, own_copy

from crosslign.cli.main import main
from crosslign.paths import CATALOG, PUBLISHED


def test_every_stage_leaves_artefacts_with_lineage(finished):
    for stage in ("corpora", "views", "examples", "systems", "embeddings", "scores", "tables", "figures"):
        files = [path for path in (finished.results / stage).rglob("*") if path.is_file()]
        assert any("lineage.json" in path.name for path in files), stage
    assert not list(finished.results.rglob("*.part"))
    assert (finished.results / "report.html").stat().st_size > 10_000


def test_each_cell_leads_through_its_score_to_the_bytes_it_rests_on(finished):
    with open(finished.results / "tables" / "quickstart.csv", encoding="utf-8") as file:
        cells = list(csv.DictReader(file))
    assert len(cells) == 7 * 12
    by_path = {}
    for sidecar in finished.results.rglob("*lineage.json"):
        content = json.loads(sidecar.read_text(encoding="utf-8"))
        by_path[content["artefact"]["path"]] = content
    cell = next(cell for cell in cells if cell["row"] == "mSimCSE, parallel verses" and cell["column"] == "xx→en")
    score = json.loads((finished.results / cell["score_file"]).read_text(encoding="utf-8"))
    task, subset, metric, protocol, direction = cell["record"].split("/")
    keys = {"eval": task, "subset": subset, "metric": metric, "protocol": protocol, "direction": direction}
    (record,) = [r for r in score["records"] if all(r[key] == value for key, value in keys.items())]
    assert float(cell["ours"]) == record["value"]
    reached, waiting = set(), [cell["score_file"]]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += [entry["path"] for entry in by_path.get(name, {"inputs": []})["inputs"]]
    assert any(name.endswith(".whl") for name in reached), sorted(reached)
    assert "systems/QS-P-s42" in reached
    assert by_path["systems/QS-P-s42"]["recipe"]["train"]["steps"] == 8


def test_explain_walks_from_a_cell_to_the_downloads(finished, capsys):
    place = ["--directory", str(finished.folder), "--config", "scale=quick"]
    assert main(["explain", "quickstart", "QS-P", "xx->en", "--full", *place]) == 0
    out = capsys.readouterr().out
    for part in ("systems/QS-P-s42", "examples/verses_parallel.parquet", "corpora/bible_train/all.parquet", ".whl", "sha256", "commit"):
        assert part in out, part
    forced = re.findall(r"--forcerun (\S+) -- (\S+)", out)
    assert any("/downloads/" in target for _, target in forced)
    # What it prints to make each of them again is what Snakemake takes, also for the files of a stand-in.
    finished.run("-n", *(target for _, target in forced), "--forcerun", *(made for made, _ in forced))
    assert main(["explain", "quickstart", "QS-Q", "xx→en", *place]) == 2
    assert "unknown row 'QS-Q'" in capsys.readouterr().err


def test_filters_and_decontamination_are_counted(finished):
    corpus = json.loads((finished.results / "corpora/bible_train/all.parquet.lineage.json").read_text(encoding="utf-8"))
    names = [step["filter"] for step in corpus["counts"]["filters"]]
    assert names == ["length", "length_ratio", "character_script", "language_id", "exact_duplicate", "not_near"]
    examples = json.loads((finished.results / "examples/verses_parallel.parquet.lineage.json").read_text(encoding="utf-8"))
    assert set(examples["counts"]["decontamination"]["evaluations"]) == {
        "bucc_bible_dev",
        "bucc_bible_test",
        "tatoeba_bible",
        "tatoeba_written",
        "sts_written",
    }
    assert examples["stand_in"] is True


def test_scores_of_one_checkpoint_share_its_hash_and_those_of_one_task_the_hash_of_its_data(finished):
    checkpoints, data = {}, {}
    for path in (finished.results / "scores").glob("*/*/*/*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        for record in content.get("records", []):
            checkpoints.setdefault((content["run_id"], content["checkpoint"]), set()).add(record["checkpoint_sha"])
            data.setdefault(content["task"], set()).add(record["data_manifest_sha"])
    assert len(checkpoints) > 2
    assert {len(found) for found in (*checkpoints.values(), *data.values())} == {1}


def test_a_second_run_has_nothing_to_do(finished):
    done = finished.run()
    assert "Nothing to be done" in done.stdout + done.stderr


def test_results_copied_beside_a_fresh_clone_make_nothing_again(finished, untouched):
    """Lineage decides: nothing that Snakemake remembers of the run is there, and the copies' time stamps are in another order."""
    shutil.copytree(finished.folder / "results", untouched.folder / "results", copy_function=shutil.copyfile, symlinks=True)
    files = sorted((path for path in (untouched.folder / "results").rglob("*") if path.is_file()), key=lambda path: path.name[::-1])
    for number, path in enumerate(files):
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    assert not (untouched.folder / ".snakemake").exists()
    done = untouched.run("-n")
    assert "Nothing to be done" in done.stdout + done.stderr


def test_deleting_one_table_rebuilds_that_table_alone(changed):
    table = changed.results / "tables" / "quickstart_retrieval.md"
    before = table.read_bytes()
    table.unlink()
    assert jobs_of(changed.run()) == [("make_table", "table=quickstart_retrieval")]
    assert table.read_bytes() == before


def test_a_changed_recipe_reruns_its_system_and_what_hangs_on_it_and_nothing_else(changed):
    old = "train: {steps: 100, learning_rate: 2e-4}"
    changed.edit("config/papers/quickstart.yaml", old, old.replace("}", ", weight_decay: 0.1}"))
    jobs = changed.planned()
    systems = {name for rule, name in jobs if rule == "train_system"}
    assert {name.split(",")[0] for rule, name in jobs if rule in ("train_system", "embed", "score")} == {"run=QS-XA-s42"}, systems
    assert {rule for rule, _ in jobs} == {
        "tokenise",
        "train_system",
        "embed",
        "score",
        "make_table",
        "draw_figure",
        "write_overview",
        "write_report",
    }


PAGES = {"make_table", "write_overview", "write_report"}


def test_a_changed_footnote_remakes_its_table_and_the_pages_and_nothing_else(changed):
    changed.edit("config/tasks.yaml", "Nearest neighbour among 500 held-out verses", "Nearest of 500 held-out verses")
    jobs = changed.planned()
    assert {rule for rule, _ in jobs} == PAGES


def test_a_published_figure_remakes_its_table_and_the_pages_and_nothing_else(changed):
    heads = (CATALOG / PUBLISHED / "msimcse_table7.csv").read_text(encoding="utf-8").splitlines()[0]
    (changed.folder / PUBLISHED).mkdir(parents=True)
    (changed.folder / PUBLISHED / "quickstart.csv").write_text(f"{heads}\n", encoding="utf-8")
    jobs = changed.planned()
    assert {rule for rule, _ in jobs} == PAGES
    assert [name for rule, name in jobs if rule == "make_table"] == ["table=quickstart"]


def test_another_order_of_columns_remakes_its_table_and_the_pages_and_nothing_else(changed):
    path = own_copy(changed.folder, "config/papers/quickstart.yaml")
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    first, second = (next(i for i, line in enumerate(lines) if f"label: {name}," in line) for name in ("de-en", "fr-en"))
    lines[first], lines[second] = lines[second], lines[first]
    path.write_text("".join(lines), encoding="utf-8")
    jobs = changed.planned()
    assert {rule for rule, _ in jobs} == PAGES
    assert [name for rule, name in jobs if rule == "make_table"] == ["table=quickstart"]


def test_a_table_is_rebuilt_on_another_machine_from_scores_alone(finished, untouched):
    shutil.copytree(finished.results / "scores", untouched.results / "scores")
    assert jobs_of(untouched.run("results/quick/tables/quickstart.md")) == [("make_table", "table=quickstart")]
    for form in ("md", "csv", "tex", "html"):
        name = f"tables/quickstart.{form}"
        assert (untouched.results / name).read_bytes() == (finished.results / name).read_bytes()
    assert sorted(path.name for path in untouched.results.iterdir()) == ["benchmarks", "logs", "scores", "tables"]


def test_a_table_is_rebuilt_in_its_crate(finished, tmp_path):
    write_crate = [
        "crate",
        "quickstart",
        "--out",
        str(tmp_path / "crate.zip"),
        "--directory",
        str(finished.folder),
        "--config",
        "scale=quick",
    ]
    assert main(write_crate) == 0
    crate = Workflow(tmp_path / "crate", finished.python)
    shutil.unpack_archive(tmp_path / "crate.zip", crate.folder)
    for form in ("md", "csv", "tex", "html"):
        (crate.results / "tables" / f"quickstart.{form}").unlink()
    assert jobs_of(crate.run("results/quick/tables/quickstart.md")) == [("make_table", "table=quickstart")]
    for form in ("md", "csv", "tex", "html"):
        name = f"tables/quickstart.{form}"
        assert (crate.results / name).read_bytes() == (finished.results / name).read_bytes()


STAGES = ("corpora", "views", "examples", "systems", "embeddings", "scores")


@pytest.mark.long
def test_the_same_seed_gives_the_same_bytes_at_every_stage(finished, untouched):
    """From nothing: every training set, a system of code-switched verses, and one of two joined sets with all its scores."""
    tasks = ("bucc_bible", "tatoeba_bible", "tatoeba_written", "sts_written")
    scores = [f"results/quick/scores/QS-PN-s42/last/mean_t64_bf16/{task}.json" for task in tasks]
    examples = sorted(str(path.relative_to(finished.folder)) for path in (finished.results / "examples").glob("*.parquet"))
    assert len(examples) == 6
    untouched.run(*scores, *examples, "results/quick/systems/QS-CS-s42")
    for stage in STAGES:
        made = [path for path in (untouched.results / stage).rglob("*") if path.is_file() and not path.name.endswith("lineage.json")]
        assert made, stage
        for path in made:
            assert path.read_bytes() == (finished.results / path.relative_to(untouched.results)).read_bytes(), path
