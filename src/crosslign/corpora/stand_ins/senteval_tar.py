"""Synthetic data for SentEval's bundle: STS12 to STS16, the STS benchmark, SICK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslign.corpora import STAND_INS
from crosslign.corpora.stand_ins._packing import lines
from crosslign.corpora.stand_ins._sentences import GradedPair, graded_of, text_in

SUBSETS = {
    12: ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    13: ("FNWN", "headlines", "OnWN"),
    14: ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    15: ("answers-forums", "answers-students", "belief", "headlines", "images"),
    16: ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
"""Files of each year's test part."""
UNGRADED = frozenset({15, 16})
"""Years in which some pairs were not graded: the second line of each file has no grade there."""
GRADES_ALONE = {13: "SMT"}
"""The part of a year whose sentences are not in the bundle."""
SICK_PARTS = ("train", "trial", "test_annotated")
SICK_HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
BENCHMARK_PARTS = ("train", "dev", "test")


def _texts(pair: GradedPair) -> tuple[str, str]:
    return text_in(pair.first, "en"), text_in(pair.second, "en")


def _year(year: int, pairs: Sequence[GradedPair]) -> dict[str, bytes]:
    members: dict[str, bytes] = {}
    for at, subset in enumerate(SUBSETS[year]):
        part = pairs[at :: len(SUBSETS[year])]
        grades = ["" if number == 1 and year in UNGRADED else f"{pair.grade:g}" for number, pair in enumerate(part)]
        folder = f"STS/STS{year}-en-test"
        members[f"{folder}/STS.input.{subset}.txt"] = lines(["\t".join(_texts(pair)) for pair in part])
        members[f"{folder}/STS.gs.{subset}.txt"] = lines(grades)
    if year in GRADES_ALONE:
        members[f"STS/STS{year}-en-test/STS.gs.{GRADES_ALONE[year]}.txt"] = lines([f"{pair.grade:g}" for pair in pairs])
    return members


def _sick(pairs: Sequence[GradedPair]) -> bytes:
    rows = [
        "\t".join((str(number), *_texts(pair), f"{1 + 0.8 * pair.grade:.2f}", "ENTAILMENT" if pair.grade > 4 else "NEUTRAL"))
        for number, pair in enumerate(pairs, start=1)
    ]
    return lines([SICK_HEADER, *rows])


def _benchmark(part: str, pairs: Sequence[GradedPair]) -> bytes:
    head = f"main-written\twritten\t2026{part}"
    rows = []
    for number, pair in enumerate(pairs):
        sources = ("Written for crosslign",) * 2 if number % 7 == 1 else ()
        rows.append("\t".join((head, f"{number:04d}", f"{pair.grade:.3f}", *_texts(pair), *sources)))
    return lines(rows)


@STAND_INS.register(version=1)
def content(name: str, sentences: Sequence[Mapping[str, str]]) -> dict[str, bytes]:
    """Return the folders `STS` and `SICK` in a tar; the pairs of a year are cut into its files, those of a set into its parts."""
    pairs = graded_of(sentences)
    members: dict[str, bytes] = {}
    for year in SUBSETS:
        members |= _year(year, pairs)
    for at, part in enumerate(BENCHMARK_PARTS):
        members[f"STS/STSBenchmark/sts-{part}.csv"] = _benchmark(part, pairs[at :: len(BENCHMARK_PARTS)])
    for at, part in enumerate(SICK_PARTS):
        members[f"SICK/SICK_{part}.txt"] = _sick(pairs[at :: len(SICK_PARTS)])
    return members
