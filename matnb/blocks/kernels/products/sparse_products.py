"""Products of two sparse blocks over a semiring."""

from __future__ import annotations

import numpy as np

from matnb.blocks.formats import (
    MAX_ENTRIES,
    Block,
    Csr,
    Empty,
    IndexArray,
    NumericArray,
    SparseBlock,
    cast,
    entries_as,
)
from matnb.blocks.kernels import by_numpy
from matnb.blocks.kernels.compiled import UnsignedArray, given, is_worth_compiling, unsigned
from matnb.blocks.kernels.operands import pattern_of_loop
from matnb.blocks.kernels.patterns import settled
from matnb.blocks.kernels.products import sparse_product_loops as loops
from matnb.blocks.kernels.products.semiring_loops import (
    codes_of,
    dtypes_of,
    identity_of,
    sparse_factors,
    sparse_product_over,
)
from matnb.blocks.kernels.reductions.reductions import accumulator_dtype
from matnb.blocks.kernels.registry import PRODUCTS
from matnb.blocks.semiring import MIN_PLUS, SEMIRINGS, Semiring
from matnb.errors import TooLargeError

# Room for as many entries as there can be is set aside at first. Memory that is never written costs nothing,
# but the system refuses to set aside much more than it has: above this, entries are counted before.
MOST_SET_ASIDE = 2**27


@PRODUCTS.register("plus_times", Csr, Csr)
def _plus_times(left: Csr, right: Csr, dtype: np.dtype) -> Block:
    if dtype.kind == "b":
        return _lor_land(left, right, dtype)
    wide = accumulator_dtype("sum", dtype)
    if left.values is None and right.values is None:
        return _product(left, right, loops.PAIR, wide.type(0), dtype)
    return _product(left, right, loops.PLUS_TIMES, wide.type(0), dtype)


@PRODUCTS.register("min_plus", Csr, Csr)
def _min_plus(left: Csr, right: Csr, dtype: np.dtype) -> Block:
    return _product(left, right, loops.MIN_PLUS, MIN_PLUS.add.identity(dtype), dtype)


@PRODUCTS.register("plus_pair", Csr, Csr)
def _plus_pair(left: Csr, right: Csr, dtype: np.dtype) -> Block:
    return _product(left, right, loops.PAIR, np.int64(0), dtype)


@PRODUCTS.register("lor_land", Csr, Csr)
def _lor_land(left: Csr, right: Csr, dtype: np.dtype) -> Block:
    if left.values is None and right.values is None:
        return _pattern(left, right, dtype)
    return _product(left, right, loops.TRUTH, np.uint8(0), dtype)


def _product(left: Csr, right: Csr, code: int, identity: np.generic, dtype: np.dtype) -> SparseBlock:
    """Multiply row by row, in one pass: Gustavson, "Two fast algorithms for sparse matrices", TOMS 4 (1978).

    SciPy's loop leaves columns unsorted, drops sums that cancel, and knows no other semiring.

    Memory at its peak, inputs apart: a row of the result in its accumulator's dtype, a bit for every column,
    operands cast to that dtype where they have another, and the result. For it, room for the pairs that meet
    or the whole width, whichever is less in each row, is set aside, and what is never written is not
    resident; where that is more than ``MOST_SET_ASIDE`` entries, they are counted in a pass before.
    """
    width = right.shape[1]
    room = room_for(left, right)
    seen, row = bits(width), np.full(width + 1, identity)
    operands = *operand_of_loop(left, code, row.dtype), *operand_of_loop(right, code, row.dtype)
    pointers, columns = np.zeros(left.shape[0] + 1, np.int32), np.empty(room, np.int32)
    out = np.empty(room, row.dtype)
    arrays = code, *operands, seen, row, pointers.view(np.uint32), columns.view(np.uint32), out
    is_known = code in (loops.PLUS_TIMES, loops.PAIR) and row.dtype.kind in by_numpy.KINDS
    if is_known and by_numpy.rounds_twice() and not is_worth_compiling(loops.product, room, *arrays):
        values = entries_as(left, row.dtype), entries_as(right, row.dtype)
        if code == loops.PAIR:
            values = np.ones(left.nnz, row.dtype), np.ones(right.nnz, row.dtype)
        pointers, columns, found = by_numpy.sparse_product(left, right, values)
        return settled(Csr((left.shape[0], width), pointers, columns, cast(found, dtype), dtype))
    count = loops.product(*arrays)
    shrink(columns, count)
    shrink(out, count)
    return settled(Csr((left.shape[0], width), pointers, columns, cast(out, dtype), dtype))


def _pattern(left: Csr, right: Csr, dtype: np.dtype) -> SparseBlock:
    room = room_for(left, right)
    pointers, columns = np.zeros(left.shape[0] + 1, np.int32), np.empty(room, np.int32)
    count = loops.product_pattern(
        *pattern_of_loop(left), *pattern_of_loop(right),
        bits(right.shape[1]), pointers.view(np.uint32), columns.view(np.uint32), True,
    )  # fmt: skip
    shrink(columns, count)
    return settled(Csr((left.shape[0], right.shape[1]), pointers, columns, None, dtype))


def room_for(left: Csr, right: Csr) -> int:
    """Return for how many entries of a product room is set aside: at least as many as it stores.

    Raises
    ------
    TooLargeError
        When there are more than a block can hold.
    """
    room = most_stored(left, right)
    if room > MOST_SET_ASIDE:
        room = num_stored(left, right)
    if room > MAX_ENTRIES:
        raise TooLargeError(f"a product block of {room} entries: cut the array into more blocks")
    return room


def most_stored(left: Csr, right: Csr) -> int:
    """Return at most how many entries a product stores: in each row the pairs that meet, or all columns."""
    pattern = (unsigned(left.pointers), unsigned(left.columns), unsigned(right.pointers))
    if is_worth_compiling(loops.upper_bound, left.nnz, *pattern, right.shape[1]):
        return int(loops.upper_bound(*pattern, right.shape[1]))
    before = np.append(0, np.cumsum(np.diff(right.pointers)[left.columns], dtype=np.int64))
    return int(np.minimum(np.diff(before[left.pointers]), right.shape[1]).sum())


def num_stored(left: Csr, right: Csr) -> int:
    """Return how many entries a product stores, which takes about half as long as to make it."""
    pattern = (unsigned(left.pointers), unsigned(left.columns), unsigned(right.pointers))
    width = right.shape[1]
    nowhere, columns, seen = np.empty(0, np.uint32), np.empty(width, np.uint32), bits(width)
    return int(loops.product_pattern(*pattern, unsigned(right.columns), seen, nowhere, columns, False))


def operand_of_loop(
    block: Csr, code: int, dtype: np.dtype
) -> tuple[UnsignedArray, UnsignedArray, NumericArray]:
    """Return pointers, columns and values as a loop takes them."""
    return *pattern_of_loop(block), given(_values_of_loop(block, code, dtype))


def _values_of_loop(block: Csr, code: int, dtype: np.dtype) -> NumericArray:
    # None for pairs; for truths whether each is true.
    if code == loops.PAIR:
        return np.empty(0, dtype)
    if code == loops.TRUTH:
        return cast(entries_as(block, np.dtype(np.bool_)), dtype)
    return entries_as(block, dtype)


def bits(width: int) -> loops.Words:
    """Return a bit for every column, all 0."""
    return np.zeros(-(-width // 64), np.uint64)


def shrink(array: NumericArray | IndexArray, count: np.int64) -> None:
    """Give back the memory of an array of this kernel's own past its first ``count`` elements, in place."""
    array.resize(count, refcheck=False)


def _register_general(semiring: Semiring) -> None:
    @PRODUCTS.register(semiring.name, Csr, Csr)
    def product(left: Csr, right: Csr, dtype: np.dtype) -> Block:
        factor, wide = dtypes_of(semiring, dtype)
        width, room = right.shape[1], room_for(left, right)
        seen, row = bits(width), np.full(width, identity_of(semiring, dtype, wide))
        pointers, columns = np.zeros(left.shape[0] + 1, np.int32), np.empty(room, np.int32)
        out = np.empty(room, wide)
        one, other = sparse_factors(left, right, semiring, factor)
        count = sparse_product_over(
            codes_of(semiring), *one, *other, seen, row,
            pointers.view(np.uint32), columns.view(np.uint32), out,
        )  # fmt: skip
        shrink(columns, count)
        shrink(out, count)
        return settled(Csr((left.shape[0], width), pointers, columns, cast(out, dtype), dtype))


def _register_empty(semiring: Semiring) -> None:
    @PRODUCTS.register(semiring.name, Empty, Empty)
    @PRODUCTS.register(semiring.name, Empty, Csr)
    @PRODUCTS.register(semiring.name, Csr, Empty)
    def nothing(left: SparseBlock, right: SparseBlock, dtype: np.dtype) -> Block:
        return Empty((left.shape[0], right.shape[1]), dtype)


for _semiring in SEMIRINGS.values():
    if _semiring.is_general:
        _register_general(_semiring)
    _register_empty(_semiring)
