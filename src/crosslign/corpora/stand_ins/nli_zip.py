"""Synthetic data for SNLI 1.0 and MultiNLI 1.0: JSON lines of the training and development parts in a zip."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import text_in, triplets_of

DEV_SHARE = 8
"""One triplet in so many goes to the development parts."""
UNDECIDED = "-"
"""Label of a pair on which SNLI's annotators did not agree."""


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> dict[str, bytes]:
    """Return `<name>/<name>_train.jsonl` and the development parts; one pair of each part has no label.

    Args:
        name: `snli_1.0.zip` or `multinli_1.0.zip`.
        sentences: aligned sentences by language.
    """
    stem = name.removesuffix(".zip")
    triplets = triplets_of(sentences)
    names = ("train", "dev_matched", "dev_mismatched") if stem.startswith("multi") else ("train", "dev", "test")
    parts: dict[str, list[str]] = {name: [] for name in names}
    for at, triplet in enumerate(triplets):
        part = names[0] if at % DEV_SHARE else names[1 + at // DEV_SHARE % 2]
        for label, premise, hypothesis in triplet.pairs(triplets[(at + 1) % len(triplets)]):
            texts = {"sentence1": text_in(premise, "en"), "sentence2": text_in(hypothesis, "en")}
            record = {"gold_label": label, **texts, "pairID": f"{at}{label[0]}"}
            parts[part].append(json.dumps(record, ensure_ascii=False))
            if not at:
                parts[part].append(json.dumps({**record, "gold_label": UNDECIDED}, ensure_ascii=False))
    return {f"{stem}/{stem}_{part}.jsonl": lines(rows) for part, rows in parts.items()}
