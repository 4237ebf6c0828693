"""Mining: exact nearest neighbours in both directions, margins, thresholds."""

from crosslign.mining.dedup import Unified, unify
from crosslign.mining.knn import Neighbours, neighbours
from crosslign.mining.margin import Pairs, mine
from crosslign.mining.threshold import Extraction, best_threshold, extract

__all__ = ["Extraction", "Neighbours", "Pairs", "Unified", "best_threshold", "extract", "mine", "neighbours", "unify"]
