"""MultiEURLEX: JSON lines of laws with their texts by language and EUROVOC concepts (docs/protocols.md)."""

from __future__ import annotations

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.evaluations._aligned import evenly
from crosslign.corpora.readers._laws import Law, read_laws
from crosslign.errors import InputError


@EVALUATIONS.register(version=1, subsets="languages")
def read(given: Given, *, split: str = "test") -> Evaluation:
    """Return one subset a language, one item a law that has a text in it; its labels are the classes of its concepts of level 1.

    Args:
        given.files: `<split>.jsonl`, or archives that hold it.
        split: train, dev or test.

    Raises:
        InputError: no such file, a line of another form, a concept that is none of level 1, a law twice, a language without texts.
    """
    by_lang: dict[str, list[Law]] = {}
    for law in read_laws(given.files, split, given.name):
        for lang in law.texts:
            if not given.langs or lang in given.langs:
                by_lang.setdefault(lang, []).append(law)
    lacking = [lang for lang in given.langs if lang not in by_lang]
    if lacking:
        raise InputError(f"no law has a text in {lacking[0]!r}", where=given.name, why=f"found {', '.join(sorted(by_lang))}")
    builder = EvaluationBuilder(given.name)
    for lang, laws in sorted(by_lang.items()):
        for index in evenly(len(laws), given.limit):
            law = laws[index]
            builder.item(f"{lang}:{law.id}", lang, "sentence", lang, law.texts[lang], label=law.classes, group=law.id)
    return builder.build()
