"""OpusFilter's CharacterScoreFilter, with the scripts looked up by language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from crosslign.corpora.filters import FILTERS, Column, Mask, Setting, SideRule
from crosslign.corpora.filters._columns import FIRST_SCRIPT, NO_SCRIPT, SCRIPT_NAMES
from crosslign.errors import InputError
from crosslign.languages import scripts_of
from crosslign.options import Share
from crosslign.registry import nearest


@FILTERS.register(version=1)
class CharacterScript(SideRule):
    """Keep sentences of which at least `min_share` of the letters belong to the scripts of their language.

    Args:
        setting: the corpus.
        min_share: least share of alphabetic characters, 0 to 1.
        scripts: scripts of a language, by their Unicode names, instead of all in which it is written (`{sr: [Latin]}`).

    Raises:
        InputError: no such script; names the nearest. A language without a script.
    """

    def __init__(self, setting: Setting, *, min_share: Share = 0.9, scripts: Mapping[str, Sequence[str]] | None = None) -> None:
        super().__init__(setting)
        self.min_share = min_share
        self._scripts = {lang: tuple(names) for lang, names in (scripts or {}).items()}
        if bare := [lang for lang, names in self._scripts.items() if not names]:
            raise InputError(f"{bare[0]} has no script", where="character_script", do="Name one, or remove the language from `scripts`")
        for name in {name for names in self._scripts.values() for name in names} - set(SCRIPT_NAMES):
            raise InputError(f"unknown script {name!r}", where="character_script", why=nearest(name, sorted(SCRIPT_NAMES)))

    def _of(self, lang: str) -> tuple[str, ...]:
        """Return the scripts that a language may have here."""
        return self._scripts.get(lang, scripts_of(lang))

    def accept(self, side: Column) -> Mask:
        """Return which sentences have enough letters of the expected scripts; one without letters has."""
        return self.share(side) >= self.min_share

    def share(self, side: Column) -> NDArray[np.float64]:
        """Return the share of each sentence's letters that belong to the scripts of its language; 1 without letters."""
        letters = side.lengths - side.count(side.scripts == NO_SCRIPT)
        shares = np.ones(len(side))
        langs = {lang for lang in side.langs if lang is not None}
        for scripts in {self._of(lang) for lang in langs}:
            foreign = np.ones(256, bool)
            foreign[[NO_SCRIPT, *(SCRIPT_NAMES.index(script) + FIRST_SCRIPT for script in scripts)]] = False
            good = letters - side.count(foreign[side.scripts])
            mine = (letters > 0) & side.by_language(lambda lang, scripts=scripts: self._of(lang) == scripts)  # type: ignore[misc]
            shares[mine] = (good / np.maximum(letters, 1))[mine]
        return shares
