"""Multiple choice: XCOPA, COPA and Social IQa, JSON lines (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Mapping

from crosslign.corpora import EVALUATIONS, Given
from crosslign.corpora.evaluation import Evaluation, EvaluationBuilder
from crosslign.corpora.evaluations._aligned import evenly
from crosslign.corpora.readers._choices import ASKED, files_of_split, read_questions
from crosslign.corpora.readers._parts import all_parts


@EVALUATIONS.register(version=3, subsets="languages")
def read(given: Given, *, split: str = "test", questions: Mapping[str, str] | None = None) -> Evaluation:
    """Return one subset a language; the choices of a question share its group, label 1 marks the right one.

    The input of a choice is the premise followed by the question, and the choice, as in XTREME. XCOPA and COPA ask for `cause` or
    `effect`; Social IQa brings its own question, three answers and, beside `<split>.jsonl`, `<split>-labels.lst` with 1, 2 or 3.
    Its questions about one context are resampled together.

    Args:
        given.files: official files by name (`test.it.jsonl`, or COPA's and Social IQa's `val.jsonl`, `dev.jsonl`), or archives of them.
        given.langs: languages to read; all, when empty. A file without a language in its name is English.
        split: the file's name in front of the language.
        questions: the texts of `cause` and `effect`.

    Raises:
        InputError: no file of a language, a line of another form, a label that is not a choice, unequal numbers of questions and labels.
    """
    parts = all_parts(given.files)
    builder = EvaluationBuilder(given.name)
    for lang, part in files_of_split(parts, split, given.langs, given.name).items():
        found = read_questions(part, parts, split, {**ASKED, **(questions or {})})
        for question in (found[index] for index in evenly(len(found), given.limit)):
            group = str(question.number)
            for at, choice in enumerate(question.choices):
                label = [float(at == question.right)]
                builder.item(
                    f"{group}:{at + 1}",
                    lang,
                    "choice",
                    lang,
                    question.asked,
                    pair_text=choice,
                    label=label,
                    group=group,
                    cluster=question.context,
                )
    return builder.build()
