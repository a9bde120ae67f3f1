"""Products of two blocks over a semiring, and the sum of the partial products of one block."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.blocks.formats import (
    Block,
    Csr,
    Dense,
    NumericArray,
    SparseBlock,
    cast,
    is_sparse,
)
from matnb.blocks.kernels.operands import check_loop_dtype, known_operands
from matnb.blocks.kernels.pairwise import add_in_pairs, in_pairs
from matnb.blocks.kernels.patterns import as_csr, same_pattern, settled, united
from matnb.blocks.kernels.products import dense_products, sparse_products  # noqa: F401  # they fill PRODUCTS
from matnb.blocks.kernels.products.semiring_loops import dense_product
from matnb.blocks.kernels.reductions.reductions import accumulator_dtype
from matnb.blocks.kernels.registry import PRODUCTS
from matnb.blocks.semiring import PLUS, Monoid, Semiring
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
    DTypeError
        For a sparse product of extended precision.
    UnsupportedError
        When there is no kernel for the semiring and formats.
    """
    check_shapes(left, right)
    if is_sparse(left) or is_sparse(right):
        check_loop_dtype(dtype)
    left, right, semiring = known_operands(left, right, semiring, dtype)
    if semiring.is_general and not (is_sparse(left) and is_sparse(right)):
        with np.errstate(all="ignore"):
            return dense_product(left, right, semiring, dtype)
    kernel = PRODUCTS.find(semiring.name, left, right)
    with np.errstate(all="ignore"):
        return kernel(left, right, dtype)


def accumulate(parts: Sequence[Block], monoid: Monoid, dtype: np.dtype) -> Block:
    """Combine partial products of one shape element by element, as the tree of their order: ``in_pairs``.

    Sparse parts give the union of their patterns, whose memory the result may share when they share it among
    themselves. float16 and float32 are kept in float64 until the end. Peak memory: the result, and what it is
    summed in, where that is wider; for sparse parts of different patterns what the parts hold once more.

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
    dense = [part for part in parts if isinstance(part, Dense)]
    sparse = [part for part in parts if not isinstance(part, Dense)]
    if dense and sparse:
        raise UnsupportedError("no sum of (Dense, Csr) partial products; known: all Dense, all sparse")
    with np.errstate(all="ignore"):
        if sparse:
            return _accumulate_sparse(sparse, monoid, wide, dtype)
        if len(dense) == 1:
            return Dense(cast(dense[0].values, dtype, copy=True))
        total = np.empty(dense[0].shape, dtype)
        add_in_pairs([part.values for part in dense], getattr(np, monoid.ufunc), wide, total)
    return Dense(total)


def _accumulate_sparse(
    parts: Sequence[SparseBlock], monoid: Monoid, wide: np.dtype, dtype: np.dtype
) -> Block:
    combine = getattr(np, monoid.ufunc)
    # What only one part stores is met by what changes nothing; 0 would cost a -0.0 its sign.
    neutral = monoid.identity(wide)
    if monoid is PLUS and wide.kind in "fc":
        neutral = wide.type(-np.zeros(1, wide)[0])

    def fill(one: NumericArray, other: NumericArray, out: NumericArray) -> None:
        combine(one, other, out=out)

    def add(one: tuple[Csr, NumericArray], other: tuple[Csr, NumericArray]) -> tuple[Csr, NumericArray]:
        (left, held), (right, entries) = one, other
        if same_pattern(left, right):
            return left, cast(np.asarray(combine(held, entries)), wide)
        both = united((left, right), (held, entries), (neutral, neutral), wide, fill)
        return both, _wide_entries(both, wide)

    total, held = in_pairs([(part, _wide_entries(part, wide)) for part in map(as_csr, parts)], add)
    values = cast(np.broadcast_to(held, (total.nnz,)), dtype, copy=len(parts) == 1 or held.size == 1)
    return settled(Csr(total.shape, total.pointers, total.columns, values, dtype))


def _wide_entries(block: Csr, wide: np.dtype) -> NumericArray:
    return np.ones(1, wide) if block.values is None else cast(block.values, wide)


def check_shapes(left: Block, right: Block) -> None:
    """Refuse blocks that have no product, as ``multiply`` does.

    Raises
    ------
    ShapeError
        With both shapes.
    """
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
