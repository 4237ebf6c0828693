"""The sentences that stand-ins are made of: the project's own mini-sets."""

from __future__ import annotations

from pathlib import Path

from crosslign.corpora.written import NLI_COLUMNS, STS_COLUMNS, files_by_lang, read_aligned


def load_sentences(folder: Path) -> list[dict[str, str]]:
    """Return the aligned sentences of all mini-sets in a folder, {language: sentence}, in a fixed order.

    NLI first (premise, entailed, contradicting of each item), then STS (first, second); within each, the order of
    the alphabetically first language's file. These feed the stand-ins for real data.
    """
    files = {path.name: path for path in sorted(Path(folder).glob("*.tsv"))}
    sentences: list[dict[str, str]] = []
    for kind, columns, texts in (("nli", NLI_COLUMNS, NLI_COLUMNS[1:]), ("sts", STS_COLUMNS, STS_COLUMNS[2:])):
        aligned = read_aligned(files_by_lang(files, kind, [], str(folder)), columns)
        for item in next(iter(aligned.values())):
            sentences += [{lang: items[item][1][column] for lang, items in aligned.items()} for column in texts]
    return sentences
