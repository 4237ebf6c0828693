"""Translations kept on disk by engine, version, languages and source text: a rerun translates only what is new."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crosslign.corpora.segments import SortedKeys
from crosslign.files import sha256_text, write_json
from crosslign.registry import since_first
from crosslign.views import TRANSLATORS, Setting, Translator, TranslatorSetting
from crosslign.views.texts import MappedTexts, is_whole, text_keys, write_summed

log = logging.getLogger(__name__)
KEPT_AT_ONCE = 4096
"""Translations that are written together: what a killed job has to do again."""


def one_line(text: str) -> str:
    """Return a text without line breaks or doubled spaces, as every engine gets it."""
    return " ".join(text.split())


def translator_for(setting: Setting, entry: Mapping[str, Any], langs: Sequence[str], targets: Sequence[str]) -> Translator:
    """Return the translator that a view's options name, with its kept translations.

    Args:
        setting: the view.
        entry: `{name: options}`.
        langs, targets: languages to translate from and into.
    """
    ((name, options),) = entry.items()
    given = TranslatorSetting(setting.view, langs, targets, setting.corpora, setting.models)
    translator = TRANSLATORS.get(name, where=setting.view)(given, **(options or {}))  # type: ignore[call-arg]
    identity = translator.identity
    if identity is None or setting.translations is None:
        return translator
    return KeptTranslator(translator, {**identity, **since_first(TRANSLATORS.version(name))}, setting.translations)


class _Pair:
    """The kept translations of one pair of languages: 16 bytes each in memory, their texts on disk."""

    def __init__(self, folder: Path, source: str) -> None:
        self._folder, self._source = folder, source
        self._keys = SortedKeys(np.uint64)
        self._texts = MappedTexts("target")
        for path in sorted(folder.glob("*.arrow")):
            self._map(path)

    def _map(self, path: Path) -> None:
        """Take a file's translations; one that is not as it was written is removed, and its sentences are translated again."""
        start = len(self._texts)
        try:
            if not is_whole(path):
                log.warning("%s is damaged; translating its sentences again", path)
                path.unlink(missing_ok=True)
                return
            table = self._texts.add(path)
        except FileNotFoundError:  # another job found it damaged
            return
        self._keys.add(text_keys(self._source, table["source"].to_pylist()), np.arange(start, len(self._texts)))

    def find(self, texts: Sequence[str]) -> list[str | None]:
        """Return the kept translation of each text, None where there is none."""
        found: list[str | None] = [None] * len(texts)
        for position, number in zip(*(each.tolist() for each in self._keys.find(text_keys(self._source, texts))), strict=True):
            found[position] = self._texts.get(number)
        return found

    def keep(self, texts: Sequence[str], translations: Sequence[str]) -> None:
        """Write new translations as a file of their own, so that jobs that run at once do not meet."""
        name = hashlib.sha256("\x1f".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:20]
        there = sorted(self._folder.glob(f"{name}-*.arrow"))
        columns = {"source": pa.array(texts, pa.string()), "target": pa.array(translations, pa.string())}
        self._map(there[0] if there else write_summed(self._folder, name, columns))


class KeptTranslator:
    """A translator that is asked only for what it has not translated before.

    Args:
        translator: the engine.
        identity: its identity.
        folder: folder of all kept translations; each engine, version and setting has a folder of its own below it.
    """

    def __init__(self, translator: Translator, identity: Mapping[str, Any], folder: Path) -> None:
        self._translator = translator
        self.identity: Mapping[str, Any] | None = identity
        digest = sha256_text(json.dumps(identity, sort_keys=True, ensure_ascii=False))[:12]
        self._folder = Path(folder) / f"{identity['engine']}-{digest}"
        self._pairs: dict[tuple[str, str], _Pair] = {}

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str | None]:
        """Return the translation of each text; new ones are written every few thousand."""
        pair = self._pair(source, target)
        found = pair.find(texts)
        new = [text for text, known in zip(texts, found, strict=True) if known is None]
        log.info("%s → %s: %s sentences, %s of them new", source, target, f"{len(texts):,}", f"{len(new):,}")
        made: dict[str, str | None] = {}
        for start in range(0, len(new), KEPT_AT_ONCE):
            part = new[start : start + KEPT_AT_ONCE]
            translated = dict(zip(part, self._translator.translate(part, source, target), strict=True))
            made |= translated
            there = {text: translation for text, translation in translated.items() if translation is not None}
            if there:
                pair.keep(list(there), list(there.values()))
        return [made.get(text) if known is None else known for text, known in zip(texts, found, strict=True)]

    def _pair(self, source: str, target: str) -> _Pair:
        if (source, target) not in self._pairs:
            if not (self._folder / "about.json").exists():
                write_json(self._folder / "about.json", dict(self.identity or {}))
            self._pairs[source, target] = _Pair(self._folder / f"{source}-{target}", source)
        return self._pairs[source, target]
