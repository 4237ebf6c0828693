"""Masked tokens of a sentence, for masked language modelling (docs/papers/emma_x.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crosslign.encoders.model import Member
from crosslign.encoders.tokens import Ids
from crosslign.errors import InputError

HIDDEN: Final = 0.8
"""Share of the masked tokens in whose place the mask token stands; half of the others are tokens drawn at random, half stay (BERT)."""


@dataclass(frozen=True)
class Picked:
    """Masked tokens of one sentence: their places, int64 [m], and what they were, int32 [m]."""

    places: NDArray[np.int64]
    ids: Ids


def masked_tokens(ids: Ids, member: Member, share: float, draw: np.random.Generator) -> tuple[Ids, Picked]:
    """Return a sentence with masked tokens, and which they were.

    Args:
        ids: of the sentence, special tokens included; these are never masked.
        member: whose tokenizer made them.
        share: of the other tokens that are masked, each drawn by itself.
        draw: of the step.

    Raises:
        InputError: the tokenizer has no mask token.
    """
    mask = getattr(member.tokenizer, "mask_token_id", None)
    if mask is None:
        raise InputError("this encoder has no mask token", where="masked_language_model", do="Choose a base encoder like BERT")
    known = min(len(member.tokenizer), int(getattr(member.backbone.config, "vocab_size", 1 << 30)))
    drawn, fate, others = draw.random(len(ids)), draw.random(len(ids)), draw.integers(known, size=len(ids))
    places = np.flatnonzero((drawn < share) & ~np.isin(ids, member.special_ids_on_host))
    changed = ids.copy()
    changed[places] = np.where(fate < HIDDEN, mask, np.where(fate < (1 + HIDDEN) / 2, others, ids))[places]
    return changed, Picked(places, ids[places])
