"""Bitext mining as in BUCC 2018, under each of its protocols (docs/protocols.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

import numpy as np

from crosslign.mining.dedup import Dedup
from crosslign.mining.lists import Neighbours
from crosslign.mining.margin import Margin, Retrieval
from crosslign.mining.threshold import Ties, best_threshold, extract
from crosslign.options import MinLen, Natural, Positive, Schema
from crosslign.tasks import SCORERS
from crosslign.tasks.data import EncodedCorpus, Machine, TaskData
from crosslign.tasks.measures import RESAMPLES, Bootstrap, Measure, centred, nearest_item_scores, resampled_item_scores
from crosslign.tasks.records import ThresholdFrom
from crosslign.tasks.scorers._mined import Mined, Split, judge, of_items, search, unify_split

Protocol = Literal["xtreme", "train_oracle", "sample_oracle", "official", "mteb"]

ROLES: dict[str, tuple[str, ...]] = {"dev": ("dev", "sample"), "test": ("test", "training"), "official": ("official",)}
"""Names that a task may give to its splits: BUCC's sample is the development set, its training set the test set (docs/protocols.md)."""
USES: dict[str, tuple[str, ...]] = {
    "xtreme": ("dev", "test"),
    "train_oracle": ("test",),
    "sample_oracle": ("dev",),
    "official": ("test", "official"),
    "mteb": ("test",),
}
GIVES: dict[str, tuple[tuple[str, ...]]] = {
    "f1": (("xtreme", "train_oracle", "sample_oracle"),),
    "precision": (("xtreme", "train_oracle", "sample_oracle"),),
    "recall": (("xtreme", "train_oracle", "sample_oracle"),),
    "extracted": (("xtreme", "train_oracle", "sample_oracle", "official"),),
    "recall_cap": (("xtreme", "train_oracle", "sample_oracle"),),
    "accuracy": (("mteb",),),
    "weighted_f1": (("mteb",),),
    "weighted_precision": (("mteb",),),
    "weighted_recall": (("mteb",),),
}
"""Metrics with their protocols."""
METRICS = {protocol: tuple(metric for metric, (of,) in GIVES.items() if protocol in of) for protocol in USES}
DEDUP: dict[str, Dedup] = {"xtreme": "text", "train_oracle": "text", "sample_oracle": "id", "official": "text"}
"""What each protocol does with repeated sentences unless the task says otherwise (docs/protocols.md)."""


@SCORERS.register(version=2, gives=GIVES, subsets_apart=True)
def bitext_mining(
    task: TaskData,
    *,
    protocols: Annotated[Sequence[Protocol], MinLen(1), Schema(uniqueItems=True)],
    k: Positive = 4,
    margin: Margin = "ratio",
    retrieval: Retrieval = "max",
    dedup: Dedup | None = None,
    threshold_ties: Ties = "group",
    resamples: Natural = RESAMPLES,
    seed: Natural = 42,
) -> Iterator[Measure]:
    """Yield for each language pair and protocol F1, precision, recall, number of pairs extracted, and the highest recall possible.

    Args:
        protocols: `xtreme`: threshold tuned on role dev (or sample), applied to test (or training); `train_oracle`, `sample_oracle`:
            threshold tuned on the gold that is scored, of test and of dev; `official`: threshold of test applied to role official, which
            has no gold; `mteb`: nearest neighbour of each source that has a partner, no margin, no threshold.
        k: neighbours that a margin is measured against, at most as many as the other side has.
        margin: cosine over (`ratio`) or less (`distance`) the mean of the cosines to both sides' neighbours, or the cosine (`absolute`).
        retrieval: best target of each source (`fwd`), best source of each target (`bwd`), best both ways (`intersect`), or best of both
            ways, each sentence once (`max`).
        dedup: `text` or `id` for all protocols, instead of each one's own (`id` of `sample_oracle`, `text` of the
            others); `mteb` never collapses sentences.
        threshold_ties: `group` looks at F1 only where a run of equal scores ends; `prefix` within it, too, as the reference does.
        resamples: bootstrap resamples of the source sentences for intervals, at the threshold that was chosen; they hold no
            uncertainty of that choice. 0 for none.
        seed: of the bootstrap.
    """
    found = {role: data for role, names in ROLES.items() if (data := task.corpus(*names)) is not None}
    bootstrap = Bootstrap(task.name, resamples, seed)
    for subset in dict.fromkeys(subset for data in found.values() for subset in data.subsets):
        corpora = {role: data for role, data in found.items() if subset in data.subsets}
        candidates = _Candidates(corpora, subset, k, margin, retrieval, task.machine)
        for protocol in protocols:
            missing = candidates.lacks(protocol)
            if missing:
                yield from (Measure(subset, metric, None, 0, protocol=protocol, reason=missing) for metric in METRICS[protocol])
            elif protocol == "mteb":
                yield from _nearest(candidates, bootstrap)
            elif protocol == "official":
                yield _extract_only(candidates, dedup or DEDUP[protocol], threshold_ties)
            else:
                yield from _with_threshold(candidates, protocol, dedup or DEDUP[protocol], threshold_ties, bootstrap)


class _Candidates:
    """Candidates of the splits of one language pair, each searched once."""

    def __init__(
        self, corpora: Mapping[str, EncodedCorpus], subset: str, k: int, margin: Margin, retrieval: Retrieval, machine: Machine
    ) -> None:
        self.corpora, self.subset = corpora, subset
        self._k, self._margin, self._retrieval, self._machine = k, margin, retrieval, machine
        self._splits = {role: Split.of(data, subset) for role, data in corpora.items()}
        self._neighbours: dict[str, Neighbours] = {}

    def lacks(self, protocol: str) -> str:
        """Say what a protocol lacks here, or return an empty string."""
        for role in USES[protocol]:
            split = self._splits.get(role)
            if split is None:
                return f"no text set of role {' or '.join(ROLES[role])} has this pair"
            if not len(split.left_rows) or not len(split.right_rows):
                return f"one side of role {role} is empty"
            if not len(split.sources) and role != "official":
                return f"no gold pairs of role {role}"
        return ""

    def mined(self, role: str, dedup: Dedup) -> Mined:
        """Return the candidates of a split."""
        split = self._splits[role]
        left, right = unify_split(split, dedup)
        if role not in self._neighbours:
            self._neighbours[role] = search(self.corpora[role], split, self._k, self._machine, f"{self.subset}-{role}")
        near = self._neighbours[role]
        near = of_items(near, split, self._k) if dedup == "id" else near
        return judge(split, left, right, near, self._margin, self._retrieval)


def _with_threshold(candidates: _Candidates, protocol: str, dedup: Dedup, ties: Ties, bootstrap: Bootstrap) -> Iterator[Measure]:
    tuned, scored = USES[protocol][0], USES[protocol][-1]
    mined = candidates.mined(scored, dedup)
    source = mined if tuned == scored else candidates.mined(tuned, dedup)
    threshold = best_threshold(source.scores, source.correct, source.gold_size, ties).threshold
    kept = extract(mined.scores, mined.correct, mined.gold_size, threshold)
    drawn = _resampled(mined, threshold, bootstrap)
    origin: ThresholdFrom = "same_gold" if tuned == scored else "dev"
    values = {
        "f1": kept.f1,
        "precision": kept.precision,
        "recall": kept.recall,
        "extracted": float(kept.extracted),
        "recall_cap": mined.recall_cap,
    }
    for metric, value in values.items():
        resamples = drawn.get(metric)
        yield Measure(candidates.subset, metric, value, mined.gold_size, "", protocol, threshold, origin, resamples=resamples)


def _resampled(mined: Mined, threshold: float, bootstrap: Bootstrap) -> dict[str, np.ndarray]:
    """Resample source sentences, each with its gold pairs, extracted pairs and correct pairs."""
    n, kept = len(mined.split.left_rows), mined.scores >= threshold
    parts = (mined.split.sources, mined.sources[kept], mined.sources[kept & mined.correct])
    drawn = bootstrap.means(np.stack([np.bincount(part, minlength=n) for part in parts], 1))
    if drawn is None:
        return {}
    gold, extracted, correct = drawn.T

    def share(of: np.ndarray, among: np.ndarray) -> np.ndarray:
        shares: np.ndarray = np.divide(of, among, out=np.zeros(len(of)), where=among > 0)
        return shares

    return {"f1": share(2 * correct, gold + extracted), "precision": share(correct, extracted), "recall": share(correct, gold)}


def _extract_only(candidates: _Candidates, dedup: Dedup, ties: Ties) -> Measure:
    train, mined = candidates.mined("test", dedup), candidates.mined("official", dedup)
    threshold = best_threshold(train.scores, train.correct, train.gold_size, ties).threshold
    extracted = float((mined.scores >= threshold).sum())
    return Measure(candidates.subset, "extracted", extracted, len(mined.split.left_rows), "", "official", threshold, "train")


def _nearest(candidates: _Candidates, bootstrap: Bootstrap) -> Iterator[Measure]:
    mined = candidates.mined("test", "id")
    sources, targets = mined.split.sources, mined.split.targets
    predicted = mined.neighbours.forward_indices[sources, 0]
    drawn = resampled_item_scores(targets, predicted, bootstrap)
    for metric, value in nearest_item_scores(targets, predicted).items():
        resamples = drawn.get(metric) if metric == "accuracy" else centred(drawn.get(metric), value)
        yield Measure(candidates.subset, metric, value, len(sources), protocol="mteb", resamples=resamples)
