"""Products with the transpose of a block, which is not made, and a Dense block on at least one side."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from matnb.blocks.formats import Block, Csr, Dense, Empty, NumericArray, cast, is_sparse, uninitialized
from matnb.blocks.kernels.by_numpy import KINDS, add_transposed_product
from matnb.blocks.kernels.compiled import UnsignedArray, compiled, given, is_worth_compiling, prefetch
from matnb.blocks.kernels.operands import (
    check_loop_dtype,
    entries_of_loop,
    known_operands,
    loop_dtype,
    loop_semiring,
    own_entries,
    pattern_of_loop,
    sums_dtype,
)
from matnb.blocks.kernels.products.frontier_loops import keep_least
from matnb.blocks.kernels.products.semiring_loops import dense_product
from matnb.blocks.kernels.registry import PRODUCTS, Family
from matnb.blocks.semiring import MIN_PLUS, SEMIRINGS, Semiring
from matnb.errors import ShapeError

# All add to what `out` holds, in the order of the rows, so that results repeat. `values` stand `apart` 1, or
# 0 where all are the first of them, as in a pattern. The dtype of `out` is that of the sums.
# Numba computes narrow integers in 64 bits, and only what is made their type again wraps as NumPy's do.

Take = Callable[[tuple[int, ...], np.dtype], NumericArray]  # as ``uninitialized``

_ONE, _TWO, _THREE = np.uint64(1), np.uint64(2), np.uint64(3)
# So many entries before a row of `out` is added to, its ends are asked for. On one core, R-MAT 2^20, that
# made of 193 ms for 8 columns 73, and of 110 for two 48; 16 entries ahead 109 and 82.
_AHEAD = np.uint64(64)
# Where `out` is larger than the caches, each of its rows comes from memory anew for each entry of its column.
# So there the entries of some rows of A, at most SORTED, are sorted by column first, 2 ns each: a row of out
# is then read and written once for four entries, one after another, still in the order of A's rows. That pays
# from FAR_BYTES of `out` and DENSE entries a column on: 240,000 entries of 10,000 columns times 300 columns
# took 27 ms and take 17; times 128, 7 and 9.
SORTED, FAR_BYTES, DENSE = 2**18, 12 * 2**20, 4


@compiled
def plus_times_vector(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    x: NumericArray,
    out: NumericArray,
) -> None:
    """Add A.T @ x to ``out``."""
    wide = out.dtype.type
    for i in range(np.uint64(pointers.size) - _ONE):
        factor = wide(x[i])
        for place in range(np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])):
            out[columns[place]] += values[place * apart] * factor


def _add_product(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    x: NumericArray,
    out: NumericArray,
) -> None:
    arrays = pointers, columns, values, apart, x, out
    if out.dtype.kind in KINDS and not is_worth_compiling(plus_times_vector, columns.size, *arrays):
        add_transposed_product(pointers, columns, values, x, out)
    else:
        plus_times_vector(*arrays)


@compiled
def lor_land_vector(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    x: NumericArray,
    out: NumericArray,
) -> None:
    """Set ``out`` where any A[i, k] and x[i] are both true."""
    for i in range(np.uint64(pointers.size) - _ONE):
        if x[i]:
            for place in range(np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])):
                out[columns[place]] |= values[place * apart]


@compiled
def plus_times_matrix(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    X: NumericArray,
    out: NumericArray,
) -> None:
    """Add A.T @ X to ``out``."""
    width = np.uint64(X.shape[1])
    wide = out.dtype.type
    for i in range(np.uint64(pointers.size) - _ONE):
        row = X[i]
        for place in range(np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])):
            ahead = np.uint64(columns[min(place + _AHEAD, np.uint64(columns.size) - _ONE)]) * width
            prefetch(out, ahead)
            prefetch(out, ahead + width - _ONE)
            value, total = wide(values[place * apart]), out[columns[place]]
            for j in range(row.size):
                total[j] += value * row[j]


@compiled
def _sort_by_column(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    ends: UnsignedArray,
    places: UnsignedArray,
    rows: UnsignedArray,
) -> None:
    """Write the places and rows of entries by column, then by row, and where each column's ``ends``."""
    first, last = np.uint64(pointers[0]), np.uint64(pointers[-1])
    ends[:] = 0
    for place in range(first, last):
        ends[columns[place]] += np.uint32(1)
    before = np.uint32(0)
    for column in range(ends.size):
        before, ends[column] = before + ends[column], before
    for i in range(np.uint64(pointers.size) - _ONE):
        for place in range(np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])):
            column = columns[place]
            places[ends[column]], rows[ends[column]] = place, i
            ends[column] += np.uint32(1)


@compiled
def plus_times_sorted(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    X: NumericArray,
    ends: UnsignedArray,
    places: UnsignedArray,
    rows: UnsignedArray,
    out: NumericArray,
) -> None:
    """Add A.T @ X to ``out``, with room for the end of each column and the place and row of each entry."""
    _sort_by_column(pointers, columns, ends, places, rows)
    wide = out.dtype.type
    k = np.uint64(0)
    for column in range(ends.size):
        stop, total = np.uint64(ends[column]), out[column]
        while k + _THREE < stop:
            a, b = wide(values[places[k] * apart]), wide(values[places[k + _ONE] * apart])
            c, d = wide(values[places[k + _TWO] * apart]), wide(values[places[k + _THREE] * apart])
            row_a, row_b, row_c, row_d = X[rows[k]], X[rows[k + _ONE]], X[rows[k + _TWO]], X[rows[k + _THREE]]
            for j in range(total.size):
                total[j] = (((total[j] + a * row_a[j]) + b * row_b[j]) + c * row_c[j]) + d * row_d[j]
            k += _THREE + _ONE
        while k < stop:
            a, row_a = wide(values[places[k] * apart]), X[rows[k]]
            for j in range(total.size):
                total[j] += a * row_a[j]
            k += _ONE


class _ColumnRoom(threading.local):
    """Two megabytes of a thread for entries by column: kept, since loops call products often."""

    def __init__(self) -> None:
        self._places, self._rows = np.empty(SORTED, np.uint32), np.empty(SORTED, np.uint32)
        self._ends = np.empty(SORTED // DENSE, np.uint32)

    def arrays(self, num_columns: int) -> tuple[UnsignedArray, UnsignedArray, UnsignedArray]:
        """Return room for the ends of columns, and the places and rows of entries."""
        return self._ends[:num_columns], self._places, self._rows


_room = _ColumnRoom()


def _plus_times_by_bands(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    X: NumericArray,
    out: NumericArray,
) -> None:
    # As ``plus_times_matrix``, sorting the entries of some rows at a time where that pays.
    num_rows, start = pointers.size - 1, 0
    if out.nbytes < FAR_BYTES:
        plus_times_matrix(pointers, columns, values, apart, X, out)
        return
    while start < num_rows:
        most = pointers[start] + np.uint32(SORTED)
        stop = max(start + 1, int(np.searchsorted(pointers, most, side="right")) - 1)
        band, here = pointers[start : stop + 1], X[start:stop]
        if DENSE * out.shape[0] <= int(band[-1]) - int(band[0]) <= SORTED:
            plus_times_sorted(band, columns, values, apart, here, *_room.arrays(out.shape[0]), out)
        else:
            plus_times_matrix(band, columns, values, apart, here, out)
        start = stop


@compiled
def min_plus_matrix(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    X: NumericArray,
    out: NumericArray,
) -> None:
    """Lower ``out`` to the least A[i, k] + X[i, j] over the stored entries of A."""
    narrow = out.dtype.type
    for i in range(np.uint64(pointers.size) - _ONE):
        row = X[i]
        for place in range(np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])):
            value, least = values[place * apart], out[columns[place]]
            for j in range(row.size):
                total = narrow(value + row[j])
                least[j] = total if total < least[j] or total != total else least[j]


@compiled
def lor_land_matrix(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    X: NumericArray,
    out: NumericArray,
) -> None:
    """Set ``out`` where any A[i, k] and X[i, j] are both true."""
    for i in range(np.uint64(pointers.size) - _ONE):
        row = X[i]
        for place in range(np.uint64(pointers[i]), np.uint64(pointers[i + _ONE])):
            if values[place * apart]:
                found = out[columns[place]]
                for j in range(row.size):
                    found[j] |= row[j]


TRANSPOSED_PRODUCTS = Family("transposed product")
_TILE = 8  # columns that are scattered together: doubles of one cache line

_VECTOR_LOOPS = {
    "plus_times": _add_product,
    "lor_land": lor_land_vector,
}
_MATRIX_LOOPS = {
    "plus_times": _plus_times_by_bands,
    "min_plus": min_plus_matrix,
    "lor_land": lor_land_matrix,
}


def multiply_transposed(
    left: Block, right: Block, semiring: Semiring, dtype: np.dtype, take: Take = uninitialized
) -> Dense:
    """Multiply the transpose of a block with another block, without making the transpose.

    Parameters
    ----------
    left
        Of two axes.
    right
        Of one or two axes, as many rows as ``left``. One of the two is Dense. The same Dense block twice is
        multiplied over half of the result, as BLAS's symmetric product does.
    semiring, dtype
        As for ``multiply``.
    take
        Gives the memory of a sparse block's product with a Dense one, where its sums have this dtype.

    Returns
    -------
    Dense
        ``left.T @ right``: for a sparse block, entries are added in the order of its rows, so results repeat,
        but sums of floats depend on how the rows were cut. Peak memory in addition: as much again where sums
        are kept in a wider dtype; for a sparse ``right`` 8 columns of ``left`` and 8 rows of the result.

    Raises
    ------
    ShapeError
        When the shapes do not fit.
    UnsupportedError
        When there is no kernel for the semiring and formats.
    """
    if len(left.shape) != 2 or len(right.shape) not in (1, 2) or left.shape[0] != right.shape[0]:
        raise ShapeError(
            f"no product of the transpose of shape {left.shape} with {right.shape}: give two matrices, or a "
            "matrix and a vector, of as many rows"
        )
    if is_sparse(left) or is_sparse(right):
        check_loop_dtype(dtype)
    left, right, semiring = known_operands(left, right, semiring, dtype)
    if semiring.is_general:
        with np.errstate(all="ignore"):
            return _general(left, right, semiring, dtype)
    kernel = TRANSPOSED_PRODUCTS.find(semiring.name, left, right)
    with np.errstate(all="ignore"):
        product = kernel(left, right, semiring, dtype, take)
    assert isinstance(product, Dense)
    return product


def _general(left: Block, right: Block, semiring: Semiring, dtype: np.dtype) -> Dense:
    if isinstance(left, Dense):
        return dense_product(Dense(left.values.T), right, semiring, dtype)
    # A' X = (X' A)', with factors in the other order
    assert isinstance(right, Dense)
    turned = dense_product(Dense(right.values.T), left, semiring.turned, dtype)
    return Dense(np.ascontiguousarray(turned.values.T))


def scattered(
    X: NumericArray, block: Csr, semiring: Semiring, dtype: np.dtype, take: Take = uninitialized
) -> NumericArray:
    """Return the transpose of a sparse block times a vector or matrix."""
    shape = (block.shape[1], *X.shape[1:])
    semiring = loop_semiring(semiring, dtype)
    if semiring.multiply == "pair":
        counts = np.bincount(block.columns, minlength=block.shape[1])
        return np.array(np.broadcast_to(cast(counts, dtype).reshape(-1, *[1] * (X.ndim - 1)), shape))
    operand = loop_dtype(semiring, dtype)
    wide = sums_dtype(semiring, operand)
    out = (take if wide == dtype else uninitialized)(shape, wide)
    out.fill(semiring.add.identity(wide))
    if X.ndim == 1 and semiring is MIN_PLUS:
        entries, x = own_entries(block), given(cast(X, operand))
        rows = np.flatnonzero(x != out.dtype.type(semiring.add.identity(wide))).astype(np.uint32)
        keep_least(given(rows), *pattern_of_loop(block), *entries, x, None, out)
        return cast(out, dtype)
    loop = (_VECTOR_LOOPS if X.ndim == 1 else _MATRIX_LOOPS)[semiring.name]
    loop(*pattern_of_loop(block), *entries_of_loop(block, operand), given(cast(X, operand)), out)
    return cast(out, dtype)


def gathered_by_tiles(X: NumericArray, block: Csr, semiring: Semiring, dtype: np.dtype) -> NumericArray:
    """Return a matrix, in any order of memory, times a sparse block: eight rows of it at a time."""
    out = np.empty((X.shape[0], block.shape[1]), dtype)
    for start in range(0, X.shape[0], _TILE):
        rows = slice(start, start + _TILE)
        out[rows] = scattered(X[rows].T, block, semiring, dtype).T
    return out


def _sparse_dense(left: Csr, right: Dense, semiring: Semiring, dtype: np.dtype, take: Take) -> Dense:
    return Dense(scattered(right.values, left, semiring, dtype, take))


def _dense_sparse(left: Dense, right: Csr, semiring: Semiring, dtype: np.dtype, take: Take) -> Dense:
    return Dense(gathered_by_tiles(left.values.T, right, semiring, dtype))


def _dense_dense(left: Dense, right: Dense, semiring: Semiring, dtype: np.dtype, take: Take) -> Block:
    if (
        left is right
    ):  # converted once, it is still the same memory, by which matmul knows a symmetric product
        left = right = Dense(cast(left.values, dtype))
    turned = Dense(left.values.T)
    return PRODUCTS.find(semiring.name, turned, right)(turned, right, dtype)


def _identities(left: Block, right: Block, semiring: Semiring, dtype: np.dtype, take: Take) -> Dense:
    shape = (left.shape[1], *right.shape[1:])
    return Dense(np.full(shape, semiring.add.identity(dtype), dtype))


for _name in SEMIRINGS:
    TRANSPOSED_PRODUCTS.register(_name, Csr, Dense)(_sparse_dense)
    TRANSPOSED_PRODUCTS.register(_name, Dense, Csr)(_dense_sparse)
    TRANSPOSED_PRODUCTS.register(_name, Dense, Dense)(_dense_dense)
    TRANSPOSED_PRODUCTS.register(_name, Empty, Dense)(_identities)
    TRANSPOSED_PRODUCTS.register(_name, Dense, Empty)(_identities)
