"""Handles on new arrays: from a user's data, or from parameters alone."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from matnb.blocks.creation import Arange, Creation, Eye, Full, Linspace
from matnb.blocks.foreign import array_of, names_of
from matnb.blocks.formats import SPARSE_DTYPES, Block, Dense, block_from, csr_block
from matnb.blocks.grid import BlocksSpec, grid_from, leaves_cuts
from matnb.errors import DTypeError, OptionError, RangeError, ShapeError, UnsupportedError
from matnb.expr.client_data import held, owned
from matnb.expr.nodes import Broadcast, Create, Data, Expr, Index, OnEntries, Regrid
from matnb.lazy import reductions, ufuncs
from matnb.lazy.array import DistArray, handle_of, wrap
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.evaluator import asked, evaluator
from matnb.lazy.handles import expression_of, expression_of_block, operand_of, stacked
from matnb.lazy.labels import NOTED_LABELS
from matnb.lazy.limits import check_incoming
from matnb.lazy.registry import implements, recorded
from matnb.lazy.ufuncs import number_dtype
from matnb.ops.coordinates import FromCoordinates

_LEAST = int(np.iinfo(np.int64).min)
_SENT_BYTES = 1 << 16  # below this an array goes with what reads it

ShapeLike = int | Sequence[int]
Order = str | None
Number = bool | int | float | complex | np.generic


def asarray(
    obj: ArrayLike,
    dtype: npt.DTypeLike | None = None,
    order: Order = None,
    *,
    device: str | None = None,
    copy: bool | None = None,
    blocks: BlocksSpec = None,
    format: str | None = None,
) -> DistArray:
    """Return data as a DistArray. The data is copied, so changing the original later has no effect.

    The copy is kept as long as an expression needs it, so that blocks lost with a worker can be sent again.
    An array above 64 MB goes to the workers immediately: workers in this process share the copy; for others
    it is kept in an unnamed temporary file (in ``TMPDIR``), which takes disk space but no memory beyond the
    system's cache. If that folder has less than twice the space needed, no copy is kept, and losing a worker
    is an error.

    Parameters
    ----------
    obj
        A NumPy array, nested list, number, SciPy sparse matrix, ``sparse`` array or DistArray; a list of
        DistArrays of one shape, which are stacked; a table, whose columns become those of a matrix; a
        NetworkX graph, which becomes its adjacency matrix in the order of its nodes (weights as values, those
        of parallel edges added); or anything else that NumPy can convert, such as a pandas DataFrame.
    dtype
        Dtype of the elements; by default that of ``obj``.
    order
        Accepted for compatibility with NumPy, and ignored: blocks have an order of their own.
    device
        "cpu" or None.
    copy
        True copies a DistArray, too; False raises unless ``obj`` is a DistArray of that dtype.
    blocks
        How to split the array: a number of blocks along the first axis, or per axis a number, boundaries such
        as ``[0, 10, 25, 100]``, or None. "auto", the default, leaves it to matnb: rows, a block a thread, and
        among four workers or more all axes of a dense array by their lengths; a DistArray keeps its blocks.
    format
        "dense" or "sparse" to convert; None keeps the format. A sparse array is made dense on the workers.

    Raises
    ------
    DTypeError
        For elements that are not numbers or booleans, masked ones, and for anything other than an array: a
        dict, a set, a generator. The message says how to convert it.
    ShapeError
        For blocks that do not fit the shape, or a sparse array that is not two-dimensional.
    OptionError
        For ``copy=False`` if a copy is needed.
    TooLargeError
        For data that is not in this process yet, such as a Dask array or a dataset in an HDF5 file or a Zarr
        store, if it exceeds the session's ``compute_limit``: all of it is read here.

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
    obj = stacked(obj)
    same = isinstance(obj, DistArray) and (wanted is None or wanted == obj.dtype)
    if copy is False and not same:
        raise OptionError("asarray(copy=False): a copy is needed, as this is not a DistArray of that dtype")
    if isinstance(obj, DistArray):
        if format == "sparse" and not obj.sparse:
            raise DTypeError(f"format={format!r} cannot be made of a dense DistArray: call compute() first")
        if format == "dense" and obj.sparse:
            obj = DistArray(Broadcast(obj.expression, obj.shape))
        if leaves_cuts(blocks) and same:
            return obj.copy() if copy else obj
        node = obj.expression if wanted is None else ufuncs.astype(obj.expression, wanted)
        return obj._recorded(regridded(node, blocks))
    check_incoming(obj)
    block = _block_of(obj, wanted)
    if format == "sparse" and isinstance(block, Dense):
        if len(block.shape) != 2:
            raise ShapeError(f"format='sparse' of shape {block.shape}: sparse arrays have two axes")
        block = csr_block(sp.csr_array(block.values))
    grid_from(block.shape, blocks)  # bad cuts are refused before the data is copied or sent
    names = names_of(obj)
    node = expression_of_block(block, b"" if names is None else repr(names.tolist()).encode())
    if names is not None:
        NOTED_LABELS[node] = names
    if format == "dense" and node.sparse:
        node = Broadcast(node, node.shape)
    return DistArray(regridded(node if wanted is None else ufuncs.astype(node, wanted), blocks))


def owned_array(values: object) -> DistArray:
    """Return a handle on an array of NumPy's or SciPy's that nobody changes any more, without a copy."""
    return DistArray(owned(block_from(values)))


def send(array: DistArray) -> None:
    """Send an array of :func:`owned_array` to the workers now; those in this process share it."""
    node = array.expression
    block = held(node)
    if isinstance(node, Data) and block is not None and block.nbytes > _SENT_BYTES:
        evaluator().ship(node, block)


def _block_of(obj: ArrayLike, wanted: np.dtype | None) -> Block:
    # Lists and numbers are made at once in the dtype, which tells numbers that do not fit it.
    if (
        wanted is None
        or hasattr(obj, "dtype")
        or not isinstance(obj, list | tuple | bool | int | float | complex)
    ):
        return block_from(obj)
    array_of(obj)  # refuses anything other than an array, and masks
    try:
        return block_from(np.asarray(obj, wanted))
    except OverflowError as error:
        raise RangeError(f"asarray: a number does not fit dtype {wanted}: {error}") from None
    except ValueError as error:  # text, or lists of unequal lengths
        raise ShapeError(
            f"asarray: this {type(obj).__name__} cannot be converted to an array of dtype {wanted}: {error}"
        ) from None
    except TypeError as error:
        raise DTypeError(
            f"asarray: this {type(obj).__name__} cannot be converted to an array of dtype {wanted}: {error}"
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
    """Return the expression of an array cut as a user's ``blocks=`` asks; itself where nothing is asked.

    Raises
    ------
    ShapeError
        For cuts that do not fit.
    """
    if leaves_cuts(blocks):
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
            raise ShapeError(f"shape {shape!r}: lengths must be integers") from None
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
    """Return an array filled with ``fill_value``, by default of its dtype.

    An array ``fill_value`` is broadcast to the shape.
    """
    check_device(device)
    if isinstance(fill_value, DistArray) or np.ndim(fill_value):  # type: ignore[arg-type]  # or it raises
        node = expression_of(fill_value)
        node = node if dtype is None else ufuncs.astype(node, dtype)
        return wrap(regridded(Broadcast(node, shape_of(shape)), blocks))
    element = number_dtype(np.asarray(fill_value).dtype if dtype is None else dtype)
    value = ufuncs.forced(fill_value, element)
    return created(Full(shape_of(shape), value.content, element), blocks)


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
    n_rows: int | None = None,
    n_cols: int | None = None,
    k: int = 0,
    dtype: npt.DTypeLike | None = None,
    order: Order = "C",
    *,
    N: int | None = None,
    M: int | None = None,
    device: str | None = None,
    blocks: BlocksSpec = None,
) -> DistArray:
    """Return a matrix with ones on the k-th diagonal, square unless ``n_cols`` is given.

    ``N`` and ``M`` are NumPy's names for ``n_rows`` and ``n_cols``, the array API standard's. It is sparse if
    sparse arrays support the dtype: float64, float32, int64, int32, complex or bool.

    Raises
    ------
    OptionError
        If a length is missing, or given under both names.
    """
    check_device(device)
    if (n_rows is None) == (N is None) or (n_cols is not None and M is not None):
        raise OptionError(
            "eye: give the number of rows once, as n_rows or N, and that of columns once, as n_cols or M"
        )
    height = N if n_rows is None else n_rows
    width = M if n_cols is None else n_cols
    rows, columns = shape_of((height, height if width is None else width))  # type: ignore[arg-type]  # one is given
    element = number_dtype(float if dtype is None else dtype)
    if element in SPARSE_DTYPES:
        return created(Eye(rows, columns, operator.index(k), element), blocks)
    on_diagonal = created(Arange(k, 1, rows, np.dtype(np.int64)))[:, None] == created(
        Arange(0, 1, columns, np.dtype(np.int64))
    )
    return wrap(regridded(ufuncs.astype(on_diagonal.expression, element), blocks))


def coo_array(
    arg1: tuple[object, tuple[object, object]],
    shape: Sequence[int] | None = None,
    dtype: npt.DTypeLike | None = None,
    *,
    duplicates: str = "sum",
    blocks: BlocksSpec = None,
) -> DistArray:
    """Return a sparse array of values at coordinates, as SciPy's ``coo_array``; the inputs may be DistArrays.

    Parameters
    ----------
    arg1
        ``(values, (rows, columns))``: 1-D NumPy arrays or DistArrays of equal length; coordinates are
        integers from 0. A single value is used for all coordinates.
    shape
        Shape of the result. By default it is inferred from the largest coordinates, which are computed for
        this, so that it is required inside the body of a loop.
    dtype
        Dtype of the values; by default their own.
    duplicates
        How values with equal coordinates are combined: "sum", added in the order given, "last", "first",
        "min", "max", or "error" to raise. As in NumPy, "min" and "max" of NaN are NaN.
    blocks
        How to split the result, as in :func:`matnb.asarray`.

    Returns
    -------
    DistArray
        Sparse; explicit zeros are stored. Bit-identical however the inputs are split.

    Raises
    ------
    ShapeError
        For inputs of unequal lengths, and a shape that does not have two axes.
    DTypeError
        For values of a dtype that sparse arrays do not support, coordinates that are not integers, and "min"
        or "max" of complex numbers.
    OptionError
        For an unknown value of ``duplicates``; and with "error", when computed, for coordinates that occur
        twice.
    IndexingError
        When computed, for a coordinate outside the shape; the message names the entry.

    Examples
    --------
    >>> import numpy as np
    >>> import matnb as mn
    >>> rows, columns = mn.asarray([0, 1, 1]), mn.asarray([2, 0, 0])
    >>> np.asarray(mn.coo_array((np.array([1.0, 2.0, 3.0]), (rows, columns)), shape=(2, 3)))
    array([[0., 0., 1.],
           [5., 0., 0.]])
    """
    try:
        given, (rows, columns) = arg1
    except (TypeError, ValueError):
        raise ShapeError("coo_array: give (values, (rows, columns))") from None
    places = expression_of(rows), expression_of(columns)
    values = expression_of(given)
    values = ufuncs.astype(values, values.dtype if dtype is None else number_dtype(dtype))
    if not values.shape:
        values = Broadcast(values, places[0].shape)
    element = values.dtype
    if element.kind in "iu" and element not in SPARSE_DTYPES:  # sums of int64 wrap to the same values
        values = ufuncs.astype(values, np.dtype(np.int64))
    # Of uint64 that are kept as int64, those from 2**63 on are negative: moved by 2**63, all are in order.
    is_moved = element == np.uint64 and duplicates in ("min", "max")
    if is_moved:
        (values,) = ufuncs.call(np.bitwise_xor, (values, _LEAST))
    if shape is None:
        shape = [_length_of(one, name) for one, name in zip(places, ("rows", "columns"), strict=True)]
    lengths = shape_of(shape)
    if len(lengths) != 2:
        raise ShapeError(f"coo_array: shape {lengths}: sparse arrays have two axes")
    node: Expr = FromCoordinates(values, *places, (lengths[0], lengths[1]), duplicates)
    if is_moved:  # elements that are not stored stay zero
        node = OnEntries("bitwise_xor", (node, ufuncs.literal(_LEAST)), (node.dtype, node.dtype), node.dtype)
    return wrap(regridded(ufuncs.astype(node, element), blocks))


def _length_of(places: Expr, name: str) -> int:
    # One more than the largest of some places.
    if places.ndim != 1 or not places.size:
        raise ShapeError(f"coo_array: {name} of shape {places.shape} do not determine the shape: give shape=")
    return int(asked(reductions.reduce(places, "max"), "the shape of coo_array")) + 1


def arange(
    start: object = None,
    stop: object = None,
    step: object = 1,
    dtype: npt.DTypeLike | None = None,
    *,
    device: str | None = None,
    blocks: BlocksSpec = None,
) -> DistArray:
    """Return evenly spaced numbers from ``start`` to ``stop``, which is not included, as ``numpy.arange``."""
    check_device(device)
    first, last, each = (_real_number(one) for one in (start, stop, 1 if step is None else step))
    assert each is not None
    if last is None:
        first, last = None, first  # the only number that is given
    if last is None:
        raise OptionError("arange: give stop")
    first = 0 if first is None else first
    if each == 0:
        raise OptionError("arange: the step cannot be 0")
    length = max(0, math.ceil((last - first) / each))
    if length > np.iinfo(np.intp).max:
        raise OptionError(
            f"arange({first!r}, {last!r}, {each!r}): {length:,} elements are too many for an array"
        )
    # As in NumPy, whole numbers of any length are counted in the widest; no number is weak here.
    element = np.result_type(np.intp, *(np.asarray(one) for one in (first, last, each)))
    element = number_dtype(element if dtype is None else dtype)
    if all(isinstance(one, int | np.integer) for one in (first, each)):
        first, each = int(first), int(each)  # or the first step, added to the start, may go round
    return created(Arange(first, each, length, element), blocks)


def _real_number(value: object) -> int | float | None:
    if isinstance(value, DistArray) or (isinstance(value, np.ndarray) and not value.ndim):
        value = value[()] if isinstance(value, np.ndarray) else value.item()
    if isinstance(value, np.bool):
        return int(value)
    if value is None or isinstance(value, int | float | np.integer | np.floating):
        return value  # type: ignore[return-value]  # NumPy's numbers are used as Python's are
    raise DTypeError(f"arange: {value!r} is not a real number")


@implements(np.linspace)
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
    """Return ``num`` evenly spaced numbers from ``start`` to ``stop``, which is included by default.

    As ``numpy.linspace``, also between arrays and with ``retstep``. They are computed in the floating dtype
    of the two ends; a Python number takes on the dtype of the other end.
    """
    check_device(device)
    (length,) = shape_of(num)
    computed = _floating(start, stop)
    wanted = computed if dtype is None else number_dtype(dtype)
    if not (_is_real(start) and _is_real(stop)):
        made, step = _between(start, stop, length, bool(endpoint), computed, wanted, axis)
        made = wrap(regridded(made.expression, blocks))
    else:
        first, last = float(start), float(stop)  # type: ignore[arg-type]  # real numbers
        made = created(Linspace(first, last, length, bool(endpoint), computed, wanted), blocks)
        intervals = length - 1 if endpoint else length
        with np.errstate(all="ignore"):
            width = computed.type(last) - computed.type(first)
            step = width / intervals if intervals > 0 else np.nan
    return (made, step) if retstep else made


def _floating(*ends: object) -> np.dtype:
    # The floating dtype that ends of a range meet in.
    found = np.result_type(*(one.dtype if isinstance(one, Expr) else one for one in map(operand_of, ends)))
    return found if found.kind in "fc" else np.dtype(np.float64)


def _is_real(value: object) -> bool:
    return isinstance(value, int | float | np.bool | np.integer | np.floating)


def _between(
    start: object, stop: object, num: int, endpoint: bool, element: np.dtype, wanted: np.dtype, axis: int
) -> tuple[DistArray, object]:
    # As NumPy works it out, between arrays or complex numbers.
    first, last = (DistArray(ufuncs.astype(expression_of(one), element)) for one in (start, stop))
    intervals = num - 1 if endpoint else num
    width = handle_of(last - first)
    step = width / intervals if intervals > 0 else width * np.nan
    counted = created(Arange(0, 1, num, np.dtype(np.int64)))[(slice(None), *(None,) * width.ndim)]
    places = counted.astype(element)
    made = handle_of(places * (step if intervals > 0 else width) + first)
    if endpoint and num > 1:
        made = handle_of(recorded(np.where)(counted == num - 1, last, made))
    node = made.expression
    if wanted.kind in "iu":
        (node,) = ufuncs.call(np.floor, (node,))
    made = wrap(ufuncs.astype(node, wanted))
    return (made if axis in (0, -made.ndim) else handle_of(recorded(np.moveaxis)(made, 0, axis))), step


@implements(np.array)
def array(
    obj: ArrayLike,
    dtype: npt.DTypeLike | None = None,
    *,
    copy: bool | None = True,
    order: Order = "K",
    subok: bool = False,
    ndmin: int = 0,
    blocks: BlocksSpec = None,
    format: str | None = None,
) -> DistArray:
    """``numpy.array``: a new DistArray; see :func:`matnb.asarray`."""
    made = asarray(obj, dtype, copy=copy or None, blocks=blocks, format=format)
    return made[(None,) * max(0, ndmin - made.ndim)] if made.ndim < ndmin else made


@implements(np.asanyarray, np.ascontiguousarray, np.asfortranarray)
def asanyarray(
    a: ArrayLike, dtype: npt.DTypeLike | None = None, order: Order = None, **rest: object
) -> DistArray:
    """``numpy.asanyarray``: a DistArray is returned as it is."""
    return asarray(a, dtype)


@implements(np.copy)
def copy(a: ArrayLike, order: Order = "K", subok: bool = False) -> DistArray:
    """``numpy.copy``."""
    return asarray(a, copy=True)


@implements(np.empty)
def empty(
    shape: ShapeLike,
    dtype: npt.DTypeLike | None = None,
    order: Order = "C",
    *,
    device: str | None = None,
    blocks: BlocksSpec = None,
) -> DistArray:
    """``numpy.empty``, filled with zeros: uninitialized memory is never returned."""
    return zeros(shape, dtype, device=device, blocks=blocks)


@implements(np.identity)
def identity(n: int, dtype: npt.DTypeLike | None = None) -> DistArray:
    """``numpy.identity``: sparse, as :func:`matnb.eye`."""
    return eye(n, dtype=dtype)


def _is_one(a: ArrayLike, b: object, max_work: object = None) -> bool:
    """``numpy.shares_memory``: whether both are the same object, since DistArrays never share memory."""
    return a is b and handle_of(a).size > 0


implements(np.shares_memory, np.may_share_memory)(_is_one)


@implements(np.from_dlpack)
def from_dlpack(x: ArrayLike, /, *, device: str | None = None, copy: bool | None = None) -> DistArray:
    """``numpy.from_dlpack``: copies, unless ``x`` is a DistArray."""
    check_device(device)
    if isinstance(x, DistArray):
        return asarray(x, copy=copy)
    if copy is False:
        raise OptionError("from_dlpack(copy=False): the elements go to the workers, so a copy is needed")
    return asarray(np.from_dlpack(x))  # type: ignore[arg-type]  # or it raises


@implements(np.meshgrid)
def meshgrid(
    *xi: object, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[DistArray, ...]:
    """``numpy.meshgrid``; as in NumPy, ``sparse`` means axes of length 1 that broadcast."""
    if indexing not in ("xy", "ij"):
        raise OptionError(f"meshgrid(indexing={indexing!r}): choose 'xy' or 'ij'")
    nodes = [expression_of(one) for one in xi]
    if any(node.ndim > 1 for node in nodes):
        raise ShapeError("meshgrid: give 1-d arrays")
    count = len(nodes)
    lengths = [node.size for node in nodes]
    order = list(range(count))
    if indexing == "xy" and count > 1:
        order[:2] = [1, 0]  # where on the axes each array goes
    shape = [0] * count
    for place, length in zip(order, lengths, strict=True):
        shape[place] = length
    made = []
    for place, node in zip(order, nodes, strict=True):
        own = slice(0, node.size, 1)
        new = tuple(own if axis == place and node.ndim else None for axis in range(count))
        axes = node if count == 1 and node.ndim else Index(node, new)
        made.append(
            wrap(axes if sparse else Broadcast(axes, tuple(shape)) if axes.shape != tuple(shape) else axes)
        )
    return tuple(made)


@implements(np.logspace)
def logspace(
    start: object,
    stop: object,
    num: int = 50,
    endpoint: bool = True,
    base: object = 10.0,
    dtype: npt.DTypeLike | None = None,
    axis: int = 0,
) -> DistArray:
    """``numpy.logspace``."""
    if np.ndim(base):  # type: ignore[arg-type]  # or it raises
        start, stop, base = np.broadcast_arrays(*(asarray(one) for one in (start, stop, base)))
        base = np.expand_dims(base, axis)
    made = np.power(base, linspace(start, stop, num, endpoint, axis=axis))  # type: ignore[call-overload]  # records
    return handle_of(made if dtype is None else made.astype(dtype))


@implements(np.geomspace)
def geomspace(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    dtype: npt.DTypeLike | None = None,
    axis: int = 0,
) -> DistArray:
    """``numpy.geomspace`` between real numbers of one sign."""
    if np.ndim(start) or np.ndim(stop) or np.iscomplexobj(start) or np.iscomplexobj(stop):
        raise UnsupportedError(
            "np.geomspace between arrays or complex numbers is not supported; use "
            "10 ** np.linspace(np.log10(a), np.log10(b), num)"
        )
    if start * stop <= 0:
        raise OptionError(
            f"geomspace: from {start} to {stop}: neither may be 0, and both must have the same sign"
        )
    sign, (num,) = (-1.0 if start < 0 else 1.0), shape_of(num)
    made = logspace(np.log10(abs(float(start))), np.log10(abs(float(stop))), num, endpoint) * sign
    places = arange(num)
    node = _with(places == 0, float(start), made)  # the ends are exact
    if endpoint and num > 1:
        node = _with(places == num - 1, float(stop), wrap(node))
    return wrap(node if dtype is None else ufuncs.astype(node, dtype))


def _with(place: object, number: float, array: object) -> Expr:
    return reductions.where(expression_of(place), ufuncs.literal(number), expression_of(array))


def _indices(shape: tuple[int, ...], dtype: npt.DTypeLike) -> tuple[DistArray, ...]:
    return meshgrid(*(arange(length, dtype=dtype) for length in shape), indexing="ij")


@implements(np.fromiter)
def fromiter(iter: Iterable[object], dtype: npt.DTypeLike, count: int = -1) -> DistArray:
    """``numpy.fromiter``."""
    return asarray(np.fromiter(iter, dtype, count))


@implements(np.frombuffer)
def frombuffer(buffer: object, dtype: npt.DTypeLike = float, count: int = -1, offset: int = 0) -> DistArray:
    """``numpy.frombuffer``: the elements are copied."""
    return asarray(np.frombuffer(buffer, dtype, count, offset))  # type: ignore[call-overload]  # or it raises


def _read_here(reader: Callable[..., object]) -> None:
    def read(*args: object, **options: object) -> DistArray:
        return asarray(reader(*args, **options))

    read.__doc__ = f"``numpy.{reader.__name__}``, in this process; :func:`matnb.load` has the workers read."
    implements(reader)(read)


_read_here(np.loadtxt)
_read_here(np.genfromtxt)
_read_here(np.fromstring)
_read_here(np.fromfile)
