"""One side of a search, on its device: scores of its rows on the grid (`vectors` says what these are), and low-precision copies.

Products of copies give cosines less a constant, with a proven bound on the error.

For centres p and q, the means of the two sides, and u = x - p, v = y - q, the exact dot product of two grid rows (`vectors`) is

    xy = uv + (xq - pq) + (yp - pq) + pq.

The last term is one constant, the **shift**. The two before it are numbers of one row each; each is written as a sum of three
low-precision numbers, which stand beside u as further coordinates, against ones beside v, and the other way round. So the product of two
copies approaches xy - shift. Sentence vectors point in similar directions; without their centres they are short, and so are the errors
of the copies and of rounding the product.

Bound. Let u', v' be the copies, a, b the two numbers, r the relative error of one accumulation (2^-24 where sums are rounded to nearest
in float32; 2^-22 for matrix units that truncate, see below). By Cauchy and Schwarz |u'v' - uv| <= |u' - u||v'| + |u||v' - v|; the three
pieces miss 2^-24 of a and b; summing n products errs by at most n r times the sum of their magnitudes. A score is xy rounded to float32.
With |v'|, |v' - v| and |b| replaced by the largest of the other side, a product t before it is rounded to the tile's type has

    |t + shift - score| <= 1.01 (|u' - u| V' + |u| E + (d + 32) r (|u'| V' + |a| + B)) + 2^-22.

The matrix units of NVIDIA's GPUs take c products at a time, 4 (Volta) to 16 (Hopper), shift them and the sum so far to the largest
exponent, cut each off behind 23 to 25 bits, and cut off the sum of them to float32 (Fasi et al. 2021, doi:10.7717/peerj-cs.330; Khattak
and Mikaitis 2025, arXiv:2512.07004). So c products cost at most (c + 2) 2^-23 of the sum of all magnitudes, and all n of them at most
n/c (c + 2) 2^-23 <= 3/4 n 2^-22 of it. Sums of parts of the row, added in float32, cost less.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

import crosslign.vectors as unit_rows
from crosslign.errors import InputError
from crosslign.vectors import CHUNK, GRID, blocks, row_norms, to_grid

TYPES = {2: torch.float16, 4: torch.float32}
"""Types in which numbers reach a GPU, by their bytes; others become float64."""
PIECES = 3
ALIGNED = 8
"""Copies are so many columns wide, or a multiple: the matrix units of GPUs read rows of a multiple of 16 bytes at full speed."""
UNIT_ROUNDOFF = {torch.bfloat16: 2.0**-8, torch.float32: 0.0}
"""Relative error of rounding an accumulated float32 product to the tile's type."""
_ACCUMULATION = {torch.bfloat16: 2.0**-22, torch.float32: 2.0**-24}


@dataclass(frozen=True)
class Sizes:
    """Sizes of the blocks in which one kind of device works: they change time and memory, never a result.

    Attributes:
        tile: rows and columns of a tile, at most.
        read: rows that a thread of the host reads and measures at once.
        copied: rows of which low-precision copies are made at once.
        scored: pairs that are re-scored at once.
        looked_up: places of best lists in which pairs are looked up at once.
        dense: share of a tile's blocks that hold candidates above which all its pairs are scored, because that is cheaper.
        dense_rows: rows of such a tile that are scored at once.
    """

    tile: tuple[int, int]
    read: int
    copied: int
    scored: int
    looked_up: int
    dense: float
    dense_rows: int


# A processor is fast on what stays in its cache; on a GPU each call costs some microseconds, whatever it works on, and a dot product of
# two rows costs hundreds of times its share of a product of matrices.
SIZES = {
    "cpu": Sizes((1 << 11, 1 << 11), 1 << 9, 1 << 9, 1 << 9, 1 << 15, 1 / 2, 1 << 8),
    "cuda": Sizes((1 << 15, 1 << 15), 1 << 10, 1 << 14, 1 << 15, 1 << 22, 1 / 8, 1 << 10),
}
"""By type of device."""


def on_grid(rows: Tensor, scale: Tensor) -> Tensor:
    """Return rows on the grid, float32 [rows, d]; equal to `vectors.to_grid` on every device, as each operation is rounded by IEEE 754."""
    # A product with float64 is float64.
    return (rows * scale[:, None]).round_().mul_(1 / GRID).float()


def exact_scores(left: Tensor, right: Tensor) -> Tensor:
    """Return the scores of aligned grid rows: float32 [n, d] twice, to float32 [n]; equal to `vectors.exact_scores` on every device."""
    if left.device.type == "cpu":
        return torch.from_numpy(unit_rows.exact_scores(left.numpy(), right.numpy()))
    return _as_scores(left.double().mul_(right).sum(1))


def exact_score_matrix(left: Tensor, right: Tensor) -> Tensor:
    """Return the scores of all pairs of grid rows: [n, d] and [m, d], float32 or float64, to float32 [n, m]."""
    return _as_scores(left.double() @ right.double().T)


def _as_scores(dots: Tensor) -> Tensor:
    # Adding zero turns -0.0 into 0.0, which would otherwise be a different key.
    return dots.float().clamp_(-1.0, 1.0).add_(0.0)


class Side:
    """One side of a search.

    Args:
        vectors: array or memory map [rows, d], float16, float32 or float64.
        rows: which rows of it take part, in this order; all when None.
        name: how messages call this side.
        device: where products are made.
        keep: bytes of the side's rows that may stay on the device: as float32 on the grid, or, on a GPU, as the float16 that they are.
            A larger side is read again where rows of it are needed.

    Attributes:
        name: how messages call this side.
        device: where its rows on the grid, and products, are made.
        n, d: size of the side.
        centre: float32 [d], mean of the rows on the grid.

    Raises:
        InputError: no rows, or a row that has no direction (NaN, infinite, zero).
    """

    def __init__(self, vectors: np.ndarray, rows: np.ndarray | None, name: str, device: torch.device, keep: int) -> None:
        self._raw, self._rows, self.name, self.device = vectors, rows, name, device
        self.n, self.d = len(vectors) if rows is None else len(rows), vectors.shape[1]
        if not self.n:
            raise InputError("no vectors to search", where=name)
        # On a GPU float16 rows stay as they are, in half the memory, and go to the grid where they are needed.
        self._halved = vectors.itemsize == 2 and device.type == "cuda"
        dtype = torch.float16 if self._halved else torch.float32
        kept = torch.empty(self.n, self.d, dtype=dtype, device=device) if self.n * self.d * dtype.itemsize <= keep else None
        self._scale = np.empty(self.n)
        total = torch.zeros(self.d, dtype=torch.float64, device=device)
        for at, scale, sent, block in self._measured():
            self._scale[at] = scale
            total += block.sum(0)
            if kept is not None:
                kept[at] = sent if self._halved else block
        self.centre = (total / self.n).float()
        self._kept, self._scale_there = kept, torch.from_numpy(self._scale).to(device)

    def on(self, device: torch.device) -> Side:
        """Return the same side on another device."""
        other = copy(self)
        other.device, other.centre, other._scale_there = device, self.centre.to(device), self._scale_there.to(device)
        other._kept = None if self._kept is None else self._kept.to(device)
        return other

    def grid(self, at: slice | Tensor) -> Tensor:
        """Return rows on the grid, float32 [rows, d]; `at` is a slice or int64 indices."""
        if self._kept is None:
            where = at if isinstance(at, slice) else at.cpu().numpy()
            return self._placed(self._read(where), self._scale[where])[1]
        rows = self._kept[at] if isinstance(at, slice) else self._kept.index_select(0, at)
        return on_grid(rows, self._scale_there[at]) if self._halved else rows

    def _read(self, at: slice | np.ndarray) -> np.ndarray:
        return np.asarray(self._raw[at if self._rows is None else self._rows[at]])

    def _placed(self, raw: np.ndarray, scale: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return rows as they reach the device, and on the grid: put there before they go to it, or on it, if that is faster."""
        if self.device.type == "cpu":
            grid = torch.from_numpy(to_grid(raw, scale))
            return grid, grid
        sent = self._sent(raw)
        return sent, on_grid(sent, self._sent(scale))

    def _sent(self, array: np.ndarray) -> Tensor:
        # A GPU fetches pinned memory several times as fast, and while the host goes on; torch keeps it until it is fetched.
        pinned = torch.empty(array.shape, dtype=TYPES.get(array.itemsize, torch.float64), pin_memory=True)
        np.copyto(pinned.numpy(), array)
        return pinned.to(self.device, non_blocking=True)

    def _measured(self) -> Iterator[tuple[slice, np.ndarray, Tensor, Tensor]]:
        """Yield blocks of rows as `_measure` returns them; a few blocks ahead, one in each thread that torch may use."""
        threads = torch.get_num_threads()
        waiting: deque[tuple[slice, Future[tuple[np.ndarray, Tensor, Tensor]]]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            for at in blocks(self.n, SIZES[self.device.type].read):
                waiting.append((at, pool.submit(self._measure, at)))
                if len(waiting) > threads:
                    block, measured = waiting.popleft()
                    yield block, *measured.result()
            for block, measured in waiting:
                yield block, *measured.result()

    def _measure(self, at: slice) -> tuple[np.ndarray, Tensor, Tensor]:
        """Return what takes some rows to the grid, float64 [rows], and these rows as `_placed` does."""
        raw, scale = self._read(at), np.empty(at.stop - at.start)
        numbers = np.arange(at.start, at.stop) if self._rows is None else self._rows[at]
        for part in blocks(len(raw), CHUNK):
            # The order of a sum may change its last bit: lengths are numpy's, of the same rows at a time, whatever the device.
            scale[part] = GRID / row_norms(raw[part], numbers[part], self.name)
        return scale, *self._placed(raw, scale)


class Copies:
    """Low-precision copies of one side, for products with the other.

    Args:
        side: rows to copy.
        other: the side that they are multiplied with.
        dtype: torch.bfloat16 or torch.float32.
        first: whether this is the left side of the products.

    Attributes:
        shift: what a product lacks to the cosine.
        error, length, offset: float64 [n], |u' - u|, |u| and the row's number a.
    """

    def __init__(self, side: Side, other: Side, dtype: torch.dtype, first: bool) -> None:
        self._side, self._other_centre, self.dtype, self._first = side, other.centre.double(), dtype, first
        self.shift = float(side.centre.double() @ self._other_centre)
        device = side.centre.device
        self.error, self.length, self.offset = (torch.empty(side.n, dtype=torch.float64, device=device) for _ in range(3))
        for at in blocks(side.n, SIZES[device.type].copied):
            grid = side.grid(at)
            centred = grid - side.centre
            self.length[at] = torch.linalg.vector_norm(centred, dim=1, dtype=torch.float64)
            difference = centred - centred.to(dtype).float()
            self.error[at] = torch.linalg.vector_norm(difference, dim=1, dtype=torch.float64) + 2.0**-23 * self.length[at]
            self.offset[at] = grid.double() @ self._other_centre - self.shift

    def block(self, at: slice, multiple: int) -> Tensor:
        """Return the copies of a block of rows, [rows, d + 6], with rows and columns of zeros up to multiples of `multiple` and 8."""
        rows, d, device = at.stop - at.start, self._side.d, self.offset.device
        copy = torch.zeros(rounded_up(rows, multiple), rounded_up(d + 2 * PIECES, ALIGNED), dtype=self.dtype, device=device)
        for part in blocks(rows, SIZES[device.type].copied):
            copy[part, :d] = (self._side.grid(slice(at.start + part.start, at.start + part.stop)) - self._side.centre).to(self.dtype)
        own, ones = (d, d + PIECES) if self._first else (d + PIECES, d)
        copy[:rows, ones : ones + PIECES] = 1.0
        rest = self.offset[at].clone()
        for column in range(own, own + PIECES):
            copy[:rows, column] = rest.to(self.dtype)
            rest -= copy[:rows, column].double()
        return copy


def rounded_up(number: int, multiple: int) -> int:
    """Return the smallest multiple that is not smaller."""
    return -(-number // multiple) * multiple


def error_bounds(own: Copies, other: Copies) -> Tensor:
    """Return for each row of `own` a bound on the error of its products with any row of `other`: float64 [n]."""
    width, rounding = own._side.d + 32, _ACCUMULATION[own.dtype]
    copied, theirs = own.length + own.error, (other.length + other.error).max()
    magnitudes = copied * theirs + own.offset.abs() + other.offset.abs().max()
    bounds: Tensor = 1.01 * (own.error * theirs + own.length * other.error.max() + width * rounding * magnitudes) + 2.0**-22
    return bounds
