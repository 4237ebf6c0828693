"""Bitext mining in BUCC's form, cut from a multiway corpus or bitext: two comparable sides, gold pairs planted among distractors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslign.console import number_of
from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.evaluations._aligned import Groups, distinct, from_multiway, shuffled
from crosslign.errors import InputError
from crosslign.languages import pair_of
from crosslign.options import LangPairs, Natural, Positive


@EVALUATIONS.register(version=1, subsets="pairs")
def read(
    given: Given,
    *,
    pairs: LangPairs,
    gold: Positive,
    distractors: Natural,
    versions: Mapping[str, Sequence[str]] | None = None,
    split: str = "test",
) -> Evaluation:
    """Return one subset a pair, such as `de-en`.

    `gold` groups stand on both sides, `distractors` others on the source side alone, and as many others on the
    target side alone. Groups are drawn by seed; no sentence stands in two groups of a subset. Each side is
    shuffled by itself and item ids are numbered after that (`de-000001`), so neither order nor id carries anything.

    Args:
        given.corpora: one multiway corpus, or one bitext.
        given.langs: the languages that `pairs` may use.
        given.limit: upper bound on `gold`; distractors shrink with it.
        given.seed: draws groups and orders.
        pairs: source and target language of each subset.
        gold: number of gold pairs of a subset.
        distractors: number of sentences without a partner on each side; for a corpus that is too small, both numbers shrink in proportion.
        versions: versions to prefer, best first, by language.
        split: name of the split.

    Raises:
        InputError: a pair of a language that is not in `langs`, or of which the corpus has no sentences.
    """
    groups = from_multiway(given.corpora, versions or {}, given.name)
    builder = EvaluationBuilder(given.name)
    for pair in pairs:
        sides = pair_of(pair)
        if not set(sides) <= set(given.langs):
            raise InputError(
                f"pair {pair!r} has a language that the evaluation corpus does not have",
                where=given.name,
                why=f"languages: {', '.join(given.langs)}",
            )
        usable = distinct(groups, shuffled(groups, given.seed, pair), sides)
        n, m = planted_sizes(len(usable), gold, distractors, given.limit)
        if not n:
            raise InputError(
                f"too few sentences for {pair!r}", where=given.name, why=f"{number_of(len(usable), 'group')} in both languages"
            )
        _plant(builder, groups, usable, pair, n, m, given.seed, split)
    return builder.build()


def planted_sizes(available: int, gold: int, distractors: int, limit: int | None) -> tuple[int, int]:
    """Return gold and distractors, both shrunk by the same share where the corpus or the limit asks for it."""
    share, whole = min((available, gold + 2 * distractors), (limit or gold, gold), (1, 1), key=lambda part: part[0] / part[1])
    return gold * share // whole, distractors * share // whole


def _plant(builder: EvaluationBuilder, groups: Groups, usable: Sequence[str], pair: str, n: int, m: int, seed: int, split: str) -> None:
    source, target = pair_of(pair)
    planted, alone = usable[:n], {"source": usable[n : n + m], "target": usable[n + m : n + 2 * m]}
    ids: dict[tuple[str, str], str] = {}
    for role, lang in (("source", source), ("target", target)):
        for number, group in enumerate(shuffled([*planted, *alone[role]], seed, f"{pair}:{role}"), start=1):
            ids[role, group] = builder.item(f"{lang}-{number:06d}", pair, role, lang, groups[group][lang], split=split, group=group)
    for group in sorted(planted, key=lambda planted_group: ids["source", planted_group]):
        builder.link(pair, ids["source", group], ids["target", group], split=split)
