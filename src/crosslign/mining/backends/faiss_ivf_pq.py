"""faiss's inverted file with product quantisation: for corpora where an exact search is hopeless. Approximate, and it says how much.

The index proposes `k * k_factor` candidates from codes of `m` bytes a vector; their scores are then the exact ones of `vectors`, so what is
found has the score that an exact search gives it, and only the choice of candidates is approximate. Recall is measured on rows drawn from
both sides, whose exact neighbours are searched, and goes with the result. The index is built on the
CPU, searched on the GPUs of the job where faiss is built for them (`faiss-gpu-cu12`), and keeps no state.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosslign.console import number_of
from crosslign.errors import InputError
from crosslign.mining.backends import BACKENDS
from crosslign.mining.backends._faiss import load_faiss, on_devices, pieces, unit_rows
from crosslign.mining.knn import neighbours
from crosslign.mining.lists import Neighbours, State
from crosslign.vectors import GRID, blocks, exact_scores, open_both, row_norms, to_grid

PIECE = 16_384
"""Rows that are added, and searched, at a time."""

POINTS = 64
"""Vectors for each list, at most, that the quantisers are trained on."""

log = logging.getLogger(__name__)
Found = tuple[np.ndarray, np.ndarray]


def _index(faiss: Any, base: np.ndarray, name: str, lists: int | None, m: int, nbits: int, seed: int) -> Any:
    """Train an index on rows drawn from `base` and add them all."""
    n, d = base.shape
    lists = lists or max(1, min(int(4 * math.sqrt(n)), n // 39))
    needed = max(lists, 1 << nbits)
    if d % m or n < needed:
        why = (
            f"{number_of(d, 'dimension')} are not a multiple of m = {m}"
            if d % m
            else f"{number_of(n, 'vector')}, but the index needs at least {needed}"
        )
        raise InputError("faiss cannot build this index", where=f"{name}, backend faiss_ivf_pq", why=why, do="Change m, nbits or nlist")
    index = faiss.IndexIVFPQ(faiss.IndexFlatIP(d), d, lists, m, nbits, faiss.METRIC_INNER_PRODUCT)
    index.cp.min_points_per_centroid = index.pq.cp.min_points_per_centroid = 1  # else it prints a line a sub-quantiser
    if n < 39 * needed:
        log.warning("%d rows of %s are few for quantisers of %d centres: check the recall", n, name, needed)
    chosen = np.sort(np.random.default_rng(seed).permutation(n)[: POINTS * needed])
    index.train(unit_rows(base, chosen, name))
    for rows in pieces(n, PIECE):
        index.add(unit_rows(base, rows, name))
    log.info("indexed %d rows of %s in %d lists, %d bytes each", n, name, lists, m * nbits // 8)
    return index


def _on_grid(vectors: np.ndarray, rows: np.ndarray, name: str) -> np.ndarray:
    piece = np.asarray(vectors[rows])
    return to_grid(piece, GRID / row_norms(piece, rows, name))


def _rescored(queries: np.ndarray, rows: np.ndarray, base: np.ndarray, proposed: np.ndarray, k: int, names: tuple[str, str]) -> Found:
    """Return the best k of each row's proposals by exact score, of equal scores the lower index first; a gap (-1) comes last."""
    wide = np.repeat(rows, proposed.shape[1])
    flat = proposed.ravel()
    held, at = np.unique(np.maximum(flat, 0), return_inverse=True)
    left, right = _on_grid(queries, rows, names[0]), _on_grid(base, held, names[1])
    scores = np.empty(len(flat), dtype=np.float32)
    for part in blocks(len(flat), PIECE):
        scores[part] = exact_scores(left[wide[part] - rows[0]], right[at[part]])
    scores[flat < 0] = -np.inf
    table = scores.reshape(proposed.shape)
    order = np.lexsort((proposed, -table), axis=1)[:, :k]
    return np.take_along_axis(proposed, order, 1), np.take_along_axis(table, order, 1)


def _nearest(index: Any, queries: np.ndarray, base: np.ndarray, k: int, factor: int, names: tuple[str, str]) -> Found:
    """Return indices int64 [n, k] and scores float32 [n, k]; where the lists looked at held too few, indices -1."""
    wanted = min(k * factor, len(base))
    found = []
    for rows in pieces(len(queries), PIECE):
        proposed = index.search(unit_rows(queries, rows, names[0]), wanted)[1]
        found.append(_rescored(queries, rows, base, proposed, min(k, len(base)), names))
        log.info("searched %d of %d rows of %s", rows[-1] + 1, len(queries), names[0])
    indices, scores = zip(*found, strict=True)
    return np.concatenate(indices), np.concatenate(scores)


def _filled(found: Found, queries: np.ndarray, base: np.ndarray, k: int, devices: Sequence[str], name: str) -> Found:
    """Search the rows with a gap exactly: a margin over fewer neighbours than others have would rank them by their lack."""
    indices, scores = found
    gaps = np.flatnonzero((indices < 0).any(1))
    if len(gaps):
        log.warning(
            "%d of %d rows of %s found fewer than %d candidates; they are searched exactly. Raise nprobe", len(gaps), len(queries), name, k
        )
        near = neighbours(queries, base, k, k_back=0, source_rows=gaps, device=list(devices))
        indices[gaps], scores[gaps] = near.forward_indices, near.forward_scores
    return indices, scores


def _recall(found: np.ndarray, rows: np.ndarray, queries: np.ndarray, base: np.ndarray, devices: Sequence[str]) -> float:
    """Return the share of the exact neighbours of some rows that are among those found: found int64 [n, k], rows int64."""
    exact = neighbours(queries, base, found.shape[1], k_back=0, source_rows=rows, device=list(devices)).forward_indices
    return float((found[rows][:, :, None] == exact[:, None, :]).any(1).mean())


@BACKENDS.register(version=1)
def search(
    sources: Path,
    targets: Path,
    k: int,
    *,
    devices: Sequence[str],
    state: State,
    nlist: int | None = None,
    m: int = 32,
    nbits: int = 8,
    nprobe: int = 32,
    k_factor: int = 32,
    sample: int = 1000,
    seed: int = 42,
) -> Neighbours:
    """Search each direction by itself; options are named as faiss names them.

    Rows for which the lists looked at hold fewer than `k` vectors are searched exactly.

    Args:
        sources, targets, k, devices, state: as in `Backend`; nothing is kept in `state`.
        nlist: lists of the inverted file; 4 √n, and at least 39 vectors each, by default.
        m: sub-quantisers, a divisor of the dimension; with 8 bits each they are the bytes of a code.
        nbits: bits of a sub-quantiser.
        nprobe: lists that are looked at for each query.
        k_factor: candidates that get an exact score, for each neighbour wanted.
        sample: rows drawn from each side to measure recall on.
        seed: of training rows and sample.

    Raises:
        ResourceError: faiss is not installed.
        InputError: as `neighbours` raises; or the index cannot be built with these options.
    """
    faiss = load_faiss("faiss_ivf_pq")
    sides, names = open_both(sources, targets), (str(sources), str(targets))
    found: list[np.ndarray] = []
    recalls, weights = [], []
    for query, base in ((0, 1), (1, 0)):
        index = _index(faiss, sides[base], names[base], nlist, m, nbits, seed)
        index.nprobe = nprobe
        index = on_devices(faiss, index, devices)
        found_here = _nearest(index, sides[query], sides[base], k, k_factor, (names[query], names[base]))
        indices, scores = _filled(found_here, sides[query], sides[base], k, devices, names[query])
        rows = np.sort(np.random.default_rng(seed).permutation(len(sides[query]))[:sample])
        recalls.append(_recall(indices, rows, sides[query], sides[base], devices))
        weights.append(len(rows))
        found += [indices, scores]
    recall = float(np.average(recalls, weights=weights))
    log.info("recall@%d %.4f, measured on %d rows; forward %.4f, backward %.4f", k, recall, sum(weights), *recalls)
    return Neighbours(found[0], found[1], found[2], found[3], recall)
