"""Handles on new arrays: from a person's data, or from parameters alone."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from matnb.blocks.creation import Arange, Creation, Eye, Full, Linspace
from matnb.blocks.formats import Dense, block_from, csr_block, to_numpy
from matnb.blocks.grid import BlocksSpec, grid_from
from matnb.errors import DTypeError, OptionError, ShapeError
from matnb.lazy.array import DistArray, expression_of_block, wrap
from matnb.lazy.expr import Create, Expr, Regrid
from matnb.lazy.ufuncs import number_dtype

ShapeLike = int | Sequence[int]
Number = bool | int | float | complex | np.generic


def asarray(obj: object, blocks: BlocksSpec = None, format: str | None = None) -> DistArray:
    """Return an array's data as a DistArray; the data is copied, so changing it later changes nothing.

    Parameters
    ----------
    obj
        A NumPy array, nested list, number, SciPy sparse matrix, ``sparse`` array or DistArray.
    blocks
        A count (along the first axis), or per axis a count, cuts ``[0, 10, 25, 100]``, or None; chosen by
        matnb when left out. The result is cut so; a DistArray that is given keeps its own cuts.
    format
        "dense" or "sparse" to convert; None keeps what is given.

    Raises
    ------
    DTypeError
        For elements that are not numbers or booleans.
    ShapeError
        For cuts that do not fit, or a sparse array that is not two-dimensional.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.asarray([[1, 2], [3, 4]]).sum(axis=0).compute()
    array([4, 6])
    """
    if format not in (None, "dense", "sparse"):
        raise OptionError(f"format={format!r}: choose 'dense', 'sparse' or None")
    if isinstance(obj, DistArray):
        if format is not None and obj.sparse != (format == "sparse"):
            raise DTypeError(f"format={format!r} of a DistArray: compute() it first")
        if blocks is None:
            return obj
        labels = obj.labels
        return wrap(regridded(obj.expression, blocks), None if labels is None else labels.expression)
    block = block_from(obj)
    if format == "dense" and not isinstance(block, Dense):
        block = Dense(to_numpy(block))
    elif format == "sparse" and isinstance(block, Dense):
        if len(block.shape) != 2:
            raise ShapeError(f"format='sparse' of shape {block.shape}: sparse arrays have two axes")
        block = csr_block(sp.csr_array(block.values))
    grid_from(block.shape, blocks)  # bad cuts are refused before the data is copied or sent
    return DistArray(regridded(expression_of_block(block), blocks))


def created(creation: Creation, blocks: BlocksSpec = None) -> DistArray:
    """Return a handle on an array made from parameters alone."""
    return wrap(regridded(Create(creation), blocks))


def regridded(node: Expr, blocks: BlocksSpec) -> Expr:
    """Return the expression of an array cut as a person's ``blocks=`` asks; itself where nothing is asked.

    Raises
    ------
    ShapeError
        For cuts that do not fit.
    """
    if blocks is None:
        return node
    grid = grid_from(node.shape, blocks)
    # A single element is cut in one way only; and as a bare constant it keeps sparse arrays sparse.
    return node if node.size == 1 else Regrid(node, grid.cuts)


def shape_of(shape: ShapeLike) -> tuple[int, ...]:
    """Return a shape as a tuple of lengths.

    Raises
    ------
    ShapeError
        For a length that is negative or no whole number.
    """
    lengths = tuple(shape) if isinstance(shape, Sequence | np.ndarray) else (shape,)
    result = []
    for length in lengths:
        try:
            whole = operator.index(length)
        except TypeError:
            raise ShapeError(f"shape {shape!r}: lengths are whole numbers") from None
        if whole < 0:
            raise ShapeError(f"shape {shape!r}: lengths cannot be negative")
        result.append(whole)
    return tuple(result)


def full(
    shape: ShapeLike, fill_value: Number, dtype: npt.DTypeLike | None = None, blocks: BlocksSpec = None
) -> DistArray:
    """Return an array with every element equal to ``fill_value``, of its dtype unless one is given."""
    value = np.asarray(fill_value, dtype=None if dtype is None else number_dtype(dtype))
    if value.shape:
        raise ShapeError(f"full: fill_value has shape {value.shape}; give one number")
    return created(Full(shape_of(shape), value.tobytes(), value.dtype), blocks)


def zeros(shape: ShapeLike, dtype: npt.DTypeLike = float, blocks: BlocksSpec = None) -> DistArray:
    """Return a dense array of zeros."""
    return full(shape, 0, dtype, blocks)


def ones(shape: ShapeLike, dtype: npt.DTypeLike = float, blocks: BlocksSpec = None) -> DistArray:
    """Return a dense array of ones."""
    return full(shape, 1, dtype, blocks)


def eye(
    num_rows: int,
    num_columns: int | None = None,
    k: int = 0,
    dtype: npt.DTypeLike = float,
    blocks: BlocksSpec = None,
) -> DistArray:
    """Return the sparse matrix with ones on the k-th diagonal, square unless ``num_columns`` is given."""
    rows, columns = shape_of((num_rows, num_rows if num_columns is None else num_columns))
    return created(Eye(rows, columns, int(k), number_dtype(dtype)), blocks)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    dtype: npt.DTypeLike | None = None,
    blocks: BlocksSpec = None,
) -> DistArray:
    """Return evenly spaced numbers from ``start`` up to, without, ``stop``, as ``numpy.arange``."""
    if stop is None:
        start, stop = 0 if isinstance(start, int | np.integer) else 0.0, start
    if step == 0:
        raise OptionError("arange: the step cannot be 0")
    length = max(0, math.ceil((stop - start) / step))
    element = np.result_type(np.asarray(start), np.asarray(stop), np.asarray(step))
    if dtype is not None:
        element = number_dtype(dtype)
    return created(Arange(start, step, length, element), blocks)


def linspace(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    dtype: npt.DTypeLike | None = None,
    blocks: BlocksSpec = None,
) -> DistArray:
    """Return ``num`` evenly spaced numbers from ``start`` to ``stop``, the last one included by default."""
    (length,) = shape_of(num)
    element = number_dtype(np.float64 if dtype is None else dtype)
    return created(Linspace(float(start), float(stop), length, bool(endpoint), element), blocks)
