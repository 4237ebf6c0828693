"""Rows a second and peak memory of large corpora of which a sample is drawn, by one job and by two, and what that makes of real ones.

Real sentences of the mirror, four in a line, copies behind numbers, packed as publishers pack them (CC-100 in xz, both sides of a bitext in
gz, Wikipedia in Parquet), go through the catalog's filters but `language_id`, which sees the rows alone that can still be drawn. Each step
runs in a process of its own, one thread: reading alone; the whole corpus in one job; one of two jobs; the job that draws from both. The
last columns extrapolate by bytes of text: hours of processor of one job, and of the longest of eight. Prints a table in Markdown, and
checks that both ways give the same bytes.

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


def opened(path: Path) -> Any:
    """Open a file of lines, or of articles, packed as its name says."""
    if path.suffix == ".parquet":
        return pq.ParquetWriter(path, ARTICLES)
    return gzip.open(path, "wb", 1) if path.suffix == ".gz" else lzma.open(path, "wb", preset=0)


def write(folder: Path, case: Case, rows: int) -> int:
    """Write the files of a case; return the bytes of their text."""
    text = 0
    for side, name in enumerate(case.files):
        with opened(folder / name) as file:
            for piece in lines(rows, side):
                joined = "\n".join(piece).encode() + b"\n"
                text += len(joined)
                if name.endswith(".parquet"):
                    articles = ["\n\n".join(piece[start : start + 20]) for start in range(0, len(piece), 20)]
                    named = [article.partition(" ")[0] for article in articles]
                    file.write_table(pa.Table.from_pydict({"id": named, "text": articles}, schema=ARTICLES))
                else:
                    file.write(joined)
    return text


def entry_of(case: Case) -> dict[str, Any]:
    """Return the corpus' entry as it is run here."""
    from crosslign.config.load import load_project

    project = load_project(ROOT, {"scale": "paper", "papers": ["msimcse", "moco_bert", "scl", "mpcl", "emma_x"]})
    entry = dict(project.corpora[case.entry])
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
    entry = entry_of(case)
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


def measure(folder: Path, name: str, rows: int) -> str:
    """Return a row of the table."""
    case = CASES[name]
    text = write(folder, case, rows)
    found = {step: cost_of(folder, name, step) for step in ("read", "1", "2", "joined", "whole")}
    read = int((folder / "rows").read_text())
    assert (folder / "joined").read_bytes() == (folder / "whole").read_bytes()
    seconds = {step: cost.processor for step, cost in found.items()}
    hours = case.text_gb * 1e9 / text / 3600
    share = seconds["read"] + (seconds["whole"] - seconds["read"]) / MANY
    figures = (
        name, f"{read:,}", f"{text / 1e9:.2f}", f"{read / seconds['read']:,.0f}", f"{read / seconds['whole']:,.0f}",
        f"{seconds['1']:.0f}, {seconds['2']:.0f}, {seconds['joined']:.0f}", f"{found['whole'].memory:.0f}",
        f"{max(found[step].memory for step in ('1', '2', 'joined')):.0f}", f"{seconds['whole'] * hours:.1f}", f"{share * hours:.1f}",
    )  # fmt: skip
    return f"| {' | '.join(figures)} |"


def main() -> None:
    """Measure every case at every size."""
    command = parser(__doc__)
    command.add_argument("--rows", type=int, nargs="+", default=[2_000_000])
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
                print(measure(folder, name, rows), flush=True)
            finally:
                shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
