"""Exact k nearest neighbours by cosine, in both directions, from one pass over similarity tiles.

The result is that of a full comparison of the exact scores (`vectors`), whatever the tile size, precision, number of threads, device,
number of devices, or interruptions. Small sides are compared just so, in numpy; all else here is for large ones.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import pairwise
from threading import Event

import numpy as np
import torch
from torch import Tensor

from crosslign.errors import InputError, ResourceError
from crosslign.memory import free_memory, is_out_of_memory
from crosslign.mining.lists import Neighbours, State
from crosslign.mining.resume import Resume, digest
from crosslign.mining.search import EndedError, Search, Step, full_products
from crosslign.mining.side import SIZES, Side, rounded_up
from crosslign.mining.tiles import EMPTY, WIDTH, BoundExceededError, key_indices, key_scores
from crosslign.progress import Progress
from crosslign.vectors import Vectors, as_scores, grid_rows, name_of, open_both

KEPT = 4 << 30
"""Bytes of a side's rows that stay in a processor's memory, at most."""
WHOLE = 1 << 22
"""Pairs up to which two sides are compared as a whole, which is as fast as tiles: those of one tile on a CPU."""
SMALLEST = 1024
"""Rows and columns below which a tile is not made smaller to fit into a device's memory."""

log = logging.getLogger(__name__)


def product_dtype(device: torch.device) -> torch.dtype:
    """Return the type in which a device multiplies matrices fastest with float32 accumulation: bfloat16 or float32."""
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    flags = torch.cpu.get_capabilities()
    return torch.bfloat16 if any(flags.get(flag) for flag in ("amx_bf16", "avx512_bf16", "bf16")) else torch.float32


def neighbours(
    sources: Vectors,
    targets: Vectors,
    k: int,
    *,
    k_back: int | None = None,
    source_rows: np.ndarray | None = None,
    target_rows: np.ndarray | None = None,
    device: str | Sequence[str] = "cpu",
    tile: tuple[int, int] | None = None,
    dtype: torch.dtype | None = None,
    keep: int | None = None,
    state: State | None = None,
) -> Neighbours:
    """Return the k nearest targets of each source and the k nearest sources of each target.

    Memory: a low-precision copy of the smaller side (its rows * (d + 13) * 2 bytes at most), the rows of each side up to `keep` bytes
    (float32; on a GPU float16 where they are that), the best lists, and one tile; for each device. It does not grow with n * m.

    Args:
        sources, targets: arrays [n, d] and [m, d] of float16, float32 or float64, or paths of `.npy` files, which are memory-mapped.
            They are never changed; copies are normalised.
        k: neighbours of each row, at least 1; capped at the size of the other side.
        k_back: neighbours of each target, where that is another number than `k`; 0 for none, which saves their re-scoring.
        source_rows, target_rows: int64, rows of these that take part, in this order; indices of the result count them from 0.
        device: a torch device, or several of one kind that share the rows of the larger side.
        tile: rows and columns of a tile, multiples of 16; changes time and memory, never the result. Tiles that do not fit into a
            device's memory are made smaller. By default there are none where the sides are small.
        dtype: torch.bfloat16 or torch.float32 for the tiles; default: what the device multiplies fastest. Never changes the result.
        keep: bytes of a side's rows that may stay on each device; a larger side is read again where its rows are needed. Default:
            4 GiB on a CPU, on a GPU a quarter of what is free there.
        state: where to keep the running best lists, and to look for those of a search that was killed.

    Raises:
        InputError: unequal dimensions, no rows, or a row of NaN, infinity or zeros; names file and row.
        ResourceError: a device's memory is too small, even for small tiles, or a device failed; names it and its rows.
    """
    left, right = open_both(sources, targets)
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 1:
        raise InputError(f"k must be a whole number, at least 1, not {k!r}", where="nearest neighbours")
    given = [(left, source_rows, name_of(sources, "sources")), (right, target_rows, name_of(targets, "targets"))]
    lengths = k, k if k_back is None else k_back
    if tile is None and dtype is None and math.prod(len(side if rows is None else rows) for side, rows, _ in given) <= WHOLE:
        return _compared(given, lengths)
    devices = [torch.device(name) for name in ([device] if isinstance(device, str) else device)]
    # The side whose copy stays in memory is the smaller one; ties are broken alike in both directions, so the result is the same.
    swapped = len(right if target_rows is None else target_rows) > len(left if source_rows is None else source_rows)
    if swapped:
        given, lengths = given[::-1], lengths[::-1]
    bound = _keep(devices) if keep is None else keep
    try:
        rows, columns = (Side(*side, devices[0], bound) for side in given)
        sides = [(rows, columns) if place == devices[0] else (rows.on(place), columns.on(place)) for place in devices]
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise _no_room(map(str, devices), "the vectors") from error
    sums = {name: digest(*side[:2]) for name, side in zip(("rows", "columns"), given, strict=True)} if state else {}
    identity = {"k": str(lengths), **sums, "version": state.version} if state else {}
    step, size = Step(dtype or product_dtype(devices[0])), tile or _tile(devices, rows.n)
    found = _found(_Plan(sides, lengths, step, size, state, identity))
    return found.turned() if swapped else found


def _compared(sides: Sequence[tuple[np.ndarray, np.ndarray | None, str]], k: tuple[int, int]) -> Neighbours:
    """Compare all rows of two sides, matrix, rows and name of each, without tiles."""
    for _, rows, name in sides:
        if rows is not None and not len(rows):
            raise InputError("no vectors to search", where=name)
    left, right = (grid_rows(side, np.arange(len(side)) if rows is None else rows, name).astype(np.float64) for side, rows, name in sides)
    scores = as_scores(left @ right.T)
    return Neighbours(*_nearest(scores, k[0]), *_nearest(scores.T, k[1]))


def _nearest(scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the best columns of each row, and their scores; of equal scores the lower column first."""
    found = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.ascontiguousarray(found), np.ascontiguousarray(np.take_along_axis(scores, found, 1))


def _found(plan: _Plan) -> Neighbours:
    """Search; take a more precise step where a device's product broke its bound, and smaller tiles where its memory is too small."""
    # Each step is taken only when a product broke the bound of the one before; the last makes no products that need a bound.
    steps = iter(dict.fromkeys([plan.step, Step(torch.float32), Step(torch.float32, exact=True)]))
    plan = replace(plan, step=next(steps))
    while True:
        try:
            return plan.run()
        except BoundExceededError:
            log.warning("a product in %s exceeds its error bound: restarting with higher precision", plan.step)
            plan = replace(plan, step=next(steps))
        except _ShareError as error:
            if not is_out_of_memory(error.cause):
                if "CUDA" not in str(error.cause):  # no device's failure, but a fault of the program's
                    raise error.cause from None
                do = "Run the same command again: finished rows are kept. If it fails again, search without this device"
                raise ResourceError("a search failed", where=str(error), why=_first_line(error.cause), do=do) from error.cause
            if max(plan.tile) <= SMALLEST:
                raise _no_room([str(error)], f"tiles of {plan.tile[0]} x {plan.tile[1]}") from error.cause
            log.warning("%s: tiles of %d x %d do not fit into the device's memory: restarting with smaller ones", error, *plan.tile)
            plan = replace(plan, tile=(_half(plan.tile[0]), _half(plan.tile[1])))
        free_memory()


def _half(size: int) -> int:
    return rounded_up(max(size // 2, min(size, SMALLEST)), WIDTH)


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def _no_room(where: Iterable[str], what: str) -> ResourceError:
    names = ", ".join(dict.fromkeys(where))
    do = "End other processes that use its memory, or search on a larger device or on the CPU"
    return ResourceError("the device's memory is too small for a search", where=names, why=f"no space for {what}", do=do)


def _keep(devices: Sequence[torch.device]) -> int:
    """Return how many bytes of a side's rows may stay on each device: on GPUs both sides leave half of what is free for all else."""
    return min(KEPT if device.type == "cpu" else _free(device) // 4 for device in devices)


def _free(device: torch.device) -> int:
    """Return the free bytes of a GPU, with those that torch holds for later use."""
    free: int = torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return free


def _tile(devices: Sequence[torch.device], rows: int) -> tuple[int, int]:
    """Return the size of tiles, such that there is a tile row for each device."""
    height, width = SIZES[devices[0].type].tile
    return min(height, rounded_up(-(-rows // len(devices)), WIDTH)), width


class _ShareError(Exception):
    """What failed in one share; the message says on which device, and which rows."""

    def __init__(self, device: torch.device, what: str, rows: slice, cause: BaseException) -> None:
        super().__init__(f"{device}, rows {rows.start} to {rows.stop - 1} of {what}")
        self.cause = cause


@dataclass(frozen=True)
class _Plan:
    """A search in shares, one a device.

    Attributes:
        sides: sources and targets as each device holds them.
        k, step, tile: as `Search` takes them.
        state: where running best lists are kept.
        identity: what the result depends on.
    """

    sides: Sequence[tuple[Side, Side]]
    k: tuple[int, int]
    step: Step
    tile: tuple[int, int]
    state: State | None
    identity: dict[str, str]

    def run(self) -> Neighbours:
        """Search all shares, side by side, and join their best lists."""
        shares = _shares(self.sides[0][0].n, len(self.sides), self.tile[0])
        states = [self._resume(share) for share in shares]
        progress = Progress(self.sides[0][0].n, "searched", "rows")

        def search(number: int, end: Event | None = None) -> tuple[Tensor, Tensor]:
            x, y = self.sides[number]
            try:
                return Search(x, y, self.k, self.step, self.tile, shares[number]).run(progress, states[number], end)
            except (RuntimeError, MemoryError) as error:
                raise _ShareError(x.device, x.name, shares[number], error) from error

        try:
            with full_products():
                found = [search(0)] if len(shares) == 1 else _side_by_side(search, len(shares))
        except BoundExceededError:
            self._clear(f"rows-*-{self.step}.safetensors")
            raise
        self._clear("rows-*.safetensors")
        return _unpack(torch.cat([forward for forward, _ in found]), _joined([backward for _, backward in found]))

    def _clear(self, states: str) -> None:
        """Remove states, those of another number of devices too."""
        if self.state:
            for path in self.state.folder.glob(states):
                path.unlink()

    def _resume(self, share: slice) -> Resume | None:
        if self.state is None:
            return None
        name = f"rows-{share.start}-{share.stop}-{self.step}"
        return Resume(self.state.folder / f"{name}.safetensors", {**self.identity, "share": name}, self.state.every)


def _side_by_side(search: Callable[[int, Event], tuple[Tensor, Tensor]], shares: int) -> list[tuple[Tensor, Tensor]]:
    """Return what each share finds; where one fails, or who waits is interrupted, the others keep what they have and end."""
    end = Event()
    with ThreadPoolExecutor(shares) as pool:
        searches = [pool.submit(search, number, end) for number in range(shares)]
        try:
            wait(searches, return_when=FIRST_EXCEPTION)
        finally:  # the pool waits for its threads
            end.set()
    errors = [error for one in searches if (error := one.exception()) is not None and not isinstance(error, EndedError)]
    if errors:  # a broken bound first: what its search keeps is worthless
        raise min(errors, key=lambda error: not isinstance(error, BoundExceededError))
    return [one.result() for one in searches]


def _shares(rows: int, devices: int, height: int) -> list[slice]:
    """Cut rows into shares of whole tile rows, as equal as these allow; at most one a device, none empty."""
    strips = -(-rows // height)
    edges = [min(rows, strips * number // devices * height) for number in range(devices + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges) if stop > start]


def _joined(lists: Sequence[Tensor]) -> Tensor:
    """Return the best lists of what several shares found; no candidate is in two of them."""
    return lists[0] if len(lists) == 1 else torch.cat(list(lists), 1).topk(lists[0].shape[1], 1).values


def _unpack(forward: Tensor, backward: Tensor) -> Neighbours:
    if (forward == EMPTY).any() or (backward == EMPTY).any():
        raise AssertionError("a best list is not full")
    parts = [part.numpy() for keys in (forward, backward) for part in (key_indices(keys), key_scores(keys))]
    return Neighbours(parts[0], parts[1], parts[2], parts[3])
