"""What full and partial translation share: language draw first, then the translator (docs/papers/scl.md)."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import pyarrow as pa

from crosslign.corpora.sampling import generator
from crosslign.errors import InputError
from crosslign.options import Langs, Len, Positive
from crosslign.views import DEFAULT_LANGS, Setting
from crosslign.views.translations import one_line, translator_for

Side = tuple[str, str]
OneTranslator = Annotated[Mapping[str, Any], Len(1, 1)]


@dataclass
class _Draft:
    """One copy to be made.

    Attributes:
        row: the original.
        n: which of its views, from 1.
        sides: columns of language and text that are to be replaced.
        targets: languages in the order drawn; the first that has all translations is taken.
        new: the translations, by column of text.
    """

    row: Mapping[str, Any]
    n: int
    sides: Sequence[Side]
    targets: Sequence[str]
    new: dict[str, str] = field(default_factory=dict)


class TranslatedView:
    """Copies rows with sentences replaced by their translations.

    For each view of each row a target language is drawn uniformly among `targets` without the row's own languages; each
    draw depends on (seed, the row's id, n) alone. Where the translator has not all translations that the copy needs, the next
    language of the same draw is taken (counted as `redrawn`); a copy that no language gives is left out (`untranslated`).
    A translator's empty answer is none.

    Args:
        setting: the view.
        translator: `{name: options}` of the engine.
        targets: languages to translate into.
        langs: languages of the sentences to translate.
        views: copies of each row.

    Raises:
        InputError: there is no target; the translator's own.
    """

    kind: str

    def __init__(
        self,
        setting: Setting,
        *,
        translator: OneTranslator,
        targets: Langs,
        langs: Langs = DEFAULT_LANGS,
        views: Positive = 1,
    ) -> None:
        if not set(targets):
            raise InputError("no language to translate into", where=setting.view, do="Name `targets`")
        self.setting = setting
        self.targets = sorted(set(targets))
        self.langs = frozenset(langs)
        self.views = views
        self._translator = translator_for(setting, translator, sorted(self.langs), self.targets)
        self._counts: Counter[str] = Counter()

    def choose(self, sides: Sequence[Side], row: Mapping[str, Any], draw: random.Random) -> Sequence[Side]:
        """Return which of a row's sentences are replaced, none where it cannot be copied.

        Args:
            sides: columns of language and text of the sentences that the row has.
            row: the row.
            draw: the row's generator.
        """
        raise NotImplementedError

    def augment(self, batch: pa.Table, sides: Sequence[Side]) -> pa.Table:
        """Return `views` copies of each row that can be copied, next to each other, in the order of the rows."""
        drafts = [draft for row in batch.to_pylist() for draft in self._drafts(row, sides)]
        waiting: Iterable[_Draft] = drafts
        for place in range(len(self.targets)):
            waiting = self._fill([draft for draft in waiting if place < len(draft.targets)], place)
        copies = [self._copy(draft) for draft in drafts if draft.new]
        self._counts.update(copies=len(copies), untranslated=len(drafts) - len(copies))
        added = [("of", pa.string()), ("kind", pa.string()), ("n", pa.int16()), ("replaced", pa.float32())]
        return pa.Table.from_pylist(copies, schema=pa.schema([*batch.schema, *added]))

    def _drafts(self, row: Mapping[str, Any], sides: Sequence[Side]) -> list[_Draft]:
        there = [(lang, text) for lang, text in sides if row[text] is not None]
        targets = [target for target in self.targets if all(row[lang] != target for lang, _ in there)]
        drafts = []
        for n in range(1, self.views + 1):
            draw = generator(self.setting.seed, row["id"], str(n))
            order = draw.sample(targets, len(targets))
            chosen = self.choose(there, row, draw)
            if chosen and order:
                drafts.append(_Draft(row, n, chosen, order))
        self._counts["left_out"] += self.views - len(drafts)
        return drafts

    def _fill(self, drafts: Sequence[_Draft], place: int) -> list[_Draft]:
        """Translate drafts into the language at `place` of their order; return those that lack a translation."""
        asked: dict[Side, dict[str, str | None]] = defaultdict(dict)
        for draft in drafts:
            for lang, text in draft.sides:
                asked[draft.row[lang], draft.targets[place]][one_line(draft.row[text])] = None
        for (lang, target), texts in sorted(asked.items()):
            texts.update(zip(texts, self._translator.translate(list(texts), lang, target), strict=True))
        lacking = []
        for draft in drafts:
            found = {t: asked[draft.row[lang], draft.targets[place]][one_line(draft.row[t])] for lang, t in draft.sides}
            if not all(found.values()):
                lacking.append(draft)
                continue
            draft.new = {text: str(translation) for text, translation in found.items()}
            draft.targets = draft.targets[place:]
            same = sum(one_line(draft.row[text]) == new for text, new in draft.new.items())
            self._counts.update(sentences=len(draft.new), identity=same, redrawn=place > 0)
        return lacking

    def _copy(self, draft: _Draft) -> dict[str, Any]:
        copy = {**draft.row, **draft.new, "id": f"{self.setting.view}:{draft.row['id']}:{draft.n}", "of": draft.row["id"]}
        langs = {lang: draft.targets[0] for lang, _ in draft.sides}
        return {**copy, **langs, "kind": self.kind, "n": draft.n, "replaced": None}

    def counts(self) -> dict[str, Any]:
        """Return copies, those left out and why, translated sentences and the share of them that did not change."""
        names = ("copies", "left_out", "untranslated", "redrawn", "sentences", "identity")
        counted = {name: self._counts[name] for name in names}
        translator = dict(self._translator.identity or {"engine": "provided"})
        return {**counted, "identity_share": counted["identity"] / max(1, counted["sentences"]), "translator": translator}
