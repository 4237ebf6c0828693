"""Rows a second and peak memory of large corpora of which a sample is drawn, by one job and by two, and what that makes of real ones.

Real sentences of the mirror, four in a line, copies behind numbers, packed as publishers pack them (CC-100 in xz, both sides of a bitext in
gz), go through the catalog's filters but `language_id`, which sees the rows alone that can still be drawn. Wikipedia's are its own
sentences, as many as `--rows`, in articles of drawn length, in Parquet. Each step runs in a process of its own, one thread: reading alone;
the whole corpus in one job; unless `--alone` one of two jobs, and the job that draws from both. The last columns extrapolate by bytes of
text: hours of processor of one job, and of the longest of eight. Prints a table in Markdown, and checks that both ways give the same bytes.

    python benchmarks/corpus_shares.py --rows 2000000 10000000
"""

from __future__ import annotations

import argparse
import gzip
import lzma
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _common import ROOT, Cost, machine, measured, official_files, parser, versions
from _opusfilter import tatoeba

SAMPLE = 100_000
LINE, PIECE = 4, 50_000
JOBS, MANY = 2, 8
HEAD = """
| corpus | rows | GB of text | rows/s, reading | rows/s, one job | s: two jobs, drawing | MiB, one job | MiB, two | h, one job | h, eight |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"""
ARTICLES = pa.schema([("id", pa.string()), ("text", pa.string())])


@dataclass(frozen=True)
class Case:
    """A corpus of the catalog, how its source is packed here, and the real one's text (GB, unpacked) and rows.

    Attributes:
        entry: the corpus whose filters and reader are run.
        files: names of the files that are written, of one side each.
        text_gb, rows_m: of the real one.
    """

    entry: str
    files: tuple[str, ...]
    text_gb: float
    rows_m: float


CASES = {
    "ParaCrawl en-de": Case("paracrawl_en-fr", ("own.en.gz", "own.de.gz"), 85.0, 280.0),
    "CC-100 en": Case("cc100_de", ("own.xz",), 323.0, 2_100.0),
    "Wikipedia en": Case("wikipedia_en", ("own.parquet",), 20.0, 150.0),
}
"""Text: ParaCrawl by 300 bytes a pair, CC-100 by Table 6 of XLM-R's paper (300.8 GiB), Wikipedia by its card (20.3 GB)."""


def lines(rows: int, side: int) -> Iterator[list[str]]:
    """Yield so many lines of one side in pieces, no two alike."""
    pairs = [pair[side] for pair in islice(tatoeba(official_files("tatoeba-bilingual"), "deu"), 200_000)]
    real = cycle(" ".join(pairs[start : start + LINE]) for start in range(0, len(pairs), LINE))
    for start in range(0, rows, PIECE):
        yield [f"{start + n} {line}" for n, line in enumerate(islice(real, min(PIECE, rows - start)))]


def articles(rows: int) -> Iterator[list[str]]:
    """Yield articles, each a list of its sentences, no two alike: half of them have up to ten, one in six thirty or more."""
    real = cycle((official_files("wiki-en") / "wiki-en" / "wiki1m_for_simcse.txt").read_text("utf-8").splitlines())
    draw, written = np.random.default_rng(1), 0
    while written < rows:
        size = min(rows - written, 4_000, 1 + int(draw.lognormal(np.log(10), 1.1)))
        yield [f"{written + n} {sentence.strip()}" for n, sentence in enumerate(islice(real, size))]
        written += size


def write_articles(path: Path, rows: int) -> int:
    """Write articles as the hub has them, a thousand a row group; return the bytes of their text."""
    text = 0
    with pq.ParquetWriter(path, ARTICLES) as file:
        found = articles(rows)
        while group := list(islice(found, 1_000)):
            texts = ["\n\n".join(" ".join(one[start : start + LINE]) for start in range(0, len(one), LINE)) for one in group]
            text += sum(len(article.encode()) for article in texts)
            file.write_table(pa.Table.from_pydict({"id": [one[0].partition(" ")[0] for one in group], "text": texts}, schema=ARTICLES))
    return text


def opened(path: Path) -> Any:
    """Open a file of lines, packed as its name says."""
    return gzip.open(path, "wb", 1) if path.suffix == ".gz" else lzma.open(path, "wb", preset=0)


def write(folder: Path, case: Case, rows: int) -> int:
    """Write the files of a case; return the bytes of their text."""
    if case.files[0].endswith(".parquet"):
        return write_articles(folder / case.files[0], rows)
    text = 0
    for side, name in enumerate(case.files):
        with opened(folder / name) as file:
            for piece in lines(rows, side):
                joined = "\n".join(piece).encode() + b"\n"
                text += len(joined)
                file.write(joined)
    return text


def entry_of(case: Case) -> dict[str, Any]:
    """Return the corpus' entry as it is run here."""
    from crosslign.config.load import load_project

    project = load_project(ROOT, {"scale": "paper", "papers": ["msimcse", "moco_bert", "scl", "mpcl", "emma_x"]})
    entry = project.corpora[case.entry]
    filters = [step for step in entry.get("filters", []) if "language_id" not in step] or [{"exact_duplicate": {}}]
    langs = ["en", "de"] if len(case.files) == 2 else entry["langs"]
    options = {key: value for key, value in entry.get("options", {}).items() if key not in ("member", "members")}
    return {**entry, "filters": filters, "langs": langs, "options": options, "sample": SAMPLE}


def work(folder: Path, name: str, step: str) -> None:
    """Do what a measured command does, and note how many rows were read."""
    from crosslign.corpora import READERS
    from crosslign.corpora.build import build_corpus, filter_shards
    from crosslign.corpora.kept_shards import Shards

    case = CASES[name]
    entry: Any = entry_of(case)
    files = {file: folder / file for file in case.files}
    if step == "read":
        reader = READERS.get(entry["reader"])
        rows = sum(table.num_rows for table in reader(files, "c", entry["langs"], **entry["options"]))
    elif step == "whole":
        rows = build_corpus("c", entry, files, {}, folder / "whole")["read"]
    elif step == "joined":
        rows = build_corpus("c", entry, files, {}, folder / "joined", parts=[folder / f"{part}" for part in range(1, JOBS + 1)])["read"]
    else:
        shards = Shards(folder / f".{step}", 1, int(step), JOBS)
        rows = filter_shards("c", entry, files, {}, folder / step, None, shards)["read"]
    (folder / "rows").write_text(str(rows))


def cost_of(folder: Path, name: str, step: str) -> Cost:
    """Run a step in a process of its own and return what it took."""
    return measured([sys.executable, __file__, "--run", str(folder), name, step], OMP_NUM_THREADS="1", TQDM_DISABLE="1")


def measure(folder: Path, name: str, rows: int, steps: tuple[str, ...]) -> str:
    """Return a row of the table."""
    case = CASES[name]
    text = write(folder, case, rows)
    found = {step: cost_of(folder, name, step) for step in ("read", *steps, "whole")}
    read = int((folder / "rows").read_text())
    assert not steps or (folder / "joined").read_bytes() == (folder / "whole").read_bytes()
    seconds = {step: cost.processor for step, cost in found.items()}
    hours = case.text_gb * 1e9 / text / 3600
    share = seconds["read"] + (seconds["whole"] - seconds["read"]) / MANY
    figures = (
        name, f"{read:,}", f"{text / 1e9:.2f}", f"{read / seconds['read']:,.0f}", f"{read / seconds['whole']:,.0f}",
        ", ".join(f"{seconds[step]:.0f}" for step in steps), f"{found['whole'].memory:.0f}",
        f"{max(found[step].memory for step in steps):.0f}" if steps else "", f"{seconds['whole'] * hours:.1f}", f"{share * hours:.1f}",
    )  # fmt: skip
    return f"| {' | '.join(figures)} |"


def main() -> None:
    """Measure every case at every size."""
    command = parser(__doc__)
    command.add_argument("--rows", type=int, nargs="+", default=[2_000_000])
    command.add_argument("--alone", action="store_true", help="one job only")
    command.add_argument("--cases", nargs="+", choices=sorted(CASES), default=list(CASES))
    command.add_argument("--run", nargs=3, metavar=("FOLDER", "CASE", "STEP"), help=argparse.SUPPRESS)
    args = command.parse_args()
    if args.run:
        work(Path(args.run[0]), *args.run[1:])
        return
    print(f"{machine()}; {versions('pyarrow', 'xxhash')}; sample {SAMPLE:,}; {os.cpu_count()} cores")
    print(HEAD)
    for rows in args.rows:
        for name in args.cases:
            folder = Path(tempfile.mkdtemp(prefix="crosslign-corpus-shares-"))
            try:
                print(measure(folder, name, rows, () if args.alone else ("1", "2", "joined")), flush=True)
            finally:
                shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
