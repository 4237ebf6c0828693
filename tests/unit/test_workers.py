"""Filters and parsing in worker processes: the same rows and counts as in one process, and no silence when a worker dies."""

from __future__ import annotations

import bz2
import os
import signal

import pyarrow as pa
import pytest

from crosslign import errors
from crosslign.corpora import READERS
from crosslign.corpora import pipeline as pipeline_module
from crosslign.corpora.build import build_corpus
from crosslign.corpora.pipeline import Pipeline, filter_work
from crosslign.corpora.readers import wikipedia_dump
from crosslign.errors import ResourceError
from crosslign.files.rows import SCHEMAS
from crosslign.workers import Worker, Workers

WORDS = {name: f"{name} it is" for name in ("what", "where", "why", "do")}
STEPS = [
    {"length": {"min_words": 2}},
    {"html_tags": None},
    {"exact_duplicate": {}},
    {"punctuation": {}},
    {"length_ratio": {"max_ratio": 2.0}},
]


def bitext(batches=9, size=40):
    for batch in range(batches):
        numbers = range(batch * size, (batch + 1) * size)
        texts = [(f"“word” {n % 70}" + " more" * (n % 4), "zwei «Wörter»" if n % 11 else "<b>") for n in numbers]
        rows = [
            {"id": f"c:{n}", "a_lang": "en", "a_text": a, "b_lang": "de", "b_text": b} for n, (a, b) in zip(numbers, texts, strict=True)
        ]
        yield pa.Table.from_pylist(rows, schema=SCHEMAS["bitext"])


def multiway(batches=6):
    for batch in range(batches):
        texts = {"de": "so viele Wörter hier" if batch % 2 else "zu", "en": "so many words here"}
        rows = [{"id": f"c:{batch}:{lang}", "group": str(batch), "lang": lang, "text": text} for lang, text in texts.items()]
        yield pa.Table.from_pylist(rows, schema=SCHEMAS["multiway"])


def failing_work(kind):
    print("a library's greeting", flush=True)

    def work(table, note):
        if note:
            raise getattr(errors, kind)(**WORDS)
        return table, {"dimension": 1}

    return work


@pytest.mark.parametrize("kind", ["InputError", "ResourceError"])
def test_a_worker_answers_with_every_word_of_an_error_and_with_nothing_that_a_library_prints(capfd, kind):
    worker = Worker(failing_work, {"kind": kind}, "c")
    try:
        assert worker.ask([]) == {"dimension": 1}
        with pytest.raises(getattr(errors, kind)) as caught:
            worker.ask([0])
        assert worker.ask([]) == {"dimension": 1}
    finally:
        worker.close()
    assert vars(caught.value) == WORDS
    assert "a library's greeting" in capfd.readouterr().err


@pytest.fixture
def started(monkeypatch):
    """Workers are worth their start from the second batch on; those that a test starts are in this list."""
    made = []

    class Noted(Workers):
        def __init__(self, *given):
            super().__init__(*given)
            made.append(self)

    monkeypatch.setattr(pipeline_module, "WORTH_WORKERS", 2)
    monkeypatch.setattr(pipeline_module, "Workers", Noted)
    return made


def filtered(kind, batches, steps, threads):
    pipeline = Pipeline("c", kind, ("en", "de"), steps, {}, threads=threads)
    batches = list(batches)
    if pipeline.needs_survey:
        for batch in batches:
            pipeline.survey(batch)
    rows = pa.concat_tables(pipeline.apply(batches))
    return rows, pipeline.counts, pipeline.read


def test_workers_change_nothing(started):
    alone, counts, read = filtered("bitext", bitext(), STEPS, 1)
    assert not started
    together, more_counts, more_read = filtered("bitext", bitext(), STEPS, 2)
    assert len(started) == 1
    assert together.equals(alone)
    assert more_counts == counts
    assert (more_read, read) == (360, 360)
    assert 0 < alone.num_rows < 360
    assert counts[3]["changed"] == counts[3]["after"]


def test_pivots_reach_the_workers(started):
    steps = [{"length_ratio": {"max_ratio": 2.0}}]
    alone, counts, _ = filtered("multiway", multiway(), steps, 1)
    together, more_counts, _ = filtered("multiway", multiway(), steps, 2)
    assert len(started) == 1
    assert together.equals(alone)
    assert together.schema.names == SCHEMAS["multiway"].names
    assert counts == more_counts == [{"filter": "length_ratio", "before": 12, "after": 9}]


def test_a_worker_that_dies_ends_the_work():
    task = {"name": "c", "kind": "bitext", "langs": ["en", "de"], "steps": STEPS}
    with Workers(1, filter_work, task, "c") as workers:
        answers = workers.map(bitext(), [0, 2])
        next(answers)
        os.kill(workers.workers[0].process.pid, signal.SIGKILL)
        with pytest.raises(ResourceError, match="status -9"):
            list(answers)
    assert all(worker.process.returncode is not None for worker in workers.workers)


def test_work_that_is_broken_off_leaves_no_process(started):
    rows = Pipeline("c", "bitext", ("en", "de"), STEPS, {}, threads=2).apply(bitext(30))
    next(rows)
    processes = [worker.process for worker in started[0].workers]
    assert [process.poll() for process in processes] == [None, None]
    rows.close()
    assert all(process.returncode is not None for process in processes)


@pytest.fixture
def dump(tmp_path):
    """Forty articles, packed in two streams as a multistream dump is."""
    text = "Town {n} is old. It has {n} '''wells'''! &lt;ref&gt;A note.&lt;/ref&gt;"
    pages = [f"<page><ns>0</ns><id>{n}</id><revision><text>{text.format(n=n)}</text></revision></page>" for n in range(40)]
    halves = f"<mediawiki>{''.join(pages[:20])}", f"{''.join(pages[20:])}</mediawiki>"
    path = tmp_path / "aa-pages-articles-multistream.xml.bz2"
    path.write_bytes(b"".join(bz2.compress(half.encode()) for half in halves))
    return {path.name: path}


def test_a_dump_is_parsed_alike_by_one_process_and_by_several(dump, tmp_path, monkeypatch):
    monkeypatch.setattr(wikipedia_dump, "ARTICLES_AT_ONCE", 3)
    read = READERS.get("wikipedia_dump")
    alone, together = (list(read(dump, "c", ["en"], min_words=2, threads=threads)) for threads in (1, 2))
    assert [table.to_pylist() for table in together] == [table.to_pylist() for table in alone]
    found = pa.concat_tables(alone).to_pylist()
    assert found[4:6] == [
        {"id": "c:aa-pages-articles-multistream.xml.bz2:2.1", "lang": "en", "text": "Town 2 is old."},
        {"id": "c:aa-pages-articles-multistream.xml.bz2:2.2", "lang": "en", "text": "It has 2 wells!"},
    ]
    assert len(found) == 80
    entry = {"kind": "mono", "reader": "wikipedia_dump", "langs": ["en"], "filters": [{"length": {"min_words": 4}}]}
    counts = [build_corpus("c", entry, dump, {}, tmp_path / f"{threads}.parquet", threads=threads) for threads in (1, 2)]
    assert counts[0] == counts[1]
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()
