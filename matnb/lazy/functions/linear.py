"""NumPy's linear algebra: products and norms."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import SPARSE_DTYPES
from matnb.blocks.semiring import Semiring
from matnb.errors import DTypeError, IndexingError, OptionError, ShapeError
from matnb.expr.nodes import (
    Broadcast,
    Elementwise,
    Expr,
    Index,
    MaskedMatMul,
    MatMul,
    Transpose,
)
from matnb.lazy import contraction, reductions, ufuncs
from matnb.lazy.array import DistArray, wrap
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.contraction import contracted
from matnb.lazy.creation import eye
from matnb.lazy.functions.decompositions import inv, svdvals
from matnb.lazy.functions.indexing import within
from matnb.lazy.handles import expression_of
from matnb.lazy.indexing.keys import normalize_axes, one_axis, with_new_axes
from matnb.lazy.labels import check_one_set, joins_labels
from matnb.lazy.reductions import Axis
from matnb.lazy.registry import implements, recorded
from matnb.lazy.ufuncs import astype, number_dtype
from matnb.ops.contracting import Kron
from matnb.ops.einsum_subscripts import Subscripts, parsed, spelled, written
from matnb.ops.joining import Concatenate


@joins_labels
def matmul(
    left: ArrayLike, right: ArrayLike, semiring: str | Semiring = "plus_times", mask: object | None = None
) -> DistArray:
    """Return the matrix product over a semiring, with the shape rules of ``numpy.matmul``.

    Parameters
    ----------
    left, right
        Arrays with at least one axis; if one is sparse, the other is a vector or a matrix.
    semiring
        A GraphBLAS name, such as "plus_times", "min_plus", "plus_pair", "max_min" or "any_pair", or the
        result of :func:`matnb.semiring`. Entries that are not stored take no part. "min_first" and
        "min_second" multiply by taking the left or the right value. A dense element without any contribution
        is the identity of the addition (inf for "min_plus", False for "lor_land", the largest integer for
        integers). In products of such a vector with a sparse matrix over min_plus, max_plus, lor_land, or
        min, max or lor with first or second, elements equal to the identity count as not stored: over min and
        lor ``x @ A`` reads only the rows of the others.
    mask
        An array of the result's shape: only elements where it is nonzero are computed. With a sparse mask the
        result is sparse: for two sparse operands it stores the entries of the mask that have a contribution,
        else every entry of the mask. ``~M`` with a sparse boolean M selects the elements outside M, and is
        never built. All other elements are not stored in a sparse result, and are the identity of the
        addition in a dense one.

    Raises
    ------
    ShapeError
        If the inner lengths differ, or the mask does not have the shape of the product.
    DTypeError
        If the result is sparse and of a dtype that sparse products do not support.
    OptionError
        For an unknown semiring.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> hops = mn.asarray([[0.0, 3.0], [np.inf, 0.0]])
    >>> mn.matmul(hops, np.array([5.0, 1.0]), semiring="min_plus").compute()
    array([4., 1.])
    """
    first, second = expression_of(left), expression_of(right)
    name = semiring.name if isinstance(semiring, Semiring) else semiring
    if mask is None:
        return wrap(MatMul(first, second, name))
    chosen, complement = _mask_of(expression_of(mask))
    product = MaskedMatMul(first, second, chosen, name, complement)
    if product.sparse and product.dtype not in SPARSE_DTYPES:
        raise DTypeError(
            f"a masked product of dtype {product.dtype}: sparse ones are of "
            f"{', '.join(dtype.name for dtype in SPARSE_DTYPES)}; convert the operands with astype"
        )
    return wrap(product)


def _mask_of(mask: Expr) -> tuple[Expr, bool]:
    # ~M of a sparse M would be dense; as a mask it is M turned round.
    match mask:
        case Elementwise("logical_not" | "invert", (inner,), (dtype,)) if inner.sparse and (
            mask.name == "logical_not" or dtype.kind == "b"
        ):
            return inner, True
    return mask, False


@implements(np.linalg.matmul)
@joins_labels
def linalg_matmul(x1: ArrayLike, x2: ArrayLike, /) -> DistArray:
    """``numpy.linalg.matmul``."""
    return wrap(ufuncs.call(np.matmul, (expression_of(x1), expression_of(x2)))[0])


@implements(np.dot)
@joins_labels
def dot(a: ArrayLike, b: ArrayLike, out: object = None) -> DistArray:
    """``numpy.dot``."""
    left, right = expression_of(a), expression_of(b)
    if not left.shape or not right.shape:
        return within(wrap(ufuncs.call(np.multiply, (left, right))[0]), out)
    if max(left.ndim, right.ndim) <= 2:
        return within(wrap(MatMul(left, right)), out)
    return within(_contracted(left, right, [left.ndim - 1], [max(right.ndim - 2, 0)], "dot"), out)


@implements(np.inner)
def inner(a: ArrayLike, b: ArrayLike, /) -> DistArray:
    """``numpy.inner``."""
    left, right = expression_of(a), expression_of(b)
    if not left.shape or not right.shape:
        return wrap(ufuncs.call(np.multiply, (left, right))[0])
    return _contracted(left, right, [left.ndim - 1], [right.ndim - 1], "inner")


@implements(np.vdot)
def vdot(a: ArrayLike, b: ArrayLike, /) -> DistArray:
    """``numpy.vdot``: bit-identical however the arrays are split."""
    left, right = expression_of(a), expression_of(b)
    if left.size != right.size:
        raise ShapeError(
            f"vdot of shapes {left.shape} and {right.shape}: both must have the same number of elements"
        )
    if left.shape != right.shape:
        left, right = _flat(left), _flat(right)
    return wrap(contraction.products_summed(left, right, tuple(range(left.ndim))))


@implements(np.linalg.vecdot)
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> DistArray:
    """``numpy.vecdot``: bit-identical however the arrays are split."""
    return wrap(contraction.vecdot(expression_of(x1), expression_of(x2), axis))


@implements(np.outer)
def outer(a: ArrayLike, b: ArrayLike, out: object = None) -> DistArray:
    """``numpy.outer``."""
    left, right = _flat(expression_of(a)), _flat(expression_of(b))
    column = Index(left, (slice(0, left.size, 1), None))
    row = Index(right, (None, slice(0, right.size, 1)))
    return within(wrap(ufuncs.call(np.multiply, (column, row))[0]), out)


@implements(np.linalg.outer)
def linalg_outer(x1: ArrayLike, x2: ArrayLike, /) -> DistArray:
    """``numpy.linalg.outer``, of vectors."""
    left, right = expression_of(x1), expression_of(x2)
    if left.ndim != 1 or right.ndim != 1:
        raise ShapeError(f"linalg.outer of shapes {left.shape} and {right.shape}: give vectors")
    return outer(DistArray(left), DistArray(right))


def _flat(node: Expr) -> Expr:
    return node if node.ndim == 1 else expression_of(np.ravel(DistArray(node)))


@implements(np.kron)
def kron(a: ArrayLike, b: ArrayLike) -> DistArray:
    """``numpy.kron``: sparse if either of two matrices is."""
    left, right = expression_of(a), expression_of(b)
    element = np.result_type(left.dtype, right.dtype)
    if not left.shape or not right.shape:
        return wrap(ufuncs.call(np.multiply, (left, right))[0])
    ndim = max(left.ndim, right.ndim)
    nodes = [astype(_led(node, ndim), element) for node in (left, right)]
    if element not in SPARSE_DTYPES:
        nodes = [Broadcast(node, node.shape) if node.sparse else node for node in nodes]
    return wrap(Kron(*nodes))


def _led(node: Expr, ndim: int) -> Expr:
    # The array with leading axes of length 1.
    return with_new_axes(node, 0, ndim - node.ndim)


@implements(np.tensordot, np.linalg.tensordot)
def tensordot(a: ArrayLike, b: ArrayLike, axes: int | Sequence[int | Sequence[int]] = 2) -> DistArray:
    """``numpy.tensordot``."""
    left, right = expression_of(a), expression_of(b)
    if isinstance(axes, int | np.integer):
        count = int(axes)
        if not 0 <= count <= min(left.ndim, right.ndim):
            raise IndexingError(f"tensordot over {count} axes of shapes {left.shape} and {right.shape}")
        return _contracted(
            left, right, list(range(left.ndim - count, left.ndim)), list(range(count)), "tensordot"
        )
    if len(axes) != 2:
        raise ShapeError(f"tensordot(axes={axes!r}): give an integer, or the axes of both arrays")
    places = []
    for node, own in zip((left, right), axes, strict=True):
        given = [own] if isinstance(own, int | np.integer) else list(own)
        normalize_axes(tuple(given), node.ndim)  # refuses anything other than an axis
        places.append([int(one) % node.ndim for one in given])
    return _contracted(left, right, places[0], places[1], "tensordot")


def _contracted(left: Expr, right: Expr, first: list[int], second: list[int], name: str) -> DistArray:
    # The sum of products over pairs of axes; the others in their order, those of the left array first.
    lengths = [[node.shape[axis] for axis in axes] for node, axes in ((left, first), (right, second))]
    if lengths[0] != lengths[1]:
        raise ShapeError(
            f"{name} of shapes {left.shape} and {right.shape}: axes {first} and {second} have lengths "
            f"{lengths[0]} and {lengths[1]}, which must be the same"
        )
    own = tuple(range(left.ndim))
    other = [left.ndim + axis for axis in range(right.ndim)]
    for one, two in zip(first, second, strict=True):
        other[two] = own[one]
    output = (*(name for name in own if name not in other), *(name for name in other if name not in own))
    element = np.result_type(left.dtype, right.dtype)
    return wrap(contracted([left, right], [own, tuple(other)], output, element))


@implements(np.einsum)
def einsum(
    *operands: object,
    out: object = None,
    optimize: bool | str | Sequence[object] = False,
    dtype: npt.DTypeLike | None = None,
    order: str = "K",
    casting: str = "safe",
) -> DistArray:
    """``numpy.einsum``; several arrays are contracted in an optimized order, or in that of ``optimize``.

    Matrix products are computed as by ``@``, and may be sparse. Otherwise a sparse array of up to 64 MB is
    made dense.
    """
    named, nodes = _subscripts(operands)
    element = np.result_type(*(node.dtype for node in nodes)) if dtype is None else number_dtype(dtype)
    for node in nodes:
        if not np.can_cast(node.dtype, element, casting):  # type: ignore[arg-type]  # NumPy refuses others
            raise DTypeError(f"einsum: cannot cast {node.dtype} to {element} with casting={casting!r}")
    path = None
    if isinstance(optimize, list | tuple) and optimize and optimize[0] == "einsum_path":
        path = _path(nodes, list(optimize))
    return within(wrap(contracted(nodes, named.operands, named.output, element, path)), out)


@implements(np.einsum_path)
def einsum_path(
    *operands: object, optimize: bool | str | Sequence[object] = "greedy", einsum_call: bool = False
) -> tuple[list[object], str]:
    """``numpy.einsum_path``; only the shapes are used."""
    named, nodes = _subscripts(operands)
    dummies = [np.broadcast_to(np.empty(()), node.shape) for node in nodes]
    text = spelled(named.operands, named.output)
    found: tuple[list[object], str] = np.einsum_path(text, *dummies, optimize=optimize)
    return found


def _subscripts(operands: Sequence[object]) -> tuple[Subscripts, list[Expr]]:
    if not operands:
        raise ShapeError("einsum: give subscripts and arrays")
    first, given = operands[0], list(operands[1:])
    if not isinstance(first, str):
        first, given = written(operands)
    nodes = [expression_of(one) for one in given]
    if not nodes:
        raise ShapeError("einsum: give at least one array")
    return parsed(first, nodes), nodes


def _path(nodes: Sequence[Expr], optimize: list[object]) -> list[tuple[int, ...]]:
    path = [tuple(int(one) for one in chosen) for chosen in optimize[1:]]  # type: ignore[attr-defined]  # a user's
    left = len(nodes)
    for chosen in path:
        if not chosen or len(set(chosen)) != len(chosen) or not all(0 <= one < left for one in chosen):
            raise OptionError(f"einsum: {chosen} in optimize={optimize!r} refers to arrays that do not exist")
        left += 1 - len(chosen)
    return path


@implements(np.linalg.matrix_power)
def matrix_power(a: ArrayLike, n: int) -> DistArray:
    """``numpy.linalg.matrix_power``; negative powers, which are dense, for matrices of up to 64 MB."""
    check_one_set(a, "matrix_power")
    node = expression_of(a)
    try:
        power = operator.index(n)
    except TypeError:
        raise DTypeError(f"matrix_power: the power {n!r} is not an integer") from None
    if node.ndim < 2 or node.shape[-1] != node.shape[-2]:
        raise ShapeError(f"matrix_power of shape {node.shape}: the last two axes must be equally long")
    if power == 0:
        ones = eye(node.shape[-1], dtype=node.dtype).expression
        return wrap(ones if node.sparse else Broadcast(ones, node.shape))  # which is dense
    if power < 0:
        node, power = inv(DistArray(node)).expression, -power
    result: Expr | None = None
    while power:
        if power & 1:
            result = node if result is None else MatMul(result, node)
        power >>= 1
        if power:
            node = MatMul(node, node)
    assert result is not None, "the power is at least 1"
    return wrap(result)


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[object], *, out: object = None) -> DistArray:
    """``numpy.linalg.multi_dot``: multiplied in the cheapest order, like every chain of products."""
    nodes = [expression_of(one) for one in arrays]
    if len(nodes) < 2:
        raise ShapeError(f"multi_dot of {len(nodes)} arrays: give at least two")
    for place, node in enumerate(nodes):
        if node.ndim != 2 and not (node.ndim == 1 and place in (0, len(nodes) - 1)):
            raise ShapeError(
                f"multi_dot: array {place} has shape {node.shape}; give matrices, vectors only at the ends"
            )
    return within(wrap(reduce(MatMul, nodes)), out)


@implements(np.cross)
def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> DistArray:
    """``numpy.cross`` of vectors of three elements."""
    if axis is not None:
        axisa = axisb = axisc = axis
    left, right = expression_of(a), expression_of(b)
    parts = []
    for node, place in ((left, axisa), (right, axisb)):
        at = one_axis(place, node.ndim)
        if node.shape[at] != 3:
            raise ShapeError(f"cross: axis {place} of shape {node.shape}: give vectors of three elements")
        key = [slice(0, length, 1) for length in node.shape]
        parts.append([Index(node, (*key[:at], one, *key[at + 1 :])) for one in range(3)])
    (a0, a1, a2), (b0, b1, b2) = parts
    made = []
    for one, two, three, four in ((a1, b2, a2, b1), (a2, b0, a0, b2), (a0, b1, a1, b0)):
        (first,), (second,) = ufuncs.call(np.multiply, (one, two)), ufuncs.call(np.multiply, (three, four))
        made.append(ufuncs.call(np.subtract, (first, second))[0])
    at = one_axis(axisc, made[0].ndim + 1)
    return wrap(Concatenate(tuple(with_new_axes(one, at) for one in made), at))


@implements(np.linalg.cross)
def linalg_cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> DistArray:
    """``numpy.linalg.cross``."""
    return cross(x1, x2, axis=axis)


@implements(np.linalg.matrix_transpose)
def linalg_matrix_transpose(x: ArrayLike, /) -> object:
    """``numpy.linalg.matrix_transpose``."""
    return recorded(np.matrix_transpose)(wrap(expression_of(x)))


@implements(np.linalg.diagonal)
def linalg_diagonal(x: ArrayLike, /, *, offset: int = 0) -> object:
    """``numpy.linalg.diagonal``: of the last two axes."""
    return recorded(np.diagonal)(wrap(expression_of(x)), offset, -2, -1)


@implements(np.linalg.trace)
def linalg_trace(x: ArrayLike, /, *, offset: int = 0, dtype: npt.DTypeLike | None = None) -> object:
    """``numpy.linalg.trace``: of the last two axes."""
    return recorded(np.trace)(wrap(expression_of(x)), offset, -2, -1, dtype)


Order = float | str | None
_BY_COLUMNS = {1: "max", -1: "min"}
_BY_ROWS = {np.inf: "max", -np.inf: "min"}
_BY_VALUES = {2: "max", -2: "min", "nuc": "sum"}


@implements(np.linalg.norm)
def norm(x: ArrayLike, ord: Order = None, axis: Axis = None, keepdims: bool = False) -> DistArray:
    """``numpy.linalg.norm`` of vectors and matrices, for every order that NumPy supports.

    Parameters
    ----------
    x
        An array.
    ord
        None is the 2-norm of a vector and the Frobenius norm of a matrix. For 2, -2 and "nuc" the singular
        values are computed on one worker, for matrices of up to 64 MB.
    axis, keepdims
        As in NumPy.
    """
    node = _inexact(expression_of(x))
    if axis is None and ord is None:
        return wrap(_root_of_squares(node, None, keepdims))
    if axis is None:
        if node.ndim not in (1, 2):
            raise ShapeError(f"a norm with ord={ord!r} of {node.ndim} axes: name one axis, or two")
        axis = tuple(range(node.ndim))
    axes = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    normalize_axes(axes, node.ndim)  # refuses anything other than an axis
    places = tuple(int(one) % node.ndim for one in axes)
    if len(places) == 1:
        return wrap(_of_vectors(node, 2 if ord is None else ord, places[0], keepdims))
    if len(places) == 2:
        return wrap(_of_matrices(node, ord, (places[0], places[1]), keepdims))
    raise ShapeError(f"norm over axes {axis}: give one axis, or two")


@implements(np.linalg.vector_norm)
def vector_norm(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> DistArray:
    """``numpy.linalg.vector_norm``: several axes, or all, are treated as one vector."""
    node = _inexact(expression_of(x))
    return wrap(_of_vectors(node, ord, axis, keepdims))


@implements(np.linalg.matrix_norm)
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Order = "fro") -> DistArray:
    """``numpy.linalg.matrix_norm``: of the last two axes."""
    node = _inexact(expression_of(x))
    if node.ndim < 2:
        raise ShapeError(f"a matrix norm of shape {node.shape}: give two axes at least")
    return wrap(_of_matrices(node, ord, (node.ndim - 2, node.ndim - 1), keepdims))


def _inexact(node: Expr) -> Expr:
    return node if node.dtype.kind in "fc" else ufuncs.astype(node, np.float64)


def _root_of_squares(node: Expr, axis: Axis, keepdims: bool) -> Expr:
    (size,) = ufuncs.call(np.absolute, (node,))
    (square,) = ufuncs.call(np.square, (size,))
    return ufuncs.call(np.sqrt, (reductions.reduce(square, "sum", axis, keepdims),))[0]


def _extreme(sizes: Expr, operation: str, axis: Axis, keepdims: bool) -> Expr:
    # The largest of no sizes is 0, and the smallest is refused, as in NumPy.
    initial = 0 if operation == "max" and not sizes.size else None
    return reductions.reduce(sizes, operation, axis, keepdims, initial=initial)


def _of_vectors(node: Expr, ord: object, axis: Axis, keepdims: bool) -> Expr:
    if not isinstance(ord, int | float | np.number):
        raise OptionError(f"a norm of vectors with ord={ord!r}: give a number, inf or None")
    if ord == 2:
        return _root_of_squares(node, axis, keepdims)
    if ord == 0:
        (differs,) = ufuncs.call(np.not_equal, (node, 0))
        real = np.empty((), node.dtype).real.dtype
        return ufuncs.astype(reductions.reduce(differs, "sum", axis, keepdims), real)
    (size,) = ufuncs.call(np.absolute, (node,))
    if abs(ord) == np.inf:
        return _extreme(size, "max" if ord > 0 else "min", axis, keepdims)
    if ord == 1:
        return reductions.reduce(size, "sum", axis, keepdims)
    (power,) = ufuncs.call(np.power, (size, float(ord)))
    total = reductions.reduce(power, "sum", axis, keepdims)
    return ufuncs.call(np.power, (total, 1 / float(ord)))[0]


def _of_matrices(node: Expr, ord: object, axes: tuple[int, int], keepdims: bool) -> Expr:
    if axes[0] == axes[1]:
        raise ShapeError("norm of matrices over the same axis twice: give two different axes")
    row, column = axes
    if ord is None or ord in ("f", "fro"):
        return _root_of_squares(node, axes, keepdims)
    if ord in _BY_VALUES:
        return _by_singular_values(node, _BY_VALUES[ord], axes, keepdims)
    (size,) = ufuncs.call(np.absolute, (node,))
    for found, along in ((_BY_COLUMNS, row), (_BY_ROWS, column)):
        if ord in found:
            sums = reductions.reduce(size, "sum", along, True)
            return _extreme(sums, found[ord], axes, keepdims)  # type: ignore[index]  # one of them
    raise OptionError(f"a norm of matrices with ord={ord!r}: choose 'fro', 'nuc', 1, 2, inf, -1, -2 or -inf")


def _by_singular_values(node: Expr, operation: str, axes: tuple[int, int], keepdims: bool) -> Expr:
    rest = tuple(axis for axis in range(node.ndim) if axis not in axes)
    order = (*rest, *axes)
    moved = node if order == tuple(range(node.ndim)) else Transpose(node, order)
    values = svdvals(DistArray(moved)).expression
    if operation == "sum":
        found = reductions.reduce(values, "sum", -1)
    else:
        found = _extreme(values, operation, -1, False)
    if not keepdims:
        return found
    lengths = iter(found.shape)
    return Index(
        found, tuple(None if axis in axes else slice(0, next(lengths), 1) for axis in range(node.ndim))
    )
