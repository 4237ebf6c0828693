"""Questions with two answers, in the form of COPA."""

from __future__ import annotations

import json
from collections.abc import Sequence

from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import Triplet, text_in

KINDS = ("effect", "cause")


def copa_lines(triplets: Sequence[Triplet], lang: str) -> bytes:
    """Return questions as JSON lines: what follows from a premise is right, what contradicts it wrong; the right one changes its place."""
    rows = []
    for at, triplet in enumerate(triplets):
        choices = [text_in(triplet.entailed, lang), text_in(triplet.contradicting, lang)]
        label = at // 2 % 2
        first, second = choices[::-1] if label else choices
        record = {"premise": text_in(triplet.premise, lang), "choice1": first, "choice2": second, "question": KINDS[at % 2]}
        rows.append(json.dumps({**record, "label": label, "idx": at}, ensure_ascii=False))
    return lines(rows)
