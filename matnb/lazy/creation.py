"""Handles on new arrays: from a person's data, or from parameters alone."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from matnb.blocks.creation import Arange, Creation, Eye, Full, Linspace
from matnb.blocks.formats import SPARSE_DTYPES, Block, Dense, block_from, csr_block, to_numpy
from matnb.blocks.grid import BlocksSpec, grid_from
from matnb.errors import DTypeError, OptionError, RangeError, ShapeError
from matnb.lazy import ufuncs
from matnb.lazy.array import DistArray, expression_of, expression_of_block, handle_of, wrap
from matnb.lazy.expr import Broadcast, Create, Expr, Regrid
from matnb.lazy.registry import recorded
from matnb.lazy.ufuncs import number_dtype

ShapeLike = int | Sequence[int]
Order = str | None
Number = bool | int | float | complex | np.generic


def asarray(
    obj: object,
    dtype: npt.DTypeLike | None = None,
    order: Order = None,
    *,
    device: str | None = None,
    copy: bool | None = None,
    blocks: BlocksSpec = None,
    format: str | None = None,
) -> DistArray:
    """Return an array's data as a DistArray; the data is copied, so changing it later changes nothing.

    Parameters
    ----------
    obj
        A NumPy array, nested list, number, SciPy sparse matrix, ``sparse`` array or DistArray; or a list of
        DistArrays of one shape, which are stacked.
    dtype
        Of the elements; when left out, that of what is given.
    order
        Taken as NumPy's, and without effect: blocks have an order of their own.
    device
        "cpu" or None.
    copy
        True for another handle also of a DistArray; False where only a DistArray of that dtype is taken.
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
    OptionError
        For ``copy=False`` of what has to be copied.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.asarray([[1, 2], [3, 4]]).sum(axis=0).compute()
    array([4, 6])
    """
    check_device(device)
    if format not in (None, "dense", "sparse"):
        raise OptionError(f"format={format!r}: choose 'dense', 'sparse' or None")
    wanted = None if dtype is None else number_dtype(dtype)
    if isinstance(obj, list | tuple) and _holds_handles(obj):
        obj = recorded(np.stack)([asarray(one) for one in obj])
    same = isinstance(obj, DistArray) and (wanted is None or wanted == obj.dtype)
    if copy is False and not same:
        raise OptionError("asarray(copy=False): only a DistArray of that dtype needs no copy")
    if isinstance(obj, DistArray):
        if format is not None and obj.sparse != (format == "sparse"):
            raise DTypeError(f"format={format!r} of a DistArray: compute() it first")
        if blocks is None and same:
            return obj.copy() if copy else obj
        labels = obj.labels
        node = obj.expression if wanted is None else ufuncs.astype(obj.expression, wanted)
        return wrap(regridded(node, blocks), None if labels is None else labels.expression)
    block = _block_of(obj, wanted)
    if format == "dense" and not isinstance(block, Dense):
        block = Dense(to_numpy(block))
    elif format == "sparse" and isinstance(block, Dense):
        if len(block.shape) != 2:
            raise ShapeError(f"format='sparse' of shape {block.shape}: sparse arrays have two axes")
        block = csr_block(sp.csr_array(block.values))
    grid_from(block.shape, blocks)  # bad cuts are refused before the data is copied or sent
    node = expression_of_block(block)
    return DistArray(regridded(node if wanted is None else ufuncs.astype(node, wanted), blocks))


def _holds_handles(items: Sequence[object]) -> bool:
    return any(
        isinstance(one, DistArray) or (isinstance(one, list | tuple) and _holds_handles(one)) for one in items
    )


def _block_of(obj: object, wanted: np.dtype | None) -> Block:
    # Lists and numbers are made at once in the dtype, which tells numbers that do not fit it.
    if (
        wanted is None
        or hasattr(obj, "dtype")
        or not isinstance(obj, list | tuple | bool | int | float | complex)
    ):
        return block_from(obj)
    try:
        return block_from(np.asarray(obj, wanted))
    except OverflowError as error:
        raise RangeError(f"asarray: a number does not fit dtype {wanted}: {error}") from None
    except ValueError as error:  # text, or lists of unequal lengths
        raise ShapeError(
            f"asarray: no array of dtype {wanted} is made of this {type(obj).__name__}: {error}"
        ) from None
    except TypeError as error:
        raise DTypeError(
            f"asarray: no array of dtype {wanted} is made of this {type(obj).__name__}: {error}"
        ) from None


def check_device(device: object) -> None:
    """Refuse any device but "cpu", which stands for the workers' memory.

    Raises
    ------
    OptionError
        Naming the only one.
    """
    if device is not None and device != "cpu":
        raise OptionError(f"device={device!r}: arrays are on the workers of the cluster, device 'cpu'")


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
    shape: ShapeLike,
    fill_value: object,
    dtype: npt.DTypeLike | None = None,
    order: Order = "C",
    *,
    device: str | None = None,
    blocks: BlocksSpec = None,
) -> DistArray:
    """Return an array with every element equal to ``fill_value``, of its dtype unless one is given.

    Of an array as ``fill_value`` every element gets what stretches to it.
    """
    check_device(device)
    if isinstance(fill_value, DistArray) or np.ndim(fill_value):  # type: ignore[arg-type]  # or it raises
        node = expression_of(fill_value)
        node = node if dtype is None else ufuncs.astype(node, dtype)
        return wrap(regridded(Broadcast(node, shape_of(shape)), blocks))
    try:
        value = np.asarray(fill_value, dtype=None if dtype is None else number_dtype(dtype))
    except OverflowError:
        raise RangeError(f"full: {fill_value} does not fit dtype {dtype}") from None
    except TypeError:
        raise DTypeError(f"full: {fill_value!r} is no number of dtype {dtype}") from None
    element = number_dtype(value.dtype)
    return created(Full(shape_of(shape), value.tobytes(), element), blocks)


def zeros(
    shape: ShapeLike,
    dtype: npt.DTypeLike | None = None,
    order: Order = "C",
    *,
    device: str | None = None,
    blocks: BlocksSpec = None,
) -> DistArray:
    """Return a dense array of zeros."""
    return full(shape, 0, float if dtype is None else dtype, device=device, blocks=blocks)


def ones(
    shape: ShapeLike,
    dtype: npt.DTypeLike | None = None,
    order: Order = "C",
    *,
    device: str | None = None,
    blocks: BlocksSpec = None,
) -> DistArray:
    """Return a dense array of ones."""
    return full(shape, 1, float if dtype is None else dtype, device=device, blocks=blocks)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    k: int = 0,
    dtype: npt.DTypeLike | None = None,
    order: Order = "C",
    *,
    device: str | None = None,
    blocks: BlocksSpec = None,
) -> DistArray:
    """Return the matrix with ones on the k-th diagonal, square unless ``n_cols`` is given.

    It is sparse where its dtype is one of sparse arrays: float64, float32, int64, int32 or bool.
    """
    check_device(device)
    rows, columns = shape_of((n_rows, n_rows if n_cols is None else n_cols))
    element = number_dtype(float if dtype is None else dtype)
    if element in SPARSE_DTYPES:
        return created(Eye(rows, columns, operator.index(k), element), blocks)
    on_diagonal = created(Arange(k, 1, rows, np.dtype(np.int64)))[:, None] == created(
        Arange(0, 1, columns, np.dtype(np.int64))
    )
    return wrap(regridded(ufuncs.astype(on_diagonal.expression, element), blocks))


def arange(
    start: object,
    stop: object = None,
    step: object = 1,
    dtype: npt.DTypeLike | None = None,
    *,
    device: str | None = None,
    blocks: BlocksSpec = None,
) -> DistArray:
    """Return evenly spaced numbers from ``start`` up to, without, ``stop``, as ``numpy.arange``."""
    check_device(device)
    first, last, each = (_real_number(one) for one in (start, stop, 1 if step is None else step))
    assert each is not None
    if first is None or last is None:
        first, last = (last or 0), first  # only one of them is given
        if first is None or last is None:
            raise OptionError("arange: give stop")
    if each == 0:
        raise OptionError("arange: the step cannot be 0")
    length = max(0, math.ceil((last - first) / each))
    element = np.result_type(*(np.asarray(one) for one in (first, last, each)))
    if dtype is not None:
        element = number_dtype(dtype)
    return created(Arange(first, each, length, element), blocks)


def _real_number(value: object) -> int | float | None:
    if isinstance(value, DistArray):
        value = value.item()
    if value is None or isinstance(value, int | float | np.integer | np.floating):
        return value  # type: ignore[return-value]  # NumPy's numbers are used as Python's are
    raise DTypeError(f"arange: {value!r} is no real number")


def linspace(
    start: object,
    stop: object,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: npt.DTypeLike | None = None,
    axis: int = 0,
    *,
    device: str | None = None,
    blocks: BlocksSpec = None,
) -> DistArray | tuple[DistArray, object]:
    """Return ``num`` evenly spaced numbers from ``start`` to ``stop``, the last one included by default.

    As ``numpy.linspace``, also between arrays and with the step.
    """
    check_device(device)
    (length,) = shape_of(num)
    if not (_is_real(start) and _is_real(stop)):
        made, step = _between(start, stop, length, bool(endpoint), dtype, axis)
        made = wrap(regridded(made.expression, blocks))
    else:
        first, last = float(start), float(stop)  # type: ignore[arg-type]  # real numbers
        kind = number_dtype(np.float64 if dtype is None else dtype)
        if dtype is None and any(isinstance(one, np.longdouble) for one in (start, stop)):
            kind = np.dtype(np.longdouble)
        made = created(Linspace(first, last, length, bool(endpoint), kind), blocks)
        intervals = length - 1 if endpoint else length
        step = np.float64(last - first) / intervals if intervals > 0 else np.nan
    return (made, step) if retstep else made


def _is_real(value: object) -> bool:
    return isinstance(value, int | float | np.bool | np.integer | np.floating)


def _between(
    start: object, stop: object, num: int, endpoint: bool, dtype: npt.DTypeLike | None, axis: int
) -> tuple[DistArray, object]:
    # As NumPy works it out, between arrays or complex numbers.
    element = np.result_type(expression_of(start).dtype, expression_of(stop).dtype, np.float64)
    first, last = (DistArray(ufuncs.astype(expression_of(one), element)) for one in (start, stop))
    intervals = num - 1 if endpoint else num
    width = handle_of(last - first)
    step = width / intervals if intervals > 0 else width * np.nan
    places = created(Arange(0, 1, num, np.dtype(np.float64)))
    places = places[(slice(None), *(None,) * width.ndim)]
    made = handle_of(places * (step if intervals > 0 else width) + first)
    if endpoint and num > 1:
        made = handle_of(recorded(np.where)(places == num - 1, last, made))
    wanted = element if dtype is None else number_dtype(dtype)
    node = made.expression
    if wanted.kind in "iu":
        (node,) = ufuncs.call(np.floor, (node,))
    made = wrap(ufuncs.astype(node, wanted))
    return (made if axis in (0, -made.ndim) else handle_of(recorded(np.moveaxis)(made, 0, axis))), step
