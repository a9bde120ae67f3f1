"""Products of two blocks over a semiring, and the sum of the partial products of one block."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from matnb.blocks.formats import (
    Block,
    Csr,
    Dense,
    SparseBlock,
    is_sparse,
)
from matnb.blocks.kernels import dense_products, sparse_products  # noqa: F401  # they fill PRODUCTS
from matnb.blocks.kernels.casting import cast
from matnb.blocks.kernels.patterns import as_csr, meetings, settled, union
from matnb.blocks.kernels.reductions import accumulator_dtype
from matnb.blocks.kernels.registry import PRODUCTS
from matnb.blocks.semiring import Monoid, Semiring
from matnb.errors import ShapeError, UnsupportedError


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
