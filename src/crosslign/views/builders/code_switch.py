"""Code-switching: words replaced by their translations from two-column dictionaries (docs/papers/scl.md)."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crosslign.corpora.sampling import below, draws
from crosslign.errors import InputError
from crosslign.files import read_rows
from crosslign.files.rows import pieces
from crosslign.options import Id, Langs, Positive, Share
from crosslign.views import VIEWS, Setting
from crosslign.views.builders._lexicon import Dictionary, Lexicon
from crosslign.views.builders._words import Words, characters, fingerprints, single_spaced

log = logging.getLogger(__name__)
AT_ONCE = 8_192
"""Rows whose words are held together: what is known of them fits the processor's caches."""
_HALF = np.uint64(32)
COUNTED = ("words", "covered", "replaced", "identity")
"""Words: all, those that the dictionary has, those replaced, those replaced by themselves."""


@dataclass(frozen=True)
class _Copies:
    """Copies to be made, and their draws.

    Attributes:
        rows: row of each copy.
        numbers: which of its row's copies each is, from 1.
        keys: of each copy's draws.
        targets: numbers of the languages that a row may be switched into, a line for each set of languages that rows have.
        counts: how many of a line count, 0 where rows are not copied.
        sets: line of each copy.
    """

    rows: NDArray[np.int64]
    numbers: NDArray[np.int64]
    keys: NDArray[np.uint64]
    targets: NDArray[np.int64]
    counts: NDArray[np.int64]
    sets: NDArray[np.int64]

    def languages(self, copies: NDArray[np.int64], numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return one of the languages of each copy named, by a draw each."""
        sets = self.sets[copies]
        return self.targets[sets, below(numbers, self.counts[sets])]


@VIEWS.register(version=1)
class CodeSwitch:
    """Replaces each word, with some probability, by one of its translations.

    For each view of each row a target language is drawn uniformly; then each word (between white space) is drawn with the
    given probability and, where the dictionary has its lower-cased form, replaced by one of its translations, drawn
    uniformly. `replaced` is the share of the row's words that were replaced, by themselves too (identity translations are
    counted apart). Each draw depends on (seed, the row's id, n, side, number of the word) alone, so no other row, word or
    dictionary changes it. The copy's language is the target's; with `per_word_language` it stays that of the row.

    Languages of `targets` without a dictionary (MUSE has none for sw and ur) are skipped, and named in the counts.

    Args:
        setting: the view; its corpora hold the dictionaries.
        dictionaries: bitext corpora of one word a side, by target language.
        probability: of replacing a word (0.75 for XNLI, 0.5 for PAWS-X).
        langs: languages of the sentences to copy; other sentences of a row stay, rows without any are left out.
        views: copies of each row.
        per_word_language: draw the language for each word, as CoSDA-ML does.
        targets: languages to switch into (default: those of the dictionaries).
        strip_punctuation: look up words without the punctuation around them, which stays; else everything between white space.

    Raises:
        InputError: a dictionary has no word of `langs`, or no target has a dictionary.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        dictionaries: Mapping[str, Id],
        probability: Share,
        langs: Langs = ("en",),
        views: Positive = 1,
        per_word_language: bool = False,
        targets: Langs | None = None,
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
            log.warning("%s: skipping languages without a dictionary: %s", setting.view, ", ".join(self.skipped))
        if not self.targets:
            raise InputError("no target language has a dictionary", where=setting.view, why=f"targets: {', '.join(self.skipped)}")
        read = [self._read(lang, dictionaries[lang]) for lang in self.targets]
        self._lexicons = {lang: Lexicon([found.get(lang, {}) for found in read]) for lang in sorted(self.langs)}
        self._counts = {name: np.zeros(len(self.targets), np.int64) for name in COUNTED}

    def _read(self, target: str, corpus: str) -> Mapping[str, Dictionary]:
        """Return the translations into `target`, by source language and lower-cased word, each in file order."""
        table = read_rows(self.setting.corpora[corpus], "bitext")
        found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for a_lang, a, b_lang, b in zip(*(table[c].to_pylist() for c in ("a_lang", "a_text", "b_lang", "b_text")), strict=True):
            for lang, word, other_lang, other in ((a_lang, a, b_lang, b), (b_lang, b, a_lang, a)):
                if lang in self.langs and other_lang == target and other not in found[lang][word.lower()]:
                    found[lang][word.lower()].append(other)
        if not found:
            raise InputError(
                f"dictionary {corpus!r} has no words of {', '.join(sorted(self.langs))} into {target!r}", where=self.setting.view
            )
        return found

    def augment(self, batch: pa.Table, sides: Sequence[tuple[str, str]]) -> pa.Table:
        """Return `views` copies of each row that has a sentence in `langs`, next to each other."""
        return pa.concat_tables([self._copied(piece, sides) for piece in pieces(batch, AT_ONCE)])

    def _copied(self, batch: pa.Table, sides: Sequence[tuple[str, str]]) -> pa.Table:
        copies = self._drawn(batch, [lang for lang, _ in sides])
        rows = batch.take(pa.array(copies.rows))
        languages = copies.languages(np.arange(rows.num_rows), draws(copies.keys, 0))
        words, hits = np.zeros(rows.num_rows, np.int64), np.zeros(rows.num_rows, np.int64)
        changed = {"id": pc.binary_join_element_wise(self.setting.view, rows["id"], pa.array(copies.numbers).cast(pa.string()), ":")}
        for side, (lang, text) in enumerate(sides, 1):
            langs, texts = rows[lang].combine_chunks(), rows[text].combine_chunks().cast(pa.large_string())
            changed |= {lang: langs, text: texts}
            for source in self._lexicons:
                mask = pc.fill_null(pc.and_(pc.equal(langs, source), pc.is_valid(texts)), False)
                own = np.flatnonzero(mask)
                if len(own):
                    new, counts, replaced = self._switched(texts.filter(mask), source, own, side, copies, languages)
                    words[own] += counts
                    hits[own] += replaced
                    changed[text] = pc.replace_with_mask(changed[text], mask, new)
                    if not self.per_word_language:
                        names = pa.array(self.targets).take(pa.array(languages[own]))
                        changed[lang] = pc.replace_with_mask(changed[lang], mask, names)
        return _table(rows, changed, copies.numbers, hits / np.maximum(words, 1))

    def _drawn(self, batch: pa.Table, columns: Sequence[str]) -> _Copies:
        langs = pc.binary_join_element_wise(*(batch[column] for column in columns), "\x1f", null_handling="replace").combine_chunks()
        encoded = langs.dictionary_encode()
        targets = np.zeros((len(encoded.dictionary) + 1, len(self.targets)), np.int64)
        counts = np.zeros(len(targets), np.int64)
        for line, joined in enumerate(encoded.dictionary.to_pylist()):
            own = set(joined.split("\x1f"))
            found = [] if self.langs.isdisjoint(own) else [n for n, target in enumerate(self.targets) if target not in own]
            counts[line] = len(found)
            targets[line, : len(found)] = found
        sets = np.asarray(encoded.indices).astype(np.int64)
        rows = np.repeat(np.flatnonzero(counts[sets]), self.views)
        numbers = np.tile(np.arange(1, self.views + 1), len(rows) // self.views)
        ids, offsets = characters(batch["id"].combine_chunks().cast(pa.large_string()))
        keys = draws(fingerprints(ids, offsets[:-1], offsets[1:]), self.setting.seed)
        return _Copies(rows, numbers, draws(keys[rows], numbers), targets, counts, sets[rows])

    def _switched(
        self, texts: pa.LargeStringArray, lang: str, own: NDArray[np.int64], side: int, copies: _Copies, languages: NDArray[np.int64]
    ) -> tuple[pa.LargeStringArray, NDArray[np.int64], NDArray[np.int64]]:
        """Return the texts of one language and side with words replaced, and how many words each has and how many were replaced."""
        lexicon, words = self._lexicons[lang], Words.of(single_spaced(texts), self.strip_punctuation)
        text = np.repeat(np.arange(len(texts)), words.counts)
        number = draws(draws(copies.keys[own], side)[text], np.arange(len(words)) - words.firsts[text])
        target = copies.languages(own[text], draws(number, 0)) if self.per_word_language else languages[own][text]
        first, ways = lexicon.ways(target, lexicon.find(words.lowered()))
        covered = ways > 0
        replaced = np.flatnonzero(covered & (number >> _HALF < np.uint64(round(self.probability * 2**32))))
        which = first[replaced] + below(number[replaced] << _HALF, ways[replaced])
        same = replaced[lexicon.identity[which]]
        for name, counted in zip(COUNTED, (target, target[covered], target[replaced], target[same]), strict=True):
            self._counts[name] += np.bincount(counted, minlength=len(self.targets))
        new = words.replaced(replaced, lexicon.translations.take(pa.array(which)))
        return new, words.counts, np.bincount(text[replaced], minlength=len(texts))

    def counts(self) -> dict[str, Any]:
        """Return words, those that the dictionary has, those replaced, those replaced by themselves, and the shares; also by language."""
        whole = {name: int(found.sum()) for name, found in self._counts.items()}
        by_language = {
            lang: _shares({name: int(found[number]) for name, found in self._counts.items()}) for number, lang in enumerate(self.targets)
        }
        return {**_shares(whole), "languages": self.targets, "without_dictionary": self.skipped, "by_language": by_language}


def _table(rows: pa.Table, changed: Mapping[str, pa.Array], numbers: NDArray[np.int64], shares: NDArray[np.float64]) -> pa.Table:
    """Return rows, one a copy, with the copies' ids, sentences, numbers and shares in place of their own."""
    of = rows["id"]
    for name, column in changed.items():
        field = rows.schema.field(name)
        rows = rows.set_column(rows.column_names.index(name), field, column.cast(field.type))
    added = {"of": of, "kind": pa.array(["code_switch"] * len(numbers), pa.string())}
    added |= {"n": pa.array(numbers, pa.int16()), "replaced": pa.array(shares, pa.float32())}
    for name, column in added.items():
        rows = rows.append_column(name, column)
    return rows


def _shares(counted: Mapping[str, int]) -> dict[str, float]:
    """Return counts of words, and what they are of all words; of words replaced by themselves, what they are of those replaced."""
    numbers = {name: counted[name] for name in ("words", "covered", "replaced", "identity")}
    total = max(1, counted["words"])
    shares = {f"{name}_share": counted[name] / total for name in ("covered", "replaced")}
    return {**numbers, **shares, "identity_share": counted["identity"] / max(1, counted["replaced"])}
