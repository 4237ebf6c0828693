"""Code-switching beside the loop over words that the papers describe, written out in plain Python.

Sentences of drawn words, a dictionary of `--words` entries with one to three translations each, two target languages. The peer is that
loop at its plainest (CoSDA-ML, SCL): for each sentence a language, for each word a number, a look-up, a choice; it keeps its sentences in
lists and counts nothing. Ours is the builder of views: each row's draws hang on seed and row alone, and words, coverage and identity
translations are counted. They take turns. Draws differ, so equality is checked where nothing is drawn: probability 1, one language, one
translation a word; at `--probability` both must replace the same share of words within five standard errors. Prints machine, versions,
seed, medians in wall and processor time, and as its last line `ratio: <peer / ours, processor time>`.

    python benchmarks/code_switching.py --sentences 200000
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from _common import machine, parser, timed, versions

from crosslign.files import write_rows
from crosslign.files.rows import SCHEMAS
from crosslign.views import VIEWS, Setting

TARGETS = ("de", "fr")
SIDES = [("lang", "text")]
Dictionaries = dict[str, dict[str, list[str]]]


def sentences(count: int, vocabulary: int, seed: int) -> list[str]:
    """Return sentences of 5 to 34 words; frequent words are drawn as often as in running text (Zipf)."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(5, 35, count)
    words = np.array([f"word{number}" for number in range(vocabulary)], dtype=object)
    weights = 1 / np.arange(1, vocabulary + 1)
    flat = words[draw.choice(vocabulary, int(lengths.sum()), p=weights / weights.sum())].tolist()
    ends = np.cumsum(lengths).tolist()
    return [" ".join(flat[end - length : end]) for end, length in zip(ends, lengths.tolist(), strict=True)]


def dictionaries(words: int, most: int) -> Dictionaries:
    """Return one to `most` translations of each of the first `words` words, by target language."""
    return {lang: {f"word{n}": [f"{lang}{n}.{way}" for way in range(n % most + 1)] for n in range(words)} for lang in TARGETS}


def peer(texts: list[str], known: Dictionaries, probability: float, seed: int) -> tuple[list[str], int]:
    """Return the switched sentences, and how many words were replaced."""
    draw = random.Random(seed)
    langs, switched, replaced = list(known), [], 0
    for text in texts:
        words, dictionary = [], known[draw.choice(langs)]
        for word in text.split():
            if draw.random() < probability and word.lower() in dictionary:
                words.append(draw.choice(dictionary[word.lower()]))
                replaced += 1
            else:
                words.append(word)
        switched.append(" ".join(words))
    return switched, replaced


def builder(folder: Path, known: Dictionaries, probability: float, seed: int) -> Any:
    """Return our builder, its dictionaries read from files."""
    paths = {}
    for lang, words in known.items():
        pairs = [(word, other) for word, others in words.items() for other in others]
        columns = {"id": [f"d:{n}" for n in range(len(pairs))], "a_lang": ["en"] * len(pairs), "a_text": [a for a, _ in pairs]}
        paths[lang] = folder / f"{lang}{len(pairs)}.parquet"
        write_rows(paths[lang], pa.table({**columns, "b_lang": [lang] * len(pairs), "b_text": [b for _, b in pairs]}), "bitext")
    options = {"dictionaries": {lang: lang for lang in known}, "probability": probability}
    return VIEWS.get("code_switch")(Setting("benchmark", paths, seed), **options)  # type: ignore[call-arg]


def ours(made: Any, table: pa.Table) -> pa.Table:
    """Return the copies of all rows, made in batches as the stage of views makes them."""
    return pa.concat_tables([made.augment(pa.Table.from_batches([batch]), SIDES) for batch in table.to_batches(65_536)])


def check(folder: Path, texts: list[str], table: pa.Table, args: argparse.Namespace) -> None:
    """End the benchmark unless both make the same sentences where nothing is left to chance."""
    certain = {"de": dictionaries(args.words, 1)["de"]}
    if ours(builder(folder, certain, 1.0, args.seed), table)["text"].to_pylist() != peer(texts, certain, 1.0, args.seed)[0]:
        raise SystemExit("the sentences differ at probability 1")


def main(args: argparse.Namespace) -> None:
    """Check, time both in turns, and print."""
    texts, known = sentences(args.sentences, 2 * args.words, args.seed), dictionaries(args.words, 3)
    ids = [f"c:{n}" for n in range(len(texts))]
    table = pa.table({"id": ids, "lang": ["en"] * len(ids), "text": texts}, schema=SCHEMAS["mono"])
    with tempfile.TemporaryDirectory() as name:
        check(Path(name), texts[:5000], table.slice(0, 5000), args)
        made = builder(Path(name), known, args.probability, args.seed)
    took: dict[str, list[tuple[float, float]]] = {"peer": [], "ours": []}
    for turn in range(args.repeats):
        ways = {"peer": lambda: peer(texts, known, args.probability, args.seed + turn), "ours": lambda: ours(made, table)}  # noqa: B023
        for way, work in ways.items():
            wall, processor, found = timed(work)
            took[way].append((wall, processor))
            if way == "peer":
                theirs = found[1]
    counts = made.counts()
    share, other = counts["replaced_share"], theirs * args.repeats / counts["words"]
    apart = abs(share - other) / (share * (1 - share) * (1 / counts["words"] + args.repeats / counts["words"])) ** 0.5
    print(f"{machine()}; {versions('pyarrow', 'xxhash')}; seed {args.seed}")
    print(f"{len(texts):,} sentences, {counts['words'] // args.repeats:,} words, {args.words:,} of twice as many in the dictionaries")
    print(f"equal sentences at probability 1; at {args.probability} ours replaces {share:.4f} of the words, the peer {other:.4f}")
    if apart > 5:
        raise SystemExit(f"the shares are {apart:.1f} standard errors apart")
    walls, processors = ({way: statistics.median(pair[at] for pair in pairs) for way, pairs in took.items()} for at in (0, 1))
    for way, seconds in processors.items():
        print(f"{way}: {walls[way]:.2f} s wall, {seconds:.2f} s processor, {len(texts) / seconds:,.0f} sentences a processor second")
    print(f"ratio by wall time: {walls['peer'] / walls['ours']:.2f}")
    print(f"ratio: {processors['peer'] / processors['ours']:.2f}")


if __name__ == "__main__":
    arguments = parser(__doc__)
    arguments.add_argument("--sentences", type=int, default=200_000)
    arguments.add_argument("--words", type=int, default=100_000, help="entries of each dictionary")
    arguments.add_argument("--probability", type=float, default=0.75)
    arguments.add_argument("--repeats", type=int, default=3)
    arguments.add_argument("--seed", type=int, default=42)
    main(arguments.parse_args())
