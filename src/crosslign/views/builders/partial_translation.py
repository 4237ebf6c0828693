"""Partial translation: exactly one sentence of a pair in another language (docs/papers/scl.md)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from crosslign.options import Langs, Positive
from crosslign.views import VIEWS, Setting
from crosslign.views.builders._translated import OneTranslator, Side, TranslatedView

Replace = Literal["random", "first", "second"]


@VIEWS.register(version=1)
class PartialTranslation(TranslatedView):
    """Copies of pairs of which exactly one sentence is translated; rows of one sentence are left out.

    Args:
        setting: the view.
        translator: `{name: options}` of the engine.
        targets: languages to translate into; each copy's is drawn.
        langs: languages of the sentences to translate.
        views: copies of each row.
        replace: `random`: one of the two, drawn uniformly, or the one that is in `langs` where only one is; `first` or `second`:
            always that one. The paper does not say which.
    """

    kind = "partial"

    def __init__(
        self,
        setting: Setting,
        *,
        translator: OneTranslator,
        targets: Langs,
        langs: Langs = ("en",),
        views: Positive = 1,
        replace: Replace = "random",
    ) -> None:
        super().__init__(setting, translator=translator, targets=targets, langs=langs, views=views)
        self.replace = replace

    def choose(self, sides: Sequence[Side], row: Mapping[str, Any], draw: random.Random) -> Sequence[Side]:
        """Return one of two sides."""
        wanted = sides if self.replace == "random" else [sides[get_args(Replace).index(self.replace) - 1]] if len(sides) == 2 else []
        able = [side for side in wanted if row[side[0]] in self.langs]
        return [able[int(draw.random() * len(able))]] if len(sides) == 2 and able else ()
