"""Keys told apart: which rows have the same, found where the rows are, or by the keys' own places."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from matnb.blocks.creation import Arange
from matnb.expr.nodes import Create, Expr
from matnb.lazy.array import DistArray
from matnb.lazy.force import asked
from matnb.lazy.functions.searching import found_in
from matnb.lazy.functions.uniques import unique_of
from matnb.lazy.indexing.compress import parts_of, places_where
from matnb.lazy.ufuncs import astype, call
from matnb.ops.access import Scatter
from matnb.ops.counting_values import Count, Extent
from matnb.ops.grouping import Codes, Combined, Cuts, NumCodes, PartKeys, Picked
from matnb.ops.picking import Gather

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
        return Gather(groups, self.labels)

    def numbered(self) -> tuple[Expr, int]:
        """Return a whole number for each row, the same in a group, and a bound of them."""
        return self.labels, self.length

    def of_numbers(self, numbers: Expr, keys: Expr) -> Expr:
        """Return the keys of some of those numbers."""
        if self.present is None:
            return Gather(keys, numbers)
        return Gather(Scatter(keys, self.present.expression, self.length, "max"), numbers)

    def _chosen(self, node: Expr) -> Expr:
        return node if self.present is None else Gather(node, self.present.expression)


@dataclass(frozen=True, eq=False)
class ByPart:
    """Rows whose keys were told apart part by part, and then the keys of the parts.

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
        parts = groups if self.groups is None else Gather(groups, self.groups.expression)
        return Picked(parts, self.codes.expression, self.before, self.after)

    def numbered(self) -> tuple[Expr, int]:
        """Return a whole number for each row, the same in a group, and a bound of them."""
        codes = self.codes.expression
        if self.groups is None:
            return codes, self.num_groups
        return Picked(self.groups.expression, codes, self.before, self.after), self.num_groups

    def of_numbers(self, numbers: Expr, keys: Expr) -> Expr:
        """Return the keys of some of those numbers."""
        return Gather(keys, numbers)


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
