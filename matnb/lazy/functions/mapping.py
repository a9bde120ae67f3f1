"""A user's functions on blocks, lanes or small whole arrays, named by all they do and use."""

from __future__ import annotations

import operator
import os
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from matnb.blocks.creation import Arange
from matnb.blocks.formats import SPARSE_DTYPES, NumericArray
from matnb.blocks.kernels.calls import (
    Callee,
    Function,
    Output,
    WithArguments,
    packed_bytes,
    read_only_advice,
    results_of,
)
from matnb.errors import CellCancelled, OptionError, ShapeError, TooLargeError, UnsupportedError
from matnb.expr.client_data import SHIP_BYTES
from matnb.expr.nodes import Broadcast, Create, Expr, Index, Shape, broadcast_shapes
from matnb.lazy.array import DistArray, wrap
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.handles import expression_of
from matnb.lazy.indexing.keys import one_axis, with_new_axes
from matnb.lazy.portable import portable
from matnb.lazy.registry import implements
from matnb.lazy.ufuncs import number_dtype
from matnb.ops.mapping import MapBlocks, Part, ReduceBlocks, Replicated
from matnb.pictures.quantities import bytes_text

Example: TypeAlias = np.ndarray | sp.csr_array
_ROWS = 2  # of an example: one would not tell rows from a sum of them


def map_blocks(
    fn: Callable[..., object],
    *arrays: object,
    shape: Sequence[int] | None = None,
    dtype: npt.DTypeLike | None = None,
    pure: bool = False,
    align: str = "broadcast",
    replicate: object = (),
) -> DistArray:
    """Apply a function to each block of an array, on the worker that holds the block.

    matnb decides how an array is split into blocks, and may change it to balance load. A function whose
    result for a row depends on the rest of the block, such as ``block - block.mean()``, gives results that
    depend on the split. So does a filter that looks at neighbors, such as ``scipy.ndimage.gaussian_filter``:
    it leaves seams where blocks meet. For a stack of images ``align="rows"`` keeps each image whole; one
    image of up to 64 MB is filtered whole by ``mn.replicated(fn, image)``.

    Parameters
    ----------
    fn
        Called as ``fn(block, ...)`` with NumPy arrays that it may modify, and SciPy CSR arrays for blocks of
        sparse arrays. It returns an array with as many rows as the block. If it has a keyword-only parameter
        ``place``, it is passed a tuple of slices such that ``x[place]`` is the block of the first array.
    arrays
        The first array's blocks are used; the others broadcast to its shape, and the matching part is passed
        with each block.
    shape, dtype
        Of the whole result. A result with the first array's shape is split like that array; any other result,
        which must have a first axis of the same length, only along that axis. If either is omitted, ``fn`` is
        called once while recording, with two rows of ones.
    pure
        Whether equal blocks always give equal results. If not, results are not remembered: recording the call
        again runs it again. The values of an array that was already computed do not change. Nor are those of
        a function remembered that reads what cannot be followed, such as a lock; ``explain()`` says so.
    align
        "rows" takes arrays with first axes of equal length and any other axes: each block is the same range
        of rows of all of them. "broadcast" is described above.
    replicate
        An array, or a tuple of them, passed whole to every call, after the blocks: read-only, and up to 64 MB
        each if dense.

    Raises
    ------
    OptionError
        If ``fn`` cannot be called on an example or sent to workers, or does not return rows.
    ShapeError
        For arrays that do not broadcast to the first, or have another number of rows; for a ``shape`` with
        another first axis; and if the result for a block has the wrong shape: the message names the block,
        the worker and the line of the function.
    TooLargeError
        For a replicated array above 64 MB.
    DTypeError
        If ``fn`` returns anything but numbers.
    KernelError
        If ``fn`` raises on a worker, with its error and traceback.

    Examples
    --------
    >>> import numpy as np
    >>> import matnb as mn
    >>> def largest_two(block):
    ...     return np.sort(block, axis=1)[:, -2:]
    >>> mn.map_blocks(largest_two, mn.asarray([[1, 5, 3], [9, 7, 8]])).compute()
    array([[3, 5],
           [8, 9]])

    Rows of several arrays, with a small array passed whole to each call, and the position of the rows:

    >>> X, y, w = mn.ones((3, 2)), mn.arange(3.0), mn.asarray([1.0, 2.0])
    >>> def residuals(X, y, w, *, place):
    ...     return X @ w - y + 10 * np.arange(place[0].start, place[0].stop)
    >>> mn.map_blocks(residuals, X, y, align="rows", replicate=w).compute()
    array([ 3., 12., 21.])
    """
    name = function_name(fn, "map_blocks")
    if align not in ("broadcast", "rows"):
        raise OptionError(f"map_blocks(align={align!r}): choose 'broadcast' or 'rows'")
    nodes, whole = _given("map_blocks", arrays, replicate)
    function = portable(fn, name, "map_blocks")
    lengths = None if shape is None else tuple(shape)
    element = None if dtype is None else number_dtype(dtype)
    by_rows, is_sparse = align == "rows", False
    token = b"" if pure else os.urandom(16)

    def node(lengths: Shape, element: np.dtype, is_sparse: bool) -> Expr:
        inputs = (*nodes, *whole)
        return MapBlocks(
            inputs, function, lengths, element, is_sparse, None, token, by_rows=by_rows, num_whole=len(whole)
        )

    if lengths is None or element is None:
        node(nodes[0].shape, np.dtype(bool), False)  # refuses arrays that do not go together
        examples = [_example(one, one if by_rows else nodes[0]) for one in nodes]
        found = _tried_at(fn, function, examples, whole)
        if sp.issparse(found):
            is_sparse = True
            made: NumericArray = np.empty(found.shape, found.dtype)  # type: ignore[attr-defined]  # sparse
        else:
            made = results_of((found,), name)[0]
        element = made.dtype if element is None else element
        lengths = _lengths_of(made, examples[0], nodes[0], name) if lengths is None else lengths
        is_sparse = is_sparse and element in SPARSE_DTYPES and len(lengths) == 2
    return wrap(node(lengths, element, is_sparse))


def _given(caller: str, arrays: Sequence[object], replicate: object) -> tuple[list[Expr], list[Expr]]:
    # The arrays that are cut, and those that each call gets whole.
    if not arrays:
        raise OptionError(f"{caller}: give an array after the function")
    several = replicate if isinstance(replicate, tuple | list) else (replicate,)
    whole = [expression_of(one) for one in several]
    for node in whole:
        num_bytes = node.size * node.dtype.itemsize
        if num_bytes > SHIP_BYTES and not node.sparse:
            raise TooLargeError(
                f"{caller}(replicate=) of shape {node.shape} takes {bytes_text(num_bytes)}: each worker has "
                f"all of it, up to {bytes_text(SHIP_BYTES)}; give what has a row for each as an array to cut"
            )
    return [expression_of(one) for one in arrays], whole


def _tried_at(
    fn: Callable[..., object], function: Function, examples: Sequence[Example], whole: Sequence[Expr]
) -> object:
    # What the function gives for examples of blocks, ones, and of whole arrays, which take no memory.
    given: list[Example] = [
        sp.csr_array(one.shape, dtype=one.dtype)
        if one.sparse
        else np.broadcast_to(np.ones((), one.dtype), one.shape)
        for one in whole
    ]
    place = tuple(slice(0, length) for length in examples[0].shape)
    called = partial(fn, place=place) if function.takes_place else fn
    return tried(called, function.name, [*examples, *given])


def reduce_blocks(
    fn: Callable[..., object],
    *arrays: object,
    combine: Callable[..., object],
    shape: Sequence[int] | Sequence[Sequence[int]] | None = None,
    dtype: npt.DTypeLike | Sequence[npt.DTypeLike] | None = None,
    replicate: object = (),
) -> DistArray | tuple[DistArray, ...]:
    """Apply a function to chunks of rows, and combine the results pairwise into one small result.

    The chunks ("slabs") are ranges of rows whose size depends only on the arrays' lengths and dtypes. Results
    of neighboring slabs are combined in pairs, then those results, and so on up a tree. So the result is
    bit-identical however arrays are split, and for any number of workers and threads.

    Parameters
    ----------
    fn
        Called as ``fn(slab, ...)`` with NumPy arrays that it may modify, and SciPy CSR arrays for slabs of
        sparse arrays. It returns an array, a number, or a tuple of them, always with the same shapes and
        dtypes; the last slab may have fewer rows. It must be a pure function: equal calls are computed once.
        A helper, global or class that it reads from modules of yours is part of it.
        A keyword-only parameter ``place`` is passed the position of the slab, as in :func:`matnb.map_blocks`.
    arrays
        Arrays with first axes of equal length and any other axes.
    combine
        Called as ``combine(earlier, later)`` with two results for neighboring rows; returns one of the same
        form.
    shape, dtype
        Of the result; for a tuple, a tuple of shapes, and of dtypes or one for all. If either is omitted,
        ``fn`` is called once while recording, with two rows of ones, and ``combine`` with its results.
    replicate
        An array, or a tuple of them, passed whole to every call of ``fn``, after the slabs: read-only, and up
        to 64 MB each if dense.

    Returns
    -------
    DistArray or tuple of DistArrays
        A tuple if ``fn`` returns one.

    Raises
    ------
    OptionError
        If a function cannot be called on an example or sent to workers.
    ShapeError
        For arrays with first axes of unequal length; and if the result for a slab or a pair has the wrong
        shape: the message names the rows, the worker and the line of the function.
    TooLargeError
        For a replicated array, or results, above 64 MB.
    DTypeError
        If a function returns anything but numbers.
    KernelError
        If a function raises on a worker, with its error and traceback.

    Examples
    --------
    A Gram matrix and a gradient in one pass:

    >>> import matnb as mn
    >>> X, y = mn.asarray([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), mn.asarray([1.0, 3.0, 5.0])
    >>> gram, gradient = mn.reduce_blocks(
    ...     lambda X, y: (X.T @ X, X.T @ y), X, y, combine=lambda one, two: (one[0] + two[0], one[1] + two[1])
    ... )
    >>> gram.compute(), gradient.compute()
    (array([[3., 3.],
           [3., 5.]]), array([ 9., 13.]))

    References
    ----------
    A reduction tree over row blocks, as used for tall QR decompositions: Benson, Gleich and Demmel, "Direct
    QR factorizations for tall-and-skinny matrices in MapReduce architectures", 2013.
    """
    name, combining = function_name(fn, "reduce_blocks"), function_name(combine, "reduce_blocks(combine=)")
    nodes, whole = _given("reduce_blocks", arrays, replicate)
    function = portable(fn, name, "reduce_blocks")
    combiner = portable(combine, combining, "reduce_blocks(combine=)")
    promised, is_tuple = _promised(shape, dtype)
    outputs = tuple((lengths, kind) for lengths, kind in promised if lengths is not None and kind is not None)

    def node(outputs: tuple[Output, ...]) -> Expr:
        return ReduceBlocks((*nodes, *whole), function, combiner, outputs, is_tuple, len(whole))

    if len(outputs) < len(promised):
        node(())  # refuses arrays that do not go together
        found = _tried_at(fn, function, [_example(one, one) for one in nodes], whole)
        is_tuple = isinstance(found, tuple | list)
        outputs = _filled_in(promised, results_of(found, name), combine, combining, is_tuple)
    num_bytes = packed_bytes(outputs)
    if num_bytes > SHIP_BYTES:
        raise TooLargeError(
            f"reduce_blocks: results of {bytes_text(num_bytes)}, which one worker holds: up to "
            f"{bytes_text(SHIP_BYTES)}"
        )
    call = wrap(node(outputs)).expression
    parts = tuple(wrap(Part(call, place)) for place in range(len(outputs)))
    return parts if is_tuple else parts[0]


def _filled_in(
    promised: Sequence[tuple[Shape | None, np.dtype | None]],
    made: Sequence[NumericArray],
    combine: Callable[..., object],
    name: str,
    is_tuple: bool,
) -> tuple[Output, ...]:
    # Shapes and dtypes of results, where they were not given as an example and two of it combined have them.
    given = tuple(made) if is_tuple else made[0]
    again = results_of(tried(combine, name, [given, given]), name)
    if [one.shape for one in made] != [one.shape for one in again]:
        raise OptionError(
            f"reduce_blocks: {name} gave shapes {[one.shape for one in again]} for two results of shapes "
            f"{[one.shape for one in made]}: the function must return the shapes of one result"
        )
    promised = promised if len(promised) == len(made) else [promised[0]] * len(made)
    kinds = [np.result_type(one, two) for one, two in zip(made, again, strict=True)]
    return tuple(
        (one.shape if lengths is None else lengths, kind if element is None else element)
        for (lengths, element), one, kind in zip(promised, made, kinds, strict=True)
    )


def _promised(
    shape: Sequence[Any] | None, dtype: Any
) -> tuple[tuple[tuple[Shape | None, np.dtype | None], ...], bool]:
    # Shape and dtype of each result as far as they are given, and whether these come in a tuple.
    several = shape is not None and any(isinstance(one, tuple | list) for one in shape)
    is_list = isinstance(dtype, tuple | list)
    shapes: list[Shape | None] = [None]
    if shape is not None:
        shapes = [tuple(map(operator.index, one)) for one in (shape if several else (shape,))]
    types = [None if one is None else number_dtype(one) for one in (dtype if is_list else (dtype,))]
    if shape is None:
        shapes *= len(types)
    elif len(types) == 1:
        types *= len(shapes)
    if len(types) != len(shapes):
        raise OptionError(f"reduce_blocks(dtype={dtype!r}) for shapes {shape}: give a dtype for each, or one")
    return tuple(zip(shapes, types, strict=True)), several or is_list


@implements(np.apply_along_axis)
def apply_along_axis(
    func1d: Callable[..., object], axis: int, arr: ArrayLike, *args: object, **kwargs: object
) -> DistArray:
    """``numpy.apply_along_axis``, for 1-D slices of up to 64 MB; results are not remembered."""
    name = function_name(func1d, "apply_along_axis")
    node = expression_of(arr)
    if node.sparse:
        node = Broadcast(node, node.shape)
    along = one_axis(axis, node.ndim)
    length = node.shape[along]
    if 0 in (*node.shape[:along], *node.shape[along + 1 :]):
        raise ShapeError(
            f"apply_along_axis: an array of shape {node.shape} has no elements along axis {along}"
        )
    num_bytes = length * node.dtype.itemsize
    if num_bytes > SHIP_BYTES:
        raise TooLargeError(
            f"apply_along_axis: a lane of {length:,} elements takes {bytes_text(num_bytes)}, and a function "
            f"is given up to {bytes_text(SHIP_BYTES)}: use NumPy's functions along the axis, "
            "such as np.sort or np.cumsum, or mn.map_blocks for parts of it"
        )
    fn = WithArguments(func1d, args, tuple(kwargs.items()))
    function = portable(fn, name, "apply_along_axis")
    lane = results_of((tried(fn, name, [np.ones(length, node.dtype)]),), name)[0]
    lengths = (*node.shape[:along], *lane.shape, *node.shape[along + 1 :])
    return wrap(MapBlocks((node,), function, lengths, lane.dtype, False, along, os.urandom(16)))


@implements(np.apply_over_axes)
def apply_over_axes(
    func: Callable[[DistArray, int], DistArray], a: ArrayLike, axes: int | Sequence[int]
) -> DistArray:
    """``numpy.apply_over_axes``: the function is called once, on the DistArray, and recorded."""
    found = wrap(expression_of(a))
    ndim = found.ndim
    for axis in np.atleast_1d(axes).tolist():
        place = axis + ndim if axis < 0 else axis
        made = func(found, place)
        node = expression_of(made)
        if node.ndim == ndim - 1:
            node = with_new_axes(node, place)
        if node.ndim != ndim:
            raise ShapeError(
                f"apply_over_axes: a result of shape {node.shape} of an array of {ndim} axes: the function "
                "must keep them, or lose one"
            )
        found = wrap(node)
    return found


@implements(np.fromfunction)
def fromfunction(
    function: Callable[..., object], shape: Sequence[int], *, dtype: npt.DTypeLike = float, **kwargs: object
) -> object:
    """``numpy.fromfunction``: the function is called once, on DistArrays of coordinates, and recorded."""
    lengths, element = tuple(shape), number_dtype(dtype)
    places = []
    for axis, length in enumerate(lengths):
        line = Create(Arange(0, 1, length, element))
        key = tuple(slice(0, length, 1) if one == axis else None for one in range(len(lengths)))
        places.append(wrap(Broadcast(Index(line, key), lengths)))
    return function(*places, **kwargs)


@implements(np.vectorize)
def vectorize(
    pyfunc: Callable[..., object], otypes: object = None, **options: object
) -> Callable[..., DistArray]:
    """``numpy.vectorize``: a function of scalars, applied to each element block by block.

    Without ``otypes`` the dtype is that of the function's result for ones.
    """
    if options:
        raise UnsupportedError(f"np.vectorize({', '.join(options)}=) is not supported; use mn.map_blocks")
    types = list(otypes) if isinstance(otypes, str | Sequence) else otypes
    if types is not None and (not isinstance(types, list) or len(types) != 1):
        raise UnsupportedError(f"np.vectorize(otypes={otypes!r}): give one dtype, as there is one result")
    single = np.vectorize(pyfunc, otypes=types)

    def of_arrays(*arrays: object) -> DistArray:
        nodes = [expression_of(one) for one in arrays]
        whole = broadcast_shapes(*(node.shape for node in nodes), name="vectorize")
        nodes[0] = nodes[0] if nodes[0].shape == whole else Broadcast(nodes[0], whole)
        dense = [Broadcast(node, node.shape) if node.sparse else node for node in nodes]
        return map_blocks(single, *map(DistArray, dense), shape=whole)

    of_arrays.__doc__ = pyfunc.__doc__
    return of_arrays


def function_name(fn: object, caller: str) -> str:
    """Return what a function is called, for messages; raises an OptionError for anything else."""
    if not callable(fn):
        raise OptionError(f"{caller}: {fn!r} is not a function")
    inner = getattr(fn, "pyfunc", fn)
    return str(getattr(inner, "__name__", type(fn).__name__))


def _example(node: Expr, first: Expr) -> Example:
    # Two rows of ones of the first array, and what meets them of others.
    lengths = list(node.shape)
    if lengths and node.ndim == first.ndim:
        lengths[0] = min(_ROWS, lengths[0])
    if prod(lengths) * node.dtype.itemsize > SHIP_BYTES:
        raise TooLargeError(
            f"map_blocks: two rows of an array of shape {node.shape} take over {bytes_text(SHIP_BYTES)}, too "
            "much to call a function on while recording: give shape= and dtype="
        )
    values = np.ones(lengths, node.dtype)
    return sp.csr_array(values) if node.sparse else values


def tried(
    fn: Callable[..., object],
    name: str,
    examples: Sequence[object],
    advice: str = "give them with shape= and dtype=",
) -> object:
    """Return what a function gives for examples of blocks, while an operation is recorded.

    Raises
    ------
    CellCancelled
        On an interrupt.
    OptionError
        If it raises, with the ``advice``.
    """
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fn(*examples)
    except KeyboardInterrupt as interrupt:
        raise CellCancelled(f"interrupted while {name} was tried on ones") from interrupt
    except Exception as error:  # a user's function raises what it likes
        several = [one for given in examples for one in (given if isinstance(given, tuple) else (given,))]
        kinds = ", ".join(f"{one.shape} {one.dtype}" for one in several)
        raise OptionError(
            f"{name} raised {type(error).__name__} on ones ({kinds}), which tell its result's shape and "
            f"dtype: {error}; {read_only_advice(error) or advice}"
        ) from error


def _lengths_of(made: np.ndarray, example: Example, first: Expr, name: str) -> tuple[int, ...]:
    if made.shape == example.shape:
        return first.shape
    if made.ndim and example.ndim and made.shape[0] == example.shape[0]:
        return (*first.shape[:1], *made.shape[1:])
    raise OptionError(
        f"map_blocks: {name} gave shape {made.shape} for a block of shape {example.shape}: a block gives as "
        "many rows as it has"
    )


def replicated(
    fn: Callable[..., object], *small: object, like: object = None
) -> DistArray | tuple[DistArray, ...]:
    """Call a NumPy function once, on one worker, with small whole arrays: for small dense solves.

    Parameters
    ----------
    fn
        Called as ``fn(*arrays)`` with dense NumPy arrays that it may modify, or NumPy scalars for 0-d arrays.
        It returns an array, a number, or a tuple of them, always with the same shapes and dtypes. It must be
        a pure function: equal calls are computed once. Pass every DistArray it needs as an argument.
    small
        Arrays of up to 64 MB each.
    like
        Examples of the results: an array, a number, or a tuple of them; only shapes and dtypes matter. By
        default ``fn`` is called once while recording, with identity matrices for square matrices and ones for
        all other arrays.

    Returns
    -------
    DistArray or tuple of DistArrays
        A tuple if ``fn`` returns one.

    Raises
    ------
    TooLargeError
        For an argument above 64 MB.
    OptionError
        If ``fn`` cannot be called on examples or sent to workers.
    DTypeError
        If ``fn`` returns anything but numbers.
    KernelError
        If ``fn`` raises on the worker, with its error and traceback.

    Examples
    --------
    >>> import numpy as np
    >>> import matnb as mn
    >>> X, y = mn.asarray([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), mn.asarray([1.0, 3.0, 5.0])
    >>> mn.replicated(np.linalg.solve, X.T @ X, X.T @ y).compute().round(6)
    array([1., 2.])
    """
    if not callable(fn):
        raise OptionError(f"replicated: {fn!r} is not a function")
    named = fn.func if isinstance(fn, partial) else fn
    name = getattr(named, "__name__", type(named).__name__)
    arguments = [expression_of(one) for one in small]
    for place, node in enumerate(arguments):
        num_bytes = node.size * node.dtype.itemsize
        if num_bytes > SHIP_BYTES:
            raise TooLargeError(
                f"one worker needs all of an array of shape {node.shape} here, {bytes_text(num_bytes)}, over "
                f"{bytes_text(SHIP_BYTES)}: choose a solver without it"
                if str(getattr(named, "__module__", "")).startswith(
                    "matnb."
                )  # nobody called this by its name
                else f"argument {place} of {name}, of shape {node.shape}, takes {bytes_text(num_bytes)}: "
                f"mn.replicated is for arrays of up to {bytes_text(SHIP_BYTES)}; reduce first, as in X.T @ X"
            )
    function = portable(fn, name, "mn.replicated")
    result = _sample_result(fn, name, arguments) if like is None else _whole_example(like)
    outputs: tuple[Output, ...] = tuple((one.shape, one.dtype) for one in results_of(result, name))
    call = wrap(Replicated(tuple(arguments), function, outputs)).expression
    parts = tuple(wrap(Part(call, place)) for place in range(len(outputs)))
    return parts if isinstance(result, tuple | list) else parts[0]


def _sample_result(fn: Callee, name: str, arguments: Sequence[Expr]) -> object:
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fn(*(_sample(node)[()] for node in arguments))
    except Exception as error:  # a user's function raises what it likes
        kinds = ", ".join(f"{node.shape} {node.dtype}" for node in arguments)
        raise OptionError(
            f"{name} raised {type(error).__name__} on examples of its arguments ({kinds}), identity matrices "
            f"and ones, that tell its results' shapes: {error}; give examples of the results with like="
        ) from error


def _sample(node: Expr) -> NumericArray:
    if node.ndim == 2 and node.shape[0] == node.shape[1]:
        return np.eye(node.shape[0], dtype=node.dtype)
    return np.ones(node.shape, node.dtype)


def _whole_example(like: object) -> object:
    def plain(one: object) -> object:
        return np.empty(one.shape, one.dtype) if isinstance(one, DistArray) else one

    return tuple(map(plain, like)) if isinstance(like, tuple | list) else plain(like)
