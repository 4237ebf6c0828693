"""Golden results of every stage: one small line of data, from the project's own sentences to a report, stage by stage."""

from __future__ import annotations

import functools
import json
import re

import numpy as np
import pyarrow as pa
from golden import Case
from made_inputs import FOLDER, rows_digest
from number_cases import READOUT, SENTENCES, TINY, digest, numbers
from safetensors.torch import load_file
from stage_recipes import CLAIMS, NLI, OVERVIEW, OWN, PUBLISHED, RECIPE, RESULTS, SELECT, SHARED, STS, TABLE, TASK, TRAIN, VERSES

from crosslign.config.versions import code_behind
from crosslign.files import iter_rows, read_json, write_json, write_rows
from crosslign.files.lineage import Lineage, lineage_path
from crosslign.files.rows import SCHEMAS
from crosslign.jobs.job import Job, all_paths
from crosslign.mining.knn import neighbours
from crosslign.mining.lists import write_neighbours
from crosslign.paths import CATALOG
from crosslign.stages import STAGES
from crosslign.training.tokenised import TOKENS, shards


def run(rule, recipe, read, outputs, **params):
    """Run a stage as its rule would, once; return its counts."""
    lineage = Lineage(rule, recipe, all_paths(read), RESULTS, recipe.get("seed") if rule == "train_system" else None)
    given = {"recipe": recipe, "root": str(RESULTS), "work": str(FOLDER / "work"), **params}
    resources = {"mirrors": "", "hints": "", "gpu": 0, "checkpoint_minutes": 10, "checkpoint_every": 0, "kernels": "off"}
    STAGES.get(rule)(Job(rule, read, outputs, given, 1, lineage, resources))
    return read_json(lineage_path(next(iter(outputs.values()))))["counts"]


def rows(path):
    return rows_digest(pa.concat_tables(list(iter_rows(path))))


@functools.cache
def fetched(name):
    out = {"file": RESULTS / "downloads" / "written" / name}
    counts = run("fetch", {"source": "written", "entry": OWN, "file": {"name": name}}, {}, out)
    return out["file"], counts


@functools.cache
def encoder():
    source = FOLDER / "golden.tsv"
    source.write_text("".join(f"{en}\t{de}\n" for en, de in SENTENCES), encoding="utf-8")
    out = RESULTS / "encoders" / "tiny"
    return out, run(
        "prepare_encoder", {"encoder": "tiny", "entry": {"construct": TINY, "licence": "CC0-1.0"}}, {"files": [source]}, {"folder": out}
    )


@functools.cache
def corpus(name):
    entry, file = {"nli": (NLI, "nli_en.tsv"), "verses": (VERSES, None)}[name]
    if file is None:
        path = FOLDER / "verses.tsv"
        path.write_text("".join(f"{en}\t{de}\n" for en, de in SENTENCES), encoding="utf-8")
    out = RESULTS / "corpora" / name / "all.parquet"
    recipe = {"corpus": name, "entry": entry, "limit": 200}
    return out, run("build_corpus", recipe, {"files": [fetched(file)[0] if file else path]}, {"rows": out})


@functools.cache
def sts():
    out = {f"{part}_rows": RESULTS / "corpora" / "sts" / f"{part}.parquet" for part in ("texts", "items", "gold")}
    files = [fetched(f"sts_{lang}.tsv")[0] for lang in ("en", "de")]
    return out, run("build_evaluation", {"corpus": "sts", "entry": STS, "limit": 30}, {"files": files}, out)


def parts():
    return {name.removesuffix("_rows"): path for name, path in sts()[0].items()}


@functools.cache
def view():
    words = RESULTS / "corpora" / "words" / "en-de.parquet"
    pairs = [
        ("the", "der"),
        ("dog", "Hund"),
        ("bread", "Brot"),
        ("cat", "Katze"),
        ("house", "Haus"),
        ("a", "ein"),
        ("is", "ist"),
        ("cold", "kalt"),
    ]
    columns = {"id": [f"words:{n}" for n in range(len(pairs))], "a_lang": ["en"] * len(pairs), "a_text": [pair[0] for pair in pairs]}
    columns |= {"b_lang": ["de"] * len(pairs), "b_text": [pair[1] for pair in pairs], "score": [None] * len(pairs)}
    write_rows(words, pa.table(columns, SCHEMAS["bitext"]), "bitext")
    entry = {
        "builder": "code_switch",
        "from": ["nli"],
        "langs": ["en"],
        "dictionaries": {"de": "words"},
        "probability": 0.75,
        "views": 1,
        "seed": 42,
    }
    out = RESULTS / "views" / "v" / "all.parquet"
    read, kept = {"corpora": {"nli": corpus("nli")[0], "words": words}}, str(FOLDER / "translations")
    return out, run("build_view", {"view": "v", "entry": entry}, read, {"rows": out}, translations=kept)


@functools.cache
def examples():
    entry = {"builder": "nli_triplets", "from": ["nli"], "langs": ["en"], "seed": 42, "decontaminate": ["sts"]}
    out = RESULTS / "examples" / "nli.parquet"
    inputs = {"corpora": {"nli": corpus("nli")[0]}, "evaluations": {"sts": parts()["texts"]}}
    return out, run("build_examples", {"examples": "nli", "entry": entry, "limit": 64}, inputs, {"rows": out})


@functools.cache
def tokenised():
    out = RESULTS / "tokenised" / "nli-0"
    recipe = {"examples": "nli", "encoders": {"main": "tiny"}, "max_length": TRAIN["max_length"], "prefix": "", "forms": ["sentences"]}
    inputs = {"examples": examples()[0], "encoders": [encoder()[0]]}
    places = {"members": {"main": str(encoder()[0] / "main")}, "work": str(FOLDER / "tokenising")}
    return out, run("tokenise", recipe, inputs, {"folder": out}, **places)


@functools.cache
def system():
    out = RESULTS / "systems" / "G-s1"
    inputs = {"examples": {"nli": examples()[0]}, "base": [encoder()[0]], "selection": {"sts": parts()}}
    inputs["derived"] = {"nli": tokenised()[0]}
    more = {"members": {"main": str(encoder()[0] / "main")}, "tasks": {"sts": TASK}}
    return out, run("train_system", RECIPE, inputs, {"folder": out}, **more, checkpoints=str(FOLDER / "checkpoints"))


@functools.cache
def embeddings():
    out = RESULTS / "embeddings" / "G-s1" / "last" / "mean" / "sts.npy"
    recipe = {"run": "G-s1", "checkpoint": "last", "text_set": "sts", "readout": "mean", "readout_entry": READOUT, "head": {}}
    inputs = {"encoder": system()[0], "texts": parts()["texts"]}
    return out, run("embed", recipe, inputs, {"matrix": out}, members={"main": str(system()[0] / "last" / "main")})


@functools.cache
def scores():
    out = {"scores": RESULTS / "scores" / "G-s1" / "last" / "mean" / "sts.json"}
    out["resamples"] = out["scores"].with_suffix(".resamples.parquet")
    recipe = {
        "run_id": "G-s1",
        "system": "G",
        "seed": 1,
        "checkpoint": "last",
        "readout": "mean",
        "readout_entry": READOUT,
        "profile": "golden",
    }
    return out, run(
        "score", {**recipe, "task": "sts", "task_entry": TASK}, {"roles": {"test": {"matrix": embeddings()[0], **parts()}}}, out
    )


@functools.cache
def pages():
    """Tables, counts, overlap and pages, of a score whose numbers are fixed: how near a training comes plays no part here."""
    fixed = read_json(scores()[0]["scores"])
    for number, record in enumerate(fixed["records"]):
        record |= {"value": 0.5 + number / 100, "ci_low": 0.4, "ci_high": 0.6, "checkpoint_sha": "0", "data_manifest_sha": "0"}
    kept = RESULTS / "pages"
    score = kept / "scores" / "G-s1" / "last" / "mean" / "sts.json"
    score.parent.mkdir(parents=True, exist_ok=True)
    score.write_text(json.dumps(fixed), encoding="utf-8")
    Lineage("score", {"run_id": "G-s1", "readout_entry": READOUT}, [], kept, started=0).write(score, "scores")
    out = {form: kept / "tables" / f"g.{form}" for form in ("md", "csv", "tex", "html")}
    where = {"root": str(kept), "published": PUBLISHED}
    run("make_table", TABLE, {"scores": [score], "published": []}, out, **where)
    overview = {form: kept / f"overview.{form}" for form in ("html", "md")}
    run("write_overview", OVERVIEW, {"scores": [score], "published": []}, overview, **where)
    claims = {form: kept / f"claims.{form}" for form in ("md", "csv", "html")}
    run("write_claims", CLAIMS, {"scores": [score], "published": []}, claims, **where)
    overlap = {form: kept / f"overlap.{form}" for form in ("csv", "md")}
    recipe = {"corpora": ["nli"], "evaluations": ["sts"], "examples": ["nli"], "expect_none": {}}
    inputs = {"corpora": {"nli": corpus("nli")[0]}, "evaluations": {"sts": parts()["texts"]}, "examples": {"nli": examples()[0]}}
    run("measure_overlap", recipe, inputs, overlap)
    counts = {"counts": kept / "counts.json"}
    counted = [["corpus", "nli"], ["examples", "nli"]]
    run(
        "count_rows",
        {"table": "g", "counted": counted},
        {"rows": {"corpus": {"nli": corpus("nli")[0]}, "examples": {"nli": examples()[0]}}},
        counts,
    )
    figure = {form: kept / "figures" / f"f.{form}" for form in ("png", "svg", "csv")}
    cells = [{"scores": ["scores/G-s1/last/mean/sts.json"], "select": {**SELECT, "subset": "mono"}}]
    entry = {"kind": "bars", "title": "Golden", "from": ["G"], "cells": [{"task": "sts", "subset": "mono", "metric": "spearman"}]}
    drawn = {"panels": [{"label": "G", "cells": cells}], "results": str(kept), "scale": "golden", "stand_in": False}
    run("draw_figure", entry, {"files": [score]}, figure, inputs=drawn)
    report = {"page": kept / "report.html"}
    behind = [lineage_path(path) for path in (score, corpus("nli")[0], examples()[0], system()[0])]
    inputs = {"scores": [score], "published": [], "figures": [], "overlap": overlap["csv"], "lineages": behind}
    run("write_report", OVERVIEW, inputs, report, **where)
    return {
        "make_table": out,
        "write_overview": overview,
        "write_claims": claims,
        "measure_overlap": overlap,
        "count_rows": counts,
        "draw_figure": figure,
        "write_report": report,
    }


def text_of(path):
    return digest(path.read_text(encoding="utf-8"))


@functools.cache
def mined():
    """A mining of the sentences of `SENTENCES`, side by side."""
    texts, matrices = {}, {}
    for side, lang in (("source", "de"), ("target", "en")):
        file = FOLDER / f"{lang}.txt"
        file.write_text("\n".join(pair[lang == "de"] for pair in SENTENCES) + "\n", encoding="utf-8")
        texts[side] = RESULTS / "mined" / f"{side}.parquet"
        recipe = {"mine": "m", "side": side, "lang": lang, "dedup": "text", "limit": None, "licence": "CC0-1.0", "file": str(file)}
        run("mine_texts", recipe, {"file": file}, {"rows": texts[side]})
        matrices[side] = RESULTS / "mined" / f"{side}.npy"
        recipe = {
            "mine": "m",
            "run": "tiny",
            "checkpoint": "base",
            "encoders": ["tiny"],
            "readout": "mean",
            "readout_entry": READOUT,
            "embeddings": "float16",
            "side": side,
        }
        inputs = {"encoder": encoder()[0], "texts": texts[side]}
        run("mine_embed", recipe, inputs, {"matrix": matrices[side]}, members={"main": str(encoder()[0] / "main")})
    near = RESULTS / "mined" / "near.safetensors"
    inputs = {**matrices, **{f"{side}_texts": path for side, path in texts.items()}}
    recipe = {"mine": "m", "k": 4, "backend": "exact", "search_options": {}}
    folders = [RESULTS / "searched" / f"{part}-of-2" for part in (1, 2)]
    for part, folder in enumerate(folders, 1):
        run("mine_search", {**recipe, "part": part, "parts": 2}, inputs, {"folder": folder})
    run("mine_join", recipe, {**inputs, "derived": folders}, {"neighbours": near})
    out = {form: RESULTS / "mined" / f"m.{form}" for form in ("tsv", "parquet")}
    recipe = {"margin": "ratio", "retrieval": "max", "threshold": None, "output": "all", "encoders": ["tiny"]}
    run("mine_pairs", recipe, {"neighbours": near, **texts}, out)
    return texts, matrices, near, out


def _calibrated():
    """Sixty planted pairs among two sides of 120 vectors, of which the first 60 are translations."""
    rng, folder = np.random.default_rng(1), RESULTS / "calibrated"
    read = {"neighbours": folder / "near.safetensors"}
    for part, number in (("", 120), ("plant_", 60)):
        meaning = rng.standard_normal((number, 16))
        for side in ("source", "target"):
            matrix = meaning + rng.uniform(0.1, 0.8, (number, 1)) * rng.standard_normal((number, 16))
            matrix[60:] = rng.standard_normal((len(matrix[60:]), 16))
            name = f"{part}{side}"
            read |= {name: folder / f"{name}.npy", f"{name}_texts": folder / f"{name}.parquet"}
            texts = [f"{name} {row}" for row in range(number)]
            table = pa.table({"text_id": [str(row + 1) for row in range(number)], "lang": ["en"] * number, "text": texts})
            write_rows(read[f"{name}_texts"], table, "texts")
            np.save(read[name], matrix)
    write_neighbours(read["neighbours"], neighbours(read["source"], read["target"], 4))
    for path in read.values():
        Lineage("made", {}, [], RESULTS).write(path, "made", path)
    out = {"calibration": folder / "calibration.json"}
    run("mine_calibrate", {"mine": "m", "margin": "ratio", "retrieval": "max"}, read, out)
    return read_json(out["calibration"])


def _weights(path):
    return {name: numbers(tensor.numpy(), 2) for name, tensor in sorted(load_file(path / "main" / "model.safetensors").items())}


def _tokens():
    """The token ids of the first rows."""
    return shards(tokenised()[0])[:4][TOKENS]


def _trained():
    folder, counts = system()
    curve = [json.loads(line) for line in (folder / "curve.jsonl").read_text(encoding="utf-8").splitlines()]
    shown = {key: counts[key] for key in ("steps", "examples", "parameters") if key in counts}
    losses = [[point["step"], point["loss"], point["learning_rate"]] for point in curve]
    return {"counts": shown, "curve": losses, "last": _weights(folder / "last"), "files": sorted(p.name for p in folder.iterdir())}


def _chosen():
    """The choice between two trials, of which the second is better after its last step."""
    trials = {run: FOLDER / run for run in ("G-t1-s1", "G-t2-s1")}
    for (_, folder), score in zip(trials.items(), (0.5, 0.6), strict=True):
        folder.mkdir(exist_ok=True)
        write_json(folder / "selection.json", {"looks": [{"step": 4, "scores": {"dev": score}}]})
        Lineage("made", {}, [], RESULTS).write(folder, "made", folder)
    values = {run: {"train.learning_rate": rate} for run, rate in zip(trials, (1e-4, 4e-4), strict=True)}
    out = {"choice": RESULTS / "choices" / "G.json"}
    by = {"task": "sts", "subset": "mono", "metric": "spearman"}
    run("choose", {"system": "G", "by": by, "trials": values}, {"trials": trials}, out)
    return read_json(out["choice"])


def _scored():
    records = read_json(scores()[0]["scores"])["records"]
    found = {f"{r['subset']} {r['metric']}": [r["value"], r["n_items"], r["status"]] for r in records}
    return {"records": found, "keys": sorted(records[0])}


def _stand_in():
    from text_cases import content_digest

    source = "golden"
    entry = {"stand_in": "bitext_tsv", "licence": "CC0-1.0"}
    out = {"x_en-de.tsv": RESULTS / "downloads" / source / "x_en-de.tsv"}
    recipe = {"source": source, "entry": entry, "files": [{"name": "x_en-de.tsv"}]}
    sentences = [path for path in sorted((CATALOG / "resources" / "written").iterdir()) if path.is_file()]
    run("write_stand_in", recipe, {"sentences": sentences}, out)
    return {name: content_digest(path.read_bytes()) for name, path in out.items()}


def _reported():
    """What a report shows, its times left out: headings, and how much there is of what."""
    page = pages()["write_report"]["page"].read_text(encoding="utf-8")
    return {
        "headings": re.findall(r"<h[1-4][^>]*>(.*?)</h", page),
        **{tag: page.count(f"<{tag}") for tag in ("table", "tr", "td", "a ", "img", "p")},
    }


def _share():
    """What one job does alone of a corpus that jobs could share."""
    corpus("verses")
    return run("filter_shards", SHARED, {"files": [FOLDER / "verses.tsv"]}, {"folder": RESULTS / "corpora" / "shared" / "1"})


STAGE = {
    "fetch": (lambda: digest(fetched("nli_en.tsv")[0].read_text(encoding="utf-8")), {"entry": OWN}),
    "write_stand_in": (_stand_in, {"entry": {"stand_in": "bitext_tsv"}}),
    "prepare_encoder": (
        lambda: {"files": sorted(path.name for path in (encoder()[0] / "main").iterdir()), "weights": _weights(encoder()[0])},
        {"entry": {}},
    ),
    "build_corpus": (lambda: [rows(corpus("nli")[0]), corpus("nli")[1], rows(corpus("verses")[0])], {"entry": NLI}),
    "build_evaluation": (lambda: [*map(rows, parts().values()), sts()[1]], {"entry": STS}),
    "build_view": (lambda: [rows(view()[0]), view()[1]], {"entry": {"builder": "code_switch"}}),
    "build_examples": (lambda: [rows(examples()[0]), examples()[1]], {"entry": {"builder": "nli_triplets"}}),
    "tokenise": (lambda: [_tokens(), tokenised()[1]], {}),
    "train_system": (_trained, RECIPE),
    "embed": (lambda: [numbers(row, 3) for row in np.load(embeddings()[0])[:12]], {}),
    "score": (_scored, {"task_entry": TASK}),
    "make_table": (lambda: {form: text_of(path) for form, path in pages()["make_table"].items()}, {}),
    "write_claims": (lambda: {form: text_of(path) for form, path in pages()["write_claims"].items()}, {}),
    "write_overview": (lambda: {form: text_of(path) for form, path in pages()["write_overview"].items()}, {}),
    "measure_overlap": (lambda: {form: text_of(path) for form, path in pages()["measure_overlap"].items()}, {}),
    "count_rows": (lambda: read_json(pages()["count_rows"]["counts"])["records"], {}),
    "draw_figure": (lambda: pages()["draw_figure"]["csv"].read_text(encoding="utf-8"), {"kind": "bars"}),
    "write_report": (_reported, {}),
    "mine_texts": (lambda: [rows(path) for path in mined()[0].values()], {}),
    "mine_embed": (lambda: [numbers(np.load(path)[:3].astype(np.float32), 4) for path in mined()[1].values()], {}),
    "mine_search": (lambda: [numbers(t.double().numpy()) for _, t in sorted(load_file(mined()[2]).items())], {"backend": "exact"}),
    "mine_join": (lambda: mined()[2].stat().st_size, {"backend": "exact"}),
    "mine_calibrate": (_calibrated, {}),
    "mine_pairs": (
        lambda: [[_number(v) for v in line.split("\t")] for line in mined()[3]["tsv"].read_text(encoding="utf-8").splitlines()[:8]],
        {},
    ),
    "choose": (_chosen, {}),
    "filter_shards": (_share, {"entry": SHARED["entry"]}),
}
"""What is kept of each stage, and the recipe that names the implementations which take part."""


def _number(text):
    try:
        return float(text) if "." in text else text
    except ValueError:
        return text


def company(stage):
    """Return the modules that take part in the result of a stage: those of its implementations, and of all stages before it."""
    found: set[str] = set()
    for name, (_, recipe) in STAGE.items():
        own, *others = code_behind(name, recipe, {"sts": TASK} if name == "train_system" else None).values()
        found |= set(others)
        if name == stage:
            return frozenset(found - {own})
        found.add(own)
    raise AssertionError(stage)


def stages(kept):
    """Every stage, once."""
    for stage, (make, _) in STAGE.items():
        yield f"stages/{stage}", "small", Case(make, company(stage))
