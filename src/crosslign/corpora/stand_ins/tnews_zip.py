"""Synthetic data for TNEWS of CLUE: Chinese headlines of fifteen classes as JSON lines in a zip."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import text_in

CLASSES = {
    "100": "story", "101": "culture", "102": "entertainment", "103": "sports", "104": "finance", "106": "house", "107": "car",
    "108": "edu", "109": "tech", "110": "military", "112": "travel", "113": "world", "114": "stock", "115": "agriculture", "116": "game",
}  # fmt: skip
SPLITS = ("train", "dev")


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> dict[str, bytes]:
    """Return `train.json` and `dev.json`: label, label_desc, sentence, keywords; the classes take turns."""
    members: dict[str, bytes] = {}
    for at, split in enumerate(SPLITS):
        rows = []
        for number, sentence in enumerate(sentences[at :: len(SPLITS)]):
            label = list(CLASSES)[number % len(CLASSES)]
            rows.append({"label": label, "label_desc": f"news_{CLASSES[label]}", "sentence": text_in(sentence, "zh"), "keywords": ""})
        members[f"{split}.json"] = lines([json.dumps(row, ensure_ascii=False) for row in rows])
    return members
