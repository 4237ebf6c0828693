"""One cell of the quick start built by hand: score, vectors, system, examples, corpora, and a download that lies outside."""

from pathlib import Path

from crosslign.files import write_json
from crosslign.files.lineage import Lineage

ROOT = Path(__file__).resolve().parents[3]
RUN = "QS-P-s42"
SCORE = f"scores/{RUN}/last/mean_t64_bf16/tatoeba_bible.json"
MATRIX = f"embeddings/{RUN}/last/mean_t64_bf16/quickstart.npy"
TABLES = [f"corpora/quickstart/{part}.parquet" for part in ("gold", "items", "texts")]


def made(results, path, kind, rule, inputs, recipe, counts=None, text=""):
    """Write an artefact and its lineage."""
    file = results / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if not text:
        file.write_text(path)
    else:
        write_json(file, text)
    lineage = Lineage(
        rule,
        recipe,
        [(results / name).resolve() for name in inputs],
        results,
        version=f"{rule}@3",
        code=f"code-of-{rule}",
        counts=counts or {},
    )
    lineage.licences = ["CC0-1.0"]
    lineage.write(file, kind)


def record(value, direction, run=RUN):
    return {
        "eval": "tatoeba_bible", "subset": "avg", "metric": "accuracy", "direction": direction, "protocol": "", "value": value,
        "n_items": 320, "ci_low": 0.25, "ci_high": 0.75, "run_id": run, "checkpoint": "last", "reason": "", "status": "ok",
    }  # fmt: skip


def build_chain(results):
    """Write every artefact behind the cell, each with its lineage.

    Args:
        results: the results folder with its scale; downloads go beside it.
    """
    made(results.parent, "downloads/bible/verses.whl", "download", "fetch", [], {"source": "bible", "entry": {"package": "bible"}})
    for part in TABLES:
        made(results, part, "evaluation", "build_evaluation", ["../downloads/bible/verses.whl"], {"corpus": "quickstart"})
    made(
        results,
        "corpora/c/all.parquet",
        "corpus",
        "build_corpus",
        ["../downloads/bible/verses.whl"],
        {"corpus": "c"},
        {"read": 9, "rows": 7},
    )
    made(results, "examples/verses.parquet", "examples", "build_examples", ["corpora/c/all.parquet", TABLES[2]], {"limit": 512})
    made(results, f"systems/{RUN}", "system", "train_system", ["examples/verses.parquet"], {"train": {"learning_rate": 3e-4, "steps": 8}})
    made(results, MATRIX, "embeddings", "embed", [f"systems/{RUN}", TABLES[2]], {"readout": "mean_t64_bf16"})
    records = {"records": [record(0.5, "xx2en"), record(0.25, "en2xx")]}
    made(results, SCORE, "scores", "score", [*TABLES, MATRIX], {"task": "tatoeba_bible"}, text=records)
