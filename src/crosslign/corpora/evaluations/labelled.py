"""Classification cut from a labelled corpus: XNLI, PAWS-X, AmericasNLI, MTOP, TNEWS, reviews (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.evaluations._aligned import evenly
from crosslign.corpora.evaluations._graded import Graded, add_graded
from crosslign.errors import InputError

Form = Literal["pair", "sentence", "sides", "graded"]


@EVALUATIONS.register(version=5, subsets="languages")
def read(
    given: Given,
    *,
    form: Form = "pair",
    splits: Mapping[str, str] | None = None,
    grades: Mapping[str, float] | None = None,
    same_first: bool = False,
) -> Evaluation:
    """Return one subset a language, called by it, in the order of the corpus.

    Args:
        given.corpora: `labelled` corpora.
        form: `pair`: both texts of a row are the input of a cross-encoder; `sentence`: its first text is encoded; `sides`: both texts
            are sentences of their own, without a label (for the probe of language identity); `graded`: both texts are sentences, and the
            pair's grade is that of its label (for classes of pairs from vectors, in MTEB's form).
        splits: split of each corpus; `test` where it names none.
        same_first: pairs with the same first text, such as the hypotheses of a premise, were sampled together: they are resampled as one.
            Where rows of several languages have a group, those of the first language say which, so that resamples of all hold the same
            items, also where one language translates two premises alike.
        grades: of `graded`, the grade of each label, by its number; pairs of other labels are left out.

    Raises:
        InputError: a pair lacks its second text, or a row its label, or `graded` its grades.
    """
    if form not in ("pair", "sentence", "sides", "graded"):
        raise InputError(f"unknown form {form!r}", where=given.name, why="allowed: pair, sentence, sides, graded")
    if (form == "graded") != bool(grades):
        raise InputError("the form `graded` needs `grades`, and no other form has them", where=given.name)
    builder = EvaluationBuilder(given.name)
    for corpus, table in given.corpora.items():
        by_lang: dict[str, list[dict[str, Any]]] = {}
        for row in table.to_pylist():
            if not given.langs or row["a_lang"] in given.langs:
                by_lang.setdefault(row["a_lang"], []).append(row)
        firsts: dict[object, str] = {}
        for row in (row for rows in by_lang.values() for row in rows if same_first):
            row["cluster"] = firsts.setdefault(row.get("group") or row["id"], str(row["a_text"]))
        for lang, rows in by_lang.items():
            split = (splits or {}).get(corpus, "test")
            if grades:
                add_graded(builder, lang, (lang, lang), _graded(rows, grades), given.limit, split)
                continue
            for index in evenly(len(rows), given.limit):
                _add(builder, lang, rows[index], form, split)
    return builder.build()


def _graded(rows: Sequence[Mapping[str, Any]], grades: Mapping[str, float]) -> list[Graded]:
    """Return the pairs whose label has a grade."""
    found = []
    for row in rows:
        if not row["label"] or not row["b_text"]:
            raise InputError("a pair has no label or no second text", where=str(row["id"]))
        if (grade := grades.get(f"{row['label'][0]:.12g}")) is not None:
            found.append(Graded(str(row["id"]), str(row["a_text"]), str(row["b_text"]), float(grade), row.get("cluster")))
    return found


def _add(builder: EvaluationBuilder, lang: str, row: Mapping[str, Any], form: Form, split: str) -> None:
    identity, label = str(row["id"]), row["label"]
    if form == "sides":
        for side in ("a_text", "b_text"):
            if row[side]:
                builder.item(f"{identity}:{side[0]}", lang, "sentence", lang, str(row[side]), split=split, cluster=row.get("cluster"))
        return
    if label is None:
        raise InputError("a row has no label", where=identity)
    if form == "pair" and not row["b_text"]:
        raise InputError("a pair has no second text", where=identity)
    second = str(row["b_text"]) if form == "pair" else None
    role = "pair" if form == "pair" else "sentence"
    known: dict[str, Any] = {"split": split, "pair_text": second, "cluster": row.get("cluster")}
    builder.item(identity, lang, role, lang, str(row["a_text"]), label=list(label), **known)
