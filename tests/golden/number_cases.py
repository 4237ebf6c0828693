"""Golden results of what makes numbers: scorers, losses, parts, encoders' formats, searches, translators, figures."""

from __future__ import annotations

import csv
import functools
import json
import sys
from functools import partial
from pathlib import Path

import numpy as np
import torch
from golden import Case
from made_inputs import FOLDER, ITEMS, ROOT, behind_corpora, cover, digest, evaluation, project, vectors

from crosslign.config.figures import figure_inputs
from crosslign.config.resolve import entry_of
from crosslign.config.signatures import IMPLEMENTATIONS
from crosslign.encoders.encode import encode
from crosslign.encoders.formats import FORMATS
from crosslign.encoders.model import Model
from crosslign.encoders.prepare import prepare_encoder
from crosslign.files import write_json
from crosslign.mining.backends import BACKENDS
from crosslign.mining.lists import State
from crosslign.objectives import OBJECTIVES
from crosslign.objectives.contract import Batch, ids_of, plan_of
from crosslign.registry import options_of
from crosslign.reporting.figures._draw import draw
from crosslign.tasks.score import score_with_resamples
from crosslign.training.terms import build_parts

for _folder in ("tests", "tests/unit/encoders", "tests/unit/views"):
    sys.path.insert(0, str(ROOT / _folder))
import e5s1_file  # noqa: E402
import laser_file  # noqa: E402
from small_data import SENTENCES, TINY  # noqa: E402

READOUT = {"pooling": "mean", "layer": -1, "max_length": 24, "normalise": True, "precision": "fp32", "prefix": ""}
TEXTS = [text for pair in SENTENCES[:6] for text in pair]
BATCH = 6


def numbers(values, shown=6) -> list:
    """Return a few numbers that stand for many: the first ones, the sum, and the sum of squares."""
    flat = np.asarray(values, np.float64).ravel()
    return [*map(float, flat[:shown]), float(flat.sum()), float((flat**2).sum())]


def scorers(kept):
    """Tasks that together use every option of every scorer, on vectors that are functions of their names."""
    entries = [(e["scorer"], name, options_of("tasks", e)) for name, e in project().tasks.items() if _had(e["texts"].values())]
    entries.sort(key=lambda one: sum(len(project().corpora[name].get("langs", ())) for name in project().tasks[one[1]]["texts"].values()))
    for scorer, label, _ in cover("tasks.scorers", entries, kept):
        others = behind_corpora(project().tasks[label]["texts"].values())
        yield f"tasks.scorers/{scorer}", label, Case(partial(_scores, label), frozenset(others))


def _had(corpora) -> bool:
    from text_cases import _read

    return all(_read(name) for name in corpora)


def _scores(task):
    entry = dict(project().tasks[task])
    sets = {role: evaluation(name) for role, name in entry["texts"].items()}
    size = {"multiple_choice": 1}.get(entry["scorer"], 24 if entry.get("output") == "logits" else 16)
    outputs = {role: vectors(task, role, rows=found.texts.num_rows, size=size) for role, found in sets.items()}
    if "resamples" in options_of("tasks", entry) or entry["scorer"] in ("sts", "retrieval"):
        entry["resamples"] = 10
    scored = [record for record, _ in score_with_resamples(task, entry, outputs, sets)]
    shown = [r for r in scored if r.main] + scored[:: max(1, len(scored) // 8)]
    lines = {f"{r.subset} {r.metric} {r.direction} {r.protocol}": [r.value, r.n_items, r.ci_low, r.ci_high, r.status] for r in shown}
    return {"records": lines, "all": numbers([r.value for r in scored if r.value is not None], 0), "number": len(scored)}


@functools.cache
def tiny() -> Path:
    """Return the folder of a prepared encoder of two blocks, random weights."""
    path = FOLDER / "sentences.tsv"
    path.write_text("".join(f"{en}\t{de}\n" for en, de in SENTENCES), encoding="utf-8")
    prepare_encoder("tiny", {"construct": TINY}, {"sentences.tsv": path}, FOLDER / "tiny")
    return FOLDER / "tiny"


@functools.cache
def model() -> Model:
    return Model.load({"main": tiny() / "main"})


BORROWED = (
    {"loss": "CoSENTLoss", "options": {"scale": 10.0}, "examples": "ex_qe_rows"},
    {
        "loss": "MatryoshkaLoss",
        "options": {"loss": "MultipleNegativesSymmetricRankingLoss", "matryoshka_dims": [32, 8]},
        "examples": "en_zh",
    },
    {"part": "weights", "pooling": "cls", "layer": 1, "examples": "ex_qe_rows"},
)
"""Losses of sentence-transformers, which no paper's system names."""


def _recipes():
    weights = {"kind": "loss_weights", "loss": "SoftmaxLoss", "options": {"num_labels": 2}}
    yield "borrowed", {"weights": weights}, [{"objective": "sentence_transformers_loss", **term} for term in BORROWED]
    found = {**{name: entry_of(project(), name) for name in project().systems}, **project().finetunes}
    for name, entry in found.items():
        yield name, entry.get("parts", {}), entry["terms"]


def _named(options, parts):
    """Return options with parts by their kinds and settings instead of their names."""
    return {key: _part(parts[value]) if isinstance(value, str) and value in parts else value for key, value in options.items()}


def _part(entry):
    """Return the entry of a part, small, and not taken over from a system that is not there."""
    entry = {key: value for key, value in entry.items() if key != "start_from"}
    return {**entry, "size": min(entry["size"], 16)} if "size" in entry else entry


def terms(kept):
    """Terms that together use every option of every objective, with their parts: values, gradients and parts after three steps."""
    entries, made = [], {}
    for name, parts, listed in _recipes():
        for number, term in enumerate(listed):
            options = options_of("terms", term)
            label = f"{name} {term['objective']} {number} {term.get('temperature', '')}".strip()
            made[label] = term, parts
            entries.append((term["objective"], label, {**_named(options, parts), " rows": _shape(term["examples"])}))
    for objective, label, _ in cover("objectives.terms", entries, kept):
        term, parts = made[label]
        used = {name: _part(parts[name]) for name in parts if name in options_of("terms", term).values()}
        behind = {f"crosslign.objectives.parts.{part['kind']}" for part in used.values()}
        yield f"objectives.terms/{objective}", label, Case(partial(_losses, term, used), frozenset(behind))
        for part in used.values():
            own = f"crosslign.objectives.parts.{part['kind']}"
            others = behind - {own} | {f"crosslign.objectives.terms.{objective}"}
            yield f"objectives.parts/{part['kind']}", label, Case(partial(_states, term, used, part["kind"]), frozenset(others))


def _shape(examples) -> str:
    """Return what the rows of a training set hold: its builder's shape, `views` where they have some, `single` where one side."""
    entry = project().examples[examples]
    if "of" in entry:
        return _shape(entry["of"][0])
    if any(name in project().views for name in entry["from"]) and entry["builder"] == "labelled_rows":
        return "views"
    declared = IMPLEMENTATIONS["example_builders"][entry["builder"]]
    return "single" if entry["builder"] in ("monolingual", "dropout_pairs") else str(declared.facts["shape"])


def _batch(shape, step, labels):
    """Return rows of one shape; some sentences come twice, some rows have no hard negative, no label or one view less."""
    rows = range(BATCH * step, BATCH * step + BATCH)
    english, german = ([SENTENCES[row % 4 + step][side] for row in rows] for side in (0, 1))
    columns = {"a_text": english, "a_lang": ["en"] * BATCH}
    second = {"b_text": [None] * BATCH, "b_lang": [None] * BATCH} if shape == "single" else {"b_text": german, "b_lang": ["de"] * BATCH}
    hard = {"c_text": [*german[1:], None], "c_lang": ["de"] * (BATCH - 1) + [None]}
    groups = {"texts": [list(pair) for pair in zip(english, german, strict=True)], "langs": [["en", "de"]] * BATCH}
    graded = {"label": [[float(row % labels)] for row in rows], "group": [f"g{row // 2}" for row in rows]}
    graded["supervised"] = [row % 5 > 0 for row in rows]
    kinds = ("full", "partial", "code_switch")
    view = lambda n, kind: {"kind": kind, "lang": "de", "a_text": german[n], "b_text": german[n - 1]}  # noqa: E731
    views = {"views": [[view(n, kind) for kind in kinds[: 3 - n % 2]] for n in range(BATCH)]}
    both = columns | second
    held = {"triplets": both | hard, "groups": both | groups | hard, "labelled": both | graded, "views": both | graded | views}
    return Batch([f"x:{row}" for row in rows], held.get(shape, both), step)


@functools.cache
def _steps(text: str):
    """Return losses, gradients and parts of three steps of one term; `text` is JSON of the term and its parts."""
    term, used = json.loads(text)
    torch.manual_seed(0)
    recipe = {"system": "golden", "seed": 1, "parts": used, "terms": [term], "readout": READOUT}
    parts = build_parts(recipe, model())
    objective = OBJECTIVES.get(term["objective"])(**options_of("terms", term))
    labels = max((part.get("labels", 2) for part in used.values() if part["kind"] == "classification"), default=2)
    found = []
    for step in range(3):
        batch = _batch(_shape(term["examples"]), step, max(2, labels))
        asked = plan_of(term["objective"], objective, batch, torch.Generator().manual_seed(step))
        given = {}
        for name, one in asked.items():
            made = vectors(name, step, rows=len(one.texts), size=TINY["hidden"])
            given[name] = torch.tensor(made, requires_grad=not one.keys)
            if one.masked:
                given[ids_of(name)] = torch.arange(len(made)) % 7
        for part in parts.values():
            part.before_keys()
        loss = objective.loss(given, batch, parts)
        free = [one for one in given.values() if one.requires_grad]
        grads = torch.autograd.grad(loss.total, free, allow_unused=True) if loss.total.requires_grad else ()
        found.append(
            {
                "loss": float(loss.total.detach()),
                "logged": {name: float(value) for name, value in sorted(loss.logged.items())},
                "asked": {name: [len(one.texts), digest(list(one.texts)), one.pooling, one.layer] for name, one in sorted(asked.items())},
                "gradient": [numbers(g.numpy(), 2) for g in grads if g is not None],
            }
        )
        for part in parts.values():
            part.commit({name: one.detach() for name, one in given.items()})
    states = {name: _summed(part.state_dict()) for name, part in parts.items()}
    return found, {used[name]["kind"]: state for name, state in states.items()}


def _summed(state) -> dict[str, list]:
    """Return sums over the tensors of a part, by the first word of their names."""
    firsts = dict.fromkeys(key.split(".")[0] for key in state)
    joined = {first: [value.double().ravel() for key, value in state.items() if key.split(".")[0] == first] for first in firsts}
    return {first: numbers(torch.cat(values).numpy(), 2) for first, values in joined.items()}


def _losses(term, used):
    return _steps(json.dumps([term, used]))[0]


def _states(term, used, kind):
    return _steps(json.dumps([term, used]))[1][kind]


def formats(kept):
    """A tiny encoder in each published form: its files, and vectors of some sentences."""
    for name, make in (("transformers_folder", _folder), ("torch_weights", _weights), ("laser", _laser), ("e5s1", _e5s1)):
        yield f"encoders.formats/{name}", "tiny", Case(partial(_prepared, name, make))


def _folder() -> Path:
    return tiny() / "main"


def _weights() -> Path:
    import shutil

    from safetensors.torch import load_file

    folder = FOLDER / "weights" / "checkpoint"
    shutil.copytree(tiny() / "main", folder, ignore=shutil.ignore_patterns("*.safetensors", "modules.json", "[0-9]_*"))
    torch.save(
        {f"bert.{name}": value for name, value in load_file(tiny() / "main" / "model.safetensors").items()}, folder / "pytorch_model.bin"
    )
    return folder


def _laser() -> Path:
    folder = FOLDER / "laser"
    pieces = laser_file.train_pieces("unigram")
    laser_file.write_files(folder, laser_file.build_content(pieces), pieces)
    return folder


def _e5s1() -> Path:
    path = FOLDER / "tiny.e5s1"
    path.write_bytes(e5s1_file.build_file()[0])
    return path


def _prepared(name, make):
    out = FOLDER / f"{name}-prepared"
    out.mkdir()
    FORMATS.get(name)(make(), out)
    if name == "laser":
        from crosslign.encoders.laser import register

        register()
    made = encode(
        Model.load({"main": out}),
        TEXTS,
        ["en"] * len(TEXTS),
        {**READOUT, "pooling": "max" if name == "laser" else "mean", "max_length": 16},
    )
    return {"files": sorted(path.name for path in out.iterdir() if path.is_file()), "vectors": [numbers(row, 3) for row in made]}


def backends(kept):
    """Nearest neighbours of a few hundred vectors."""
    for name in BACKENDS.names():
        yield f"mining.backends/{name}", "300 by 200", Case(partial(_search, name))


def _search(name):
    paths = [FOLDER / f"{side}.npy" for side in ("source", "target")]
    for path, rows in zip(paths, (300, 200), strict=True):
        np.save(path, vectors(path.name, rows=rows))
    options = {"nlist": 4, "m": 4, "nbits": 4, "nprobe": 4, "sample": 50, "k_factor": 8} if name == "faiss_ivf_pq" else {}
    near = BACKENDS.get(name)(*paths, 4, devices=["cpu"], state=State(FOLDER / f"search-{name}"), **options)
    # An approximate search finds what its library's version finds: its recall stands for it.
    if name == "faiss_ivf_pq":
        return {"recall above 0.9": near.recall > 0.9, "shape": list(near.forward_indices.shape)}
    return {
        side: [digest(getattr(near, f"{side}_indices").tolist()), numbers(getattr(near, f"{side}_scores"))]
        for side in ("forward", "backward")
    }


def translators(kept):
    """A tiny random model through both engines that read it."""
    for name in ("transformers", "ctranslate2"):
        yield f"views.translators/{name}", "tiny", Case(partial(_translated, name))


@functools.cache
def _marian() -> Path:
    import test_transformers_translator as module

    class Places:
        def mktemp(self, name):
            (FOLDER / name).mkdir()
            return FOLDER / name

    return module.folder.__wrapped__(Places()) if hasattr(module.folder, "__wrapped__") else module.folder.__pytest_wrapped__.obj(Places())


def _translated(engine):
    import test_transformers_translator as module

    folder = _marian()
    return {beam: module.translator(folder, engine, beam=beam).translate(module.TEXTS, "en", "de") for beam in (1, 3)}


def figures(kept):
    """Figures of the papers that together use every option of every kind: their numbers."""
    entries = [(e["kind"], name, _looks(e)) for name, e in project().figures.items() if _had([e["text_set"]] if "text_set" in e else [])]
    for kind, label, _ in cover("reporting.figures", entries, kept):
        others = behind_corpora([project().figures[label]["text_set"]] if "text_set" in project().figures[label] else [])
        yield f"reporting.figures/{kind}", label, Case(partial(_drawn, label), frozenset(others))


def _looks(entry):
    named = (
        "title",
        "caption",
        "from",
        "labels",
        "cells",
        "text_set",
        "against",
        "against_labels",
        "langs",
        "names",
        "readout",
        "x",
        "x_label",
    )
    return {key: value for key, value in entry.items() if key not in named}


def _drawn(name):
    entry = {**project().figures[name]}
    inputs = figure_inputs(project(), name)["inputs"]
    if entry["kind"] == "tsne":  # it takes minutes for many points
        entry["groups"], inputs["panels"] = 6, inputs["panels"][:1]
        entry |= {"marked": [mark % 6 for mark in entry["marked"]][:2]} if "marked" in entry else {}
    folder = FOLDER / "figures" / name
    if "text_set" in entry:
        found = evaluation(entry["text_set"])
        found.write({part: folder / f"{part}.parquet" for part in ("texts", "items", "gold")})
        inputs |= {part: str(folder / f"{part}.parquet") for part in ("texts", "items")}
    for number, panel in enumerate([*inputs["panels"], *(p["against"] for p in inputs["panels"] if "against" in p)]):
        panel.pop("reason", None)
        if "text_set" in entry:
            np.save(folder / f"{number}.npy", vectors(name, number, rows=found.texts.num_rows))
            panel["matrix"] = str(folder / f"{number}.npy")
        elif "cells" in panel:
            panel["cells"] = [_cell(folder, number, at, cell) for at, cell in enumerate(panel["cells"])]
        else:
            lines = [{"step": step, "loss": 1 / step, "learning_rate": step * 1e-5} for step in (1, 2, 4)]
            (folder / f"{number}.jsonl").parent.mkdir(parents=True, exist_ok=True)
            (folder / f"{number}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
            panel["curve"] = str(folder / f"{number}.jsonl")
    inputs["results"] = str(folder)
    out = {form: folder / f"figure.{form}" for form in ("png", "svg", "csv")}
    draw(entry, inputs, out)
    with open(out["csv"], encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    left_out = ("x", "y") if entry["kind"] == "tsne" else ()  # places on the map are not repeatable from machine to machine
    kept = [at for at, column in enumerate(rows[0]) if column not in left_out]
    return {"header": rows[0], "rows": len(rows), "first": [[_number(row[at]) for at in kept] for row in rows[1:6]]}


def _number(value):
    try:
        return float(value)
    except ValueError:
        return value


def _cell(folder, number, at, cell):
    select = cell.get("select") or {"task": "t", "subset": "s", "metric": "m", "direction": "", "protocol": ""}
    value = float(vectors(number, at, rows=1, size=1)[0, 0] % 1)
    record = {"eval": select["task"], **{k: select.get(k, "") for k in ("subset", "metric", "direction", "protocol")}, "value": value}
    write_json(
        folder / "scores" / f"{number}-{at}.json",
        {"records": [{**record, "ci_low": value - 0.1, "ci_high": value + 0.1, "n_items": ITEMS}]},
    )
    return {"scores": [f"scores/{number}-{at}.json"], "select": select}
