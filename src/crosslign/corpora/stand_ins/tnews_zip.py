"""A stand-in for TNEWS of CLUE: Chinese headlines of fifteen classes as JSON lines in a zip."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines, write_archive
from crosslign.corpora.stand_ins._sentences import needed, text_in

CLASSES = {
    "100": "story", "101": "culture", "102": "entertainment", "103": "sports", "104": "finance", "106": "house", "107": "car",
    "108": "edu", "109": "tech", "110": "military", "112": "travel", "113": "world", "114": "stock", "115": "agriculture", "116": "game",
}  # fmt: skip
SPLITS = ("train", "dev")


@STAND_INS.register
def write(dest: Path, file: Mapping[str, Any], sentences: Sequence[Mapping[str, str]]) -> None:
    """Write `train.json` and `dev.json`: label, label_desc, sentence, keywords; the classes take turns.

    Args:
        dest: final path.
        file: the catalog's file.
        sentences: aligned sentences by language.
    """
    needed(sentences, str(file["name"]))
    members: dict[str, bytes] = {}
    for at, split in enumerate(SPLITS):
        rows = []
        for number, sentence in enumerate(sentences[at :: len(SPLITS)]):
            label = list(CLASSES)[number % len(CLASSES)]
            rows.append({"label": label, "label_desc": f"news_{CLASSES[label]}", "sentence": text_in(sentence, "zh"), "keywords": ""})
        members[f"{split}.json"] = lines([json.dumps(row, ensure_ascii=False) for row in rows])
    write_archive(dest, str(file["name"]), members)
