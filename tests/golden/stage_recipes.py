"""Entries and recipes of the small line of data that the golden results of stages are made on."""

from made_inputs import FOLDER
from number_cases import READOUT

from crosslign.config.entry_keys import TRAIN_DEFAULTS
from crosslign.paths import CATALOG

RESULTS = FOLDER / "results" / "golden"
OWN = {"local": str(CATALOG / "resources" / "written"), "licence": "CC0-1.0"}
NLI = {"kind": "labelled", "reader": "nli_tsv", "langs": ["en"], "labels": ["entailment", "neutral", "contradiction"], "licence": "CC0-1.0"}
NLI |= {"filters": [{"identical_pair": {}}, {"length": {"min_words": 2}}]}
VERSES = {
    "kind": "bitext",
    "reader": "tsv",
    "langs": ["en", "de"],
    "options": {"columns": {"1": "a_text", "2": "b_text"}},
    "licence": "CC0-1.0",
}
SHARED = {"corpus": "shared", "entry": {**VERSES, "filters": [{"length": {"min_words": 4}}]}, "limit": 20, "part": 1, "parts": 1}
STS = {
    "kind": "evaluation",
    "reader": "sts_tsv",
    "options": {"pairs": ["en-en", "de-de", "en-de"]},
    "langs": ["en", "de"],
    "licence": "CC0-1.0",
}
TASK = {"scorer": "sts", "texts": {"test": "sts"}, "output": "vectors", "main": {"metric": "spearman", "subset": "mono"}, "resamples": 20}
TASK |= {"averages": {"mono": ["en-en", "de-de"], "cross": ["en-de"]}}
TRAIN = {
    **TRAIN_DEFAULTS,
    "steps": 4,
    "learning_rate": 1e-3,
    "max_length": 24,
    "precision": "fp32",
    "warmup_steps": 1,
    "weight_decay": 0.01,
}
RECIPE = {
    "system": "G",
    "run_id": "G-s1",
    "paper": "golden",
    "scale": "golden",
    "seed": 1,
    "base": {"members": {"main": "tiny"}},
    "parts": {"mlp": {"kind": "mlp_train_only"}},
    "terms": [{"objective": "infonce", "weight": 1.0, "examples": "nli", "batch": 8, "temperature": 0.05, "projection": "mlp"}],
    "train": TRAIN,
    "select": {"best": {"task": "sts", "subset": "mono", "metric": "spearman", "every": 2}},
    "readout": READOUT,
    "dev_readouts": {"sts": {"test": READOUT}},
}
SELECT = {"task": "sts", "metric": "spearman", "direction": "", "protocol": ""}
TABLE = {
    "id": "g",
    "paper": "golden",
    "scale": "golden",
    "stand_in": False,
    "encoders": {},
    "title": "Golden",
    "caption": "Small.",
    "footnotes": [],
    "print": {"decimals": 1, "scale_by": 100},
    "rows": [{"label": "G", "system": "G"}, {"label": "none", "reason": "no weights"}],
    "columns": [{"label": "mono", "task": "sts", "subset": "mono", "metric": "spearman"}, {"label": "again", "mean_of": ["mono"]}],
    "cells": [
        [{"scores": ["scores/G-s1/last/mean/sts.json"], "select": {**SELECT, "subset": "mono"}}, {"mean_of": ["mono"]}],
        [{"reason": "no weights"}, {"reason": "no weights"}],
    ],
}
PUBLISHED = str(FOLDER / "published")
_SIDES = {
    side: {"row": side, "place": at, "cells": [{"scores": [f"scores/{side}.json"], "select": SELECT}]} for at, side in enumerate("ab")
}
_COMPARED = {"table": "t", "columns": ["x"], "places": [0], "sign": 1, "scale_by": 100, "better": _SIDES["a"], "worse": _SIDES["b"]}
_CLAIM = {"paper": "scl", "place": "table 1", "says": "One row beats another.", "could_explain": "Scale could."}
CLAIMS = {
    "title": "Golden",
    "tables": {},
    "claims": [
        {"id": "gone", **_CLAIM, "equal": _COMPARED},
        {"id": "said", **_CLAIM, "equal": {"table": "t", "reason": "no public weights"}},
    ],
}
OVERVIEW = {"tables": [TABLE], "figures": [], "scale": "golden", "stand_in": False}
