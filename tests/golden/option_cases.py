"""Golden results of the settings that belong to a stage itself: readouts, trainings, samples of corpora, and how tables print."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
from golden import Case
from made_inputs import FOLDER, cover, project
from number_cases import READOUT, numbers
from stage_cases import (
    NLI,
    PUBLISHED,
    RECIPE,
    RESULTS,
    TABLE,
    TASK,
    company,
    encoder,
    examples,
    fetched,
    pages,
    parts,
    rows,
    run,
    system,
    text_of,
    tokenised,
)

from crosslign.config.resolve import entry_of

BF16 = 0.02
"""How far what 8 bits of mantissa give may lie from the kept number: docs/protocols.md, Tolerance."""
LAYERS = 2
"""Of the encoder that golden results are made with; a deeper layer of the papers is its last."""
TRAININGS = {
    "cosine": {
        "train": {"schedule": "cosine", "clip": 10, "weight_decay": 1e-4, "dropout": 0.1, "epochs": 15},
        "select": {"best": {**RECIPE["select"]["best"], "keep": False}},
    },
    "constant": {"train": {"schedule": "constant", "warmup_share": 0.1, "warmup_steps": 0, "guards": {"not_finite": "mark"}}},
    "of a run": {"base": {"run": "G-s1", "checkpoint": "last"}, "train": {"schedule": "linear"}},
    "bf16": {"train": {"precision": "bf16"}},
    "a budget": {"train": {"budget": 2e8}},
    "micro-batches": {"train": {"auto_micro_batch": True}},
}
"""Settings beside those of the small training; together they have every one that a paper's training has."""


def readouts(kept):
    """Readouts that together have every value of every key that the papers' readouts have."""
    entries = []
    for name, entry in project().readouts.items():
        given = {key: value for key, value in entry.items() if key in READOUT}
        given |= {"layer": min(given["layer"], LAYERS), "max_length": min(given["max_length"], READOUT["max_length"])}
        entries.append(("embed", f"readout {name}", given))
        entries += [("embed", f"readout {name}, {kind}", {**given, "prefix": text}) for kind, text in entry.get("prefixes", {}).items()]
        if "whitening" in entry:
            entries.append(("embed", f"readout {name}, whitened", {**given, "whitening": {**entry["whitening"], "dimensions": 8}}))
    entries.append(("embed", "readout raw", {**READOUT, "normalise": False}))
    for _, label, given in cover("stages", entries, kept):
        near = {"relative": BF16, "absolute": BF16} if given["precision"] == "bf16" else {}
        yield "stages/embed", label, Case(partial(_read, label, given), company("embed"), **near)


def _read(label, given):
    """Return a few vectors of the small evaluation corpus, as one readout gives them."""
    out = RESULTS / "readouts" / f"{label.replace(' ', '_')}.npy"
    recipe = {"run": "tiny", "checkpoint": "base", "text_set": "sts", "readout": "x", "readout_entry": given, "head": {}}
    inputs = {"encoder": encoder()[0], "texts": parts()["texts"]}
    if "whitening" in given:
        plain = RESULTS / "readouts" / "plain.npy"
        raw = {**{key: value for key, value in given.items() if key != "whitening"}, "normalise": False}
        run("embed", {**recipe, "readout_entry": raw}, inputs, {"matrix": plain}, members={"main": str(encoder()[0] / "main")})
        inputs |= {"fitted_matrix": plain, "fitted_texts": parts()["texts"], "fitted_items": parts()["items"]}
    run("embed", recipe, inputs, {"matrix": out}, members={"main": str(encoder()[0] / "main")})
    return [numbers(row, 3) for row in np.load(out).astype(np.float64)[:8]]


def trainings(kept):
    """Trainings that together have every setting of the papers' trainings."""
    for label, changes in TRAININGS.items():
        near = {"relative": BF16, "absolute": BF16} if label == "bf16" else {}
        yield "stages/train_system", f"training {label}", Case(partial(_trained, label, changes), company("train_system"), **near)


def _trained(label, changes):
    recipe = {**RECIPE, **changes, "run_id": f"G-{label}", "train": {**RECIPE["train"], **changes["train"]}}
    base = system()[0] if "run" in recipe["base"] else encoder()[0]
    members = {"main": str(base / "last" / "main" if "run" in recipe["base"] else base / "main")}
    inputs = {"examples": {"nli": examples()[0]}, "base": [base], "selection": {"sts": parts()}}
    more = {"members": members, "tasks": {"sts": TASK}}
    inputs["derived"] = {"nli": tokenised()[0]}
    places = {"checkpoints": str(FOLDER / f"checkpoints-{label}")}
    out = RESULTS / "systems" / f"G-{label.replace(' ', '_')}"
    run("train_system", recipe, inputs, {"folder": out}, **more, **places)
    curve = [json.loads(line) for line in (out / "curve.jsonl").read_text(encoding="utf-8").splitlines()]
    losses = [[point["step"], point["loss"], point["learning_rate"]] for point in curve]
    return {"curve": losses, "files": sorted(path.name for path in out.iterdir())}


def samples(kept):
    """Corpora of which a sample is kept, and a smaller one where the scale wants it."""
    for label, limit in (("a sample", None), ("a smaller limit", 10)):
        yield "stages/build_corpus", label, Case(partial(_sampled, label, limit), company("build_corpus"))


def _sampled(label, limit):
    out, entry = RESULTS / "corpora" / label / "all.parquet", {**NLI, "sample": 20}
    counts = run(
        "build_corpus",
        {"corpus": "nli", "entry": entry, "limit": limit},
        {"files": [fetched("nli_en.tsv")[0]]},
        {"rows": out},
        references=[],
    )
    return [rows(out), counts]


def tables(kept):
    """Tables printed in each of the ways that the papers' tables are."""
    entries = [("make_table", f"print {name}", table["print"]) for name, table in sorted(project().tables.items()) if "print" in table]
    for _, label, given in cover("stages", entries, kept):
        yield "stages/make_table", label, Case(partial(_printed, label, given), company("make_table"))


def _printed(label, given):
    pages()
    kept = RESULTS / "pages"
    out = {form: kept / "printed" / f"{label.replace(' ', '_')}.{form}" for form in ("md", "csv", "tex", "html")}
    table = {**TABLE, "print": given}
    score = kept / "scores" / "G-s1" / "last" / "mean" / "sts.json"
    run("make_table", table, {"scores": [score], "published": []}, out, root=str(kept), published=PUBLISHED)
    return {form: text_of(path) for form, path in out.items()}


def used_settings():
    """Yield every setting of the papers' trainings that is no plain number, and the name of each that is one."""
    for entry in [*(entry_of(project(), name) for name in project().systems), *project().finetunes.values()]:
        for key, value in entry.get("train", {}).items():
            yield key, None if isinstance(value, int | float) and not isinstance(value, bool) else json.dumps(value)


def kept_settings():
    """Yield the settings of the golden trainings, likewise."""
    for changes in [{"train": {}}, *TRAININGS.values()]:
        for key, value in {**RECIPE["train"], **changes["train"]}.items():
            yield key, None if isinstance(value, int | float) and not isinstance(value, bool) else json.dumps(value)
