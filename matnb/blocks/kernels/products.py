"""Products of two blocks over a semiring, and the sum of the partial products of one block."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from matnb.blocks.formats import (
    Block,
    Csr,
    Dense,
    Empty,
    NumericArray,
    SparseBlock,
    is_sparse,
    narrow,
    to_scipy,
)
from matnb.blocks.kernels import product_loops as loops
from matnb.blocks.kernels.casting import cast
from matnb.blocks.kernels.compiled import given
from matnb.blocks.kernels.patterns import as_csr, meetings, settled, union
from matnb.blocks.kernels.reductions import accumulator_dtype
from matnb.blocks.kernels.registry import Family
from matnb.blocks.semiring import MIN_PLUS, SEMIRINGS, Monoid, Semiring
from matnb.errors import ShapeError, UnsupportedError

PRODUCTS = Family("product")


def multiply(left: Block, right: Block, semiring: Semiring, dtype: np.dtype) -> Block:
    """Multiply two blocks.

    Parameters
    ----------
    left, right
        Shapes fit as in ``numpy.matmul``. A sparse block meets a sparse one, or a Dense one of at most two
        axes.
    semiring
        How entries are multiplied and added. Elements of a Dense block are all entries; absent entries of a
        sparse block take no part.
    dtype
        Of the result. Sums of float16 and float32 are kept in float64 until they are whole; integers wrap.

    Returns
    -------
    Block
        Sparse if both blocks are: an entry is stored where at least one pair met, also when the sum is 0.
        Otherwise Dense, with the identity of the addition where no pair met. Shares no memory with inputs.

    Raises
    ------
    ShapeError
        When the shapes do not fit.
    UnsupportedError
        When there is no kernel for the semiring and formats.
    """
    _check_shapes(left, right)
    kernel = PRODUCTS.find(semiring.name, left, right)
    with np.errstate(all="ignore"):
        return kernel(left, right, dtype)


def accumulate(parts: Sequence[Block], monoid: Monoid, dtype: np.dtype) -> Block:
    """Combine partial products of one shape element by element, in the given order.

    Sparse parts give the union of their patterns, whose memory the result may share when they share it among
    themselves. float16 and float32 are kept in float64 until the end.

    Raises
    ------
    ShapeError
        When there is no part, or their shapes differ.
    UnsupportedError
        When some parts are sparse and others are not.
    """
    if len({part.shape for part in parts}) != 1:
        raise ShapeError(f"partial products of shapes {[part.shape for part in parts]}: give some, all alike")
    wide = accumulator_dtype("sum", dtype)
    combine = getattr(np, monoid.ufunc)
    dense = [part for part in parts if isinstance(part, Dense)]
    sparse = [part for part in parts if not isinstance(part, Dense)]
    if dense and sparse:
        raise UnsupportedError("no sum of (Dense, Csr) partial products; known: all Dense, all sparse")
    with np.errstate(all="ignore"):
        if sparse:
            return _accumulate_sparse(sparse, combine, wide, dtype)
        total = cast(dense[0].values, wide, copy=True)
        for part in dense[1:]:
            total = cast(np.asarray(combine(total, cast(part.values, wide))), wide)
    return Dense(cast(total, dtype))


def _accumulate_sparse(
    parts: Sequence[SparseBlock], combine: np.ufunc, wide: np.dtype, dtype: np.dtype
) -> Block:
    pattern = reduce(union, map(as_csr, parts))
    total, met = np.zeros(pattern.nnz, wide), np.zeros(pattern.nnz, np.bool_)
    for part in map(as_csr, parts):
        places, sources = meetings(pattern, part)
        values = cast(part.entries, wide)[sources]
        # The first value at a place is taken as it is: added to 0, a -0.0 would lose its sign.
        total[places] = np.where(met[places], combine(total[places], values), values)
        met[places] = True
    return settled(Csr(pattern.shape, pattern.pointers, pattern.columns, cast(total, dtype), dtype))


def _check_shapes(left: Block, right: Block) -> None:
    a, b = left.shape, right.shape
    fits = bool(a) and bool(b) and a[-1] == b[-2 if len(b) > 1 else 0]
    if fits and (is_sparse(left) or is_sparse(right)):
        fits = len(a) <= 2 and len(b) <= 2
    if fits:
        try:
            np.broadcast_shapes(a[:-2], b[:-2])
        except ValueError:
            fits = False
    if not fits:
        raise ShapeError(
            f"no product of shapes {a} and {b}: the last axis of the first must meet the second's rows"
        )


def _result_shape(left: Block, right: Block) -> tuple[int, ...]:
    a, b = left.shape, right.shape
    return (*np.broadcast_shapes(a[:-2], b[:-2]), *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))


def _as_rows(values: NumericArray) -> NumericArray:
    return values[np.newaxis, :] if values.ndim == 1 else values


def _as_columns(values: NumericArray) -> NumericArray:
    return values[:, np.newaxis] if values.ndim == 1 else values


def _dense(out: NumericArray, left: Block, right: Block, dtype: np.dtype) -> Dense:
    return Dense(np.asarray(cast(out.reshape(_result_shape(left, right)), dtype), order="C"))


def _entries(block: Csr, dtype: np.dtype) -> NumericArray:
    return np.ones(block.nnz, dtype) if block.values is None else cast(block.values, dtype)


def _with_entries(block: Csr, dtype: np.dtype) -> Csr:
    return Csr(block.shape, block.pointers, block.columns, _entries(block, dtype), dtype)


def _scipy_product(
    block: Csr, values: NumericArray, dtype: np.dtype, transposed: bool = False
) -> NumericArray:
    matrix = to_scipy(_with_entries(block, dtype))
    product: NumericArray = (matrix.T if transposed else matrix) @ values  # type: ignore[operator]  # stubs: numbers
    return product


def _sparse_product(
    left: Csr, right: Csr, loop: Callable[..., None], start: np.generic, dtype: np.dtype
) -> tuple[Csr, NumericArray]:
    # Gustavson's algorithm row by row, first the pattern and then the values: "Two fast algorithms for sparse
    # matrices", ACM TOMS 4 (1978). SciPy's drops sums that cancel, and knows no other semiring.
    pattern = (given(left.pointers), given(left.columns), given(right.pointers), given(right.columns))
    pointers, columns = loops.product_pattern(*pattern, right.shape[1])
    out = np.empty(columns.size, dtype)
    loop(
        *pattern[:2], given(_entries(left, dtype)), *pattern[2:], given(_entries(right, dtype)),
        given(pointers), given(columns), np.full(right.shape[1], start, dtype), out,
    )  # fmt: skip
    return Csr((left.shape[0], right.shape[1]), narrow(pointers), columns, None, dtype), out


@PRODUCTS.register("plus_times", Dense, Dense)
def _plus_times_dense(left: Dense, right: Dense, dtype: np.dtype) -> Dense:
    # BLAS sums single precision in single precision, as NumPy does; half precision it does not know.
    wide = accumulator_dtype("sum", dtype) if dtype == np.float16 else dtype
    return Dense(cast(np.asarray(np.matmul(cast(left.values, wide), cast(right.values, wide))), dtype))


@PRODUCTS.register("plus_times", Csr, Dense)
def _plus_times_csr_dense(left: Csr, right: Dense, dtype: np.dtype) -> Dense:
    if dtype.kind == "b":
        return _lor_land_csr_dense(left, right, dtype)
    wide = accumulator_dtype("sum", dtype)
    values = cast(right.values, wide)
    if left.values is not None:
        return _dense(_scipy_product(left, values, wide), left, right, dtype)
    out = np.zeros((left.shape[0], *values.shape[1:]), wide)
    loop = loops.pattern_vector if values.ndim == 1 else loops.pattern_dense
    loop(given(left.pointers), given(left.columns), given(values), out)
    return _dense(out, left, right, dtype)


@PRODUCTS.register("plus_times", Dense, Csr)
def _plus_times_dense_csr(left: Dense, right: Csr, dtype: np.dtype) -> Dense:
    if dtype.kind == "b":
        return _lor_land_dense_csr(left, right, dtype)
    wide = accumulator_dtype("sum", dtype)
    values = cast(left.values, wide)
    if right.values is not None:
        return _dense(_scipy_product(right, values.T, wide, transposed=True).T, left, right, dtype)
    rows = _as_rows(values)
    out = np.zeros((rows.shape[0], right.shape[1]), wide)
    loops.dense_pattern(given(rows), given(right.pointers), given(right.columns), out)
    return _dense(out, left, right, dtype)


@PRODUCTS.register("plus_times", Csr, Csr)
def _plus_times_csr(left: Csr, right: Csr, dtype: np.dtype) -> Block:
    if dtype.kind == "b":
        return _lor_land_csr(left, right, dtype)
    wide = accumulator_dtype("sum", dtype)
    pattern, values = _sparse_product(left, right, loops.plus_times_values, wide.type(0), wide)
    return settled(Csr(pattern.shape, pattern.pointers, pattern.columns, cast(values, dtype), dtype))


@PRODUCTS.register("min_plus", Dense, Dense)
def _min_plus_dense(left: Dense, right: Dense, dtype: np.dtype) -> Dense:
    A, B = cast(_as_rows(left.values), dtype), cast(_as_columns(right.values), dtype)
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    A = np.broadcast_to(A, (*batch, *A.shape[-2:])).reshape(math.prod(batch), *A.shape[-2:])
    B = np.broadcast_to(B, (*batch, *B.shape[-2:])).reshape(math.prod(batch), *B.shape[-2:])
    out = np.full((A.shape[0], A.shape[1], B.shape[2]), MIN_PLUS.add.identity(dtype), dtype)
    loops.min_plus_dense(given(A), given(B), out)
    return _dense(out, left, right, dtype)


@PRODUCTS.register("min_plus", Csr, Dense)
def _min_plus_csr_dense(left: Csr, right: Dense, dtype: np.dtype) -> Dense:
    X = cast(_as_columns(right.values), dtype)
    out = np.full((left.shape[0], X.shape[1]), MIN_PLUS.add.identity(dtype), dtype)
    loops.min_plus_csr_dense(
        given(left.pointers), given(left.columns), given(_entries(left, dtype)), given(X), out
    )
    return _dense(out, left, right, dtype)


@PRODUCTS.register("min_plus", Dense, Csr)
def _min_plus_dense_csr(left: Dense, right: Csr, dtype: np.dtype) -> Dense:
    X = cast(_as_rows(left.values), dtype)
    out = np.full((X.shape[0], right.shape[1]), MIN_PLUS.add.identity(dtype), dtype)
    loops.min_plus_dense_csr(
        given(X), given(right.pointers), given(right.columns), given(_entries(right, dtype)), out
    )
    return _dense(out, left, right, dtype)


@PRODUCTS.register("min_plus", Csr, Csr)
def _min_plus_csr(left: Csr, right: Csr, dtype: np.dtype) -> Block:
    identity = MIN_PLUS.add.identity(dtype)
    pattern, values = _sparse_product(left, right, loops.min_plus_values, identity, dtype)
    return settled(Csr(pattern.shape, pattern.pointers, pattern.columns, values, dtype))


@PRODUCTS.register("plus_pair", Dense, Dense)
def _plus_pair_dense(left: Dense, right: Dense, dtype: np.dtype) -> Dense:
    met = cast(np.array(left.shape[-1]), dtype)
    return Dense(np.full(_result_shape(left, right), met, dtype))


@PRODUCTS.register("plus_pair", Csr, Dense)
def _plus_pair_csr_dense(left: Csr, right: Dense, dtype: np.dtype) -> Dense:
    counts = cast(np.diff(left.pointers), dtype)
    columns = _as_columns(right.values).shape[1]
    return _dense(np.repeat(counts, columns), left, right, dtype)


@PRODUCTS.register("plus_pair", Dense, Csr)
def _plus_pair_dense_csr(left: Dense, right: Csr, dtype: np.dtype) -> Dense:
    counts = cast(np.bincount(right.columns, minlength=right.shape[1]), dtype)
    rows = _as_rows(left.values).shape[0]
    return _dense(np.tile(counts, rows), left, right, dtype)


@PRODUCTS.register("plus_pair", Csr, Csr)
def _plus_pair_csr(left: Csr, right: Csr, dtype: np.dtype) -> Block:
    ones = [Csr(one.shape, one.pointers, one.columns, None, one.dtype) for one in (left, right)]
    pattern, counts = _sparse_product(
        ones[0], ones[1], loops.plus_times_values, np.int64(0), np.dtype(np.int64)
    )
    return settled(Csr(pattern.shape, pattern.pointers, pattern.columns, cast(counts, dtype), dtype))


@PRODUCTS.register("lor_land", Dense, Dense)
def _lor_land_dense(left: Dense, right: Dense, dtype: np.dtype) -> Dense:
    # BLAS has no booleans. Sums of zeros and ones never come back to 0, rounded or not.
    ones = [cast(cast(one.values, np.dtype(np.bool_)), np.dtype(np.float32)) for one in (left, right)]
    return Dense(cast(np.asarray(np.matmul(*ones) > 0), dtype))


@PRODUCTS.register("lor_land", Csr, Dense)
def _lor_land_csr_dense(left: Csr, right: Dense, dtype: np.dtype) -> Dense:
    truth = np.dtype(np.bool_)
    return _dense(_scipy_product(left, cast(right.values, truth), truth), left, right, dtype)


@PRODUCTS.register("lor_land", Dense, Csr)
def _lor_land_dense_csr(left: Dense, right: Csr, dtype: np.dtype) -> Dense:
    truth = np.dtype(np.bool_)
    out = _scipy_product(right, cast(left.values, truth).T, truth, transposed=True).T
    return _dense(out, left, right, dtype)


@PRODUCTS.register("lor_land", Csr, Csr)
def _lor_land_csr(left: Csr, right: Csr, dtype: np.dtype) -> Block:
    truth = np.dtype(np.bool_)
    true_left, true_right = _with_entries(left, truth), _with_entries(right, truth)
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

    @PRODUCTS.register(semiring.name, Empty, Dense)
    @PRODUCTS.register(semiring.name, Dense, Empty)
    def identities(left: Block, right: Block, dtype: np.dtype) -> Block:
        return Dense(np.full(_result_shape(left, right), semiring.add.identity(dtype), dtype))


for _semiring in SEMIRINGS.values():
    _register_empty(_semiring)
