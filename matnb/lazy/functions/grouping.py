"""Values grouped by keys or combined by labels: ``mn.groupby``, what each group has, scatter_reduce."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from matnb.blocks.creation import Arange, Eye
from matnb.blocks.semiring import MONOIDS
from matnb.errors import DTypeError, LoopBodyError, OptionError, ShapeError, suggestion
from matnb.expr.nodes import Broadcast, Create, Expr, Index
from matnb.lazy.array import DistArray, handle_of, wrap
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.evaluator import asked
from matnb.lazy.fields import refuse_result
from matnb.lazy.functions.ordering import dense_of, found_in, unique_of
from matnb.lazy.handles import expression_of
from matnb.lazy.indexing.compress import parts_of, places_where
from matnb.lazy.reductions import mean_dtype
from matnb.lazy.reductions import where as choose
from matnb.lazy.registry import recorded
from matnb.lazy.ufuncs import astype, call, literal
from matnb.ops.counting_values import Count, Extent
from matnb.ops.grouping import Codes, Combined, Cuts, NumCodes, PartKeys, Picked, Running, Scatter
from matnb.ops.indexing import Pick


def groupby(keys: ArrayLike, num_groups: int | None = None) -> GroupBy:
    """Group rows by their keys, to compute sums, means and other statistics of each group.

    Parameters
    ----------
    keys
        n real numbers or booleans; or a tuple of such arrays, whose rows are grouped where all keys are
        equal. All NaN are one key, sorted last.
    num_groups
        The number of groups, for keys that are integers from 0 to ``num_groups`` - 1; keys without rows give
        empty groups. Nothing needs computing then, so this also works inside loops. By default the number of
        groups is computed immediately.

    Returns
    -------
    GroupBy
        Its results are aligned with its ``keys``, ascending. Floats are summed in row order within each
        block, then block by block, so the last bits can depend on how the array is split.

    Raises
    ------
    ShapeError
        When keys are not n numbers, or several keys of different lengths.
    DTypeError
        For complex keys, those of extended precision, and a result of several values.
    OptionError
        For a ``num_groups`` that is not a whole number, or with several keys.
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
    refuse_result(keys)
    several = keys if isinstance(keys, tuple) else (keys,)
    nodes = [dense_of(expression_of(one)) for one in several]
    for node in nodes:
        if node.ndim != 1 or node.shape != nodes[0].shape:
            shapes = ", ".join(str(one.shape) for one in nodes)
            raise ShapeError(f"groupby: keys have shape {shapes}: give 1-d arrays of the same length")
        if node.dtype.kind not in "biuf" or node.dtype.itemsize > 8:
            raise DTypeError(f"groupby: keys have dtype {node.dtype}: give real numbers of at most 64 bits")
    if not nodes:
        raise OptionError("groupby: an empty tuple of keys; give one or more")
    if num_groups is not None:
        return _labeled(nodes, num_groups)
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


def _labeled(nodes: list[Expr], num_groups: int) -> GroupBy:
    try:
        count = operator.index(num_groups)
    except TypeError:
        raise OptionError(f"groupby: num_groups={num_groups!r}: give an integer") from None
    if count < 0 or len(nodes) > 1:
        raise OptionError(
            f"groupby: num_groups={count} with {len(nodes)} keys: give 0 or more, with one key only"
        )
    node = astype(nodes[0], np.uint8) if nodes[0].dtype.kind == "b" else nodes[0]
    if node.dtype.kind not in "iu":
        raise DTypeError(f"groupby: keys of dtype {node.dtype} with num_groups: give integers")
    keys = DistArray(Create(Arange(0, 1, count, np.dtype(np.int64))))
    return GroupBy(labeled(node, count), (keys,), False, nodes[0])


class GroupBy:
    """Rows grouped by their keys, as returned by :func:`matnb.groupby`.

    Values are n numbers, or a matrix of n rows. Every result is a lazy array with an element, or row, for
    each group, in the order of ``keys``.
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
        """The distinct keys, ascending; for several keys a tuple of arrays, in lexicographic order."""
        return self._keys[0] if self._alone else self._keys

    @property
    def num_groups(self) -> int:
        """The number of groups."""
        return self._way.num_groups

    def count(self, values: ArrayLike = None) -> DistArray:
        """Return the number of rows in each group, int64; with ``values``, the number that are not NaN."""
        if values is None:
            return wrap(self._way.counted())
        node = self._checked(values)
        if node.dtype.kind not in "fc":
            node = Broadcast(_number(True), node.shape)
        else:
            (node,) = call(np.equal, (node, node))
        return wrap(self._way.combined(astype(node, np.int64), "plus"))

    def sum(self, values: ArrayLike) -> DistArray:
        """Return the sum of the values in each group, with the dtype of ``np.sum``; 0 for an empty group.

        For a sparse matrix the result is sparse, with one row per group: the product of the groups-by-rows
        indicator matrix with it.
        """
        rows = expression_of(values)
        if rows.sparse:
            return self._sparse_sum(rows)
        return wrap(self._sum(self._checked(values)))

    def prod(self, values: ArrayLike) -> DistArray:
        """Return the product of the values in each group; 1 for an empty group."""
        return wrap(self._way.combined(self._checked(values), "times"))

    def min(self, values: ArrayLike) -> DistArray:
        """Return the minimum of each group, NaN if it has one; the largest value if the group is empty."""
        return wrap(self._way.combined(self._checked(values), "min"))

    def max(self, values: ArrayLike) -> DistArray:
        """Return the maximum of each group, NaN if it has one; the smallest value if the group is empty."""
        return wrap(self._way.combined(self._checked(values), "max"))

    def any(self, values: ArrayLike) -> DistArray:
        """Return whether any value in each group is nonzero."""
        return wrap(self._way.combined(self._checked(values), "lor"))

    def all(self, values: ArrayLike) -> DistArray:
        """Return whether all values in each group are nonzero."""
        return wrap(self._way.combined(self._checked(values), "land"))

    def mean(self, values: ArrayLike) -> DistArray:
        """Return the mean of each group, with the dtype of ``np.mean``; NaN for an empty group.

        For a sparse matrix the result is sparse; an empty group has an empty row.
        """
        node = expression_of(values)
        if node.sparse:
            total: Any = self._sparse_sum(astype(node, mean_dtype(node.dtype)))
            counts: Any = np.maximum(self.count(), 1)
            return handle_of(total * (1.0 / counts).astype(total.dtype)[:, None])
        node = self._checked(values)
        return wrap(astype(self._mean(node), mean_dtype(node.dtype)))

    def var(self, values: ArrayLike, *, ddof: float = 0, correction: float | None = None) -> DistArray:
        """Return the variance of the values in each group.

        Parameters
        ----------
        ddof, correction
            Delta degrees of freedom: the divisor is the number of rows minus this. Two names for one
            argument.
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

    def std(self, values: ArrayLike, *, ddof: float = 0, correction: float | None = None) -> DistArray:
        """Return the standard deviation of the values in each group, the square root of ``var``."""
        return handle_of(np.sqrt(self.var(values, ddof=ddof, correction=correction)))

    def first(self, values: ArrayLike) -> DistArray:
        """Return the first value in each group, NaN included; for an empty group NaN, or 0 for integers."""
        return self._at(self._checked(values), self._place("min"))

    def last(self, values: ArrayLike) -> DistArray:
        """Return the last value in each group, NaN included; for an empty group NaN, or 0 for integers."""
        return self._at(self._checked(values), self._place("max"))

    def argmin(self, values: ArrayLike) -> DistArray:
        """Return the row of each group's minimum (ties: the first), or of its first NaN; -1 if empty."""
        return self._extreme(values, "min")

    def argmax(self, values: ArrayLike) -> DistArray:
        """Return the row of each group's maximum, with ties and NaN as in ``argmin``."""
        return self._extreme(values, "max")

    def cumcount(self) -> DistArray:
        """Return, for each row, the number of earlier rows in its group, int64."""
        ones = Broadcast(expression_of(np.asarray(1)), (self._rows,))
        return wrap(call(np.subtract, (self._running(ones, "plus"), 1))[0])

    def cumsum(self, values: ArrayLike) -> DistArray:
        """Return the cumulative sum within each group, with the dtype of ``np.cumsum``.

        Values are added in row order, so results are bit-identical however the array is split.

        Examples
        --------
        >>> import matnb as mn
        >>> mn.groupby(mn.asarray([3, 1, 3, 3])).cumsum(mn.asarray([1.0, 2.0, 4.0, 8.0])).compute()
        array([ 1.,  2.,  5., 13.])
        """
        return wrap(self._running(self._checked(values), "plus"))

    def cumprod(self, values: ArrayLike) -> DistArray:
        """Return the cumulative product within each group, with the dtype of ``np.cumprod``."""
        return wrap(self._running(self._checked(values), "times"))

    def cummin(self, values: ArrayLike) -> DistArray:
        """Return the running minimum within each group; NaN from its first NaN on."""
        return wrap(self._running(self._checked(values), "min"))

    def cummax(self, values: ArrayLike) -> DistArray:
        """Return the running maximum within each group; NaN from its first NaN on."""
        return wrap(self._running(self._checked(values), "max"))

    def median(self, values: ArrayLike) -> DistArray:
        """Return the median of each group, float64; NaN if the group is empty or has a NaN."""
        return self._by_column(values, lambda column: _quantile(self._way, column, None))

    def quantile(self, values: ArrayLike, q: float = 0.5) -> DistArray:
        """Return a quantile of each group, float64; NaN if the group is empty or has a NaN.

        Interpolated linearly between values, as by ``np.quantile``.

        Raises
        ------
        OptionError
            For a ``q`` that is not a number in [0, 1].
        """
        if isinstance(q, bool) or not isinstance(q, int | float | np.number) or not 0 <= q <= 1:
            raise OptionError(f"groupby: q={q!r}: give a number from 0 to 1")
        return self._by_column(values, lambda column: _quantile(self._way, column, float(q)))

    def nunique(self, values: ArrayLike) -> DistArray:
        """Return the number of distinct values in each group, not counting NaN, int64."""
        return self._by_column(values, lambda column: _num_distinct(self._way, column))

    def rank(self, values: ArrayLike, method: str = "average") -> DistArray:
        """Return the rank of each value within its group, starting at 1, float64; NaN for NaN.

        Parameters
        ----------
        method
            How ties are ranked: by the "average", "min" or "max" of their ranks, "first" in row order, or
            "dense", without gaps between the ranks of distinct values.

        Raises
        ------
        OptionError
            For another method.
        """
        if method not in _RANKS:
            raise OptionError(f"groupby: method={method!r}; {suggestion(method, _RANKS)}")
        return self._by_column(values, lambda column: _ranks(self._way, column, method))

    def transform(
        self, values: ArrayLike, function: str | Callable[[GroupBy, DistArray], DistArray]
    ) -> DistArray:
        """Return, for each row, its group's result: of a method given by name, or of a function.

        Parameters
        ----------
        function
            A name such as "mean", or a function such as ``lambda groups, values: groups.max(values) -
            groups.min(values)`` that returns one element, or row, per group or per row.

        Raises
        ------
        OptionError
            For a name that is not a method.
        ShapeError
            If the function returns neither.

        Examples
        --------
        >>> import matnb as mn
        >>> mn.groupby(mn.asarray([3, 1, 3])).transform(mn.asarray([1.0, 2.0, 5.0]), "mean").compute()
        array([3., 2., 3.])
        """
        given = wrap(self._checked(values))
        if isinstance(function, str):
            if function not in _METHODS:
                raise OptionError(f"groupby: transform({function!r}); {suggestion(function, _METHODS)}")
            found = getattr(self, function)(given)
        else:
            found = function(self, given)
        node = expression_of(found)
        is_running = isinstance(function, str) and function in _RUNNING
        if is_running or (node.shape[:1] == (self._rows,) and self.num_groups != self._rows):
            return wrap(node)
        if node.shape[:1] != (self.num_groups,):
            raise ShapeError(
                f"groupby: the function of transform gave shape {node.shape} for {self.num_groups} groups "
                f"and {self._rows} rows: give an element, or row, for each"
            )
        return wrap(self._way.spread(node))

    def nested(self, values: ArrayLike) -> Any:
        """Return the values of each group, in row order, as a segment of a :class:`matnb.nested.NestedArray`.

        Examples
        --------
        >>> import matnb as mn
        >>> mn.groupby(mn.asarray([3, 1, 3])).nested(mn.asarray([1.0, 2.0, 5.0])).tolist()
        [[2.0], [1.0, 5.0]]
        """
        return recorded(GroupBy.nested)(wrap(self._checked(values)), self._way)

    def _running(self, node: Expr, monoid: str) -> Expr:
        labels, length = self._way.numbered()
        given = {"b": np.uint8, "e": np.float32}.get(
            node.dtype.char if node.dtype.kind == "f" else node.dtype.kind
        )
        if node.dtype.kind == "b" and monoid in ("plus", "times"):
            given = np.int64
        found: Expr = Running(node if given is None else astype(node, given), labels, length, monoid)
        is_kept = given is not None and given != np.int64
        return astype(found, node.dtype) if is_kept else found

    def _place(self, monoid: str) -> Expr:
        # The first or last row of each group; of none a number that is not a row's.
        rows = Create(Arange(0, 1, self._rows, np.dtype(np.int64)))
        return self._way.combined(rows, monoid)

    def _at(self, node: Expr, places: Expr) -> DistArray:
        if not self._rows:
            return wrap(astype(Broadcast(_number(False), (self.num_groups, *node.shape[1:])), node.dtype))
        (found,) = call(np.maximum, (call(np.minimum, (places, self._rows - 1))[0], 0))
        picked = Pick(node, (found,), 0)
        (has,) = call(np.equal, (found, places))
        empty = literal(np.nan if node.dtype.kind in "fc" else 0, node.dtype)
        return wrap(choose(self._beside(has, node), picked, empty))

    def _extreme(self, values: object, monoid: str) -> DistArray:
        # Where a row's value is that of its group, or both are NaN, and the first of those rows.
        node = self._checked(values)
        best = self._way.spread(self._way.combined(node, monoid))
        (is_best,) = call(np.equal, (node, best))
        if node.dtype.kind == "f":
            (is_nan,) = call(np.not_equal, (node, node))
            (is_best,) = call(np.logical_or, (is_best, is_nan))
        rows: Expr = Create(Arange(0, 1, self._rows, np.dtype(np.int64)))
        if node.ndim == 2:
            rows = Broadcast(Index(rows, (slice(0, self._rows, 1), None)), node.shape)
        none = literal(self._rows, np.dtype(np.int64))
        found = self._way.combined(choose(is_best, rows, none), "min")
        (is_row,) = call(np.less, (found, none))
        return wrap(choose(is_row, found, literal(-1, np.dtype(np.int64))))

    def _by_column(self, values: object, function: Callable[[Expr], DistArray]) -> DistArray:
        node = self._checked(values)
        if node.dtype.kind == "c":
            raise DTypeError(f"groupby: values of dtype {node.dtype} have no order: give real numbers")
        if node.ndim == 1:
            return function(node)
        columns = [Index(node, (slice(0, node.shape[0], 1), place)) for place in range(node.shape[1])]
        return recorded(np.stack)([function(one) for one in columns], axis=1)

    def _checked(self, values: object) -> Expr:
        node = dense_of(expression_of(values))
        if node.ndim not in (1, 2) or node.shape[0] != self._rows:
            raise ShapeError(
                f"values have shape {node.shape} for {self._rows} keys: give one value or row for each key"
            )
        return node

    def _sparse_sum(self, node: Expr) -> DistArray:
        if node.shape[0] != self._rows:
            raise ShapeError(
                f"values have shape {node.shape} for {self._rows} keys: give one row for each key"
            )
        element = np.add.reduce(np.empty(0, node.dtype)).dtype if node.dtype.kind in "biu" else node.dtype
        labels, length = self._way.numbered()
        labels = astype(labels, np.int64)  # below 0 an index would go back from the end
        labels = choose(call(np.less, (labels, 0))[0], literal(length, labels.dtype), labels)
        ones: Any = DistArray(Create(Eye(length, length, 0, element)))[DistArray(labels)]
        chosen = self._way.chosen(expression_of(ones.T @ DistArray(astype(node, element))))
        return wrap(chosen)

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


_RUNNING = ("cumsum", "cumprod", "cummin", "cummax", "rank")
_METHODS = (
    *("sum", "prod", "min", "max", "any", "all", "mean", "var", "std", "count", "first", "last", "median"),
    *("nunique", "argmin", "argmax", *_RUNNING),
)
_RANKS = ("average", "min", "max", "first", "dense")


# What follows from the order of values within their groups: rows are sorted by their values, and then by
# their groups, which leaves equal ones in the order of rows.


class _SortedGroups(NamedTuple):
    # Rows in the order of groups, and values within them.
    order: Any  # the rows
    values: Any
    starts: Any  # of each group, where its rows begin
    counts: Any
    is_new: Any  # 1 where a value is another one, or of another group, than the one before it


def _ordered(way: Way, column: Expr) -> _SortedGroups:
    labels, values = DistArray(way.numbered()[0]), DistArray(column)
    by_value: Any = np.argsort(values, kind="stable")
    by_group: Any = np.argsort(labels[by_value], kind="stable")
    order = by_value[by_group]
    counts = DistArray(way.counted())
    starts: Any = np.cumsum(counts) - counts
    ordered, groups = values[order], labels[order]
    differs = (ordered[1:] != ordered[:-1]) | (groups[1:] != groups[:-1])
    # As wide numbers, which are cut as rows are: a long array of booleans may be one block.
    is_new: Any = np.concatenate([_one(), differs.astype(np.int64)])
    return _SortedGroups(order, ordered, starts, counts, is_new)


def _one() -> DistArray:
    return DistArray(expression_of(np.ones(1, np.int64)))


def _quantile(way: Way, column: Expr, q: float | None) -> DistArray:
    # Without a q the median, which is the mean of two values in the middle: of inf and inf it is inf.
    if not column.shape[0]:
        return wrap(Broadcast(expression_of(np.asarray(np.nan)), (way.num_groups,)))
    rows = _ordered(way, column)
    place: Any = np.maximum(rows.counts - 1, 0) * (0.5 if q is None else q)
    low: Any = np.floor(place)
    first, most = low.astype(np.int64), len(rows.order) - 1
    below = rows.values[np.minimum(rows.starts + first, most)].astype(np.float64)
    following = np.minimum(first + 1, np.maximum(rows.counts - 1, 0))
    above = rows.values[np.minimum(rows.starts + following, most)].astype(np.float64)
    # NaN is ordered last.
    last = rows.values[np.minimum(rows.starts + np.maximum(rows.counts - 1, 0), most)].astype(np.float64)
    share = place - low
    between = (below + above) / 2 if q is None else below + (above - below) * share
    has_none: Any = (rows.counts == 0) | np.isnan(last)
    return handle_of(np.where(has_none, np.nan, np.where(share == 0, below, between)))


def _num_distinct(way: Way, column: Expr) -> DistArray:
    if not column.shape[0]:
        return wrap(Broadcast(expression_of(np.asarray(0)), (way.num_groups,)))
    rows = _ordered(way, column)
    is_counted: Any = np.where(rows.values == rows.values, rows.is_new, 0)
    before: Any = np.concatenate([DistArray(expression_of(np.zeros(1, np.int64))), np.cumsum(is_counted)])
    return handle_of(before[rows.starts + rows.counts] - before[rows.starts])


def _ranks(way: Way, column: Expr, method: str) -> DistArray:
    if not column.shape[0]:
        return wrap(astype(column, np.float64))
    rows = _ordered(way, column)
    count = len(rows.order)
    places: Any = DistArray(Create(Arange(0, 1, count, np.dtype(np.int64))))
    starts: Any = DistArray(way.spread(rows.starts.expression))[rows.order]
    if method == "first":
        found = places - starts + 1
    elif method == "dense":
        numbers: Any = np.cumsum(rows.is_new)
        found = numbers - numbers[starts] + 1
    else:
        first: Any = np.maximum.accumulate(np.where(rows.is_new != 0, places, 0))
        ends: Any = np.concatenate([rows.is_new[1:], _one()])
        last: Any = np.minimum.accumulate(np.where(ends != 0, places, count)[::-1])[::-1]
        sides = {"min": (first, first), "max": (last, last), "average": (first, last)}[method]
        found = (sides[0] + sides[1]) / 2 - starts + 1
    found = np.where(rows.values == rows.values, found, np.nan).astype(np.float64)
    # To each row from its place in the order.
    inverse = Scatter(places.expression, rows.order.expression, count, "plus")
    return handle_of(found[DistArray(inverse)])


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
        """The number of groups."""
        return self.length if self.present is None else self.present.shape[0]

    def combined(self, values: Expr, monoid: str) -> Expr:
        """Return the values, or rows, of each group combined."""
        return self.chosen(Scatter(values, self.labels, self.length, monoid))

    def counted(self) -> Expr:
        """Return how many rows each group has."""
        return self.chosen(self.counts.expression)

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

    def chosen(self, node: Expr) -> Expr:
        """Return of what there is for each label what there is for each group."""
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

    def chosen(self, node: Expr) -> Expr:
        """Return of what there is for each number what there is for each group: the same."""
        return node


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


def labeled(labels: Expr, length: int) -> ByLabel:
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


def scatter_reduce(values: ArrayLike, labels: object, length: int, monoid: str = "plus") -> DistArray:
    """Return the reduction, for each label, of the values or rows with that label.

    Parameters
    ----------
    values
        Dense: n numbers, or a matrix of n rows.
    labels
        n integers from 0 to ``length`` - 1.
    length
        Length of the first axis of the result.
    monoid
        "plus", "times", "min", "max", "lor" or "land" (logical or, and), as in GraphBLAS.

    Returns
    -------
    DistArray
        ``length`` numbers or rows, dense, with the dtype of NumPy's reduction over the values. A label that
        does not occur gets the identity of the monoid: 0 for "plus", inf for the "min" of floats.

        Values are added in order within each block, then block by block, so the last bits of a float sum can
        depend on how the array is split.

    Raises
    ------
    ShapeError
        If there is not one label per value or row.
    OptionError
        For an unknown monoid, or a length that is not a whole number.
    DTypeError
        For "min" or "max" of complex numbers, and for extended precision.
    IndexingError
        If labels are not integers; and, when computed, if a label is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> import matnb as mn
    >>> mn.scatter_reduce(np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), 4).compute()
    array([2., 0., 5., 0.])
    """
    if monoid not in MONOIDS:
        raise OptionError(f"no monoid {monoid!r}; {suggestion(monoid, MONOIDS)}")
    try:
        count = operator.index(length)
    except TypeError:
        raise OptionError(f"scatter_reduce: length={length!r}: give an integer") from None
    if count < 0:
        raise ShapeError(f"scatter_reduce: length={count} cannot be negative")
    return wrap(Scatter(expression_of(values), expression_of(labels), count, monoid))
