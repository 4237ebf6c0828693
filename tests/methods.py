"""Small systems of every method, and the training sets that they need: shared by tests of objectives and of the trainer."""

from __future__ import annotations

import pyarrow as pa

from crosslign.files import write_rows

QUEUE = {"kind": "momentum_queue", "size": 12, "momentum": 0.9}
RANKS = {"queue": "queue", "classifier": "gmm", "scores": "scores"}
HEAD = {"kind": "classification", "labels": 2}
EMMA_X = {"queue": QUEUE, "gmm": {"kind": "gaussian_mixture", "learning_rate": 1e-3, "clip": 1.0}, "scores": {"kind": "rank_scores"}}


def term(objective, examples, **options):
    return {"objective": objective, "examples": examples, "batch": 8, **options}


SYSTEMS = {
    "mSimCSE": ([term("infonce", "triplets", projection="mlp")], {"mlp": {"kind": "mlp_train_only"}}),
    "MoCo-BERT with NLI": (
        [
            term("momentum_contrast", "pairs", queue="queue", temperature=0.2, in_batch_keys=True),
            term("cross_entropy", "labelled", part="head", encode="sentences", weight=0.1, batch=4),
        ],
        {"queue": QUEUE, "head": HEAD | {"head": "mlp", "features": "concat"}},
    ),
    "SCL": ([term("cross_entropy", "labelled", part="head"), term("supervised_contrastive", "labelled")], {"head": HEAD}),
    "MVA": ([term("cross_entropy", "labelled", part="head"), term("alignment", "labelled", part="head")], {"head": HEAD}),
    "CL": ([term("cross_entropy", "labelled", part="head"), term("infonce", "labelled", temperature=1.0)], {"head": HEAD}),
    "SCL retrieval": ([term("supervised_contrastive", "labelled", form="retrieval")], {}),
    "MPCL": ([term("multi_positive_infonce", "groups", projection="mlp")], {"mlp": {"kind": "mlp_train_only"}}),
    "EMMA-X 1": (
        [
            term("momentum_contrast", "pairs", queue="queue", temperature=0.2, in_batch_keys=True, own_side_keys=True, weight=0.5),
            term("gmm_ranks", "pairs", classifier="gmm", scores="scores", queue="queue"),
        ],
        EMMA_X,
    ),
    "EMMA-X 2": (
        [
            term("rank_infonce", "pairs", **RANKS, anchor_parallel=0.5),
            term("gmm_ranks", "pairs", **RANKS, anchor_parallel=0.5, labels="encoder"),
        ],
        EMMA_X,
    ),
    "EMMA-X network": ([term("rank_infonce", "pairs", **RANKS)], EMMA_X | {"gmm": {"kind": "rank_network"}}),
    "regression": ([term("cosine_regression", "labelled")], {}),
    "masked language model": (
        [term("masked_language_model", "pairs", head="lm"), term("masked_language_model", "pairs", head="lm", translation=True)],
        {"lm": {"kind": "language_model_head", "learning_rate": 0.05}},
    ),
    "dual encoder": ([term("dual_encoder", "pairs", scale="scale")], {"scale": {"kind": "logit_scale", "initial": 10.0}}),
}


def write_examples(folder, sentence_pairs, pairs_file, groups_file):
    """Write training sets of all shapes; return their paths by name."""
    count = len(sentence_pairs)
    ids = [f"row:{i}" for i in range(count)]
    english, german = ([pair[side] for pair in sentence_pairs] for side in (0, 1))
    common = {"id": ids, "rows": [[i] for i in ids], "a_text": english, "a_lang": ["en"] * count}
    hard = {"c_text": [german[i - 1] if i % 3 else None for i in range(count)], "c_lang": ["de" if i % 3 else None for i in range(count)]}
    triplets = {**common, "b_text": german, "b_lang": ["de"] * count, **hard}
    write_rows(folder / "triplets.parquet", pa.table(triplets), "triplets")
    partner = english[1:] + english[:1]
    views = [
        [{"kind": "full", "lang": "de", "a_text": german[i], "b_text": german[(i + 1) % count]}]
        + [{"kind": "partial", "lang": "de", "a_text": english[i], "b_text": german[(i + 1) % count]}] * (i % 2)
        for i in range(count)
    ]
    labels = [[float(i % 2)] for i in range(count)]
    labelled = {**common, "b_text": partner, "b_lang": ["en"] * count, "label": labels, "views": views}
    schema = pa.table({**labelled, "supervised": [i % 5 > 0 for i in range(count)]})
    write_rows(folder / "labelled.parquet", schema, "labelled_examples")
    return {
        "pairs": pairs_file,
        "groups": groups_file,
        "triplets": folder / "triplets.parquet",
        "labelled": folder / "labelled.parquet",
    }


def recipe(system, terms, parts, steps=6, **changes):
    """Return a resolved recipe; `changes` are of `train`."""
    settings = {
        "steps": steps,
        "learning_rate": 1e-3,
        "schedule": "constant",
        "precision": "fp32",
        "max_length": 16,
        "checkpoint_every": 2,
        "clip": 1.0,
    }
    readout = {"pooling": "mean", "layer": -1, "max_length": 16, "normalise": True, "precision": "fp32", "prefix": ""}
    return {"system": system, "seed": 3, "terms": terms, "parts": parts, "train": settings | changes, "select": {}, "readout": readout}
