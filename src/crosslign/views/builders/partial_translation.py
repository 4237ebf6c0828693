"""Partial translation: exactly one sentence of a pair in another language (PROTOCOLS A.4.2)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from crosslign.views import VIEWS
from crosslign.views.builders._translated import Side, TranslatedView


@VIEWS.register
class PartialTranslation(TranslatedView):
    """Copies of pairs of which exactly one sentence, drawn uniformly, is translated; rows of one sentence are left out.

    Where only one of the two is in `langs`, that one is translated.
    """

    kind = "partial"

    def choose(self, sides: Sequence[Side], row: Mapping[str, Any], draw: random.Random) -> Sequence[Side]:
        """Return one of two sides."""
        able = [side for side in sides if row[side[0]] in self.langs]
        return [able[int(draw.random() * len(able))]] if len(sides) == 2 and able else ()
