"""One pass over the similarity tiles of two sides, or of a share of the sources and all targets.

Each tile is made once, in the fastest type that the device multiplies, feeds the running best lists of its rows and of its columns,
and is gone; candidates are re-scored exactly (`vectors`, `tiles`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event

import torch
from torch import Tensor

from crosslign.devices import float32_products
from crosslign.mining.resume import Resume
from crosslign.mining.side import SIZES, Copies, Side, error_bounds, exact_score_matrix, rounded_up
from crosslign.mining.tiles import EMPTY, WIDTH, Direction, to_keys
from crosslign.progress import Progress
from crosslign.vectors import blocks


class EndedError(Exception):
    """A search that ended early because it was told to."""


@dataclass(frozen=True)
class Step:
    """How tiles are made: `dtype` of their products; `exact`: scored as a whole in float64, with no products that need a bound."""

    dtype: torch.dtype
    exact: bool = False

    def __str__(self) -> str:
        return "exact" if self.exact else str(self.dtype).removeprefix("torch.")


class Search:
    """One pass over the tiles of two sides.

    Args:
        x, y: sources and targets.
        k: length of the best lists of the sources, and of the targets; 0 for none.
        step: how tiles are made.
        tile: rows and columns of a tile, at most.
        share: sources that this pass takes; all when None.

    Attributes:
        best: int64 [n, k], best lists of the sources, as keys.
        columns: best lists of the targets, fed by every tile.
    """

    def __init__(self, x: Side, y: Side, k: tuple[int, int], step: Step, tile: tuple[int, int], share: slice | None = None) -> None:
        if any(size < WIDTH or size % WIDTH for size in tile):
            raise ValueError(f"tile sizes must be multiples of {WIDTH}, not {tile}")
        dtype = step.dtype
        self.x, self.y, self.dtype, self.exact = x, y, dtype, step.exact
        self.share = share or slice(0, x.n)
        self.tile = min(tile[0], rounded_up(self.share.stop - self.share.start, WIDTH)), min(tile[1], rounded_up(y.n, WIDTH))
        self.x_copies, self.y_copies = Copies(x, y, dtype, first=True), Copies(y, x, dtype, first=False)
        self.k, self.shift = min(k[0], y.n), self.x_copies.shift
        self.row_bounds = error_bounds(self.x_copies, self.y_copies)
        self.best = torch.full((x.n, self.k), EMPTY, device=self.row_bounds.device)
        self._sizes = SIZES[self.best.device.type]
        column_bounds = error_bounds(self.y_copies, self.x_copies)
        # A column's candidates wait until their rows are done, and most of them stand in the lists of these.
        self.columns = Direction(y, x, column_bounds, self.shift, min(k[1], x.n), dtype, lists=self.best if self.k else None)

    def run(self, progress: Progress, resume: Resume | None = None, end: Event | None = None) -> tuple[Tensor, Tensor]:
        """Search; return the best lists of the share's rows and of all columns, as keys.

        Args:
            progress: told of each tile row.
            resume: where the lists are kept between tile rows; what an earlier run of the same search left there is taken over.
            end: when it is set, the search ends with the tile row at hand, which `resume` keeps.

        Raises:
            EndedError: `end` was set.
            BoundExceededError: a product broke the bound; what `resume` keeps is worthless.
        """
        column_blocks = list(blocks(self.y.n, self.tile[1]))
        copies = [] if self.exact else [self.y_copies.block(at, WIDTH) for at in column_blocks]
        # One buffer for all tiles: fresh memory would cost a page fault for every 4 KiB of each tile.
        buffer = torch.empty(0 if self.exact else self.tile[0] * self.tile[1], dtype=self.dtype, device=self.best.device)
        start = self.share.start + self._taken_over(resume)
        progress.skip(start - self.share.start)
        with torch.no_grad():
            for part in blocks(self.share.stop - start, self.tile[0]):
                strip = slice(start + part.start, start + part.stop)
                self._strip(strip, column_blocks, copies, buffer)
                ended = end is not None and end.is_set()
                if resume and (ended or resume.due()):
                    self.columns.resolve()
                    resume.save(self.best[self.share.start : strip.stop], self.columns.best)
                progress.add(strip.stop - strip.start)
                if ended:
                    raise EndedError
            self.columns.resolve()
        return self.best[self.share].cpu(), self.columns.best.cpu()

    def _taken_over(self, resume: Resume | None) -> int:
        """Take over the best lists that an earlier run left; return how many rows it has done."""
        saved = resume.load() if resume else None
        if saved is None:
            return 0
        forward, backward = saved
        self.best[self.share.start : self.share.start + len(forward)] = forward.to(self.best.device)
        self.columns.enter(slice(None), backward.to(self.best.device))
        return len(forward)

    def _strip(self, strip: slice, column_blocks: list[slice], copies: list[Tensor], buffer: Tensor) -> None:
        """Find the best lists of one tile row, and feed those of the columns."""
        rows = Direction(self.x, self.y, self.row_bounds[strip], self.shift, self.k, self.dtype, first=strip.start)
        low = None if self.exact else self.x_copies.block(strip, WIDTH)
        for index, at in enumerate(column_blocks):
            if low is None or not self._propose(rows, _product(low, copies[index], buffer), strip, at):
                self._score_all(rows, strip, at)
            if rows.crowded():
                rows.resolve()
        rows.resolve()
        self.best[strip] = rows.best
        if self.columns.crowded():
            self.columns.resolve()

    def _propose(self, rows: Direction, tile: Tensor, strip: slice, at: slice) -> bool:
        """Take the candidates of a low-precision tile; returns False, and takes none, when they are too many."""
        height, width = strip.stop - strip.start, at.stop - at.start
        tile[height:] = -torch.inf
        tile[:, width:] = -torch.inf
        across = tile.view(tile.shape[0], WIDTH, -1)
        down = tile.view(-1, WIDTH, tile.shape[1])
        row_maxima, column_maxima = across.amax(1)[:height], down.amax(1)[:, :width]
        rows.see_maxima(slice(0, height), row_maxima)
        self.columns.see_maxima(at, column_maxima.T.contiguous())
        row_hits = (row_maxima >= rows.thresholds[:, None]).nonzero(as_tuple=True)
        column_hits = (column_maxima >= self.columns.thresholds[at]).nonzero(as_tuple=True)
        if len(row_hits[0]) + len(column_hits[0]) > self._sizes.dense * (row_maxima.numel() + column_maxima.numel()):
            return False

        row, block = row_hits
        entries = across[row, :, block]
        hit, lane = (entries >= rows.thresholds[row, None]).nonzero(as_tuple=True)
        rows.propose(row[hit], at.start + lane * across.shape[2] + block[hit], entries[hit, lane])

        block, column = column_hits
        entries = down[block, :, column]
        hit, lane = (entries >= self.columns.thresholds[at][column, None]).nonzero(as_tuple=True)
        self.columns.propose(at.start + column[hit], strip.start + block[hit] * WIDTH + lane, entries[hit, lane])
        return True

    def _score_all(self, rows: Direction, strip: slice, at: slice) -> None:
        """Score a tile exactly as a whole, a few rows at a time."""
        targets = self.y.grid(at).double()
        numbers = torch.arange(at.start, at.stop, device=targets.device)
        for part in blocks(strip.stop - strip.start, self._sizes.dense_rows):
            own = slice(strip.start + part.start, strip.start + part.stop)
            scores = exact_score_matrix(self.x.grid(own), targets)
            rows.enter(part, _top(to_keys(scores, numbers), self.k))
            sources = torch.arange(own.start, own.stop, device=targets.device)
            self.columns.enter(at, _top(to_keys(scores.T, sources), self.columns.k))


def _product(left: Tensor, right: Tensor, buffer: Tensor) -> Tensor:
    tile = buffer[: len(left) * len(right)].view(len(left), len(right))
    return torch.mm(left, right.T, out=tile)


def _top(keys: Tensor, k: int) -> Tensor:
    return keys.topk(min(k, keys.shape[1]), 1).values


@contextmanager
def full_products() -> Iterator[None]:
    """Forbid TF32 and low-precision accumulation of products on GPUs, which the error bound does not cover."""
    settings = torch.backends.cuda.matmul
    reduction = settings.allow_bf16_reduced_precision_reduction, settings.allow_bf16_reduced_precision_reduction_split_k
    settings.allow_bf16_reduced_precision_reduction = False
    try:
        with float32_products("ieee"):
            yield
    finally:
        settings.allow_bf16_reduced_precision_reduction = reduction
