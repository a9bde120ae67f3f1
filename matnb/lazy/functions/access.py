"""Values combined by label, and a user's functions on small whole arrays."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.calls import Callee, Output, results_of
from matnb.blocks.semiring import MONOIDS
from matnb.errors import OptionError, ShapeError, TooLargeError
from matnb.expr.client_data import SHIP_BYTES
from matnb.expr.nodes import Expr
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.functions.naming import portable
from matnb.ops.access import Part, Replicated, Scatter
from matnb.pictures.quantities import bytes_text


def scatter_reduce(values: object, labels: object, length: int, monoid: str = "plus") -> DistArray:
    """Return the values, or rows of values, of each label combined.

    Parameters
    ----------
    values
        Dense: n numbers, or a matrix of n rows.
    labels
        n whole numbers from 0 to ``length`` - 1.
    length
        Of the result along its first axis.
    monoid
        "plus", "times", "min", "max", "lor" or "land", as in GraphBLAS. The last two take what is not 0 as
        true.

    Returns
    -------
    DistArray
        ``length`` numbers or rows, dense, of the dtype of NumPy's reduction over the values. A label that
        nothing has gets the identity of the monoid: 0 for "plus", inf for the "min" of floats.

        Values of one block are added in the order of their positions, then blocks in theirs: other cuts may
        round a float sum otherwise.

    Raises
    ------
    ShapeError
        When there is not one label a value or row.
    OptionError
        For an unknown monoid, or a length that is no whole number.
    DTypeError
        For the least or greatest of complex numbers, and for extended precision.
    IndexingError
        When labels are no whole numbers; and, once it is computed, when a label is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> import matnb as mn
    >>> mn.scatter_reduce(np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), 4).compute()
    array([2., 0., 5., 0.])
    """
    if monoid not in MONOIDS:
        raise OptionError(f"no monoid {monoid!r}; known: {', '.join(MONOIDS)}")
    try:
        count = operator.index(length)
    except TypeError:
        raise OptionError(f"scatter_reduce: length={length!r} is no whole number") from None
    if count < 0:
        raise ShapeError(f"scatter_reduce: length={count} cannot be negative")
    return wrap(Scatter(expression_of(values), expression_of(labels), count, monoid))


def replicated(
    fn: Callable[..., object], *small: object, like: object = None
) -> DistArray | tuple[DistArray, ...]:
    """Call a plain NumPy function of small whole arrays, once, on one worker: for small dense solves.

    Parameters
    ----------
    fn
        Called as ``fn(*arrays)`` with NumPy arrays of its own, dense, or NumPy numbers for arrays without
        axes. It gives an array, a number, or a tuple of them, always of the same shapes and dtypes. What it
        gives may follow from its arguments alone: equal calls are computed once. DistArrays that it needs
        are arguments too.
    small
        Arrays of up to 64 MB each.
    like
        Examples of the results: an array, a number, or a tuple of them, of which only shapes and dtypes
        count. When left out, ``fn`` is called while recording, with identity matrices for square matrices and
        ones for all other arrays.

    Returns
    -------
    DistArray or tuple of DistArrays
        As ``fn`` gives one result or a tuple.

    Raises
    ------
    TooLargeError
        For an argument above 64 MB.
    OptionError
        When ``fn`` cannot be called on examples or sent to workers.
    DTypeError
        When ``fn`` gives anything but numbers.
    KernelError
        When ``fn`` raises on the worker, with its error and trace.

    Examples
    --------
    >>> import numpy as np
    >>> import matnb as mn
    >>> X, y = mn.asarray([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), mn.asarray([1.0, 3.0, 5.0])
    >>> mn.replicated(np.linalg.solve, X.T @ X, X.T @ y).compute().round(6)
    array([1., 2.])
    """
    if not callable(fn):
        raise OptionError(f"replicated: {fn!r} is no function")
    name = getattr(fn, "__name__", type(fn).__name__)
    arguments = [expression_of(one) for one in small]
    for place, node in enumerate(arguments):
        num_bytes = node.size * node.dtype.itemsize
        if num_bytes > SHIP_BYTES:
            raise TooLargeError(
                f"argument {place} of {name}, of shape {node.shape}, takes {bytes_text(num_bytes)}: "
                f"mn.replicated is for arrays of up to {bytes_text(SHIP_BYTES)}; reduce first, as in X.T @ X"
            )
    function = portable(fn, name, "mn.replicated")
    result = _sample_result(fn, name, arguments) if like is None else _example(like)
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


def _example(like: object) -> object:
    def plain(one: object) -> object:
        return np.empty(one.shape, one.dtype) if isinstance(one, DistArray) else one

    return tuple(map(plain, like)) if isinstance(like, tuple | list) else plain(like)
