"""NumPy's functions on distinct elements: the unique family, and arrays as sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from matnb.blocks.grid import regular_cuts
from matnb.errors import UnsupportedError
from matnb.expr.nodes import Expr
from matnb.lazy.array import DistArray, expression_of
from matnb.lazy.evaluator import evaluator
from matnb.lazy.force import asked
from matnb.lazy.functions.joining import concatenate
from matnb.lazy.functions.reshaping import reshaped
from matnb.lazy.functions.searching import found_in, is_in
from matnb.lazy.indexing.canonical import one_axis
from matnb.lazy.indexing.compress import compressed
from matnb.lazy.ordering import dense_of, sorted_of
from matnb.lazy.registry import implements
from matnb.lazy.ufuncs import astype, call
from matnb.ops.uniques import CountDistinct, Distinct, DistinctField

_MOST_PARTS = 1000  # of what is distinct: each is a block


def unique_of(node: Expr, equal_nan: bool = True) -> Expr:
    """Return the distinct elements of an array, ascending; found at once, as their number depends on data.

    Raises
    ------
    LoopBodyError
        Inside the body of a loop or branch.
    """
    (values,) = _distinct(node, equal_nan, ("values",))
    return values.expression


def _distinct(given: Expr, equal_nan: bool, fields: tuple[str, ...]) -> list[DistArray]:
    flat = DistArray(dense_of(reshaped(given, (-1,))))
    what = "how many elements of np.unique there are"
    if flat.expression.free:
        asked(flat.expression, what)  # which refuses
    layout = evaluator().layout(flat.expression)
    if layout is None:
        # Cut as the array is, which is made first.
        evaluator().persist([flat.expression])
        layout = evaluator().layout(flat.expression)
    parts = 1 if layout is None else min(layout.grid.num_blocks, _MOST_PARTS)
    starts, places = "starts" in fields, "places" in fields
    cuts = regular_cuts(flat.size, parts)
    node = Distinct(flat.expression, cuts, equal_nan, starts, places)
    packed = DistArray(node)  # it lives until it is read
    counts = tuple(int(one) for one in asked(CountDistinct(node, node.ends), what))
    found: list[Expr] = [
        DistinctField(node, name, counts, cuts, flat.dtype, starts, places) for name in fields
    ]
    handles = [DistArray(one) for one in found]
    evaluator().persist(found)
    del packed
    return handles


@implements(np.unique)
def unique(
    ar: object,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> DistArray | tuple[DistArray, ...]:
    """``numpy.unique`` of all elements, ascending; computed at once."""
    node = expression_of(ar)
    if axis is not None and node.ndim > 1:
        raise UnsupportedError(
            "np.unique(axis=) of an array of several axes is not recorded: combine each row to one number, "
            "for example by a product with powers, and take their first places with return_index; or "
            "np.unique(x.compute(), axis=...)"
        )
    if axis is not None:
        one_axis(axis, node.ndim)  # refuses what is no axis
    fields = ("values", *(("places",) if return_index else ()), *(("starts",) if return_counts else ()))
    found = dict(zip(fields, _distinct(node, equal_nan, fields), strict=True))
    results = [found["values"]]
    if return_index:
        results.append(found["places"])
    if return_inverse:
        results.append(DistArray(_inverse(node, found["values"].expression, equal_nan)))
    if return_counts:
        results.append(_counts(found["starts"], node.size))
    return results[0] if len(results) == 1 else tuple(results)


def _inverse(node: Expr, values: Expr, equal_nan: bool) -> Expr:
    inverse = found_in(values, node, "left")
    if node.dtype.kind == "c":
        return _inverse_of_complex(node, values, inverse, equal_nan)
    if equal_nan or node.dtype.kind != "f":
        return inverse
    # Each NaN is an element of its own, in the order in which they come.
    missing = np.isnan(DistArray(dense_of(node)))
    flat = missing.reshape(-1)
    before = DistArray(expression_of(np.cumsum(flat.astype(np.int64)))) - 1
    own = DistArray(inverse) + before.reshape(missing.shape)
    return expression_of(np.where(missing, own, DistArray(inverse)))


def _inverse_of_complex(node: Expr, values: Expr, inverse: Expr, equal_nan: bool) -> Expr:
    # NaN in one part or both are in an order of their own behind all numbers; the first stands for all of
    # them, or each for itself.
    if equal_nan:
        return call(np.minimum, (inverse, max(0, values.size - 1)))[0]
    missing = np.isnan(DistArray(dense_of(node)))
    order = np.argsort(DistArray(dense_of(reshaped(node, (-1,)))), kind="stable")
    ranks = np.argsort(order, kind="stable") - (node.size - values.size)
    own = expression_of(ranks)
    own = own if own.shape == node.shape else reshaped(own, node.shape)
    return expression_of(np.where(missing, DistArray(own), DistArray(inverse)))


def _counts(starts: DistArray, total: int) -> DistArray:
    if not starts.size:
        return starts
    ends = expression_of(np.concatenate([starts[1:], np.array([total])]))
    return DistArray(call(np.subtract, (ends, starts.expression))[0])


def _result(name: str, *values: object) -> Any:
    # NumPy's own named tuples, as the functions return them.
    kind: Any = type(getattr(np, name)(np.empty(0)))
    return kind(*values)


@implements(np.unique_values)
def unique_values(x: object, /) -> DistArray:
    """``numpy.unique_values``, ascending; each NaN counts."""
    return DistArray(unique_of(expression_of(x), equal_nan=False))


@implements(np.unique_counts)
def unique_counts(x: object, /) -> Any:
    """``numpy.unique_counts``; each NaN counts."""
    values, counts = unique(x, return_counts=True, equal_nan=False)
    return _result("unique_counts", values, counts)


@implements(np.unique_inverse)
def unique_inverse(x: object, /) -> Any:
    """``numpy.unique_inverse``; each NaN counts."""
    values, inverse = unique(x, return_inverse=True, equal_nan=False)
    return _result("unique_inverse", values, inverse)


@implements(np.unique_all)
def unique_all(x: object, /) -> Any:
    """``numpy.unique_all``; each NaN counts."""
    found = unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
    return _result("unique_all", *found)


def _flat(x: object) -> Expr:
    return dense_of(reshaped(expression_of(x), (-1,)))


def _alike(ar1: object, ar2: object) -> tuple[Expr, Expr]:
    one, other = _flat(ar1), _flat(ar2)
    dtype = np.result_type(one.dtype, other.dtype)
    return astype(one, dtype), astype(other, dtype)


def _kept(values: Expr, among: Expr, invert: bool, *others: Expr) -> list[Expr]:
    found = is_in(values, among)
    mask = call(np.logical_not, (found,))[0] if invert else found
    return [compressed(one, mask) for one in (values, *others)]


@implements(np.union1d)
def union1d(ar1: object, ar2: object) -> DistArray:
    """``numpy.union1d``; computed at once."""
    return DistArray(unique_of(dense_of(concatenate((ar1, ar2), None).expression)))


@implements(np.intersect1d)
def intersect1d(
    ar1: object, ar2: object, assume_unique: bool = False, return_indices: bool = False
) -> DistArray | tuple[DistArray, ...]:
    """``numpy.intersect1d``; computed at once."""
    one, other = _alike(ar1, ar2)
    if not return_indices:
        values = one if assume_unique else unique_of(one)
        (found,) = _kept(values, other, False)
        return DistArray(sorted_of(found) if assume_unique else found)
    fields = ("values", "places")
    (first, places), (second, second_places) = (_distinct(node, True, fields) for node in (one, other))
    values, first_kept = _kept(first.expression, second.expression, False, places.expression)
    _, second_kept = _kept(second.expression, first.expression, False, second_places.expression)
    return DistArray(values), DistArray(first_kept), DistArray(second_kept)


@implements(np.setdiff1d)
def setdiff1d(ar1: object, ar2: object, assume_unique: bool = False) -> DistArray:
    """``numpy.setdiff1d``; computed at once."""
    one = _flat(ar1)
    return DistArray(_kept(one if assume_unique else unique_of(one), _flat(ar2), True)[0])


@implements(np.setxor1d)
def setxor1d(ar1: object, ar2: object, assume_unique: bool = False) -> DistArray:
    """``numpy.setxor1d``; computed at once."""
    nodes = [node if assume_unique else unique_of(node) for node in _alike(ar1, ar2)]
    parts = [DistArray(_kept(one, other, True)[0]) for one, other in (tuple(nodes), tuple(reversed(nodes)))]
    return DistArray(sorted_of(expression_of(np.concatenate(parts))))
