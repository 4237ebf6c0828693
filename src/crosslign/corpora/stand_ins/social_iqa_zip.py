"""Synthetic data for Social IQa: contexts, questions with three answers, and files of labels, in a zip."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import text_in, triplets_of

SPLITS = ("train", "dev")
QUESTION = "What is true then?"


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> dict[str, bytes]:
    """Return `socialiqa-train-dev/<split>.jsonl` and `<split>-labels.lst`; labels count from 1."""
    triplets = triplets_of(sentences)
    rows: dict[str, list[str]] = {split: [] for split in SPLITS}
    keys: dict[str, list[str]] = {split: [] for split in SPLITS}
    for at, triplet in enumerate(triplets):
        split, following = SPLITS[at % 2], triplets[(at + 1) % len(triplets)]
        answers = [text_in(side, "en") for side in (triplet.entailed, triplet.contradicting, following.contradicting)]
        label = at // 2 % len(answers)
        answers = [*answers[1 : label + 1], answers[0], *answers[label + 1 :]]
        named = {f"answer{letter}": answer for letter, answer in zip("ABC", answers, strict=True)}
        rows[split].append(json.dumps({"context": text_in(triplet.premise, "en"), "question": QUESTION, **named}))
        keys[split].append(str(label + 1))
    members = {f"socialiqa-train-dev/{split}.jsonl": lines(part) for split, part in rows.items()}
    members |= {f"socialiqa-train-dev/{split}-labels.lst": lines(part) for split, part in keys.items()}
    return members
