"""Sums of products by the names of axes, made of matrix products, reductions and contractions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from matnb.errors import ShapeError, UnsupportedError
from matnb.expr.nodes import Expr, Index, MatMul, Reduce, Transpose, broadcast_shapes
from matnb.lazy import ufuncs
from matnb.lazy.indexing.keys import one_axis, without_axes
from matnb.lazy.ufuncs import densified
from matnb.ops.contracting import Contract
from matnb.ops.einsum_subscripts import Names, spelled

Path = Sequence[tuple[int, ...]]
_SLACK = 1.5  # times the fewest operations, for making everything in one pass over the largest array


def contracted(
    nodes: Sequence[Expr], names: Sequence[Names], output: Names, dtype: np.dtype, path: Path | None = None
) -> Expr:
    """Return the sum, over the names that ``output`` lacks, of the products of arrays' elements.

    Parameters
    ----------
    nodes
        The arrays.
    names
        A number for each axis of each array. Axes of one name go together; one of length 1 is stretched.
    dtype
        In which it is computed, and of the result.
    path
        Which arrays are multiplied first, as ``numpy.einsum_path`` tells it; found when left out.

    Raises
    ------
    ShapeError
        When axes of one name are of several lengths.
    UnsupportedError
        When a large sparse array would have to become dense.
    """
    lengths = _lengths(nodes, names)
    simple = [
        _simple(ufuncs.astype(node, dtype), own, lengths) for node, own in zip(nodes, names, strict=True)
    ]
    terms = [
        _alone(term, set(output).union(*(own for other in simple if other is not term for own in other[1:])))
        for term in simple
    ]
    if path is None:
        path = _path(terms, output, lengths)
    for chosen in path:
        if len(terms) == 1:
            break
        taken = [terms[place] for place in chosen]
        terms = [one for place, one in enumerate(terms) if place not in chosen]
        needed = {name for _, own in terms for name in own}.union(output)
        terms.append(taken[0] if len(taken) == 1 else _several(taken, needed, output))
    if len(terms) > 1:
        terms = [_several(terms, set(output), output)]
    return _ordered(*terms[0], output)


def _lengths(nodes: Sequence[Expr], names: Sequence[Names]) -> dict[int, int]:
    lengths: dict[int, int] = {}
    for node, own in zip(nodes, names, strict=True):
        if len(set(zip(own, node.shape, strict=True))) > len(set(own)):
            raise ShapeError(
                f"einsum: axes with the same letter have different lengths in an array of shape {node.shape}"
            )
        for name, length in zip(own, node.shape, strict=True):
            known = lengths.setdefault(name, length)
            if known != length and 1 not in (known, length):
                raise ShapeError(
                    f"einsum: axes with the same letter have lengths {known} and {length} in arrays "
                    "of shapes "
                    f"{', '.join(str(one.shape) for one in nodes)}"
                )
            if known == 1:
                lengths[name] = length
    return lengths


def _simple(node: Expr, own: Names, lengths: dict[int, int]) -> tuple[Expr, Names]:
    # Without axes that are stretched, and with each name once: the diagonal.
    axes = zip(own, node.shape, strict=True)
    stretched = [axis for axis, (name, length) in enumerate(axes) if length != lengths[name]]
    if stretched:
        node = without_axes(node, stretched)
        own = tuple(name for axis, name in enumerate(own) if axis not in stretched)
    once = tuple(dict.fromkeys(own))
    return (node, own) if once == own else (Contract((node,), (own,), once), once)


def _alone(term: tuple[Expr, Names], needed: set[int]) -> tuple[Expr, Names]:
    # What nobody else needs is summed at once.
    node, own = term
    axes = tuple(axis for axis, name in enumerate(own) if name not in needed)
    if not axes:
        return term
    return _summed(node, axes), tuple(name for name in own if name in needed)


def _summed(node: Expr, axes: tuple[int, ...]) -> Expr:
    # einsum adds in the dtype of the operands, and booleans by "or".
    return Reduce(node, "any" if node.dtype.kind == "b" else "sum", axes, False, node.dtype)


def _ordered(node: Expr, own: Names, wanted: Names) -> Expr:
    return node if own == wanted else Transpose(node, tuple(own.index(one) for one in wanted))


def _path(terms: Sequence[tuple[Expr, Names]], output: Names, lengths: dict[int, int]) -> Path:
    # Which arrays are multiplied first; all at once where one pass over the largest is as good.
    if len(terms) <= 2:
        return [tuple(range(len(terms)))]
    dummies = [np.broadcast_to(np.empty(()), node.shape) for node, _ in terms]
    found: Path = np.einsum_path(spelled([own for _, own in terms], output), *dummies, optimize="greedy")[0][
        1:
    ]
    sizes = [node.size * (not node.sparse) for node, _ in terms]
    largest = sizes.index(max(sizes))
    others = [one for one in range(len(terms)) if one != largest]
    is_light = 4 * sum(sizes[one] for one in others) <= sizes[largest]
    if is_light and not any(node.sparse for node, _ in terms):
        operands = [set(own) for _, own in terms]
        fewest = _operations(operands, found, set(output), lengths)
        if _one_pass(operands, [largest, *others], set(output), lengths) <= _SLACK * fewest:
            return [(largest, *others)]
    return found


def _operations(names: list[set[int]], path: Path, output: set[int], lengths: dict[int, int]) -> int:
    total, rest = 0, list(names)
    for chosen in path:
        taken = set().union(*(rest[place] for place in chosen))
        rest = [one for place, one in enumerate(rest) if place not in chosen]
        total += math.prod(lengths[name] for name in taken)
        rest.append(taken & set(output).union(*rest))
    return total


def _one_pass(names: list[set[int]], order: list[int], output: set[int], lengths: dict[int, int]) -> int:
    total, held = 0, names[order[0]]
    for place, other in enumerate(order[1:], 2):
        held = held | names[other]
        total += math.prod(lengths[name] for name in held)
        held &= output.union(*(names[one] for one in order[place:]))
    return total


def _several(terms: Sequence[tuple[Expr, Names]], needed: set[int], output: Names) -> tuple[Expr, Names]:
    # The product of some arrays, summed over all but what is needed, and the names of its axes.
    kept = tuple(dict.fromkeys(name for _, own in terms for name in own if name in needed))
    if set(kept) == set(output):
        kept = output
    if len(terms) == 2:
        found = _pair(*terms[0], *terms[1], kept)
        if found is not None:
            return found, kept
    terms = [(densified(node, "einsum"), own) for node, own in terms]
    terms = _in_order(terms, set(kept))
    return Contract(tuple(node for node, _ in terms), tuple(own for _, own in terms), kept), kept


def _in_order(terms: Sequence[tuple[Expr, Names]], kept: set[int]) -> list[tuple[Expr, Names]]:
    # The largest array first. Among others that cost about the same, that comes next which is summed with the
    # last of its axes: for others it would be copied in another order.
    largest = max(range(len(terms)), key=lambda one: terms[one][0].size)
    ordered, rest = [terms[largest]], [*terms[:largest], *terms[largest + 1 :]]
    lengths = {name: length for node, own in terms for name, length in zip(own, node.shape, strict=True)}
    held = list(terms[largest][1])
    while rest:
        costs = [math.prod(lengths[name] for name in {*held, *own}) for _, own in rest]
        needed = [
            kept.union(*(own for other in rest if other is not one for own in other[1:])) for one in rest
        ]
        places = [
            max((held.index(name) for name in own if name in held and name not in still), default=-1)
            for (_, own), still in zip(rest, needed, strict=True)
        ]
        near = [one for one in range(len(rest)) if costs[one] <= 2 * min(costs)]
        chosen = max(near, key=places.__getitem__)
        own = rest[chosen][1]
        held = [name for name in dict.fromkeys((*held, *own)) if name in needed[chosen]]
        ordered.append(rest.pop(chosen))
    return ordered


def _pair(left: Expr, own: Names, right: Expr, other: Names, kept: Names) -> Expr | None:
    # A product of two arrays made by other nodes, where it is one.
    batch = [name for name in own if name in other and name in kept]
    inner = [name for name in own if name in other and name not in kept]
    rows, columns = [name for name in own if name not in other], [name for name in other if name not in own]
    if not inner or not (rows or columns):
        # elementwise, then summed
        spread = (*kept, *inner)
        factors = (_spread(left, own, spread), _spread(right, other, spread))
        (product,) = ufuncs.call(np.multiply, factors)
        if product.sparse or not (left.sparse or right.sparse) or not inner:
            return _summed(product, tuple(range(len(kept), len(spread)))) if inner else product
        return None
    if batch or len(inner) > 1 or len(rows) > 1 or len(columns) > 1:
        return None
    # A vector is a row on the left and a column on the right.
    left_names, right_names = (*rows, *inner), (*inner, *columns)
    product = MatMul(_ordered(left, own, left_names), _ordered(right, other, right_names))
    if product.dtype != left.dtype:
        return None
    if (*rows, *columns) == kept:
        return product
    return MatMul(_ordered(right, other, (*columns, *inner)), _ordered(left, own, (*inner, *rows)))


def _spread(node: Expr, own: Names, wanted: Names) -> Expr:
    # The array with its axes in a wanted order, of length 1 where it has none; leading ones are left out.
    ordered = _ordered(node, own, tuple(name for name in wanted if name in own))
    first = next((place for place, name in enumerate(wanted) if name in own), len(wanted))
    missing = [name not in own for name in wanted[first:]]
    if not any(missing):
        return ordered
    lengths = iter(ordered.shape)
    return Index(ordered, tuple(None if one else slice(0, next(lengths), 1) for one in missing))


def called(ufunc: np.ufunc, operands: Sequence[Expr], axis: int = -1) -> Expr:
    """Return the expression of a ufunc that works on vectors or matrices.

    Parameters
    ----------
    axis
        Of the vectors that ``vecdot`` multiplies.

    Raises
    ------
    ShapeError
        When the shapes do not fit.
    UnsupportedError
        For a ufunc that is not one of NumPy's own four.
    """
    left, right = operands[0], operands[-1]
    match ufunc.__name__:
        case "matmul":
            return ufuncs.call(np.matmul, (left, right))[0]
        case "vecdot":
            return vecdot(left, right, axis)
        case "matvec":
            return _stretched(left, right, 2, 1, "matvec")
        case "vecmat":
            return _stretched(ufuncs.call(np.conjugate, (left,))[0], right, 1, 2, "vecmat")
    raise UnsupportedError(f"the ufunc {ufunc.__name__!r} is not supported: call it on x.compute()")


def vecdot(left: Expr, right: Expr, axis: int = -1) -> Expr:
    """Return the products of vectors along an axis of two arrays that broadcast."""
    if not left.shape or not right.shape:
        raise ShapeError("vecdot needs arrays of at least one axis, not a scalar")
    first, second = one_axis(axis, left.ndim), one_axis(axis, right.ndim)
    if left.shape[first] != right.shape[second]:
        raise ShapeError(
            f"vecdot of shapes {left.shape} and {right.shape}: axis {axis} must have the same length in both"
        )
    if left.ndim - first != right.ndim - second:  # counted from the first axis, of different numbers of axes
        left, right = _moved(left, first), _moved(right, second)
        first, second = left.ndim - 1, right.ndim - 1
    ndim = max(left.ndim, right.ndim)
    return products_summed(left, right, (ndim - (left.ndim - first),))


def _moved(node: Expr, axis: int) -> Expr:
    return Transpose(node, (*(one for one in range(node.ndim) if one != axis), axis))


def products_summed(left: Expr, right: Expr, axes: tuple[int, ...]) -> Expr:
    """Return the sum of ``conj(left) * right`` over axes, in the dtype of the product."""
    if left.dtype.kind == "c":
        (left,) = ufuncs.call(np.conjugate, (left,))
    (product,) = ufuncs.call(np.multiply, (left, right))
    return _summed(product, axes)


def _stretched(left: Expr, right: Expr, first: int, second: int, name: str) -> Expr:
    # matrices with vectors, or vectors with matrices, whose other axes broadcast
    if left.ndim < first or right.ndim < second:
        raise ShapeError(f"{name} of shapes {left.shape} and {right.shape}: give vectors and matrices")
    inner = right.shape[-second]
    if left.shape[-1] != inner:
        raise ShapeError(
            f"{name} of shapes {left.shape} and {right.shape}: the last axis of the first, {left.shape[-1]}, "
            f"must be {inner}"
        )
    batch = broadcast_shapes(left.shape[:-first], right.shape[:-second], name=name)
    stack = tuple(range(len(batch)))
    row, column, along = len(batch), len(batch) + 1, len(batch) + 2
    own = (*stack[len(batch) - left.ndim + first :], *((row,) if first == 2 else ()), along)
    other = (*stack[len(batch) - right.ndim + second :], along, *((column,) if second == 2 else ()))
    output = (*stack, row if first == 2 else column)
    return contracted([left, right], [own, other], output, np.result_type(left.dtype, right.dtype))
