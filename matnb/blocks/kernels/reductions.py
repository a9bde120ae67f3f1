"""Reductions of single blocks to partial results, their combination, and the last step to the result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.blocks.formats import Block, Csr, Dense, Empty, NumericArray
from matnb.blocks.kernels.casting import cast
from matnb.blocks.kernels.patterns import as_csr, transposed_order
from matnb.blocks.kernels.registry import Family
from matnb.blocks.kernels.shaping import densify
from matnb.blocks.semiring import LAND, LOR, MAX, MIN, PLUS, TIMES
from matnb.errors import OptionError, ShapeError

REDUCTIONS = Family("reduction")
_MONOIDS = {"sum": PLUS, "prod": TIMES, "min": MIN, "max": MAX, "any": LOR, "all": LAND, "stored": PLUS}
_WIDE = {"float16": np.dtype(np.float64), "float32": np.dtype(np.float64), "complex64": np.dtype(np.complex128)}


def accumulator_dtype(operation: str, dtype: np.dtype) -> np.dtype:
    """Return the dtype of the partial results of a reduction to ``dtype``: sums are kept in twice the precision."""
    return _WIDE.get(dtype.name, dtype) if operation == "sum" else dtype


def reduce_block(operation: str, block: Block, axes: tuple[int, ...], dtype: np.dtype) -> Dense:
    """Reduce one block to its part of the result.

    Parameters
    ----------
    operation
        "sum", "prod", "min", "max", "any", "all", or "stored": the number of stored entries, for a Dense block
        of all elements.
    block
        Absent elements of a sparse block count as 0, except for "stored". NaN goes through as in NumPy.
    axes
        Not negative, none twice.
    dtype
        Of the result of the whole reduction; the part has ``accumulator_dtype(operation, dtype)``.

    Returns
    -------
    Dense
        Of as many axes as the block, the reduced ones of length 1. Over no element at all it is the identity of
        the operation, also for "min" and "max", since the array may have elements where the block has none.

    Raises
    ------
    OptionError
        For an unknown operation.
    """
    _check(operation)
    part = accumulator_dtype(operation, dtype)
    with np.errstate(all="ignore"):
        return Dense(_PARTS(operation, block, axes, part))


def combine(operation: str, parts: Sequence[Dense]) -> Dense:
    """Combine partial results of one shape, in the given order.

    Raises
    ------
    ShapeError
        When there is no part, or their shapes differ.
    """
    _check(operation)
    if len({part.shape for part in parts}) != 1:
        raise ShapeError(f"partial results of shapes {[part.shape for part in parts]}: give at least one, all alike")
    ufunc = getattr(np, _MONOIDS[operation].ufunc)
    total = parts[0].values.copy()
    with np.errstate(all="ignore"):
        for part in parts[1:]:
            total = np.asarray(ufunc(total, part.values))
    return Dense(total)
