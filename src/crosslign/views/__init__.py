"""Views: augmented copies of corpora, made once and shared by every method (docs/papers/scl.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from crosslign.registry import Registry

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_LANGS = ("en",)
"""Languages that a translated view translates from where its entry names none."""


@dataclass(frozen=True)
class Setting:
    """What a view builder is given beside its options.

    Attributes:
        view: id of the view.
        corpora: rows of the corpora that its options name, by id.
        seed: seed of every draw.
        translations: folder in which translations are kept; None keeps none.
        models: folders of the hub models that its translator needs, by their names.
    """

    view: str
    corpora: Mapping[str, Path]
    seed: int
    translations: Path | None = None
    models: Mapping[str, Path] = field(default_factory=dict)


class ViewBuilder(Protocol):
    """Makes augmented copies of rows; constructed with a `Setting` and the options of the view's entry."""

    def augment(self, batch: pa.Table, sides: Sequence[tuple[str, str]]) -> pa.Table:
        """Return the copies of a batch's rows: its columns with new texts, and of, kind, n, replaced.

        Args:
            batch: rows of a corpus.
            sides: names of its columns of languages and of texts.
        """
        ...

    def counts(self) -> dict[str, Any]:
        """Return what is worth knowing about the copies made so far."""
        ...


VIEWS: Registry[type[ViewBuilder]] = Registry("view builder", "crosslign.views.builders")


@dataclass(frozen=True)
class TranslatorSetting:
    """What a translator is given beside its options.

    Attributes:
        where: id of the view, for messages.
        langs: languages to translate from.
        targets: languages to translate into.
        corpora: rows of the corpora that its options name, by id.
        models: folders of the hub models that it needs, by their names; one that is not here comes from the hub's cache.
    """

    where: str
    langs: Sequence[str]
    targets: Sequence[str]
    corpora: Mapping[str, Path]
    models: Mapping[str, Path] = field(default_factory=dict)


class Translator(Protocol):
    """An engine; constructed with a `TranslatorSetting` and its own options.

    A class that takes models from the hub says which by a function `hub_models(options, langs, targets)`, and one that may compute on a
    GPU says so by `uses_gpu(options)` (crosslign.views.hub_models): the workflow fetches and leases them.
    """

    @property
    def identity(self) -> Mapping[str, Any] | None:
        """All that its translations depend on beside text and languages: engine, versions, settings. None: nothing is to be kept."""
        ...

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str | None]:
        """Return the translation of each text, None where it has none.

        Args:
            texts: distinct sentences without line breaks.
            source: their language, one of the setting's `langs`.
            target: one of its `targets`.
        """
        ...


TRANSLATORS: Registry[type[Translator]] = Registry("translator", "crosslign.views.translators")
