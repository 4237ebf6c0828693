"""Code-switching: words replaced by their translations from two-column dictionaries (PROTOCOLS A.4.2)."""

from __future__ import annotations

import logging
import random
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from crosslign.corpora.sampling import generator
from crosslign.errors import InputError
from crosslign.files import read_rows
from crosslign.views import VIEWS, Setting

LOG = logging.getLogger(__name__)
Dictionary = dict[str, list[str]]


def split_punctuation(word: str) -> tuple[str, str, str]:
    """Split a word into (punctuation before, the word itself, punctuation after)."""
    start, end = 0, len(word)
    while start < end and unicodedata.category(word[start])[0] == "P":
        start += 1
    while end > start and unicodedata.category(word[end - 1])[0] == "P":
        end -= 1
    return word[:start], word[start:end], word[end:]


@VIEWS.register
class CodeSwitch:
    """Replaces each word, with some probability, by one of its translations.

    For each view of each row a target language is drawn uniformly; then each word (between white space) is drawn with the
    given probability and, where the dictionary has its lower-cased form, replaced by one of its translations, drawn
    uniformly. `replaced` is the share of the row's words that were replaced, by themselves too (identity translations are
    counted apart). Each row's draws hang on (seed, its id, n) alone. The copy's language is the target's; with
    `per_word_language` it stays that of the row.

    Languages of `targets` without a dictionary (MUSE has none for sw and ur) are skipped, and named in the counts.

    Args:
        setting: the view; its corpora hold the dictionaries.
        dictionaries: bitext corpora of one word a side, by target language.
        probability: of replacing a word (0.75 for XNLI, 0.5 for PAWS-X).
        langs: languages of the sentences to copy; other sentences of a row stay, rows without any are left out.
        views: copies of each row.
        per_word_language: draw the language for each word, as CoSDA-ML does.
        targets: languages to switch into; those of the dictionaries where not given.
        strip_punctuation: look a word up without the punctuation around it, which stays; else as it stands between white space,
            the words of PROTOCOLS A.4.2.

    Raises:
        InputError: a dictionary has no word of `langs`, or no target has a dictionary.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        dictionaries: Mapping[str, str],
        probability: float,
        langs: Sequence[str] = ("en",),
        views: int = 1,
        per_word_language: bool = False,
        targets: Sequence[str] | None = None,
        strip_punctuation: bool = False,
    ) -> None:
        self.setting = setting
        self.probability = probability
        self.langs = frozenset(langs)
        self.views = views
        self.per_word_language = per_word_language
        self.strip_punctuation = strip_punctuation
        self.targets = sorted(set(dictionaries) if targets is None else set(dictionaries) & set(targets))
        self.skipped = sorted(set(targets or ()) - set(dictionaries))
        if self.skipped:
            LOG.warning("%s: no dictionary into %s: these languages are skipped", setting.view, ", ".join(self.skipped))
        if not self.targets:
            raise InputError("no language to switch into has a dictionary", where=setting.view, why=f"asked for {', '.join(self.skipped)}")
        self._dictionaries = {lang: self._read(lang, dictionaries[lang]) for lang in self.targets}
        self._words = {lang: Counter[str]() for lang in self.targets}

    def _read(self, target: str, corpus: str) -> Mapping[str, Dictionary]:
        """Return the translations into `target`, by source language and lower-cased word, each in file order."""
        table = read_rows(self.setting.corpora[corpus], "bitext")
        found: dict[str, Dictionary] = defaultdict(lambda: defaultdict(list))
        for a_lang, a, b_lang, b in zip(*(table[c].to_pylist() for c in ("a_lang", "a_text", "b_lang", "b_text")), strict=True):
            for lang, word, other_lang, other in ((a_lang, a, b_lang, b), (b_lang, b, a_lang, a)):
                if lang in self.langs and other_lang == target and other not in found[lang][word.lower()]:
                    found[lang][word.lower()].append(other)
        if not found:
            raise InputError(
                f"dictionary {corpus!r} has no words of {', '.join(sorted(self.langs))} into {target!r}", where=self.setting.view
            )
        return {lang: dict(words) for lang, words in found.items()}

    def augment(self, batch: pa.Table, sides: Sequence[tuple[str, str]]) -> pa.Table:
        """Return `views` copies of each row that has a sentence in `langs`, next to each other."""
        rows = batch.to_pylist()
        copies = [
            copy
            for row in rows
            if any(row[lang] in self.langs for lang, _ in sides)
            for n in range(1, self.views + 1)
            for copy in self._copy(row, n, sides)
        ]
        added = [("of", pa.string()), ("kind", pa.string()), ("n", pa.int16()), ("replaced", pa.float32())]
        return pa.Table.from_pylist(copies, schema=pa.schema([*batch.schema, *added]))

    def _copy(self, row: Mapping[str, Any], n: int, sides: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
        draw = generator(self.setting.seed, row["id"], str(n))
        targets = [t for t in self.targets if all(row[lang] != t for lang, _ in sides)]
        if not targets:
            return []
        target = targets[int(draw.random() * len(targets))]
        copy = {**row, "id": f"{self.setting.view}:{row['id']}:{n}", "of": row["id"], "kind": "code_switch", "n": n}
        replaced = total = 0
        for lang, text in sides:
            if row[lang] in self.langs and row[text] is not None:
                words, hits = self._switch(row[text].split(), row[lang], target, targets, draw)
                copy[text], total, replaced = " ".join(words), total + len(words), replaced + hits
                copy[lang] = row[lang] if self.per_word_language else target
        copy["replaced"] = replaced / total if total else 0.0
        return [copy]

    def _switch(self, words: Sequence[str], lang: str, target: str, targets: Sequence[str], draw: random.Random) -> tuple[list[str], int]:
        """Return the new words, and how many were replaced."""
        switched, hits = [], 0
        for word in words:
            before, inner, after = split_punctuation(word) if self.strip_punctuation else ("", word, "")
            if self.per_word_language:
                target = targets[int(draw.random() * len(targets))]
            known = self._dictionaries[target].get(lang, {}).get(inner.lower(), ())
            # Two draws a word, whatever the dictionary holds: a larger dictionary changes no other word.
            chosen, which = draw.random() < self.probability, draw.random()
            counted = self._words[target]
            counted["words"] += 1
            counted["covered"] += bool(known)
            if not (chosen and known):
                switched.append(word)
                continue
            new = known[int(which * len(known))]
            counted["replaced"] += 1
            counted["identity"] += new.lower() == inner.lower()
            switched.append(f"{before}{new}{after}")
            hits += 1
        return switched, hits

    def counts(self) -> dict[str, Any]:
        """Return words, those that the dictionary has, those replaced, those replaced by themselves, and the shares; also by language."""
        whole = sum(self._words.values(), Counter[str]())
        by_language = {lang: _shares(words) for lang, words in self._words.items()}
        return {**_shares(whole), "languages": self.targets, "without_dictionary": self.skipped, "by_language": by_language}


def _shares(counted: Counter[str]) -> dict[str, float]:
    """Return counts of words, and what they are of all words; of words replaced by themselves, what they are of those replaced."""
    numbers = {name: counted[name] for name in ("words", "covered", "replaced", "identity")}
    total = max(1, counted["words"])
    shares = {f"{name}_share": counted[name] / total for name in ("covered", "replaced")}
    return {**numbers, **shares, "identity_share": counted["identity"] / max(1, counted["replaced"])}
