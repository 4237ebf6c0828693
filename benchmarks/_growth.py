"""Stages of `growth.py` that make, compare and score evaluation corpora: bitext as BUCC has it, and sets of random vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from _opusfilter import LANGS, sides

from crosslign.paths import EVALUATION_FILES

SENTENCE = 110
"""Characters of a sentence of BUCC, about: 328 MB of some 2.7 million sentences."""
SETS = 45
"""Evaluation corpora that the five papers' overlap is measured on."""
QUERIES = 66
"""Entities of Mewsli-X for each of its mentions."""
LANGUAGE = 2009
"""Sentences of a language of FLORES-200."""


def evaluation(folder: Path, size: str) -> dict[str, Path]:
    """Build an evaluation corpus of all lines of a size, cut to the length of sentences, as of BUCC."""
    from crosslign.corpora.build_evaluation import build_evaluation

    files = {}
    for lang, path in zip(LANGS, sides(folder, size).values(), strict=True):
        files[f"de-en.test.{lang}"] = folder / f"{size}.de-en.test.{lang}"
        with path.open(encoding="utf-8") as lines, files[f"de-en.test.{lang}"].open("w", encoding="utf-8") as out:
            out.writelines(f"{lang}-{number:09}\t{line.strip()[:SENTENCE].strip()}\n" for number, line in enumerate(lines))
    entry: Any = {"kind": "evaluation", "reader": "bucc", "options": {"split": "test"}, "langs": ["de", "en"]}
    tables = {part: folder / f"{size}.bucc.{part}.parquet" for part in EVALUATION_FILES}
    build_evaluation("e", entry, files, {}, {}, tables)
    return tables


def overlap(folder: Path, size: str) -> None:
    """Count the text of many evaluation corpora in a corpus of all lines of a size."""
    from crosslign.corpora.overlap import measure_corpus

    texts = evaluation(folder, "2000")["texts"]
    measure_corpus(folder / f"{size}.rows.parquet", {str(number): texts for number in range(SETS)})


def _matrix(path: Path, rows: int, dimension: int) -> Path:
    """Write random vectors."""
    draw = np.random.default_rng(rows)
    matrix = np.lib.format.open_memmap(path, "w+", np.dtype(np.float32), (rows, dimension))
    for start in range(0, rows, 10_000):
        matrix[start : start + 10_000] = draw.standard_normal((min(10_000, rows - start), dimension), np.float32)
    matrix.flush()
    return path


def _score(folder: Path, task: Any, built: dict[str, Any]) -> None:
    """Score random vectors of evaluation corpora, by role."""
    from crosslign.tasks.score import HEAD, IN_EACH_RECORD, score_run

    sets = {role: {part: folder / f"{role}.{part}.parquet" for part in EVALUATION_FILES} for role in built}
    matrices = {}
    for role, builder in built.items():
        made = builder.build()
        made.write(sets[role])
        matrices[role] = _matrix(folder / f"{role}.npy", made.texts.num_rows, 1024)
    context = dict.fromkeys((*HEAD, *IN_EACH_RECORD), "x") | {"seed": 1, "max_length": 64}
    score_run("t", task, matrices, sets, folder / "score.json", context, folder / "resamples.parquet")


def ranking(folder: Path, size: str) -> None:
    """Rank so many entities for the mentions of Mewsli-X."""
    from crosslign.corpora.evaluation import EvaluationBuilder

    built = {role: EvaluationBuilder(role) for role in ("candidates", "queries")}
    for number in range(int(size)):
        built["candidates"].item(f"Q{number}", "all", "candidate", "und", f"entity {number}")
    for number in range(1 + int(size) // QUERIES):
        built["queries"].link("de", built["queries"].item(f"m{number}", "de", "query", "de", f"mention {number}"), f"Q{number}")
    _score(folder, {"scorer": "average_precision", "main": {"metric": "map_at_20", "subset": "de"}}, built)


def languages(folder: Path, size: str) -> None:
    """Score the retrieval of English from so many languages of FLORES-200; of ten sentences for none."""
    from crosslign.corpora.evaluation import EvaluationBuilder

    builder, langs, count = EvaluationBuilder("test"), max(1, int(size)), LANGUAGE if int(size) else 10
    for lang in (f"l{number}" for number in range(langs)):
        for number in range(count):
            source = builder.item(f"{lang}-{number}", lang, "source", lang, f"sentence {number}")
            builder.link(lang, source, builder.item(f"en-{number}", lang, "target", "en", f"sentence {number}"))
    main = {"subset": "l0", "metric": "accuracy", "direction": "xx2en"}
    _score(folder, {"scorer": "retrieval", "main": main}, {"test": builder})


def nearest(folder: Path, size: str) -> None:
    """Draw the figure of the nearest of so many sentences."""
    from crosslign.corpora.evaluation import EvaluationBuilder
    from crosslign.reporting.figures.nearest import draw

    builder, files = EvaluationBuilder("n"), {part: folder / f"nearest.{part}.parquet" for part in EVALUATION_FILES}
    for number in range(int(size)):
        builder.item(
            str(number), "zh", "query" if number < 4 else "candidate", "zh", f"a sentence of the pool that has the number {number}"
        )
    builder.build().write(files)
    panels = [{"label": "l", "matrix": _matrix(folder / "nearest.npy", int(size), 768)}]
    draw(
        {"kind": "nearest", "title": "t", "from": ["l"]},
        {"panels": panels, **files},
        {form: folder / f"nearest.{form}" for form in ("png", "svg", "csv")},
    )
