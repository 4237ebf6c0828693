"""Translations that somebody has made already: aligned corpora of the project, joined on their text (docs/papers/scl.md)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from numpy.typing import NDArray

from crosslign.corpora.columns import SIDES, kind_of
from crosslign.corpora.segments import SortedKeys
from crosslign.errors import InputError
from crosslign.files import iter_rows
from crosslign.options import Ids
from crosslign.views import TRANSLATORS, TranslatorSetting
from crosslign.views.texts import MappedTexts, text_key, text_keys, write_texts

MIX = np.uint64(0x9E3779B97F4A7C15)


def _hash(*names: object) -> int:
    return int(xxhash.xxh3_64_intdigest("\x1f".join(map(str, names)).encode("utf-8", "surrogatepass")))


def _joint(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed = (left ^ (right * MIX)) * MIX
    return np.asarray(mixed ^ (mixed >> np.uint64(29)), np.uint64)


def _nth(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return how many equal keys stand before each."""
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.r_[True, keys[order][1:] != keys[order][:-1]]) if len(keys) else np.empty(0, np.int64)
    nth = np.empty(len(keys), np.uint64)
    nth[order] = np.arange(len(keys)) - np.repeat(starts, np.diff(np.r_[starts, len(keys)]))
    return nth


@TRANSLATORS.register(version=1)
class Provided:
    """Looks sentences up in aligned corpora, by language and text (runs of white space count as one space), never by place.

    Two sentences are translations of each other when they are the sides of one row of a bitext, rows of one group of a
    multiway corpus, or the same side of rows of equal group, label and place (the n-th of its group, label and language)
    of a labelled corpus. Of several translations the first, in the order of `corpora` and of their rows, is taken.
    Memory is 40 bytes a sentence; the texts lie on disk.

    Args:
        setting: the view; its corpora hold the rows.
        corpora: ids of corpora of any kind but mono.

    Raises:
        InputError: a corpus is mono, or none has a sentence of `langs` or of `targets`.
    """

    identity: Mapping[str, Any] | None = None

    def __init__(self, setting: TranslatorSetting, *, corpora: Ids) -> None:
        self._wanted = pa.array(sorted({*setting.langs, *setting.targets}), pa.string())
        self._folder = tempfile.TemporaryDirectory(prefix="crosslign-provided-")
        self._texts = MappedTexts("text")
        keys, units, langs = [], [], []
        for corpus in corpora:
            for own, unit, lang in self._read(setting, corpus):
                keys.append(own)
                units.append(unit)
                langs.append(lang)
        if not keys:
            raise InputError(
                "no sentence of its languages is in the provided translations", where=setting.where, why=f"corpora: {', '.join(corpora)}"
            )
        numbers = np.arange(len(self._texts))
        self._units = np.concatenate(units)
        self._by_text, self._by_unit = SortedKeys(np.uint64), SortedKeys(np.uint64)
        self._by_text.add(np.concatenate(keys), numbers)
        self._by_unit.add(_joint(self._units, np.concatenate(langs)), numbers)

    def _read(self, setting: TranslatorSetting, corpus: str) -> Iterator[tuple[NDArray[np.uint64], ...]]:
        """Yield text keys, keys of what is one meaning, and keys of languages, a side of a batch at a time; map the texts."""
        path = setting.corpora[corpus]
        for kind, side, lang, text, units in _meanings(path, corpus, setting.where):
            for start, batch in _batches(path, [lang, text]):
                keep = pc.and_(pc.is_in(batch[lang], value_set=self._wanted), pc.is_valid(batch[text])).combine_chunks()
                if kind == "labelled":
                    keep = pc.and_(keep, pa.array(units[start : start + batch.num_rows] != 0))
                rows = batch.filter(keep)
                if not rows.num_rows:
                    continue
                file = Path(self._folder.name, f"{len(self._texts):012}.arrow")
                write_texts(file, {"text": rows[text].combine_chunks()})
                self._texts.add(file)
                own = units[start : start + batch.num_rows][keep.to_numpy(zero_copy_only=False)]
                codes = rows[lang].to_pylist()
                texts = rows[text].to_pylist()
                keys = np.fromiter(map(text_key, codes, texts), np.uint64, len(codes))
                yield keys, _joint(own, np.array([side], np.uint64)) if kind == "labelled" else own, _codes(codes)

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str | None]:
        """Return the first provided translation of each text, None where there is none."""
        asked, sentences = self._by_text.find(text_keys(source, texts))
        matched, numbers = self._by_unit.find(_joint(self._units[sentences], np.array([_hash(target)], np.uint64)))
        first = np.full(len(texts), np.iinfo(np.int64).max)
        np.minimum.at(first, asked[matched], numbers)
        return [self._texts.get(number) if number < len(self._texts) else None for number in first.tolist()]


def _codes(langs: Sequence[str]) -> NDArray[np.uint64]:
    known = {lang: _hash(lang) for lang in set(langs)}
    return np.fromiter((known[lang] for lang in langs), np.uint64, len(langs))


def _batches(path: Path, columns: list[str]) -> Iterator[tuple[int, pa.Table]]:
    start = 0
    for batch in iter_rows(path, columns):
        yield start, batch
        start += batch.num_rows


def _meanings(path: Path, corpus: str, where: str) -> Iterator[tuple[str, int, str, str, NDArray[np.uint64]]]:
    """Yield, for each side of a corpus: kind, number, columns of language and text, and the key of each row's meaning.

    The key of a labelled row without a group is 0: it has no translations.
    """
    names: list[str] = next((batch.column_names for batch in iter_rows(path)), [])
    kind = kind_of(names)
    if kind == "mono":
        raise InputError(
            f"corpus {corpus!r} has no translations", where=where, why="its rows are single sentences", do="Name a corpus of translations"
        )
    columns = {"bitext": ["id"], "multiway": ["group"], "labelled": ["group", "label", "a_lang"]}[kind]
    units: list[int] = []
    places: list[int] = []
    for batch in iter_rows(path, columns):
        for row in zip(*(batch[column].to_pylist() for column in columns), strict=True):
            units.append(_hash(corpus, *row[:2]) if row[0] is not None else 0)
            if kind == "labelled":
                places.append(_hash(corpus, *row))
    keys = np.array(units, np.uint64)
    if kind == "labelled":
        keys = np.where(keys == 0, keys, _joint(keys, _nth(np.array(places, np.uint64))))
    for number, (lang, text) in enumerate(SIDES[kind]):
        yield kind, number, lang, text, keys
