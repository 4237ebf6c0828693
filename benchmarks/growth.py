"""How stages grow with their data, and what that makes of the largest jobs of the five papers, beside what their rules declare.

Each stage runs at three sizes, a factor of three apart, in a process of its own: corpora of the mirror's real sentence pairs (four in a
line, copies behind numbers) through the catalog's filters, training sets of them, these tokenised by the vocabulary of XLM-R, given
translations as views, an evaluation corpus of sentences and its overlap, and searches, scores and a figure of random vectors. Figures are
processor time less that of a tiny size, and peak memory; of several processes, each takes as much above its start as the one that was
measured. A corpus' time is that of reading, with a small sample drawn, and without `language_id`; to its extrapolation comes what the rows
that could be drawn take in all filters. Its memory is that of a sample of half the rows. The slope is that of log over log. The
extrapolation goes along the straight line through the two larger sizes, or by the power of the slope where that is above 1.1. A declared
figure falls short where it is below 1.2 times the extrapolated one; or above 10 times it, and an hour or 4 GB above it. Prints a table in
Markdown and, as its last line, how many figures fall short; ends with 1 where one does. It takes some twenty minutes of processor time.

    python benchmarks/growth.py --pairs 40000
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from _common import ROOT, Cost, encoder_folder, machine, measured, official_files, parser, versions
from _growth import evaluation, languages, nearest, overlap, ranking
from _opusfilter import LANGS, sides, tatoeba

from crosslign.config.loads import SEARCH_THREADS
from crosslign.config.resources import TOKENISING
from crosslign.files import write_rows

FIVE = ("msimcse", "moco_bert", "scl", "mpcl", "emma_x")
FACTORS = (2, 6, 18)
"""Copies of the real pairs: all sizes have more rows than a sample holds before it lets one go."""
POWER, SHORT, LONG = 1.1, 1.2, 10.0
SLACK = {"min": 60.0, "MB": 4000.0}
"""What a declared figure may be above ten times the need: no job asks for less than some minutes and some GB."""
DIMENSION = 1024
TOKENIZER = "me5_small"
TINY, FEW = "tiny", 2000
LINE = 4
"""Real pairs in a line: some 300 bytes, as a row of the web corpora has."""
NEEDS = {"examples": ("rows",), "tokenise": ("rows", "examples"), "view": ("labelled",), "overlap": ("rows",)}
"""Stages that make what another one reads."""
COUNTED = {"ranking": 5000, "nearest": 10_000, "languages": 1}
"""Stages whose size is a number of vectors or languages: the number that the factors multiply."""
COSTLY = "language_id"
THROUGH = (2000, 62_000)
"""Lines by whose difference the cost of all filters is measured: the first ones load models, and all could be drawn."""


@dataclass(frozen=True)
class Case:
    """A stage and the largest job of it.

    Attributes:
        name: as the table has it.
        stage: what is run: `corpus`, `search`, or one of `STAGES`.
        rule, wildcards: of the job at the papers' size.
        entry: corpus of the catalog whose filters are run.
        size: of `Load`, what its time grows with; or how much there is of it, as published.
        held: what of that size its memory grows with, where that is less: the largest corpus of those that come one after another.
        processes: of the job.
    """

    name: str
    stage: str
    rule: str
    wildcards: Mapping[str, str]
    entry: str = ""
    size: str | float = "read_mb"
    held: float = math.inf
    processes: int = 1


CASES = (
    Case("CCMatrix en-es, sampled", "corpus", "build_corpus", {"corpus": "ccmatrix_en-es"}, "ccmatrix_en-de"),
    Case("ParaCrawl en-fr, sampled", "corpus", "build_corpus", {"corpus": "paracrawl_en-fr"}, "paracrawl_en-fr"),
    Case("CC-100 en, its beginning, sampled", "mono", "build_corpus", {"corpus": "cc100_en"}, "cc100_de"),
    Case("pairs of EMMA-X, 41 languages", "examples", "build_examples", {"examples": "ex_pairs"}),
    Case("SCL's rows, tokenised", "tokenise", "tokenise", {"examples": "xnli_tt"}, processes=TOKENISING),
    Case("SCL's views by given translations", "view", "build_view", {"view": "xnli_partial"}, size="text_mb"),
    Case("BUCC's training parts, mined", "search", "score", {"run": "xlm-r", "task": "bucc"}, size="compared"),
    Case("BUCC's training parts, built", "evaluation", "build_evaluation", {"corpus": "bucc2018_training"}, size=2_657_541),
    Case("overlap of all corpora", "overlap", "measure_overlap", {}, size="text_mb", held=1530.0),
    Case("Mewsli-X, a million entities", "ranking", "score", {"run": "xlm-r", "task": "mewsli_x"}, size=1e6),
    Case("FLORES-200, 203 languages", "languages", "score", {"run": "xlm-r", "task": "flores200"}, size=203.0),
    Case("nearest of a million sentences", "nearest", "draw_figure", {"figure": "moco_bert_table10_sentences"}, size=1e6),
)


def corpus(folder: Path, name: str, size: str, mono: bool, sample: int, without: str) -> None:
    """Build a corpus by the filters of one of the catalog, all but one of them, a sample drawn as there."""
    from crosslign.config.load import load_project
    from crosslign.corpora.build import build_corpus

    project = load_project(ROOT, {"scale": "paper", "papers": [*FIVE]})
    langs = list(LANGS[1:] if mono else LANGS)
    files = {f"{size}.de": folder / f"{size}.de"} if mono else sides(folder, size)
    reader, kind = ("text_lines", "mono") if mono else ("moses", "bitext")
    filters = [step for step in project.corpora[name]["filters"] if without not in step]
    entry: Any = {"kind": kind, "reader": reader, "langs": langs, "filters": filters, "sample": sample}
    build_corpus("c", entry, files, {}, folder / f"{size}.{kind}.parquet")


def examples(folder: Path, size: str) -> None:
    """Make a training set of all pairs of a size."""
    from crosslign.examples.build import build_examples

    entry = {"builder": "parallel_pairs", "from": ["c"], "langs": list(LANGS), "pairs": ["en-de"]}
    build_examples("x", entry, {"c": folder / f"{size}.rows.parquet"}, {}, {}, folder / f"{size}.examples.parquet")


def rows(folder: Path, size: str) -> None:
    """Write the pairs of a size as rows, which `examples` reads."""
    from crosslign.corpora.build import build_corpus

    entry: Any = {"kind": "bitext", "reader": "moses", "langs": list(LANGS), "filters": []}
    build_corpus("c", entry, sides(folder, size), {}, folder / f"{size}.rows.parquet")


def tokenise(folder: Path, size: str) -> None:
    """Tokenise the training set of a size, in one process, by the vocabulary of multilingual-e5-small, which is XLM-R's."""
    from crosslign.encoders.model import Model
    from crosslign.training.tokenised import tokenise_examples

    model = Model.load({"main": encoder_folder(folder, TOKENIZER)}, weights=False)
    settings = {"max_length": 128, "prefix": "", "forms": ["sentences"]}
    tokenise_examples(folder / f"{size}.examples.parquet", folder / f"{size}.tokens", folder / f"{size}.working", model, settings)


def labelled(folder: Path, size: str) -> None:
    """Write the pairs of a size as labelled rows in two languages: a line with the one behind it, a group for each."""
    columns = ("id", "a_lang", "a_text", "b_lang", "b_text", "label", "group")
    texts = {lang: path.read_text("utf-8").splitlines() for lang, path in zip(LANGS, sides(folder, size).values(), strict=True)}
    rows = [
        (f"{lang}:{row}", lang, lines[row], lang, lines[row + 1], [1.0], str(row))
        for lang, lines in texts.items()
        for row in range(0, len(lines) - 1, 2)
    ]
    table = pa.table(dict(zip(columns, zip(*rows, strict=True), strict=True)))
    write_rows(folder / f"{size}.labelled.parquet", table, "labelled")


def view(folder: Path, size: str) -> None:
    """Give each labelled row of a size a view of one sentence in the other language."""
    from crosslign.views.build import build_view

    langs, given = list(LANGS), {"provided": {"corpora": ["c"]}}
    entry = {"builder": "partial_translation", "from": ["c"], "langs": langs, "targets": langs, "translator": given, "views": 1}
    build_view("v", entry, {"c": folder / f"{size}.labelled.parquet"}, folder / f"{size}.view.parquet")


def search(sentences: int) -> None:
    """Find neighbours of so many random vectors among as many, in one thread."""
    from _mining import centres, vectors

    from crosslign.mining.knn import neighbours
    from crosslign.threads import limit_threads

    limit_threads(1)
    middle = centres(max(2, sentences // 4), DIMENSION)
    neighbours(vectors(sentences, DIMENSION, middle, 1), vectors(sentences, DIMENSION, middle, 2), 4)


def work(stage: str, folder: Path, entry: str, size: str) -> None:
    """Do what a measured command does; `corpus:5000:length` draws so many rows and leaves that filter out."""
    if stage.startswith(("corpus", "mono")):
        kind, sample, without = stage.split(":")
        corpus(folder, entry, size, kind == "mono", int(sample), without)
    elif stage == "search":
        search(int(size))
    else:
        STAGES[stage](folder, size)


def cost_of(stage: str, folder: Path, entry: str, size: str) -> Cost:
    """Run a stage in a process of its own and return what it took."""
    command = [sys.executable, __file__, "--run", stage, str(folder), entry or "-", size]
    return measured(command, TQDM_DISABLE="1", OMP_NUM_THREADS="1", RAYON_NUM_THREADS="1")


@dataclass(frozen=True)
class Measured:
    """A figure at three sizes, how large the job is at the papers' size, and what comes to it whatever that size is."""

    unit: str
    sizes: list[float]
    values: list[float]
    size: float
    beside: float = 0.0


def megabytes(case: Case, folder: Path, name: str) -> float:
    """Return the text of a size."""
    paths = [folder / f"{name}.de"] if case.stage == "mono" else list(sides(folder, name).values())
    return sum(path.stat().st_size for path in paths) / 1e6


def measures(case: Case, folder: Path, pairs: int, load: Any) -> list[Measured]:
    """Run a stage at its sizes and return its time in minutes and its memory in MB."""
    if case.stage == "search":
        names = [str(round(2 * math.sqrt(pairs * factor * 1000))) for factor in FACTORS]
        sizes, tiny = [float(name) ** 2 for name in names], "200"
    elif case.stage in COUNTED:
        names = [str(COUNTED[case.stage] * factor) for factor in FACTORS]
        sizes, tiny = [float(name) for name in names], str(10 * (COUNTED[case.stage] > 1))
    else:
        names, tiny = [str(factor) for factor in FACTORS], TINY
        sizes = [2.0 * pairs * factor if case.stage == "evaluation" else megabytes(case, folder, str(factor)) for factor in FACTORS]
    start, *costs = (cost_of(_stage(case, FEW), folder, case.entry, name) for name in (tiny, *names))
    minutes = [max(cost.processor - start.processor, 0.01) / 60 for cost in costs]
    size = float(getattr(load, case.size)) if isinstance(case.size, str) else case.size
    if case.stage == "search":
        return [Measured("min", sizes, [value / SEARCH_THREADS for value in minutes], size)]
    if case.entry:
        found = Measured("min", sizes, minutes, size, _drawn_minutes(case, folder, load))
        costs = [cost_of(_stage(case, pairs * factor // 2), folder, case.entry, str(factor)) for factor in FACTORS]
        return [found, Measured("MB", [size / 2 for size in sizes], [cost.memory for cost in costs], load.text_mb)]
    memory = [cost.memory + (case.processes - 1) * (cost.memory - start.memory) for cost in costs]
    held = min(case.held, (load.text_mb or size) if isinstance(case.size, str) else size)
    return [Measured("min", sizes, minutes, size), Measured("MB", sizes, memory, held)]


def _stage(case: Case, sample: int, without: str = COSTLY) -> str:
    return f"{case.stage}:{sample}:{without}" if case.entry else case.stage


def _drawn_minutes(case: Case, folder: Path, load: Any) -> float:
    """Return the minutes that all filters take for the rows of a corpus that could be drawn when they came."""
    stage = _stage(case, FEW, "-")
    few, many = (cost_of(stage, folder, case.entry, str(lines)).processor for lines in THROUGH)
    less, more = (megabytes(case, folder, str(lines)) for lines in THROUGH)
    return max(0.0, float((many - few) / (more - less) * load.filtered_mb / 60))


def write_lines(folder: Path, size: str) -> None:
    """Write `6.en` and `6.de` for `40000:6`: 40,000 lines of real pairs, six times, all but the first time behind the copy's number."""
    pairs, copies = map(int, size.split(":"))
    real = list(islice(tatoeba(official_files("tatoeba-bilingual"), "deu"), pairs * LINE))
    for side, path in enumerate(sides(folder, str(copies)).values()):
        lines = [" ".join(pair[side] for pair in real[start::pairs]) for start in range(pairs)]
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for copy in range(copies):
                file.writelines(f"{copy} {line}\n" if copy else f"{line}\n" for line in lines)


def write_heads(folder: Path, stages: Iterable[str]) -> None:
    """Write the sizes whose costs are those of a start, and of all filters: the first lines of the smallest."""
    for name, lines in ((TINY, 100), *((str(lines), lines) for lines in THROUGH)):
        for lang in LANGS:
            with (folder / f"{FACTORS[0]}.{lang}").open(encoding="utf-8") as file:
                (folder / f"{name}.{lang}").write_text("".join(islice(file, lines)), encoding="utf-8")
    make(folder, TINY, stages)


def make(folder: Path, size: str, stages: Iterable[str]) -> None:
    """Make of the lines of a size what the stages read."""
    for needed in dict.fromkeys(name for stage in stages for name in NEEDS.get(stage, ())):
        cost_of(needed, folder, "", size)


STAGES: dict[str, Callable[[Path, str], Any]] = {
    "lines": write_lines,
    "encoder": encoder_folder,
    "rows": rows,
    "labelled": labelled,
    "examples": examples,
    "tokenise": tokenise,
    "view": view,
    "evaluation": evaluation,
    "overlap": overlap,
    "ranking": ranking,
    "languages": languages,
    "nearest": nearest,
}
"""What a process of its own does in the benchmark's folder, by name: with a size, or the name of an encoder."""


def slope(sizes: list[float], values: list[float]) -> float:
    """Return the exponent over the three sizes: that of the first and the last."""
    return math.log(max(values[-1], 1e-3) / max(values[0], 1e-3)) / math.log(sizes[-1] / sizes[0])


def extrapolated(sizes: list[float], values: list[float], size: float) -> float:
    """Return the value at a larger size."""
    line = values[-1] + max(0.0, values[-1] - values[-2]) / (sizes[-1] - sizes[-2]) * (size - sizes[-1])
    power = slope(sizes, values)
    return max(line, values[-1] * (size / sizes[-1]) ** power) if power > POWER else line


def verdict(declared: float, needed: float, unit: str) -> str:
    """Return `falls short`, or nothing where a declared figure fits."""
    above = declared > LONG * needed and declared - needed > SLACK[unit]
    return "falls short" if declared < SHORT * needed or above else ""


def line(case: Case, one: Measured, declared: float) -> list[str]:
    """Return the cells of a line."""
    needed = extrapolated(one.sizes, one.values, one.size) + one.beside
    shown = " / ".join(f"{value:.2f}" if one.unit == "min" else f"{value:.0f}" for value in one.values)
    times = declared / max(needed, 1e-9)
    exponent = slope(one.sizes, one.values)
    fixed = [case.name, one.unit, shown, f"{exponent:.2f}", f"{needed:,.0f}", f"{declared:,.0f}", f"{times:.1f}"]
    return [*fixed, verdict(declared, needed, one.unit)]


def main() -> None:
    """Measure, extrapolate and compare."""
    command = parser(__doc__)
    command.add_argument("--pairs", type=int, default=40_000, help="lines of real pairs; of fewer, memory is that of batches")
    command.add_argument("--only", nargs="+", choices=sorted({case.stage for case in CASES}), help="stages to measure")
    command.add_argument("--run", nargs=4, metavar=("STAGE", "FOLDER", "ENTRY", "SIZE"), help=argparse.SUPPRESS)
    args = command.parse_args()
    if args.run:
        stage, folder, entry, size = args.run
        work(stage, Path(folder), entry, size)
        return
    official_files("tatoeba-bilingual")
    from crosslign.config.load import load_project
    from crosslign.config.resources import load_of, uncapped_need

    stages = args.only or [case.stage for case in CASES]
    project = load_project(ROOT, {"scale": "paper", "papers": [*FIVE]})
    folder = Path(tempfile.mkdtemp(prefix="crosslign-growth-", dir=os.environ.get("TMPDIR")))
    try:
        for factor in FACTORS:
            cost_of("lines", folder, "", f"{args.pairs}:{factor}")  # not here: a process begins with the peak of what starts it
            make(folder, str(factor), stages)
        write_heads(folder, stages)
        if "tokenise" in stages:
            cost_of("encoder", folder, "", TOKENIZER)
        print(f"machine: {machine()}; {versions('torch', 'pyarrow', 'numpy')}; {args.pairs:,} lines and more\n")
        print("| job | | at three sizes | slope | extrapolated | declared | times | |\n|---|---|---:|---:|---:|---:|---:|---|")
        short = 0
        for case in [case for case in CASES if case.stage in stages]:
            load, need = load_of(project, case.rule, case.wildcards), uncapped_need(project, case.rule, case.wildcards)
            for one in measures(case, folder, args.pairs, load):
                cells = line(case, one, float(need.runtime if one.unit == "min" else need.mem_mb))
                print(f"| {' | '.join(cells)} |", flush=True)
                short += cells[-1] != ""
        print(f"\n{short} fall short")
        if short:
            raise SystemExit(1)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
