"""The distinct elements of an array: how many there are is known only when they are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import ClassVar

import numpy as np

from matnb.blocks.grid import Grid
from matnb.blocks.kernels.sorting import uniques
from matnb.blocks.kernels.sorting.uniques import FIELDS, packed_length
from matnb.blocks.layout import Layout, spread
from matnb.expr.nodes import Expr
from matnb.ops.ordering import PartsWriter, write_arg_sorted, write_sorted
from matnb.ops.ranking import sorting_layouts
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import COUNT, PICK, SORTING, Kind
from matnb.program.operators import Join, Run
from matnb.program.plan import Workers
from matnb.program.writer import PlanWriter

_DISTINCT = Kind("distinct", shown=SORTING)


@dataclass(frozen=True, eq=False, repr=False)
class Distinct(Expr):
    """What is distinct in each part of a 1-D array in ascending order, packed as bytes.

    The parts end at ``cuts`` of the order. An element that is equal to the last one of the part before is not
    in the next one. Of NaN there is one where they are ``equal_nan``. ``starts`` tells whether how many
    elements come before each is packed too, ``places`` whether the first place of each in the array is.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    cuts: tuple[int, ...]
    equal_nan: bool
    starts: bool
    places: bool

    def __post_init__(self) -> None:
        self.settle((self.ends[-1],), np.dtype(np.uint8), False, self.operand)

    @property
    def ends(self) -> tuple[int, ...]:
        """Where the bytes of the parts end, 0 first."""
        return ends_of(self.cuts, self.operand.dtype, self.starts, self.places)


@dataclass(frozen=True, eq=False, repr=False)
class CountDistinct(Expr):
    """How many distinct elements each part has, packed as bytes that end at ``ends``."""

    plain: ClassVar[bool] = True
    operand: Expr
    ends: tuple[int, ...]

    def __post_init__(self) -> None:
        self.settle((len(self.ends) - 1,), np.dtype(np.int64), False, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class DistinctField(Expr):
    """The values, starts or places of what is distinct, packed as bytes; the rest is as of :class:`Distinct`.

    ``counts`` are those of the parts, and ``element`` the dtype of the values.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    field: str
    counts: tuple[int, ...]
    cuts: tuple[int, ...]
    element: np.dtype
    starts: bool
    places: bool

    def __post_init__(self) -> None:
        assert self.field in FIELDS, "one of what is packed"
        dtype = self.element if self.field == "values" else np.dtype(np.int64)
        self.settle((sum(self.counts),), dtype, False, self.operand)

    @property
    def ends(self) -> tuple[int, ...]:
        """Where the bytes of the parts end, 0 first."""
        return ends_of(self.cuts, self.element, self.starts, self.places)


def ends_of(cuts: tuple[int, ...], dtype: np.dtype, starts: bool, places: bool) -> tuple[int, ...]:
    """Return where the bytes of parts end, 0 first, that have up to so many distinct elements."""
    lengths = (packed_length(stop - start, dtype, starts, places) for start, stop in pairwise(cuts))
    return (0, *accumulate(lengths))


@means(Distinct)
def _(node: Distinct, operands: Sequence[Value]) -> Value:
    """Return the bytes that pack what is distinct in each part: a count, then values, starts and places."""
    values = dense(operands[0])
    places = np.argsort(values, kind="stable")
    ordered = values[places]
    # All NaN are equal here, or none is.
    missing = ordered != ordered
    is_new = np.append(True, ordered[1:] != ordered[:-1]) if ordered.size else missing
    if node.equal_nan:
        is_new &= ~(missing & np.append(False, missing[:-1]))
    found = np.zeros(node.shape, np.uint8)
    for (start, stop), (begin, end) in zip(pairwise(node.cuts), pairwise(node.ends), strict=True):
        firsts = start + np.flatnonzero(is_new[start:stop])
        part, room = found[begin:end], stop - start
        part[:8].view(np.int64)[0] = firsts.size
        part[8 : 8 + firsts.size * values.itemsize] = ordered[firsts].view(np.uint8)
        behind = end - begin - 8 * room * (node.starts + node.places)
        for is_there, numbers in ((node.starts, firsts), (node.places, places[firsts])):
            if is_there:
                part[behind : behind + 8 * firsts.size] = numbers.astype(np.int64).view(np.uint8)
                behind += 8 * room
    return found


@means(CountDistinct)
def _(node: CountDistinct, operands: Sequence[Value]) -> Value:
    """Return how many distinct elements each part has."""
    packed = dense(operands[0])
    return np.array([packed[begin : begin + 8].view(np.int64)[0] for begin in node.ends[:-1]], np.int64)


@means(DistinctField)
def _(node: DistinctField, operands: Sequence[Value]) -> Value:
    """Return the values, starts or places of what is distinct."""
    packed, found = dense(operands[0]), []
    lengths = [stop - start for start, stop in pairwise(node.cuts)]
    for (begin, end), room, count in zip(pairwise(node.ends), lengths, node.counts, strict=True):
        at = begin + 8
        if node.field != "values":
            at = end - 8 * room * (2 if node.field == "starts" and node.places else 1)
        found.append(packed[at : at + count * node.dtype.itemsize].view(node.dtype))
    return np.concatenate([np.empty(0, node.dtype), *found])


# Distinct elements: blocks are sorted where they are, and parts of the order keep the first of equals.


@lowers(Distinct)
def _(node: Distinct, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that find what is distinct in each part of the order."""
    domain, _ = sorting_layouts(node.operand, writer, workers)
    layout = Layout(Grid((node.ends,)), spread(len(node.ends) - 1, workers.numbers))
    if node.places:
        places, values = write_arg_sorted(node, node.operand, domain, writer)
        blocks = [values, places]
    else:
        blocks = [write_sorted(node, node.operand, domain, writer)]
    parts = PartsWriter(node, node.operand, blocks[0], node.cuts, writer, uniques.piece_and_last)
    for block in writer.each_block(node, layout, _DISTINCT):
        number = block.number
        parameters = (number, node.cuts[number], node.equal_nan, node.starts, node.places)
        parts.merge(block, uniques.distinct, blocks, parameters, reads_splits=True)
        block.num_bytes = node.ends[number + 1] - node.ends[number]


@lowers(CountDistinct)
def _(node: CountDistinct, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that tell how many distinct elements each part has."""
    parts = list(pairwise(node.ends))
    owners = tuple(writer.home_of(node.operand, (part,)) for part in parts)
    layout = Layout(Grid((tuple(range(len(node.ends))),)), owners)
    for block in writer.each_block(node, layout, COUNT, "what is distinct"):
        part = writer.block(node.operand, (parts[block.number],), block.owner)
        block.do(Run(uniques.count_of), block.read(part))


@lowers(DistinctField)
def _(node: DistinctField, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that pick what is distinct out of each part that has some."""
    parts = [
        (part, stop - start, count)
        for part, (start, stop), count in zip(
            pairwise(node.ends), pairwise(node.cuts), node.counts, strict=True
        )
        if count
    ]
    owners = [writer.home_of(node.operand, (part,)) for part, _, _ in parts] or [workers.numbers[0]]
    cuts = (0, *accumulate(count for _, _, count in parts)) if parts else (0, 0)
    for block in writer.each_block(node, Layout(Grid((cuts,)), tuple(owners)), PICK, node.field):
        if not parts:
            block.do(Join((), (0,), node.dtype, False))
            continue
        part, length, _ = parts[block.number]
        options = (node.field, length, node.element, node.starts, node.places)
        value = block.read(writer.block(node.operand, (part,), block.owner))
        block.do(Run(uniques.field_of, options), value)
