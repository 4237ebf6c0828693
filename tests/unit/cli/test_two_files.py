"""`crosslign mine FILE FILE`: from any folder, without the workflow's engine."""

import json
import os
import re
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crosslign.cli.commands.mine import changed, output_files
from crosslign.cli.main import main
from crosslign.errors import InputError

GERMAN = ["Das Haus ist alt.", "", "Wir gehen heute nach Hause.", "Das Haus ist alt.", "Der Zug kommt spät."]
ENGLISH = ["We are going home today.", "The house is old.", "The train is late.", "Nobody knows."]
TINY = ("--config", "scale=quick", "--allow-tiny")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder outside of the project with two files, and an empty cache."""
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path / "own")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, lines in (("a.txt", GERMAN), ("b.txt", ENGLISH)):
        (tmp_path / "own" / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / "own"


def test_two_files_become_pairs_beside_the_output_and_encoders_stay_in_the_cache(folder, capsys):
    blocked = "import sys; sys.modules['snakemake'] = None; from crosslign.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", blocked, "mine", "a.txt", "b.txt", *TINY, "-o"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([*command, "pairs.parquet"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "encoder: me5_small (base), tiny_bert" in done.stderr
    assert "source: 5 lines, 1 empty, 1 repeated; 0 sentences of 3 cut at 512 tokens" in done.stdout
    assert "best first:" in done.stdout
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt", "b.txt", "pairs.parquet", "pairs.parquet.lineage.json"]
    table = pq.read_table(folder / "pairs.parquet")
    assert {GERMAN[line - 1] for line in table["source_line"].to_pylist()} == set(table["source_text"].to_pylist())
    assert table.schema.metadata[b"encoders"] == b"tiny_bert"
    assert json.loads((folder / "pairs.parquet.lineage.json").read_text())["recipe"]["encoders"] == ["tiny_bert"]
    prepared = folder.parent / "cache" / "crosslign" / "quick" / "encoders" / "tiny_bert"
    before = prepared.stat().st_mtime_ns
    assert main(["mine", "a.txt", "b.txt", *TINY, "-o", "pairs.tmx", "--langs", "de", "en"]) == 0, capsys.readouterr().err
    assert prepared.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a.txt", "b.txt", "c.txt"], "a quoted pattern, such as 'news-*.gz', names several"),
        (["a.txt"], "crosslign mine: 1 name. Name two files of sentences"),
        (["a.txt", "b.txt", "-o", "b.txt", "--format", "tsv"], "the output is one of the input files"),
        (["a.txt", "b.txt", "-o", "p.tsv", "--encoder", "me5_smal"], "did you mean 'me5_small'"),
        (["a.txt", "b.txt", "-o", "p.tsv", "--config", "scale=quick"], "--encoder: the scale quick does not read with me5_small"),
        (["a.txt", "b.txt", "-o", "p.tsv", "--encoder", "QS-P"], "--encoder: two files can be mined only with a base encoder"),
        (["a.txt", "gone.txt", "-o", "p.tsv"], "gone.txt: file is missing"),
        (["a.txt", "b.txt", "-o", "p.doc"], "unknown format '.doc'"),
        (["a.txt", "b.txt", "-o", "p.tsv", "--precision", "0.9"], "precision without plants"),
        (["a.txt", "b.txt", "-o", "p.tsv", "--threshold", "nan"], "--threshold: not a finite number; found nan"),
        (["a.txt", "b.txt", "-o", "p.tsv", "--threshold", "inf"], "--threshold: not a finite number; found inf"),
        (["a.txt", "b.txt", "-o", "p.tsv", "--recall", "90", "--plants", "a.txt", "b.txt"], "must lie between 0 and 1; found 90"),
        (["a.txt", "b.txt", "-o", "p.tsv", "--plants", "gone.de", "b.txt"], "gone.de: file is missing"),
        (["a.txt", "none-*.gz", "-o", "p.tsv"], "none-*.gz: file is missing"),
        (["a.txt", "b.txt", "-o", "../own", "--format", "tsv"], "own: the output is a folder"),
        (["a.txt", "b.txt", "-o", "p.tmx"], "tmx needs both languages"),
        (["a.txt", "b.txt", "-o", "p.tsv", "--dry-run"], "--dry-run: this option is only for an entry of `mine:`"),
        (["a.txt", "b.txt", "-o", "p", "--format", "moses", "--langs", "../x", "en"], "--langs: not the code of a language; found '../x'"),
        (["a.txt", "b\udcff.txt", "-o", "p.tsv"], r"b\udcff.txt': the name of a file is not UTF-8"),
        (["a.txt", "b.txt", "-o", "p\udcff.tsv"], r"p\udcff.tsv': the name of a file is not UTF-8"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_written(folder, capsys, arguments, said):
    assert main(["mine", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt", "b.txt"]


def test_an_entry_may_be_called_as_a_file_is(folder, capsys):
    (folder / "news").write_text("")
    assert main(["mine", "news"]) == 2
    assert "no project here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("p" * 230 + ".tsv", "cannot be written; File name too long"),  # with the beginnings and ends of what lies beside it
        ("p" * 300 + ".tsv", "cannot be written; File name too long"),
        ("/proc/p.tsv", "/proc: cannot be written"),
        ("/proc/none/p.tsv", "/proc/none: cannot be written"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is_made(folder, capsys, output, said):
    assert main(["mine", "a.txt", "b.txt", *TINY, "-o", output]) == 4
    assert said in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt", "b.txt"]


@pytest.mark.parametrize("name", ["pipe", "link"])
def test_what_is_no_file_is_not_replaced_by_an_output(folder, capsys, name):
    os.mkfifo(folder / "pipe")  # a device takes a system administrator to make
    (folder / "link").symlink_to("pipe")
    assert main(["mine", "a.txt", "b.txt", *TINY, "-o", name, "--format", "tsv"]) == 2
    assert f"{name}: a device, pipe or socket cannot be replaced" in capsys.readouterr().err
    assert (folder / "pipe").is_fifo()


@pytest.mark.parametrize("content", [b"", b"\n \n", b"caf\xe9\n"])
def test_what_cannot_be_read_leaves_nothing_behind(folder, monkeypatch, content):
    monkeypatch.setattr("crosslign.steps.Steps.encoder", lambda *_: None)
    (folder / "b.txt").write_bytes(content)
    given = ["mine", "a.txt", "b.txt", *TINY, "-o", "q.tsv"]
    assert main(given) == 2
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt", "b.txt"]
    kept = folder / ".q.tsv.mining" / "source.npy"  # of a command that was killed
    kept.parent.mkdir()
    kept.write_bytes(b"hours of work")
    assert main(given) == 2
    assert kept.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "../own/b.txt", "--format", "tsv"], "b.txt: the output is one of the input files"),
        (["-o", "results/quick/mined/news.parquet"], "news.parquet: the output is one of the input files"),
        (["-o", "config", "--format", "tsv"], "config: the output is a folder"),
        (["--format", "tmx"], "--format: an output is needed, too"),
        (["--threshold", "1", "--config", "scale"], "--config 'scale' has no value"),
    ],
)
def test_what_cannot_be_of_an_entry_is_said_before_it_is_mined(folder, capsys, arguments, said):
    entry = "{source: {file: a.txt, lang: de}, target: {file: b.txt, lang: en}, allow_tiny: true}"
    (folder / "config").mkdir()
    (folder / "config" / "config.yaml").write_text(f"scale: quick\nmine:\n  news: {entry}\n", encoding="utf-8")
    assert main(["mine", "news", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert main(["mine", "news", "-o", "a.txt/pairs.tsv"]) == 4  # a disk's error: a file, where a folder would be
    assert "a.txt: cannot be written" in capsys.readouterr().err


def test_another_way_to_a_threshold_takes_the_place_of_an_entrys(folder):
    from crosslign.config.load import load_project
    from crosslign.config.mining import mine_recipe

    entry = {"source": {"file": "a.txt", "lang": "de"}, "target": {"file": "b.txt", "lang": "en"}, "k": 6, "threshold": 1.06}
    asked = changed(entry, {"plants": {"source": "p.txt", "target": "q.txt"}, "precision": 0.95, "output": "above_threshold"})
    recipe = mine_recipe(load_project(folder, {"mine": {"news": asked}}), "news")
    assert (recipe["k"], recipe["threshold"], recipe["precision"], recipe["output"]) == (6, None, 0.95, "above_threshold")
    back = changed(asked, {"threshold": 1.2})
    assert "precision" not in mine_recipe(load_project(folder, {"mine": {"news": back}}), "news")
    assert changed(entry, {"allow_tiny": True}) == {**entry, "allow_tiny": True}


def test_pairs_go_to_pairs_tsv_where_nobody_names_an_output_and_nothing_of_others_is_replaced(folder, capsys):
    (folder / "pairs.tsv").write_text("mine\n")
    assert main(["mine", "a.txt", "b.txt", *TINY]) == 2
    assert (
        "pairs.tsv: an existing file that no mining wrote would be overwritten. Choose another output: -o FILE" in capsys.readouterr().err
    )
    assert (folder / "pairs.tsv").read_text() == "mine\n"


def test_known_pairs_are_hidden_and_told_of(folder, capsys):
    """By an encoder with random weights, which pairs equal sentences: the two sides share words as translations would."""
    for name, words in (("a.txt", "alone left"), ("b.txt", "other right")):
        one, two = words.split()
        lines = [f"number {row} of both" for row in range(60)] + [f"{one} {two} {row * row}" for row in range(60)]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name in ("p.txt", "q.txt"):
        (folder / name).write_text("".join(f"{row} plants and {row}\n" for row in range(60)), encoding="utf-8")
    assert main(["mine", "a.txt", "b.txt", *TINY, "-o", "pairs.tsv", "--plants", "p.txt", "q.txt", "--recall", "0.5"]) == 0
    said = capsys.readouterr().out
    assert "60 of 60 known pairs were hidden in the sides (left out: 0 that are in the sides, 0 repeated)" in said
    calibration = json.loads((folder / "pairs.tsv.calibration.json").read_text())
    lineage = json.loads((folder / "pairs.tsv.lineage.json").read_text())
    assert lineage["counts"]["threshold"] in [row["threshold"] for row in calibration["curve"]]
    written = (folder / "pairs.tsv").read_text(encoding="utf-8").splitlines()[1:]
    assert len(written) == lineage["counts"]["above_threshold"] > 0
    assert not (folder / ".pairs.tsv.mining").exists()


def test_a_side_is_files_of_documents_and_its_pairs_say_where_each_sentence_stands(folder, capsys):
    documents = [["Das Haus ist alt. Wir gehen heute nach Hause."], ["Der Zug kommt spät!", "Niemand weiß es? Doch."]]
    for number, texts in enumerate(documents, start=1):
        lines = [json.dumps({"id": at, "text": {"de": text}}) for at, text in enumerate(texts)]
        (folder / f"news-{number}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    pq.write_table(pa.table({"english": [" ".join(ENGLISH), None]}), folder / "b.parquet")
    given = ["mine", "news-*.jsonl", "b.parquet", "--columns", "text.de", "english", "--split", *TINY]
    assert main([*given, "-o", "pairs.parquet"]) == 0
    said = capsys.readouterr().out
    assert "source: 3 documents of 2 files, 0 empty, 0 sentences repeated; 0 sentences of 5 cut at 512 tokens" in said
    assert "target: 2 documents, 1 empty, 0 sentences repeated; 0 sentences of 4" in said
    table = pq.read_table(folder / "pairs.parquet")
    assert table.schema.names[-3:] == ["source_file", "source_sentence", "target_sentence"]
    for row in table.to_pylist():
        number = int(row["source_file"].removeprefix("news-").removesuffix(".jsonl"))
        text = documents[number - 1][row["source_line"] - 1]
        assert re.split(r"(?<=[.!?]) ", text)[row["source_sentence"] - 1] == row["source_text"]
        assert (row["target_line"], ENGLISH[row["target_sentence"] - 1]) == (1, row["target_text"])


def test_moses_has_a_file_a_language(tmp_path):
    assert output_files(tmp_path / "p", "moses", ("de", "en")) == {"moses_source": tmp_path / "p.de", "moses_target": tmp_path / "p.en"}
    with pytest.raises(InputError, match=r"moses.*--langs"):
        output_files(tmp_path / "p", "moses", ("und", "und"))
