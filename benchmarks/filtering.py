"""Ten filter rules beside OpusFilter 3.3.1, on 200,000 real sentence pairs (Tatoeba en-de and en-fr, TICO-19 en-fr).

The same two text files, the same rules and thresholds; both sides run as commands of their own and take turns. The line numbers that
each keeps are compared: for a line on which they disagree, both judge it rule by rule, and the difference must have one of the known
reasons; one without a reason ends the benchmark with an error. Prints times net of start-up (a run on 100 pairs), processor times,
peak memory, and as its last line `ratio: <peer time / our time>`.

OpusFilter goes into a throw-away virtual environment, unless `--opusfilter` names an installed one. The real text is read from the
folder that CROSSLIGN_MIRROR names, else from ../shared/mirror.

    python benchmarks/filtering.py --pairs 200000 --repeats 3 --threads 1
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import tempfile
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from _common import Cost, machine, official_files, parser, versions
from _opusfilter import LANGS, VERSION, by_crosslign, by_opusfilter, chosen, opusfilter, rules_of_peer, sides, step, tatoeba

PEER_JUDGE = """
import json, sys
from opusfilter import filters
rules, pairs = json.load(sys.stdin)
made = [getattr(filters, name)(**options) for name, options in rules]
json.dump([[bool(rule.accept(next(iter(rule.score([pair]))))) for rule in made] for pair in pairs], sys.stdout)
"""


def _foreign_digit(character: str) -> bool:
    return not character.isascii() and bool(unicodedata.decimal(character, 0))


def _shared_letter(character: str) -> bool:
    return character.isalpha() and not unicodedata.name(character, "").startswith("LATIN")


KNOWN: tuple[tuple[str, str, Callable[[str], bool]], ...] = (
    ("html_tags", "an end tag without a beginning or a comment, which the peer does not count", lambda t: "</" in t or "<!" in t),
    ("html_tags", "a `<` that begins no tag: the peer's parser repairs it into one", lambda t: "<" in t),
    ("longest_common_substring", "200 characters or more: the peer's search leaves out frequent characters", lambda t: len(t) >= 200),
    ("non_zero_numerals", "digits of another script, which the peer does not see", lambda t: any(map(_foreign_digit, t))),
    ("terminal_punctuation", "marks of another script, which the peer does not see", lambda t: any(map("。．？！؟۔।".__contains__, t))),
    ("character_script", "letters that all scripts share, which we leave out", lambda t: any(map(_shared_letter, t))),
)
"""Rule, why the two may judge a pair differently by it, and whether a side is such a text; the first that fits holds."""


def reason(rule: str, a: str, b: str) -> str | None:
    """Return why the two may judge a pair differently by one rule, None where nothing is known."""
    return next((why for known, why, fits in KNOWN if known == rule and (fits(a) or fits(b))), None)


def tico(folder: Path, code: str) -> Iterator[tuple[str, str]]:
    """Yield (English, other) of one of the translation memories."""
    with zipfile.ZipFile(folder / "tico19" / f"all.en-{code}.tmx.zip") as archive, archive.open(f"all.en-{code}.tmx") as stream:
        for _, unit in ElementTree.iterparse(stream):
            if unit.tag == "tu":
                english, other = (" ".join((segment.text or "").split()) for segment in unit.iter("seg"))
                if english and other:
                    yield english, other


def write_pairs(folder: Path, pairs: int) -> list[tuple[str, str]]:
    """Write `pairs.en` and `pairs.de` (the second side in German, then French) and a hundred of them for the start-up; return them."""
    source = official_files("tatoeba-bilingual", "tico19")
    real = [*tatoeba(source, "deu"), *tico(source, "fr"), *tatoeba(source, "fra")][:pairs]
    if len(real) < pairs:
        raise SystemExit(f"the folder has {len(real):,} pairs, fewer than {pairs:,}")
    for name, part in (("pairs", real), ("few", real[:100])):
        for side, path in enumerate(sides(folder, name).values()):
            path.write_text("".join(pair[side] + "\n" for pair in part), encoding="utf-8", newline="\n")
    return real


def ours(folder: Path, name: str, rules: str, threads: int) -> None:
    """Filter with crosslign (what the measured command does)."""
    from crosslign.corpora.build import build_corpus

    steps = [{rule: options} for rule, options, _, _ in chosen(rules)]
    entry: Any = {"kind": "bitext", "reader": "moses", "langs": [*LANGS], "filters": steps}
    build_corpus("c", entry, sides(folder, name), {}, folder / f"{name}.parquet", threads=threads)


def kept_by_us(folder: Path) -> set[int]:
    """Return the numbers, from 0, of the lines that we keep."""
    import pyarrow.parquet as pq

    ids = pq.read_table(folder / "pairs.parquet", columns=["id"])["id"].to_pylist()
    return {int(row.rsplit(":", 1)[1]) - 1 for row in ids}


def kept_by_peer(folder: Path, pairs: Sequence[tuple[str, str]]) -> set[int]:
    """Return the numbers of the lines that OpusFilter keeps, found again in order."""
    texts = [path.read_text(encoding="utf-8").split("\n")[:-1] for path in sides(folder, "pairs.kept").values()]
    kept, number = set(), 0
    for pair in zip(*texts, strict=True):
        while pairs[number] != pair:
            number += 1
        kept.add(number)
        number += 1
    return kept


def disagreements(folder: Path, peer: Path, pairs: Sequence[tuple[str, str]], rules: str) -> Counter[str]:
    """Return the reasons for which the two keep different lines, counted; print each line.

    Raises:
        SystemExit: a line without a known reason.
    """
    from crosslign.corpora.filters import FILTERS, Filter, Setting, Sides

    differing = sorted(kept_by_us(folder) ^ kept_by_peer(folder, pairs))
    given = [pairs[number] for number in differing]
    judged = Sides([a for a, _ in given], ["en"] * len(given), [b for _, b in given], ["de"] * len(given))
    made = [FILTERS.get(rule)(Setting(("en", "de")), **options) for rule, options, _, _ in chosen(rules)]
    our_votes = [rule.keep(judged).tolist() for rule in made if isinstance(rule, Filter)]
    question = json.dumps([[(theirs, options) for _, _, theirs, options in chosen(rules)], given])
    answer = subprocess.run([peer.parent / "python", "-c", PEER_JUDGE], input=question, capture_output=True, text=True, check=True)
    reasons: Counter[str] = Counter()
    for row, (number, their_votes) in enumerate(zip(differing, json.loads(answer.stdout), strict=True)):
        for (rule, *_), mine, theirs in zip(chosen(rules), our_votes, their_votes, strict=True):
            if mine[row] != theirs:
                why = reason(rule, *given[row])
                print(f"line {number + 1}, {rule}: ours {'keeps' if mine[row] else 'drops'} {given[row]!r}: {why or 'UNEXPLAINED'}")
                reasons[why or "unexplained"] += 1
    if reasons["unexplained"] or (differing and not reasons):
        raise SystemExit("lines without a known reason")
    return reasons


def net(costs: Mapping[str, list[Cost]], who: str, field: str) -> float:
    """Return the median cost without that of starting."""
    few, many = (statistics.median(float(getattr(cost, field)) for cost in costs[f"{who} {name}"]) for name in ("few", "pairs"))
    return many - few


def compare(folder: Path, peer: Path, pairs: Sequence[tuple[str, str]], args: argparse.Namespace, rules: str) -> float:
    """Run both on one set of rules, print what they took, and return the ratio of wall times."""
    costs: dict[str, list[Cost]] = {}
    for turn in range(args.repeats):
        for name in ("few", "pairs"):
            for who in ("ours", "OpusFilter")[:: 1 if turn % 2 else -1]:
                if who == "ours":
                    cost = by_crosslign(__file__, str(folder), name, rules, "--threads", str(args.threads))
                else:
                    filtering = step("filter", name, f"{name}.kept", folder, filters=rules_of_peer(rules))
                    cost = by_opusfilter(peer, folder, [filtering], args.threads)
                costs.setdefault(f"{who} {name}", []).append(cost)
    found = disagreements(folder, peer, pairs, rules)
    print(f"-- {len(chosen(rules))} rules{'' if rules == 'all' else ', without html_tags (the peer parses HTML)'}:")
    print(f"kept: {len(kept_by_us(folder)):,} of {len(pairs):,}; disagreements: {dict(found) or 'none'}; unexplained: 0")
    for who in ("OpusFilter", "ours"):
        wall, processor = net(costs, who, "wall"), net(costs, who, "processor")
        memory = max(cost.memory for cost in costs[f"{who} pairs"])
        print(
            f"{who}: {wall:.2f} s wall, {processor:.2f} s processor, {len(pairs) / wall:,.0f} pairs/s, "
            f"{len(pairs) / processor:,.0f} pairs a processor second, peak {memory:.0f} MiB"
        )
    print(f"ratio of processor times: {net(costs, 'OpusFilter', 'processor') / net(costs, 'ours', 'processor'):.2f}")
    ratio = net(costs, "OpusFilter", "wall") / net(costs, "ours", "wall")
    print(f"ratio of wall times: {ratio:.2f}")
    return ratio


def main() -> None:
    """Run the comparison."""
    command = parser(__doc__)
    command.add_argument("--pairs", type=int, default=200_000)
    command.add_argument("--repeats", type=int, default=3)
    command.add_argument("--threads", type=int, default=1, help="processes of both")
    command.add_argument("--opusfilter", help="an installed opusfilter command")
    command.add_argument("--run", nargs=3, metavar=("FOLDER", "NAME", "RULES"), help=argparse.SUPPRESS)
    args = command.parse_args()
    if args.run:
        ours(Path(args.run[0]), args.run[1], args.run[2], args.threads)
        return
    folder = Path(tempfile.mkdtemp(prefix="crosslign-filtering-"))
    try:
        pairs = write_pairs(folder, args.pairs)
        peer = opusfilter(folder, args.opusfilter)
        print(f"machine: {machine()}; {versions('pyarrow', 'numpy')}")
        print(f"{len(pairs):,} pairs, {args.threads} process(es), median of {args.repeats}, OpusFilter {VERSION}, net of start-up")
        compare(folder, peer, pairs, args, "no_html")
        print(f"ratio: {compare(folder, peer, pairs, args, 'all'):.2f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
