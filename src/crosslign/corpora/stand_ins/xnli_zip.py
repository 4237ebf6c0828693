"""Synthetic data for XNLI 1.0: development and test pairs of fifteen languages in one table each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import text_in, triplets_of
from crosslign.corpora.stand_ins.xnli_mt_zip import LANGS

_NAMES = """
language gold_label sentence1_binary_parse sentence2_binary_parse sentence1_parse sentence2_parse sentence1 sentence2 promptID pairID
genre label1 label2 label3 label4 label5 sentence1_tokenized sentence2_tokenized match
"""
COLUMNS = _NAMES.split()


def _row(lang: str, label: str, first: str, second: str, prompt: int, pair: int) -> str:
    values = dict.fromkeys(COLUMNS, "")
    values |= {"language": lang, "gold_label": label, "sentence1": first, "sentence2": second, "promptID": str(prompt), "pairID": str(pair)}
    values |= {"genre": "written", "match": "True", "sentence1_tokenized": first, "sentence2_tokenized": second}
    values |= {f"label{number}": label for number in range(1, 6)}
    return "\t".join(values[column] for column in COLUMNS)


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> dict[str, bytes]:
    """Return `XNLI-1.0/xnli.dev.tsv` and `xnli.test.tsv` in a zip; every third triplet is of the development part."""
    triplets = triplets_of(sentences)
    rows: dict[str, list[str]] = {"dev": ["\t".join(COLUMNS)], "test": ["\t".join(COLUMNS)]}
    for lang in LANGS:
        for at, triplet in enumerate(triplets):
            part = rows["test" if at % 3 else "dev"]
            for place, (label, premise, hypothesis) in enumerate(triplet.pairs(triplets[(at + 1) % len(triplets)])):
                part.append(_row(lang, label, text_in(premise, lang), text_in(hypothesis, lang), at + 1, 3 * at + place + 1))
    return {f"XNLI-1.0/xnli.{part}.tsv": lines(written) for part, written in rows.items()}
