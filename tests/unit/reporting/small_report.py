"""A small results folder by hand, and the report of it: two papers, a wide table, seeds, published figures, hostile text."""

from crosslign.files import write_json
from crosslign.reporting.report import build_report
from crosslign.reporting.run_records import read_lineages

RUN = {"commit": "c0ffee", "started": "2026-01-01", "wall_s": 36.0, "peak_mb": 512.0, "machine": "EPYC, 2 cores", "device": "cpu"}
COLUMNS = [
    {
        "group": "Half" if n < 5 else "Other half", "label": f"language {n}", "task": "t",
        "published": {"task": "t", "subset": str(n), "metric": "accuracy"},
    }
    for n in range(12)
]  # fmt: skip
VALUES = {"A": 0.4, "B": 0.6}


def lineage(path, rule, *inputs, recipe=None, counts=None, device="cpu", folder=False, **more):
    content = {
        "artefact": {"path": path, "sha256": "0" * 64, "bytes": 1, "kind": rule},
        "inputs": [{"path": p, "sha256": "1" * 64} for p in inputs],
        "rule": rule, "recipe": recipe or {}, "seed": 1, "threads": 1, "counts": counts or {}, "licences": ["CC0-1.0"],
        "stand_in": False, "run": {**RUN, "device": device}, "versions": {}, **more,
    }  # fmt: skip
    return f"{path}/lineage.json" if folder else f"{path}.lineage.json", content


def write_results(results):
    """Write scores, lineage and benchmark files of two systems with two seeds each."""
    made = [
        lineage("downloads/w/a.whl", "fetch"),
        lineage("corpora/c/all.parquet", "build_corpus", "downloads/w/a.whl", recipe={"corpus": "c"}),
    ]
    for system, value in VALUES.items():
        for seed in (1, 2):
            run = f"{system}-s{seed}"
            made.append(
                lineage(f"systems/{run}", "train_system", "corpora/c/all.parquet", recipe={"run_id": run}, device="cuda:0", folder=True)
            )
            embed = "embed" if seed == 1 else "embed_large"
            made.append(lineage(f"embeddings/{run}/x.npy", embed, f"systems/{run}", recipe={"run": run}, device="cuda:0"))
            made.append(lineage(f"scores/{run}.json", "score", f"embeddings/{run}/x.npy", recipe={"run_id": run}))
            records = [
                {"eval": "t", "subset": str(n), "metric": "accuracy", "protocol": "", "direction": "",
                 "value": value + seed / 100, "n_items": 9,
                 "ci_low": None, "ci_high": None, "reason": "", "run_id": run, "threshold": None}
                for n in range(len(COLUMNS))
            ]  # fmt: skip
            write_json(results / "scores" / f"{run}.json", {"records": records})
    for name, content in made:
        write_json(results / name, content)


def lineages(*folders):
    """Return all lineage below folders."""
    return read_lineages(path for folder in folders for path in folder.rglob("*lineage.json"))


def table(name, paper, scale, title="A table", quoted="AB"):
    cells = [
        [
            {
                "scores": [f"scores/{system}-s{seed}.json" for seed in (1, 2)],
                "select": {"task": "t", "subset": str(n), "metric": "accuracy"},
            }
            for n in range(len(COLUMNS))
        ]
        for system in VALUES
    ]
    rows = [{"label": f"system {system}", "group": system, "system": system} for system in VALUES]
    rows = [{**row, "published": f"m{row['system']}"} if row["system"] in quoted else row for row in rows]
    return {
        "id": name, "paper": paper, "scale": scale, "stand_in": scale == "quick", "title": title, "caption": "Does it cross languages?",
        "columns": COLUMNS, "rows": rows, "cells": cells, "footnotes": [{"at": {"column": "language 1"}, "text": "as printed"}],
    }  # fmt: skip


PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d494844520000000100000001080600000"
    "01f15c4890000000d49444154789c63f8ffff3f0005fe02fea7d6059b0000000049454e44ae426082"
)


def write_report(folder, scale="paper", title="A table"):
    """Build the report of the small results and return its path."""
    results, published = folder / "results", folder / "published"
    write_results(results)
    published.mkdir()
    for name in ("one", "two"):
        lines = [f",m{system},t,{n},accuracy,{50.0},higher" for system in VALUES for n in range(len(COLUMNS))]
        (published / f"{name}.csv").write_text("\n".join(["group,model,task,subset,metric,value,direction", *lines, ""]), encoding="utf-8")
    (results / "fig.png").write_bytes(PIXEL)
    (results / "fig.csv").write_text("panel,lang,group,cosine,mean_cosine\nours,en,g,0.5,0.5\n", encoding="utf-8")
    overlap = results / "overlap.csv"
    overlap.write_text(
        "corpus,evaluation,rows,found,all_sides,evaluation_texts,texts_found,removed,expected\nc,bucc,100,7,5,50,6,7,none\nverses_code_switched_in_five_languages,tatoeba_written,100,7,5,50,6,7,\nc,tatoeba,100,0,0,9,0,0,\n",
        encoding="utf-8",
    )
    recipe = {
        "tables": [table("one", "first", scale, title), table("two", "second", scale)],
        "figures": [{"id": "fig", "paper": "second", "title": "A figure", "caption": "Before and after."}],
        "scale": scale, "stand_in": scale == "quick",
    }  # fmt: skip
    figures = [results / "fig.png", results / "fig.csv"]
    build_report(recipe, results, published, figures, lineages(results), folder / "report.html", overlap)
    return folder / "report.html"
