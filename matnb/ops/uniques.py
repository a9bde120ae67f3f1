"""The distinct elements of an array: how many there are is known only when they are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import ClassVar

import numpy as np

from matnb.blocks.grid import Grid
from matnb.blocks.kernels import uniques
from matnb.blocks.kernels.uniques import FIELDS, packed_length
from matnb.blocks.layout import Layout, spread
from matnb.expr.nodes import Expr
from matnb.ops.ordering import PartsWriter, write_arg_sorted, write_sorted
from matnb.ops.ranking import sorting_layouts
from matnb.ops.registry import Value, base_of, dense, lowers, means
from matnb.program.operators import Join, Run
from matnb.program.plan import Workers
from matnb.program.writer import PlanWriter, TaskWriter


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
        self._settle((self.ends[-1],), np.dtype(np.uint8), False, self.operand)

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
        self._settle((len(self.ends) - 1,), np.dtype(np.int64), False, self.operand)


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
        self._settle((sum(self.counts),), dtype, False, self.operand)

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
    count = len(node.cuts) - 1
    layout = Layout(Grid((node.cuts,)), spread(count, workers.numbers))
    base = base_of(node, writer, domain, layout)
    if node.places:
        places, values = write_arg_sorted(node.operand, domain, base, writer)
        blocks = [values, places]
    else:
        values = write_sorted(node.operand, domain, base, writer)
        blocks = [values]
    parts = PartsWriter(node.operand, values, layout, base, writer, uniques.piece_and_last)
    keys = []
    for number in range(count):
        parameters = (number, node.cuts[number], node.equal_nan, node.starts, node.places)
        size = node.ends[number + 1] - node.ends[number]
        keys.append(parts.merge(number, uniques.distinct, blocks, parameters, size, reads_splits=True))
    writer.finish(node, Layout(Grid((node.ends,)), layout.owners), keys, "distinct", "")


@lowers(CountDistinct)
def _(node: CountDistinct, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that tell how many distinct elements each part has."""
    base = base_of(node, writer)
    keys, owners = [], []
    for number, part in enumerate(pairwise(node.ends)):
        task, owner = TaskWriter(), writer.home_of(node.operand, (part,))
        task.do(Run(uniques.count_of), task.read(writer.block(node.operand, (part,), owner)))
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "count"), 8))
        owners.append(owner)
    layout = Layout(Grid((tuple(range(len(keys) + 1)),)), tuple(owners))
    writer.finish(node, layout, keys, "count", "what is distinct")


@lowers(DistinctField)
def _(node: DistinctField, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that pick what is distinct out of each part that has some."""
    base = base_of(node, writer)
    keys, owners, cuts = [], [], [0]
    for number, (part, count) in enumerate(zip(pairwise(node.ends), node.counts, strict=True)):
        if not count:
            continue
        task, owner = TaskWriter(), writer.home_of(node.operand, (part,))
        length = node.cuts[number + 1] - node.cuts[number]
        options = (node.field, length, node.element, node.starts, node.places)
        task.do(Run(uniques.field_of, options), task.read(writer.block(node.operand, (part,), owner)))
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "pick"), count * node.dtype.itemsize))
        owners.append(owner)
        cuts.append(cuts[-1] + count)
    if not keys:
        task = TaskWriter()
        task.do(Join((), (0,), node.dtype, False))
        owners, cuts = [workers.numbers[0]], [0, 0]
        keys = [writer.add(task.task(f"{base}-0", owners[0], "pick"), 0)]
    writer.finish(node, Layout(Grid((tuple(cuts),)), tuple(owners)), keys, "pick", node.field)
