"""Products of two sparse blocks over a semiring."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from matnb.blocks.formats import Block, Csr, Empty, NumericArray, SparseBlock, narrow
from matnb.blocks.kernels import sparse_product_loops as loops
from matnb.blocks.kernels.casting import cast, entries_as, with_entries
from matnb.blocks.kernels.compiled import given
from matnb.blocks.kernels.patterns import settled
from matnb.blocks.kernels.reductions import accumulator_dtype
from matnb.blocks.kernels.registry import PRODUCTS
from matnb.blocks.semiring import MIN_PLUS, SEMIRINGS, Semiring


def _sparse_product(
    left: Csr, right: Csr, loop: Callable[..., None], start: np.generic, dtype: np.dtype
) -> tuple[Csr, NumericArray]:
    # Gustavson's algorithm row by row, first the pattern and then the values: "Two fast algorithms for sparse
    # matrices", ACM TOMS 4 (1978). SciPy's drops sums that cancel, and knows no other semiring.
    pattern = (given(left.pointers), given(left.columns), given(right.pointers), given(right.columns))
    pointers, columns = loops.product_pattern(*pattern, right.shape[1])
    out = np.empty(columns.size, dtype)
    loop(
        *pattern[:2], given(entries_as(left, dtype)), *pattern[2:], given(entries_as(right, dtype)),
        given(pointers), given(columns), np.full(right.shape[1], start, dtype), out,
    )  # fmt: skip
    return Csr((left.shape[0], right.shape[1]), narrow(pointers), columns, None, dtype), out


@PRODUCTS.register("plus_times", Csr, Csr)
def _plus_times_csr(left: Csr, right: Csr, dtype: np.dtype) -> Block:
    if dtype.kind == "b":
        return _lor_land_csr(left, right, dtype)
    wide = accumulator_dtype("sum", dtype)
    pattern, values = _sparse_product(left, right, loops.plus_times_values, wide.type(0), wide)
    return settled(Csr(pattern.shape, pattern.pointers, pattern.columns, cast(values, dtype), dtype))


@PRODUCTS.register("min_plus", Csr, Csr)
def _min_plus_csr(left: Csr, right: Csr, dtype: np.dtype) -> Block:
    identity = MIN_PLUS.add.identity(dtype)
    pattern, values = _sparse_product(left, right, loops.min_plus_values, identity, dtype)
    return settled(Csr(pattern.shape, pattern.pointers, pattern.columns, values, dtype))


@PRODUCTS.register("plus_pair", Csr, Csr)
def _plus_pair_csr(left: Csr, right: Csr, dtype: np.dtype) -> Block:
    ones = [Csr(one.shape, one.pointers, one.columns, None, one.dtype) for one in (left, right)]
    pattern, counts = _sparse_product(
        ones[0], ones[1], loops.plus_times_values, np.int64(0), np.dtype(np.int64)
    )
    return settled(Csr(pattern.shape, pattern.pointers, pattern.columns, cast(counts, dtype), dtype))


@PRODUCTS.register("lor_land", Csr, Csr)
def _lor_land_csr(left: Csr, right: Csr, dtype: np.dtype) -> Block:
    truth = np.dtype(np.bool_)
    true_left, true_right = with_entries(left, truth), with_entries(right, truth)
    # Counted in 64 bits: how many pairs are true.
    pattern, counts = _sparse_product(
        true_left, true_right, loops.plus_times_values, np.int64(0), np.dtype(np.int64)
    )
    return settled(Csr(pattern.shape, pattern.pointers, pattern.columns, cast(counts != 0, dtype), dtype))


def _register_empty(semiring: Semiring) -> None:
    @PRODUCTS.register(semiring.name, Empty, Empty)
    @PRODUCTS.register(semiring.name, Empty, Csr)
    @PRODUCTS.register(semiring.name, Csr, Empty)
    def nothing(left: SparseBlock, right: SparseBlock, dtype: np.dtype) -> Block:
        return Empty((left.shape[0], right.shape[1]), dtype)


for _semiring in SEMIRINGS.values():
    _register_empty(_semiring)
