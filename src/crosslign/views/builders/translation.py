"""Translated views, looked up in aligned corpora: no translator is needed (PROTOCOLS A.4.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa

from crosslign.corpora.columns import SIDES, kind_of
from crosslign.corpora.sampling import generator
from crosslign.errors import InputError
from crosslign.files import iter_rows
from crosslign.views import VIEWS, Setting

Translations = Mapping[str, Sequence[str]]


class _Meanings:
    """Which sentences mean the same, found by their very text, as SCL's translate-train files are joined.

    Sentences mean the same that are the two sides of a bitext's row, of one group of a multiway corpus, or the same side of
    labelled rows of equal group, label and place among the rows of their language.
    """

    def __init__(self) -> None:
        self._of: dict[tuple[str, str], list[int]] = {}
        self._members: list[dict[str, list[str]]] = []
        self._numbers: dict[tuple[str, ...], int] = {}

    def add(self, corpus: str, batches: Iterator[pa.Table]) -> None:
        places: Counter[tuple[str, ...]] = Counter()
        for batch in batches:
            kind = kind_of(batch.column_names)
            for row in batch.to_pylist():
                for n, (lang, text) in enumerate(SIDES[kind]):
                    if row[text] is not None:
                        self._note(self._key(corpus, kind, row, n, places), row[lang], row[text])
                if kind == "labelled":
                    places[self._item(corpus, row)] += 1

    def _item(self, corpus: str, row: Mapping[str, Any]) -> tuple[str, ...]:
        return corpus, row["group"] or row["id"], str(row["label"]), row["a_lang"]

    def _key(self, corpus: str, kind: str, row: Mapping[str, Any], side: int, places: Counter[tuple[str, ...]]) -> tuple[str, ...]:
        if kind == "labelled":
            item = self._item(corpus, row)
            return (*item[:3], str(places[item]), str(side))
        return corpus, row["group"] if kind == "multiway" else row["id"]

    def _note(self, key: tuple[str, ...], lang: str, text: str) -> None:
        number = self._numbers.setdefault(key, len(self._members))
        if number == len(self._members):
            self._members.append({})
        texts = self._members[number].setdefault(lang, [])
        if text not in texts:
            texts.append(text)
            self._of.setdefault((lang, text), []).append(number)

    def of(self, lang: str, text: str) -> Translations:
        """Return the translations of a sentence by language, its own left out."""
        found: dict[str, list[str]] = {}
        for number in self._of.get((lang, text), ()):
            for other, texts in self._members[number].items():
                if other != lang:
                    known = found.setdefault(other, [])
                    known.extend(t for t in texts if t not in known)
        return found


@VIEWS.register
class Translation:
    """Replaces sentences by their translations.

    For each view of each row a target language is drawn uniformly among those that every sentence of the row has a
    translation in, then of each sentence one of its translations. Mode `full`: all sentences of the row are replaced;
    `partial`: exactly one of its two, drawn (the paper does not say which part; this is the style of XLDA). Each row's draws
    hang on (seed, its id, n) alone. Rows that no language has all of are left out, and counted.

    Args:
        setting: the view; its corpora hold the translations.
        translations: bitext, multiway or labelled corpora that are aligned over languages.
        mode: full or partial; the kind of the copies.
        views: copies of each row.
        langs: languages of the rows to copy; all where empty.
        targets: languages to translate into; all where empty.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        translations: Sequence[str],
        mode: Literal["full", "partial"] = "full",
        views: int = 1,
        langs: Sequence[str] = (),
        targets: Sequence[str] = (),
    ) -> None:
        self.setting, self.mode, self.views = setting, mode, views
        self.langs, self.targets = frozenset(langs), frozenset(targets)
        self._meanings = _Meanings()
        for corpus in translations:
            self._meanings.add(corpus, iter_rows(setting.corpora[corpus]))
        self._counts = Counter(looked_at=0, without_translation=0)

    def augment(self, batch: pa.Table, sides: Sequence[tuple[str, str]]) -> pa.Table:
        """Return `views` copies of each row that has translations, next to each other."""
        if self.mode == "partial" and len(sides) < 2:
            raise InputError("a partial translation needs rows of two sentences", where=self.setting.view, do="Use mode: full")
        copies = [copy for row in batch.to_pylist() for copy in self._copies(row, sides)]
        added = [("of", pa.string()), ("kind", pa.string()), ("n", pa.int16()), ("replaced", pa.float32())]
        return pa.Table.from_pylist(copies, schema=pa.schema([*batch.schema, *added]))

    def _copies(self, row: Mapping[str, Any], sides: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
        there = [(lang, text) for lang, text in sides if row[text] is not None]
        if self.langs and not all(row[lang] in self.langs for lang, _ in there):
            return []
        found = [self._meanings.of(row[lang], row[text]) for lang, text in there]
        targets = sorted(set.intersection(*(set(own) for own in found)) & (self.targets or {lang for own in found for lang in own}))
        self._counts.update(looked_at=1, without_translation=int(not targets))
        return [self._copy(row, n, there, found, targets) for n in range(1, self.views + 1) if targets]

    def _copy(
        self, row: Mapping[str, Any], n: int, there: Sequence[tuple[str, str]], found: Sequence[Translations], targets: Sequence[str]
    ) -> dict[str, Any]:
        draw = generator(self.setting.seed, row["id"], str(n))
        target = draw.choice(targets)
        changed = [draw.randrange(len(there))] if self.mode == "partial" else range(len(there))
        copy = {**row, "id": f"{self.setting.view}:{row['id']}:{n}", "of": row["id"], "kind": self.mode, "n": n}
        for place in changed:
            lang, text = there[place]
            copy[lang], copy[text] = target, draw.choice(found[place][target])
        return {**copy, "replaced": len(changed) / len(there)}

    def counts(self) -> dict[str, Any]:
        """Return the rows looked at, and how many of them had no language in common to be translated into."""
        return dict(self._counts)
