"""How a search treats its device: precision of products, memory, and the sizes of blocks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from test_knn import clusters, equal

from crosslign.errors import ResourceError
from crosslign.mining import knn, search, side
from crosslign.mining.knn import neighbours
from crosslign.mining.side import Copies, Side, Sizes

CPU = torch.device("cpu")
MATMUL = torch.backends.cuda.matmul
NAMES = ("allow_bf16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction_split_k")


@pytest.fixture
def settings() -> Iterator[None]:
    """Put torch's settings back as they were."""
    before = MATMUL.fp32_precision, tuple(getattr(MATMUL, name) for name in NAMES)
    yield
    MATMUL.fp32_precision, MATMUL.allow_bf16_reduced_precision_reduction = before


@pytest.mark.parametrize("before", ["none", "tf32", "ieee"])
@pytest.mark.parametrize("reduction", [(True, True), (False, False), (False, True)])
@pytest.mark.usefixtures("settings")
def test_products_have_full_precision_and_leave_the_process_as_it_was(before: str, reduction: tuple[bool, bool]) -> None:
    MATMUL.fp32_precision, MATMUL.allow_bf16_reduced_precision_reduction = before, reduction
    seen = []

    def fail_inside() -> None:
        with search.full_products():
            seen.append((MATMUL.fp32_precision, MATMUL.allow_bf16_reduced_precision_reduction))
            raise KeyError

    with pytest.raises(KeyError):
        fail_inside()
    assert seen == [("ieee", False)]
    assert MATMUL.fp32_precision == before
    assert tuple(getattr(MATMUL, name) for name in NAMES) == reduction


@pytest.mark.parametrize("d", [1, 2, 768, 1024])
def test_copies_have_rows_of_whole_words_of_sixteen_bytes(d: int) -> None:
    sides = [Side(clusters(20, d, seed), None, "v", CPU, 1 << 30) for seed in (1, 2)]
    for dtype in (torch.bfloat16, torch.float32):
        copy = Copies(*sides, dtype, first=True).block(slice(0, 20), 16)
        assert len(copy) == 32
        assert copy.stride(0) * copy.element_size() % 16 == 0
        assert not copy[:, d + 6 :].any()
        assert copy[:20, d : d + 6].any()


SMALL = Sizes(tile=(48, 80), read=512, copied=16, scored=7, looked_up=5, dense=1 / 64, dense_rows=3)


@pytest.mark.parametrize("of", [SMALL, side.SIZES["cuda"]], ids=["small", "cuda"])
@pytest.mark.parametrize("k", [1, 4, 40])
def test_sizes_of_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch, of: Sizes, k: int) -> None:
    x, y = clusters(700, 24, 1, 0.5), clusters(530, 24, 2, 0.5)
    expected = neighbours(x, y, k, dtype=torch.bfloat16)
    monkeypatch.setitem(side.SIZES, "cpu", of)
    keep = 0 if of is SMALL else None
    assert equal(neighbours(x, y, k, dtype=torch.bfloat16, keep=keep), expected)
    assert equal(neighbours(x, y, k, dtype=torch.bfloat16, keep=keep, device=["cpu", "cpu"]), expected)


@pytest.mark.parametrize(("devices", "rows", "shares"), [(1, 50_000, 1), (2, 50_000, 2), (8, 50_000, 8), (8, 100, 7), (3, 10, 1)])
def test_tiles_are_as_high_as_leaves_each_device_some(devices: int, rows: int, shares: int) -> None:
    height, _ = knn._tile([torch.device("cuda", number) for number in range(devices)], rows)
    assert height % 16 == 0
    assert len(knn._shares(rows, devices, height)) == shares


FULL = torch.OutOfMemoryError("CUDA out of memory")
FULL_FOR_CUBLAS = RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")


def raise_above(monkeypatch: pytest.MonkeyPatch, rows: int, error: Exception = FULL) -> list[tuple[int, int]]:
    """Let a device have room for products of so many rows; return the shapes that were asked for."""
    product, asked = search._product, []

    def narrow(left: torch.Tensor, right: torch.Tensor, buffer: torch.Tensor) -> torch.Tensor:
        asked.append((len(left), len(right)))
        if len(left) > rows:
            raise error
        return product(left, right, buffer)

    monkeypatch.setattr(search, "_product", narrow)
    return asked


@pytest.mark.parametrize(("devices", "error"), [(["cpu"], FULL), (["cpu", "cpu"], FULL), (["cpu"], FULL_FOR_CUBLAS)])
def test_tiles_that_do_not_fit_are_made_smaller(monkeypatch: pytest.MonkeyPatch, devices: list[str], error: Exception) -> None:
    x, y = clusters(5000, 8, 1), clusters(900, 8, 2)
    expected = neighbours(x, y, 4, dtype=torch.bfloat16)
    asked, freed = raise_above(monkeypatch, 1100, error), []
    monkeypatch.setattr(knn, "free_memory", lambda: freed.append(len(asked)))
    assert equal(neighbours(x, y, 4, dtype=torch.bfloat16, tile=(4096, 4096), device=devices), expected)
    heights = {height for height, _ in asked}
    assert max(heights) > 2048
    assert 1024 in heights
    assert len(freed) == 2  # cuBLAS gets nothing of what torch keeps: 4096 and 2048 rows were too many


def test_a_device_without_room_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = clusters(1500, 8, 1), clusters(900, 8, 2)
    raise_above(monkeypatch, 10)
    with pytest.raises(ResourceError, match=r"cpu, rows 0 to 1499 of sources: .*memory.* 1024 x 1024"):
        neighbours(x, y, 4, tile=(4096, 2048))
    with pytest.raises(ResourceError, match="64 x 1024"):
        neighbours(x, y, 4, tile=(64, 2048))

    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(side, "to_grid", full)
    with pytest.raises(ResourceError, match=r"memory.*vectors"):
        neighbours(x, y, 4, tile=(64, 2048))


def test_rows_stay_on_gpus_that_have_room_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    free, gpus = {0: 80 << 30, 1: 8 << 30}, [torch.device("cuda", 0), torch.device("cuda", 1)]
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free[device.index], 1 << 40))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 6 << 30)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 2 << 30)
    assert knn._keep(gpus[:1]) == (80 + 4 << 30) // 4
    assert knn._keep(gpus) == knn._keep(gpus[1:]) == (8 + 4 << 30) // 4
    assert knn._keep([CPU]) == 4 << 30
