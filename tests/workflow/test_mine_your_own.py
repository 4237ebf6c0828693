"""The page about mining one's own files, run as it stands."""

import csv
import gzip
import json
import re
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forks import PYTHON
from project_copy import environment
from ruamel.yaml import YAML
from test_docs import add, blocks

GERMAN = ["Das Haus ist alt.", "", "Wir gehen heute nach Hause.", "Das Haus ist alt.", "Der Zug\tkommt spät.", "Guten Morgen!"]
ENGLISH = ["We are going home today.", "Good morning!", "The house is old.", "The train is late.", "Nobody knows."]


@pytest.fixture
def mining(changed, tmp_path):
    """The finished run with the page's entry, on two files of six and five lines."""
    (block,) = blocks("mine-your-own.md")
    with gzip.open(tmp_path / "news.de.gz", "wt", encoding="utf-8") as out:
        out.write("\n".join(GERMAN) + "\n")
    with pa.output_stream(str(tmp_path / "news.en.zst"), compression="zstd") as out:
        out.write("\r\n".join(ENGLISH).encode())
    entry = block["mine"]["my_mine"]
    for side, name in (("source", "news.de.gz"), ("target", "news.en.zst")):
        entry[side]["file"] = str(tmp_path / name)
    entry["shards"] = 3
    changed.edit("config/config.yaml", "targets:", "mine: {}\ntargets:")
    add(changed, "config/config.yaml", block)
    return changed


def command(workflow, *arguments, folder="."):
    """Give a command whose Snakemake, and whose jobs, load nothing anew."""
    arguments = [workflow.python, "-c", "import sys; from crosslign.cli.main import main; sys.exit(main())", "mine", *arguments]
    settings = environment(**{PYTHON: workflow.python})
    return subprocess.run(arguments, cwd=workflow.folder / folder, env=settings, capture_output=True, text=True, check=False)


def test_two_files_of_ones_own_become_scored_pairs(mining):
    done = command(mining, "my_mine", "--cores", "2", "--config", "scale=quick")
    assert done.returncode == 0, done.stderr[-6000:]
    assert "results/quick/mined/my_mine.tsv" in done.stdout
    assert "only the first 600 lines of each file were read, at scale quick" in done.stdout

    with open(mining.results / "mined" / "my_mine.tsv", encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    table = pq.read_table(mining.results / "mined" / "my_mine.parquet")
    assert lines[0] == table.column_names
    rows = table.to_pylist()
    assert [line[2:4] for line in lines[1:]] == [[str(row["source_line"]), str(row["target_line"])] for row in rows]
    assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)
    # Equal and empty lines are gone; each sentence is used once; texts are those of the lines that are named.
    sources, targets = ([row[f"{side}_line"] for row in rows] for side in ("source", "target"))
    assert rows
    assert set(sources) <= {1, 3, 5, 6}
    assert len(set(sources)) == len(set(targets)) == len(rows)
    for row in rows:
        assert row["source_text"] == GERMAN[row["source_line"] - 1]
        assert row["target_text"] == ENGLISH[row["target_line"] - 1]
        assert row["above_threshold"] == (row["score"] >= 1.06)

    by_path = {}
    for sidecar in (mining.results / "mined").rglob("*lineage.json"):
        content = json.loads(sidecar.read_text(encoding="utf-8"))
        by_path[content["artefact"]["path"]] = content
    assert by_path["mined/my_mine.tsv"]["licences"] == sorted({*by_path["mined/my_mine.tsv"]["licences"], "CC0-1.0"})
    assert by_path["mined/my_mine/source.parquet"]["counts"] == {"lines": 6, "empty": 1, "repeated": 1, "sentences": 4}
    assert [entry["path"] for entry in by_path["mined/my_mine/source.parquet"]["inputs"]] == ["news.de.gz"]
    assert by_path["mined/my_mine/source.npy"]["counts"]["dtype"] == "float32"
    assert {entry["path"] for entry in by_path["mined/my_mine/source.npy"]["inputs"]} == {
        "mined/my_mine/source.parquet",
        "systems/QS-P-s42",
    }
    neighbours = by_path["mined/my_mine/neighbours.safetensors"]
    assert neighbours["counts"] == {"sources": 4, "targets": 5, "k": 4, "recall": None}
    assert {entry["path"] for entry in neighbours["inputs"]} == {
        f"mined/my_mine/{side}.{form}" for side in ("source", "target") for form in ("npy", "parquet")
    }
    assert not [path for path in (mining.results / "searched").rglob("*") if path.is_file()]

    # From elsewhere, and under a profile that brings a configuration of its own, it is the same entry at the same scale.
    elsewhere = ("--directory", "..", "--profile", "profiles/workstation", "--config", "scale=quick", "--dry-run")
    done = command(mining, "my_mine", *elsewhere, folder="config")
    assert (done.returncode, "Nothing to be done" in done.stdout + done.stderr) == (0, True), done.stderr[-3000:]

    # In another form, and with another threshold for this call.
    done = command(mining, "my_mine", "--cores", "2", "--config", "scale=quick", "-o", "mine.tmx", "--threshold", "1.0")
    assert done.returncode == 0, done.stderr[-3000:]
    kept = pq.read_table(mining.results / "mined" / "my_mine.parquet")
    assert (min(kept["score"].to_pylist()) >= 1.0, all(kept["above_threshold"].to_pylist())) == (True, True)
    segments = re.findall("<seg>(.*?)</seg>", (mining.folder / "mine.tmx").read_text(encoding="utf-8"))
    assert segments[::2] == [text.replace("\t", " ") for text in kept["source_text"].to_pylist()]
    assert 'xml:lang="de"' in (mining.folder / "mine.tmx").read_text(encoding="utf-8")
    mining.run("my_mine")

    # As a target of the workflow there is nothing left to do; another threshold writes pairs anew, and does no more;
    # the number of ranges that were searched is no part of a result.
    mining.edit("config/config.yaml", "targets: [quickstart, overview, overlap, report]", "targets: [my_mine]")
    assert mining.planned() == []
    mining.edit("config/config.yaml", "threshold: 1.06", "threshold: 1.2")
    mining.edit("config/config.yaml", "shards: 3", "shards: 2")
    assert mining.planned() == [("mine_pairs", "mine=my_mine")]

    # Another entry over the same files, by the same encoder, reads and encodes nothing anew.
    own = YAML(typ="safe").load((mining.folder / "config" / "config.yaml").read_text(encoding="utf-8"))["mine"]["my_mine"]
    add(mining, "config/config.yaml", {"mine": {"nearest_two": {**own, "k": 2, "shards": 1}}})
    searched = [(rule, "mine=nearest_two") for rule in ("mine_search", "mine_join", "mine_pairs")]
    assert mining.planned("nearest_two") == searched
    mining.run("nearest_two")
    assert (mining.results / "mined" / "nearest_two.tsv").is_file()
    assert [path.name for path in (mining.results / "mined" / "nearest_two").glob("*.npy")] == []


@pytest.mark.long
def test_what_does_not_exist_ends_in_one_line(mining):
    assert "did you mean 'my_mine'" in command(mining, "my_mime").stderr
    assert "--encoder: this option is only for two files, not for an entry" in command(mining, "my_mine", "--encoder", "minilm_l6").stderr
    assert "precision without plants" in command(mining, "my_mine", "--precision", "0.95").stderr
    mining.edit("config/config.yaml", "news.de.gz", "news.fr.gz")
    missing = command(mining, "my_mine")
    assert missing.stderr.startswith("error: config/config.yaml: mine.my_mine.source.file: file is missing; ")
    mining.edit("config/config.yaml", "system: QS-P", "system: QS-Q")
    wrong = command(mining, "my_mine")
    assert wrong.stderr.startswith("error: config/config.yaml: mine.my_mine.system: unknown system 'QS-Q'")
    for done in (missing, wrong):
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
