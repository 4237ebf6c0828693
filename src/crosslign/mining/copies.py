"""Low-precision copies whose products give cosines less a constant, with a proven bound on the error.

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

import torch
from torch import Tensor

from crosslign.mining.side import Side
from crosslign.mining.sizes import SIZES
from crosslign.vectors import blocks

PIECES = 3
ALIGNED = 8
"""Copies are so many columns wide, or a multiple: the matrix units of GPUs read rows of a multiple of 16 bytes at full speed."""
UNIT_ROUNDOFF = {torch.bfloat16: 2.0**-8, torch.float32: 0.0}
"""Relative error of rounding an accumulated float32 product to the tile's type."""
_ACCUMULATION = {torch.bfloat16: 2.0**-22, torch.float32: 2.0**-24}


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
