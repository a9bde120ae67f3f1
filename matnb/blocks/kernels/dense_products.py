"""Products with a Dense block on at least one side, over a semiring."""

from __future__ import annotations

import math

import numpy as np

from matnb.blocks.formats import Block, Csr, Dense, Empty, NumericArray, to_scipy
from matnb.blocks.kernels import dense_product_loops as loops
from matnb.blocks.kernels.casting import cast, entries_as, with_entries
from matnb.blocks.kernels.compiled import given
from matnb.blocks.kernels.reductions import accumulator_dtype
from matnb.blocks.kernels.registry import PRODUCTS
from matnb.blocks.semiring import MIN_PLUS, SEMIRINGS, Semiring


def _result_shape(left: Block, right: Block) -> tuple[int, ...]:
    a, b = left.shape, right.shape
    return (*np.broadcast_shapes(a[:-2], b[:-2]), *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))


def _as_rows(values: NumericArray) -> NumericArray:
    return values[np.newaxis, :] if values.ndim == 1 else values


def _as_columns(values: NumericArray) -> NumericArray:
    return values[:, np.newaxis] if values.ndim == 1 else values


def _dense(out: NumericArray, left: Block, right: Block, dtype: np.dtype) -> Dense:
    return Dense(np.asarray(cast(out.reshape(_result_shape(left, right)), dtype), order="C"))


def _scipy_product(
    block: Csr, values: NumericArray, dtype: np.dtype, transposed: bool = False
) -> NumericArray:
    matrix = to_scipy(with_entries(block, dtype))
    product: NumericArray = (matrix.T if transposed else matrix) @ values  # type: ignore[operator]  # stubs: numbers
    return product


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
        given(left.pointers), given(left.columns), given(entries_as(left, dtype)), given(X), out
    )
    return _dense(out, left, right, dtype)


@PRODUCTS.register("min_plus", Dense, Csr)
def _min_plus_dense_csr(left: Dense, right: Csr, dtype: np.dtype) -> Dense:
    X = cast(_as_rows(left.values), dtype)
    out = np.full((X.shape[0], right.shape[1]), MIN_PLUS.add.identity(dtype), dtype)
    loops.min_plus_dense_csr(
        given(X), given(right.pointers), given(right.columns), given(entries_as(right, dtype)), out
    )
    return _dense(out, left, right, dtype)


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


def _register_empty(semiring: Semiring) -> None:
    @PRODUCTS.register(semiring.name, Empty, Dense)
    @PRODUCTS.register(semiring.name, Dense, Empty)
    def identities(left: Block, right: Block, dtype: np.dtype) -> Block:
        return Dense(np.full(_result_shape(left, right), semiring.add.identity(dtype), dtype))


for _semiring in SEMIRINGS.values():
    _register_empty(_semiring)
