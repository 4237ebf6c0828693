"""A large corpus whose source several jobs filter: the bytes of one job, and a killed share alone starts again."""

import os
import random

from crosslign.files import sha256_file

OWN = """
sources:
  own: {local: texts, files: [{name: lines.txt}], licence: CC0-1.0, citation: nobody}
corpora:
  own:
    source: own
    reader: text_lines
    kind: mono
    langs: [en]
    licence: CC0-1.0
    citation: nobody
    sample: 500
    filters: [{length: {min_words: 4}}, {exact_duplicate: {}}]
"""
ROWS = "results/quick/corpora/own/en.parquet"
SMALL_SHARDS = """
import os, signal, sys
if sys.orig_argv[-1].endswith(".run_stage.py"):
    from crosslign.corpora import kept_shards
    kept_shards.SHARD = 1
    done = kept_shards.Shards.done
    def then_die(self, number, counts):
        done(self, number, counts)
        if self._parts > 1 and str(number) == os.environ.get("KILLED_AFTER"):
            os.kill(os.getpid(), signal.SIGKILL)
    kept_shards.Shards.done = then_die
"""


def test_shares_of_a_corpus_give_the_bytes_of_one_job_and_a_killed_one_starts_again_alone(untouched, tmp_path):
    made = random.Random(3)
    (untouched.folder / "texts").mkdir()
    lines = (f"sentence {made.randrange(9000)} of the long text{'s' * made.randrange(2)}\n" for _ in range(70_000))
    (untouched.folder / "texts" / "lines.txt").write_text("".join(lines))
    (untouched.folder / "config" / "corpora.yaml").write_text(OWN)
    (tmp_path / "sitecustomize.py").write_text(SMALL_SHARDS)
    small = {"PYTHONPATH": os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))}
    rows, filtered = untouched.folder / ROWS, untouched.results / "filtered" / "own"

    untouched.run(ROWS)
    whole = sha256_file(rows)
    rows.unlink()

    three = ("corpus_shards={own: 3}",)
    # Of nine tables, each a shard here, the fifth is the second job's.
    done = untouched.run(ROWS, "--keep-going", config=three, variables={**small, "KILLED_AFTER": "4"}, check=False)
    assert done.returncode != 0
    assert sorted(path.name for path in filtered.glob("?-of-3")) == ["1-of-3", "3-of-3"]
    assert untouched.planned(ROWS, config=three) == [("filter_shards", "part=2-of-3"), ("build_corpus", "corpus=own")]
    assert sorted(path.name for path in filtered.glob(".2-of-3.shards/*.arrow")) == ["1.arrow", "4.arrow"]
    untouched.run(ROWS, config=three, variables=small)
    assert sha256_file(rows) == whole
    assert not filtered.exists()

    # How many jobs there were is no part of the corpus; two make it of the same bytes.
    two = ("corpus_shards={own: 2}",)
    assert untouched.planned(ROWS, config=two) == []
    rows.unlink()
    untouched.run(ROWS, config=two, variables=small)
    assert sha256_file(rows) == whole
