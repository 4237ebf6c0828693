"""Full translation: every sentence of a row in one other language (docs/papers/scl.md)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from crosslign.views import VIEWS
from crosslign.views.builders._translated import Side, TranslatedView


@VIEWS.register(version=1)
class FullTranslation(TranslatedView):
    """Copies whose sentences are all translated into one language; rows with a sentence outside `langs` are left out.

    Args:
        setting: the view.
        translator: `{name: options}` of the engine.
        targets: languages to translate into; each copy's is drawn.
        langs: languages of the sentences to translate.
        views: copies of each row.
    """

    kind = "full"

    def choose(self, sides: Sequence[Side], row: Mapping[str, Any], draw: random.Random) -> Sequence[Side]:
        """Return all sides."""
        return sides if all(row[lang] in self.langs for lang, _ in sides) else ()
