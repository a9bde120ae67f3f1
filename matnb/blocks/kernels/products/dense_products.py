"""Products with a Dense block on at least one side, over a semiring; into given memory too."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

import numpy as np

from matnb.blocks.formats import Block, Csr, Dense, Empty, NumericArray, cast, to_numpy
from matnb.blocks.kernels import by_numpy
from matnb.blocks.kernels.compiled import UnsignedArray, given, is_worth_compiling
from matnb.blocks.kernels.operands import (
    entries_of_loop,
    known_operands,
    loop_dtype,
    loop_semiring,
    pattern_of_loop,
    result_shape,
    sums_dtype,
)
from matnb.blocks.kernels.products import dense_product_loops as loops
from matnb.blocks.kernels.products.semiring_loops import dense_product
from matnb.blocks.kernels.products.transposed_products import gathered_by_tiles, scattered
from matnb.blocks.kernels.reductions.reductions import accumulator_dtype
from matnb.blocks.kernels.registry import PRODUCTS
from matnb.blocks.semiring import MIN_PLUS, PLUS_TIMES, SEMIRINGS, Semiring
from matnb.errors import ShapeError

_LEVELS = 27  # of a binary tree over leaves of 64 entries, of which a block has at most 2**31
# What a core's own cache holds of a vector in any case. Beyond it, and where rows touch most of it, it pays
# to visit them in bands.
_NEAR_BYTES = 2**20
_TILE_BYTES = 16 * 2**20  # of a product that is added to others: enough for BLAS to be as fast as ever


class _Room(threading.local):
    """Memory of a thread for products in bands, about a megabyte: kept, since loops call them often."""

    def __init__(self) -> None:
        self._sums: dict[np.dtype, loops.Sums] = {}
        self._order = np.empty(0, np.uint64)
        self._rows = np.empty(0, np.uint32)

    def arrays(self, dtype: np.dtype) -> tuple[loops.Sums, loops.WordArray, UnsignedArray]:
        """Return room for sums of leaves, their order, and rows by length."""
        if not self._order.size:
            self._order = np.empty(loops.LEAVES, np.uint64)
            num_listed = loops.LENGTHS * loops.SUBTILE + loops.LEAVES
            self._rows = np.empty(num_listed, np.uint32)
        if dtype not in self._sums:
            self._sums[dtype] = np.empty(loops.LEAVES, dtype)
        return self._sums[dtype], self._order, self._rows


_room = _Room()


def multiply_into(left: Csr, right: Dense, semiring: Semiring, out: NumericArray) -> None:
    """Write the product of a sparse block with a Dense vector or matrix into given memory.

    Each element depends on its row's entries alone, so the bits are the same however the rows are cut.
    Nothing is allocated that grows with the block where all dtypes are that of ``out`` and are float64,
    float32, int64, int32 or bool: 27 rows of ``right`` in the sums' dtype, and for a long vector about a
    megabyte that the thread keeps. Otherwise operands are converted,
    and the product where Numba does not know its dtype.

    Parameters
    ----------
    left
        Of n rows and m columns.
    right
        Of shape (m,) or (m, k).
    semiring
        How entries are multiplied and added; an element without any is the identity of the addition.
    out
        Writable, of shape (n,) or (n, k), of the product's dtype. All of it is written.

    Raises
    ------
    ShapeError
        When the shapes do not fit.
    """
    if semiring.is_general:
        _check_shapes(left, right, out)
        out[...] = dense_product(left, right, semiring, out.dtype).values
        return
    if right.values.ndim == 1:
        multiply_rows_into(left, right, semiring, None, out)
        return
    _check_shapes(left, right, out)
    left, right, semiring = _known(left, right, semiring, out.dtype)
    if semiring.multiply == "pair":
        ends = left.pointers[:, np.newaxis]
        np.subtract(ends[1:], ends[:-1], out=out, casting="unsafe")
        return
    operand = loop_dtype(semiring, out.dtype)
    target = _target(out, operand)
    arrays = (*pattern_of_loop(left), *entries_of_loop(left, operand), given(cast(right.values, operand)))
    match semiring.name:
        case "plus_times":
            _multiply_rows(*arrays, target, sums_dtype(semiring, operand))
        case "min_plus":
            loops.min_plus_rows(*arrays, _identity(semiring, operand), target)
        case "lor_land":
            loops.lor_land_rows(*arrays, target)
    if target is not out:
        out[...] = cast(target, out.dtype)


def multiply_rows_into(
    left: Csr, right: Dense, semiring: Semiring, wanted: NumericArray | None, out: NumericArray
) -> None:
    """Write the product of the wanted rows of a sparse block with a Dense vector into given memory.

    Parameters
    ----------
    wanted
        For each row whether it is written; the others are left as they are. None: all are written.
    left, right, semiring, out
        As for :func:`multiply_into`, with a vector.

    Raises
    ------
    ShapeError
        When the shapes do not fit.
    """
    _check_shapes(left, right, out)
    if wanted is not None and wanted.shape != out.shape:
        raise ShapeError(f"rows wanted by a vector of shape {wanted.shape}: give one of shape {out.shape}")
    rows = None if wanted is None else given(cast(wanted, np.dtype(np.bool_)))
    left, right, semiring = _known(left, right, semiring, out.dtype)
    if semiring.multiply == "pair":
        ends = left.pointers
        np.subtract(ends[1:], ends[:-1], out=out, casting="unsafe", where=True if rows is None else rows)
        return
    operand = loop_dtype(semiring, out.dtype)
    target = _target(out, operand)
    x = given(cast(right.values, operand))
    pattern, entries = pattern_of_loop(left), entries_of_loop(left, operand)
    match semiring.name:
        case "plus_times":
            levels, values = sums_dtype(semiring, operand), None if left.values is None else entries[0]
            if rows is None:
                multiply_pattern_into(*pattern, values, x, target, levels)
            else:
                loops.plus_times(*pattern, values, x, rows, np.empty(_LEVELS, levels), target)
        case "min_plus":
            loops.min_plus(*pattern, *entries, x, rows, _identity(semiring, operand), target)
        case "lor_land":
            loops.lor_land(*pattern, *entries, x, rows, target)
    if target is not out:
        np.copyto(out, cast(target, out.dtype), where=True if rows is None else rows)


def multiply_pattern_into(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray | None,
    x: NumericArray,
    out: NumericArray,
    sums: np.dtype | type = np.float64,
) -> None:
    """Write the product of rows of a sparse matrix with a vector into contiguous memory.

    Parameters
    ----------
    pointers, columns, values
        Where each row begins and the last ends; the columns and entries of all rows, or None for ones.
    x
        Of the entries' dtype; read-only, as loops are compiled for it.
    sums
        The dtype in which entries are added.
    """
    levels = np.empty(_LEVELS, sums)
    num_entries = int(pointers[-1]) - int(pointers[0]) if pointers.size else 0
    is_banded = x.nbytes > _NEAR_BYTES and 8 * num_entries > min(x.size, 8 * pointers.size)
    loop = loops.plus_times_banded if is_banded else loops.plus_times
    more = _room.arrays(levels.dtype) if is_banded else ()
    given_to = (pointers, columns, values, x, *(() if is_banded else (None,)), levels, *more, out)
    amount = num_entries // by_numpy.QUICK
    if x.dtype.kind in by_numpy.KINDS and not is_worth_compiling(loop, amount, *given_to):
        by_numpy_sums = by_numpy.product_with_vector(pointers, columns, values, x, levels.dtype)
        np.copyto(out, by_numpy_sums, casting="unsafe")
        return
    loop(*given_to)


def _multiply_rows(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    X: NumericArray,
    out: NumericArray,
    sums: np.dtype | type = np.float64,
) -> None:
    # As multiply_pattern_into, with a matrix.
    width = X.shape[1]
    if width == 1:
        own = values if apart else None
        multiply_pattern_into(pointers, columns, own, X.reshape(-1), out.reshape(-1), sums)
        return
    arrays = pointers, columns, values, apart, X, np.empty((_LEVELS, width), sums), out
    amount = columns.size * width // by_numpy.QUICK
    if X.dtype.kind in by_numpy.KINDS and not is_worth_compiling(loops.plus_times_rows, amount, *arrays):
        every = np.broadcast_to(values, columns.shape)
        found = by_numpy.product_with_rows(pointers, columns, every, X, arrays[-2].dtype)
        np.copyto(out, found, casting="unsafe")
        return
    loops.plus_times_rows(*arrays)


def unrounded_product(left: Csr, right: Dense, dtype: np.dtype) -> NumericArray:
    """Return the sums of the product of a sparse block with a Dense vector or matrix, as float64.

    Rounded to ``dtype``, a float, they are what :func:`multiply_into` writes for plus_times.

    Raises
    ------
    ShapeError
        When the shapes do not fit.
    """
    sums = np.empty((left.shape[0], *right.shape[1:]))
    _check_shapes(left, right, sums)
    operand = loop_dtype(PLUS_TIMES, dtype)
    pattern, entries = pattern_of_loop(left), entries_of_loop(left, operand)
    x = given(cast(right.values, operand))
    if x.ndim == 1:
        multiply_pattern_into(*pattern, None if left.values is None else entries[0], x, sums)
    else:
        _multiply_rows(*pattern, *entries, x, sums)
    return sums


def _check_shapes(left: Csr, right: Dense, out: NumericArray) -> None:
    shape = (left.shape[0], *right.shape[1:])
    if right.shape[:1] != left.shape[1:] or len(shape) > 2 or out.shape != shape:
        raise ShapeError(
            f"no product of shapes {left.shape} and {right.shape} into {out.shape}: the first's columns "
            "are as many as the second's rows, and the result has the other lengths"
        )


def _known(left: Csr, right: Dense, semiring: Semiring, dtype: np.dtype) -> tuple[Csr, Dense, Semiring]:
    one, other, known = known_operands(left, right, semiring, dtype)
    assert isinstance(one, Csr)
    assert isinstance(other, Dense)
    return one, other, loop_semiring(known, dtype)


def _target(out: NumericArray, operand: np.dtype) -> NumericArray:
    return out if out.dtype == operand and out.flags.c_contiguous else np.empty(out.shape, operand)


def _identity(semiring: Semiring, dtype: np.dtype) -> NumericArray:
    return given(np.full(1, semiring.add.identity(dtype), dtype))


def _dense_dense_plus_times(left: Dense, right: Dense, dtype: np.dtype) -> Dense:
    # BLAS sums single precision in single precision, as NumPy does; half precision it does not know.
    wide = accumulator_dtype("sum", dtype) if dtype == np.float16 else dtype
    return Dense(cast(np.asarray(np.matmul(cast(left.values, wide), cast(right.values, wide))), dtype))


def multiply_parts(values: Sequence[Block], dtype: np.dtype, transposed: bool) -> Dense:
    """Return the sum of products of dense matrices: of the first and second, the third and fourth, and so on.

    With ``transposed``, of the transposes of the first, the third and so on.

    Their parts are multiplied where they are: no matrix is put together of its parts, and of each product but
    the first no more than some columns are held.
    """
    wide = accumulator_dtype("sum", dtype) if dtype == np.float16 else dtype
    arrays = [cast(to_numpy(one), wide) for one in values]
    lefts = [one.T if transposed else one for one in arrays[::2]]
    pairs = list(zip(lefts, arrays[1::2], strict=True))
    width = max(1, _TILE_BYTES // max(1, lefts[0].shape[0] * wide.itemsize))
    with np.errstate(all="ignore"):
        total = np.asarray(np.matmul(*pairs[0]))
        for start in range(0, total.shape[1], width):
            columns = slice(start, start + width)
            for left, right in pairs[1:]:
                total[:, columns] += np.matmul(left, right[:, columns])
    return Dense(cast(total, dtype))


def _dense_dense_min_plus(left: Dense, right: Dense, dtype: np.dtype) -> Dense:
    operand = loop_dtype(MIN_PLUS, dtype)
    A, B = (cast(np.atleast_2d(one.values), operand) for one in (left, right))
    if right.values.ndim == 1:
        B = B.T
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    A = np.broadcast_to(A, (*batch, *A.shape[-2:])).reshape(math.prod(batch), *A.shape[-2:])
    B = np.broadcast_to(B, (*batch, *B.shape[-2:])).reshape(math.prod(batch), *B.shape[-2:])
    out = np.full((A.shape[0], A.shape[1], B.shape[2]), MIN_PLUS.add.identity(operand), operand)
    loops.min_plus_dense(given(A), given(B), out)
    return Dense(cast(out.reshape(result_shape(left, right)), dtype))


def _dense_dense_plus_pair(left: Dense, right: Dense, dtype: np.dtype) -> Dense:
    met = cast(np.array(left.shape[-1]), dtype)
    return Dense(np.full(result_shape(left, right), met, dtype))


def _dense_dense_lor_land(left: Dense, right: Dense, dtype: np.dtype) -> Dense:
    # BLAS has no booleans. Sums of zeros and ones never come back to 0, rounded or not.
    ones = [cast(cast(one.values, np.dtype(np.bool_)), np.dtype(np.float32)) for one in (left, right)]
    return Dense(cast(np.asarray(np.matmul(*ones) > 0), dtype))


def _register_sparse(semiring: Semiring) -> None:
    @PRODUCTS.register(semiring.name, Csr, Dense)
    def sparse_dense(left: Csr, right: Dense, dtype: np.dtype) -> Dense:
        out = np.empty(result_shape(left, right), dtype)
        multiply_into(left, right, semiring, out)
        return Dense(out)

    @PRODUCTS.register(semiring.name, Dense, Csr)
    def dense_sparse(left: Dense, right: Csr, dtype: np.dtype) -> Dense:
        turned = scattered if left.values.ndim == 1 else gathered_by_tiles
        return Dense(turned(left.values, right, semiring, dtype))

    @PRODUCTS.register(semiring.name, Empty, Dense)
    @PRODUCTS.register(semiring.name, Dense, Empty)
    def identities(left: Block, right: Block, dtype: np.dtype) -> Dense:
        return Dense(np.full(result_shape(left, right), semiring.add.identity(dtype), dtype))


PRODUCTS.register("plus_times", Dense, Dense)(_dense_dense_plus_times)
PRODUCTS.register("min_plus", Dense, Dense)(_dense_dense_min_plus)
PRODUCTS.register("plus_pair", Dense, Dense)(_dense_dense_plus_pair)
PRODUCTS.register("lor_land", Dense, Dense)(_dense_dense_lor_land)
for _semiring in SEMIRINGS.values():
    _register_sparse(_semiring)
