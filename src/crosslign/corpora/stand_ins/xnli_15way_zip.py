"""Synthetic data for XNLI's 15-way file: one sentence in fifteen languages a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import PIVOT, made_up, phrase_in
from crosslign.corpora.stand_ins.xnli_mt_zip import LANGS

NAMED: Sequence[Mapping[str, str]] = (
    {
        "en": "We had a great talk.",
        "de": "Wir haben uns sehr gut unterhalten.",
        "fr": "Nous avons eu une très bonne conversation.",
        "es": "Tuvimos una charla estupenda.",
        "ru": "У нас был отличный разговор.",
        "zh": "我们谈得很愉快。",
    },
    {
        "en": "I don't know whether he stayed in Augusta after that.",
        "de": "Ich weiß nicht, ob er danach in Augusta geblieben ist.",
        "fr": "Je ne sais pas s'il est resté à Augusta après cela.",
        "es": "No sé si después de eso se quedó en Augusta.",
        "ru": "Я не знаю, остался ли он после этого в Огасте.",
        "zh": "我不知道他之后是否留在了奥古斯塔。",
    },
)
"""Sentences that a figure names by their text (MPCL, caption of Figure 5), which the real file has; the translations are the project's."""

MOST = 500
"""Sentences of the file: fewer than a reduced scale draws of a corpus, so that the named ones stay."""


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> dict[str, bytes]:
    """Return `XNLI-15way/xnli.15way.orig.tsv` in a zip: phrases, because all its languages say the same; last the named sentences."""
    drawn = sentences[: MOST - len(NAMED)]
    rows = ["\t".join(LANGS), *("\t".join(phrase_in(sentence, lang) for lang in LANGS) for sentence in drawn)]
    rows += ["\t".join(named.get(lang) or made_up(named[PIVOT], lang) for lang in LANGS) for named in NAMED]
    return {"XNLI-15way/xnli.15way.orig.tsv": lines(rows)}
