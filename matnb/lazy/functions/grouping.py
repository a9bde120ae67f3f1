"""Values grouped by keys or combined by labels: ``mn.groupby``, what each group has, scatter_reduce."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from matnb.blocks.creation import Arange
from matnb.blocks.semiring import MONOIDS
from matnb.errors import DTypeError, LoopBodyError, OptionError, ShapeError
from matnb.expr.nodes import Broadcast, Create, Expr, Index
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.evaluator import asked
from matnb.lazy.functions.ordering import dense_of, found_in, unique_of
from matnb.lazy.indexing.compress import parts_of, places_where
from matnb.lazy.reductions import mean_dtype
from matnb.lazy.ufuncs import astype, call
from matnb.ops.counting_values import Count, Extent
from matnb.ops.grouping import Codes, Combined, Cuts, NumCodes, PartKeys, Picked, Scatter
from matnb.ops.indexing import Pick


def groupby(keys: object, num_groups: int | None = None) -> GroupBy:
    """Group rows by their keys, for sums, means and the like of each group.

    Parameters
    ----------
    keys
        n real numbers, or booleans; or a tuple of such arrays, of which rows must have all in common. NaN is
        one key, the last.
    num_groups
        Where keys are whole numbers from 0 to ``num_groups`` - 1: there are so many groups, whether rows have
        the keys or not. Nothing is asked for then, so it works inside loops too. When left out, the number
        of groups is asked for, at once.

    Returns
    -------
    GroupBy
        What is told of groups is aligned with its ``keys``, ascending. Sums of floats are added in the order
        of rows within each block, then block by block: other cuts may round otherwise.

    Raises
    ------
    ShapeError
        When keys are not n numbers, or several keys of different lengths.
    DTypeError
        For complex keys, and those of extended precision.
    OptionError
        For a ``num_groups`` that is no whole number, or with several keys.
    IndexingError
        Once it is computed, for a key that is not below ``num_groups``.
    LoopBodyError
        Inside the body of a loop or branch, without ``num_groups``.

    Examples
    --------
    >>> import matnb as mn
    >>> groups = mn.groupby(mn.asarray([3, 1, 3, 1, 3]))
    >>> groups.keys.compute()
    array([1, 3])
    >>> groups.mean(mn.asarray([1.0, 2.0, 3.0, 4.0, 5.0])).compute()
    array([3., 3.])
    """
    several = keys if isinstance(keys, tuple) else (keys,)
    nodes = [dense_of(expression_of(one)) for one in several]
    for node in nodes:
        if node.ndim != 1 or node.shape != nodes[0].shape:
            shapes = ", ".join(str(one.shape) for one in nodes)
            raise ShapeError(f"groupby: keys of shape {shapes}: give one axis, all of one length")
        if node.dtype.kind not in "biuf" or node.dtype.itemsize > 8:
            raise DTypeError(
                f"groupby: keys of dtype {node.dtype}: give real numbers of up to double precision"
            )
    if not nodes:
        raise OptionError("groupby: an empty tuple of keys; give one or more")
    if num_groups is not None:
        return _labelled(nodes, num_groups)
    if any(node.free for node in nodes):
        raise LoopBodyError(
            "the number of groups depends on data, and shapes are fixed inside the body of a loop or branch: "
            "give num_groups=, with whole numbers as keys, or group before the loop"
        )
    ways, found = zip(*map(told_apart, nodes), strict=True)
    if len(nodes) == 1:
        return GroupBy(ways[0], (DistArray(found[0]),), False, nodes[0])
    way, numbers = together(list(ways))
    chosen = (one.of_numbers(places, keys) for one, places, keys in zip(ways, numbers, found, strict=True))
    return GroupBy(way, tuple(map(DistArray, chosen)), True, nodes[0])


def _labelled(nodes: list[Expr], num_groups: int) -> GroupBy:
    try:
        count = operator.index(num_groups)
    except TypeError:
        raise OptionError(f"groupby: num_groups={num_groups!r} is no whole number") from None
    if count < 0 or len(nodes) > 1:
        raise OptionError(f"groupby: num_groups={count} with {len(nodes)} keys: give 0 or more, and one key")
    node = astype(nodes[0], np.uint8) if nodes[0].dtype.kind == "b" else nodes[0]
    if node.dtype.kind not in "iu":
        raise DTypeError(f"groupby: keys of dtype {node.dtype} with num_groups: give whole numbers")
    keys = DistArray(Create(Arange(0, 1, count, np.dtype(np.int64))))
    return GroupBy(labelled(node, count), (keys,), False, nodes[0])


class GroupBy:
    """Rows grouped by their keys; ``mn.groupby`` makes it.

    Values are n numbers, or a matrix of n rows. Every result has an element, or row, for each group, in the
    order of ``keys``, and is as lazy as any array.
    """

    __slots__ = ("_alone", "_keys", "_rows", "_way")

    def __init__(self, way: Way, keys: tuple[DistArray, ...], is_several: bool, rows: Expr) -> None:
        self._way, self._keys, self._alone, self._rows = way, keys, not is_several, rows.shape[0]

    def __repr__(self) -> str:
        kinds = ", ".join(str(one.dtype) for one in self._keys)
        word = "group" if self.num_groups == 1 else "groups"
        return f"GroupBy: {self._rows:,} rows in {self.num_groups:,} {word} by keys of {kinds}"

    def __len__(self) -> int:
        return self.num_groups

    @property
    def keys(self) -> DistArray | tuple[DistArray, ...]:
        """The distinct keys, ascending; of several keys a tuple of arrays, the first one ascending."""
        return self._keys[0] if self._alone else self._keys

    @property
    def num_groups(self) -> int:
        """How many groups there are."""
        return self._way.num_groups

    def count(self, values: object = None) -> DistArray:
        """Return how many rows each group has, int64; of ``values``, how many are not NaN."""
        if values is None:
            return wrap(self._way.counted())
        node = self._checked(values)
        if node.dtype.kind not in "fc":
            node = Broadcast(_number(True), node.shape)
        else:
            (node,) = call(np.equal, (node, node))
        return wrap(self._way.combined(astype(node, np.int64), "plus"))

    def sum(self, values: object) -> DistArray:
        """Return the sums of the values of each group, of the dtype of ``np.sum``; 0 for a group of none."""
        return wrap(self._sum(self._checked(values)))

    def prod(self, values: object) -> DistArray:
        """Return the products of the values of each group; 1 for a group of none."""
        return wrap(self._way.combined(self._checked(values), "times"))

    def min(self, values: object) -> DistArray:
        """Return the least value of each group, NaN where one is; of none the greatest there is."""
        return wrap(self._way.combined(self._checked(values), "min"))

    def max(self, values: object) -> DistArray:
        """Return the greatest value of each group, NaN where one is; of none the least there is."""
        return wrap(self._way.combined(self._checked(values), "max"))

    def any(self, values: object) -> DistArray:
        """Return whether some value of each group is not 0."""
        return wrap(self._way.combined(self._checked(values), "lor"))

    def all(self, values: object) -> DistArray:
        """Return whether no value of each group is 0."""
        return wrap(self._way.combined(self._checked(values), "land"))

    def mean(self, values: object) -> DistArray:
        """Return the mean of the values of each group, of the dtype of ``np.mean``; of none NaN."""
        node = self._checked(values)
        return wrap(astype(self._mean(node), mean_dtype(node.dtype)))

    def var(self, values: object, *, ddof: float = 0, correction: float | None = None) -> DistArray:
        """Return the variance of the values of each group: mean square distances from their mean.

        Parameters
        ----------
        ddof, correction
            What is taken from the number of rows that sums are divided by: two names of it.
        """
        node = self._checked(values)
        element = mean_dtype(node.dtype)
        center = self._way.spread(self._mean(node))
        (away,) = call(np.subtract, (astype(node, center.dtype), center))
        if away.dtype.kind == "c":
            (away,) = call(np.absolute, (away,))
        (square,) = call(np.square, (away,))
        less = ddof if correction is None else correction
        (below,) = call(np.subtract, (astype(self._way.counted(), np.float64), float(less)))
        (below,) = call(np.maximum, (below, 0.0))
        (found,) = call(np.divide, (self._way.combined(square, "plus"), self._beside(below, square)))
        real = np.empty(0, element).real.dtype
        return wrap(astype(found, real))

    def std(self, values: object, *, ddof: float = 0, correction: float | None = None) -> DistArray:
        """Return the standard deviation of the values of each group: the root of ``var``."""
        return np.sqrt(self.var(values, ddof=ddof, correction=correction))  # type: ignore[return-value]  # recorded

    def _checked(self, values: object) -> Expr:
        node = dense_of(expression_of(values))
        if node.ndim not in (1, 2) or node.shape[0] != self._rows:
            raise ShapeError(
                f"values of shape {node.shape} for {self._rows} keys: give one value a key, or one row"
            )
        return node

    def _sum(self, node: Expr) -> Expr:
        found = self._way.combined(node, "plus")
        return astype(found, node.dtype) if node.dtype.kind in "fc" else found

    def _mean(self, node: Expr) -> Expr:
        # Shorter floats are rounded once, at the end, and sums of whole numbers do not wrap.
        wide = np.result_type(mean_dtype(node.dtype), np.float64)
        total = self._way.combined(astype(node, wide), "plus")
        return call(np.divide, (total, self._beside(self._way.counted(), node)))[0]

    def _beside(self, groups: Expr, rows: Expr) -> Expr:
        # A number a group, as it meets a result for values of one axis, or of rows.
        return groups if rows.ndim == 1 else Index(groups, (slice(0, groups.shape[0], 1), None))


def _number(value: bool) -> Expr:
    return expression_of(np.asarray(value))


# Distinct keys: which rows have the same one, found where the rows are, or by the keys' own places.

_FEW = 1 << 16  # labels that each block may have a number for, whatever its length
_MOST_MERGED = 1 << 20  # keys of parts that one worker tells apart: eight megabytes
_WHAT = "the number of groups"


@dataclass(frozen=True, eq=False)
class ByLabel:
    """Rows whose keys are whole numbers below ``length``: each block has a number for every label.

    ``present`` are the labels that some row has, or None for all.
    """

    labels: Expr
    length: int
    counts: DistArray  # handles, since what is made of them stays while they live
    present: DistArray | None

    @property
    def num_groups(self) -> int:
        """How many groups there are."""
        return self.length if self.present is None else self.present.shape[0]

    def combined(self, values: Expr, monoid: str) -> Expr:
        """Return the values, or rows, of each group combined."""
        return self._chosen(Scatter(values, self.labels, self.length, monoid))

    def counted(self) -> Expr:
        """Return how many rows each group has."""
        return self._chosen(self.counts.expression)

    def spread(self, groups: Expr) -> Expr:
        """Return for each row the element, or row, of its group."""
        if self.present is not None:
            groups = Scatter(groups, self.present.expression, self.length, "plus")
        return Pick(groups, (self.labels,), 0)

    def numbered(self) -> tuple[Expr, int]:
        """Return a whole number for each row, the same in a group, and a bound of them."""
        return self.labels, self.length

    def of_numbers(self, numbers: Expr, keys: Expr) -> Expr:
        """Return the keys of some of those numbers."""
        if self.present is None:
            return Pick(keys, (numbers,), 0)
        return Pick(Scatter(keys, self.present.expression, self.length, "max"), (numbers,), 0)

    def _chosen(self, node: Expr) -> Expr:
        return node if self.present is None else Pick(node, (self.present.expression,), 0)


@dataclass(frozen=True, eq=False)
class ByPart:
    """Rows whose keys were numbered part by part, and then the keys of the parts.

    ``codes``, ``before`` and ``after`` are those of the nodes; ``groups`` is the number of the group of each
    key of a part, or None where there is one part.
    """

    codes: DistArray
    before: Cuts
    after: Cuts
    groups: DistArray | None
    num_groups: int

    def combined(self, values: Expr, monoid: str) -> Expr:
        """Return the values, or rows, of each group combined."""
        if monoid == "times" and values.dtype.kind in "fc" and self.groups is not None:
            # A product of parts' products may overflow where that of the values, one by one, does not.
            return Scatter(values, self.numbered()[0], self.num_groups, monoid)
        parts = Combined(values, self.codes.expression, monoid, self.before, self.after)
        if self.groups is None:
            return parts
        monoid = "plus" if monoid == "count" else monoid
        return Scatter(parts, self.groups.expression, self.num_groups, monoid)

    def counted(self) -> Expr:
        """Return how many rows each group has."""
        return self.combined(self.codes.expression, "count")

    def spread(self, groups: Expr) -> Expr:
        """Return for each row the element, or row, of its group."""
        parts = groups if self.groups is None else Pick(groups, (self.groups.expression,), 0)
        return Picked(parts, self.codes.expression, self.before, self.after)

    def numbered(self) -> tuple[Expr, int]:
        """Return a whole number for each row, the same in a group, and a bound of them."""
        codes = self.codes.expression
        if self.groups is None:
            return codes, self.num_groups
        return Picked(self.groups.expression, codes, self.before, self.after), self.num_groups

    def of_numbers(self, numbers: Expr, keys: Expr) -> Expr:
        """Return the keys of some of those numbers."""
        return Pick(keys, (numbers,), 0)


Way: TypeAlias = ByLabel | ByPart


def told_apart(keys: Expr) -> tuple[Way, Expr]:
    """Return which rows have the same key, and the distinct keys, ascending; their number is asked for.

    Whole numbers of a narrow range are labels themselves.

    Raises
    ------
    LoopBodyError
        Inside the body of a loop or branch.
    """
    if keys.dtype.kind in "biu" and keys.size:
        plain = astype(keys, np.uint8) if keys.dtype.kind == "b" else keys
        low, high = (int(one) for one in asked(Extent(plain), _WHAT))
        most = max(_FEW, keys.size // 8)
        if high - low < most:
            first = 0 if low >= 0 and high < most else low
            length = high - first + 1
            first -= (first >= 1 << 63) << 64  # whole numbers of 64 bits wrap, and what is between stays
            way = _by_label(_minus(plain, first), length)
            return way, astype(_plus(_places(way), first), keys.dtype)
    return _by_part(keys)


def labelled(labels: Expr, length: int) -> ByLabel:
    """Return which rows have the same label, of ``length`` that all count, whether rows have them or not."""
    return ByLabel(labels, length, DistArray(Count(labels, length)), None)


def together(ways: list[Way]) -> tuple[Way, list[Expr]]:
    """Return which rows are in the same group in every way, and for each way the number of each group."""
    total: Expr | None = None
    bound = 1
    for way in ways:
        numbers, count = way.numbered()
        wide = astype(numbers, np.int64)
        total = wide if total is None else _plus(call(np.multiply, (total, count))[0], wide)
        bound *= max(1, count)
    assert total is not None, "there is a key"
    if bound <= max(_FEW, total.size // 8):
        way = _by_label(total, bound)
        left = _places(way)
    else:
        way, left = _by_part(total)
    found: list[Expr] = []
    for one in reversed(ways):
        count = max(1, one.numbered()[1])
        found.append(call(np.remainder, (left, count))[0])
        left = call(np.floor_divide, (left, count))[0]
    return way, found[::-1]


def _by_label(labels: Expr, length: int) -> ByLabel:
    counts = DistArray(Count(labels, length))
    (places,) = places_where(call(np.not_equal, (counts.expression, 0))[0])
    present = None if places.shape[0] == length else DistArray(places)
    return ByLabel(labels, length, counts, present)


def _places(way: ByLabel) -> Expr:
    if way.present is not None:
        return way.present.expression
    return Create(Arange(0, 1, way.length, np.dtype(np.int64)))


def _by_part(keys: Expr) -> tuple[ByPart, Expr]:
    before = parts_of(keys, keys)
    codes, after = _coded(keys, before)
    parts = PartKeys(keys, codes.expression, before, after)
    if len(before) == 2:
        return ByPart(codes, before, after, None, after[-1]), parts
    whole = (0, after[-1])
    if whole[1] > _MOST_MERGED:
        distinct = DistArray(unique_of(parts))
        groups = DistArray(found_in(distinct.expression, parts, "left"))
        return ByPart(codes, before, after, groups, distinct.size), distinct.expression
    groups, ends = _coded(parts, whole)
    return ByPart(codes, before, after, groups, ends[-1]), PartKeys(parts, groups.expression, whole, ends)


def _coded(keys: Expr, before: Cuts) -> tuple[DistArray, Cuts]:
    codes = DistArray(Codes(keys, before))
    counts = asked(NumCodes(codes.expression, before), _WHAT)
    return codes, (0, *accumulate(counts.tolist()))


def _minus(node: Expr, number: int) -> Expr:
    return node if number == 0 else call(np.subtract, (astype(node, np.int64), number))[0]


def _plus(node: Expr, other: Expr | int) -> Expr:
    return node if other == 0 else call(np.add, (node, other))[0]


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
