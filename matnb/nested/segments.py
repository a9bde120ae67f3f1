"""Segments of a vector: what is left of each, running values, orders, and a value of each spread over it.

Offsets are 0 and where each segment ends. Where exactly segments begin is data, of which a plan knows some:
knots. With them each block of results reads the values of its own segments and hardly any others, however
values are cut; a segment that is long enough to lie in several blocks has knots at both ends.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from matnb.blocks.grid import Grid, all_of
from matnb.blocks.kernels.reductions.deviations import NODE, num_deviation_nodes
from matnb.blocks.kernels.reductions.reductions import accumulator_dtype
from matnb.blocks.layout import Layout
from matnb.blocks.semiring import LAND, LOR, MAX, MIN, PLUS, TIMES
from matnb.blocks.sums import num_nodes, sums_as_tree
from matnb.expr.digest import digest_of
from matnb.expr.nodes import Expr
from matnb.nested.kernels import segments as kernels
from matnb.nested.kernels.segment_folds import SegmentFold, folded, folded_share
from matnb.nested.kernels.segment_orders import TILE_BYTES
from matnb.ops.maps import called
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import JOINING, REDUCTIONS, SCAN, SORT, Kind
from matnb.program.operators import Run
from matnb.program.place import laid_out
from matnb.program.plan import Slot, Workers
from matnb.program.writer import PlanWriter, TaskWriter

_SEGMENTS = Kind("segments", shown=REDUCTIONS)
_SPREAD = Kind("spread", shown=JOINING)

_MOST_MOVED = 8  # of a block's values one in so many may be read by another block's results
Cuts = tuple[int, ...]
Ranks = tuple[int, ...]
OPERATIONS = {"sum": PLUS, "prod": TIMES, "min": MIN, "max": MAX, "any": LOR, "all": LAND}
SCANS = {
    "add": PLUS,
    "multiply": TIMES,
    "minimum": MIN,
    "maximum": MAX,
    "logical_or": LOR,
    "logical_and": LAND,
}
_INT64 = np.dtype(np.int64)


@dataclass(frozen=True)
class Knots:
    """Places that are known: segment ``segments[i]`` begins with value ``values[i]``.

    Both ascend from 0 to the number of segments and of values.
    """

    segments: Cuts
    values: Cuts

    @cached_property
    def digest(self) -> bytes:
        """What names it in the digests of expressions: every operation on segments has some hundred knots."""
        return digest_of(*(np.array(one, "<i8").tobytes() for one in (self.segments, self.values)))

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def num_segments(self) -> int:
        """How many segments there are."""
        return self.segments[-1]

    @property
    def num_values(self) -> int:
        """How many values they have together."""
        return self.values[-1]

    def begins_at(self, place: int) -> bool:
        """Tell whether it is known that a segment begins with a value, or ends before it."""
        return self.values[bisect_left(self.values, place)] == place

    def around(self, start: int, stop: int) -> tuple[int, int]:
        """Return a range of segments that has all those which meet a range of values."""
        first = bisect_left(self.values, start) - (not self.begins_at(start))
        last = min(len(self.values) - 1, bisect_right(self.values, stop - 1))
        return self.segments[first], self.segments[last]

    def with_places(self, segments: Cuts, values: Cuts) -> Knots:
        """Return these and others, which ascend too."""
        known = {
            **dict(zip(self.segments, self.values, strict=True)),
            **dict(zip(segments, values, strict=True)),
        }
        return Knots(tuple(sorted(known)), tuple(known[one] for one in sorted(known)))

    def cuts_near(self, cuts: Cuts) -> Cuts:
        """Return by number the knots next to cuts of the values, of long segments cut there both ends."""
        chosen = {0, len(self.values) - 1}
        share = self.num_values // (len(cuts) - 1)
        for cut in cuts[1:-1]:
            after = bisect_left(self.values, cut)
            before = after if self.values[after] == cut else after - 1
            is_one = self.segments[after] - self.segments[before] == 1
            if is_one and _MOST_MOVED * (self.values[after] - self.values[before]) > share:
                chosen |= {before, after}
            else:
                is_nearer = cut - self.values[before] <= self.values[after] - cut
                chosen.add(before if is_nearer else after)
        return tuple(sorted(chosen))


@dataclass(frozen=True, eq=False, repr=False)
class SegmentReduce(Expr):
    """What an operation leaves of each segment's values; of an empty one the operation's identity.

    ``operation`` is one of ``OPERATIONS``; or "argmin" or "argmax", which give places within the segment and
    -1 for an empty one; or "deviation", the sum of squared distances from the segment's mean, of real values
    to float64. With ``fold`` it reduces functions of values and of what ``inputs`` have for them.
    """

    plain: ClassVar[bool] = True
    values: Expr
    offsets: Expr
    knots: Knots
    operation: str
    element: np.dtype
    inputs: tuple[Expr, ...] = ()
    fold: SegmentFold | None = None

    def __post_init__(self) -> None:
        _check(self.values, self.offsets, self.knots)
        operands = (self.values, self.offsets, *self.inputs)
        self.settle((self.knots.num_segments,), self.element, False, *operands)

    @property
    def identity(self) -> np.generic:
        """What is left of an empty segment."""
        if self.operation in kernels.EXTREMES:
            return np.int64(-1)
        if self.operation == "deviation":
            return np.float64(0)
        return OPERATIONS[self.operation].identity(self.element)

    @property
    def reduced_dtype(self) -> np.dtype:
        """The dtype of what is reduced."""
        return self.values.dtype if self.fold is None else self.fold.dtype

    @property
    def is_product(self) -> bool:
        """Whether it is a sparse matrix, whose rows are the segments, times a vector."""
        if self.fold is None or self.operation != "sum":
            return False
        kinds = sorted(kind for kind, _ in self.fold.operands)
        names = [link.name for link in self.fold.links if link.name != "astype"]
        return names == ["multiply"] and kinds in (["picked", "values"], ["placed", "values"])

    @property
    def words(self) -> str:
        """What it does, for a user."""
        if self.is_product:
            return "A @ x, the product of a sparse matrix and a vector: sum of segments, in tiles"
        if self.fold is None:
            return self.operation
        return " ".join([*(link.name for link in self.fold.links), "and", self.operation, "in tiles"])

    def _text(self, operands: Sequence[str]) -> str:
        return f"{self.words if self.fold else self.operation} of segments({', '.join(operands)})"


@dataclass(frozen=True, eq=False, repr=False)
class SegmentScan(Expr):
    """What a ufunc makes of the values of a segment up to each one; or before each, from the identity.

    Those of floats are added block by block where ``is_stable`` is false; else in the order of values, one
    block after the other, with the same bits for any cuts.
    """

    plain: ClassVar[bool] = True
    values: Expr
    offsets: Expr
    knots: Knots
    ufunc: str
    is_exclusive: bool
    is_stable: bool
    element: np.dtype

    def __post_init__(self) -> None:
        _check(self.values, self.offsets, self.knots)
        self.settle(self.values.shape, self.element, False, self.values, self.offsets)

    def _text(self, operands: Sequence[str]) -> str:
        return f"{self.ufunc} along segments({', '.join(operands)})"


@dataclass(frozen=True, eq=False, repr=False)
class SegmentOrder(Expr):
    """The "values" of each segment in ascending order, NaN last; or their "places" or "ranks" within it."""

    plain: ClassVar[bool] = True
    values: Expr
    offsets: Expr
    knots: Knots
    wanted: str

    def __post_init__(self) -> None:
        _check(self.values, self.offsets, self.knots)
        dtype = self.values.dtype if self.wanted == "values" else _INT64
        self.settle(self.values.shape, dtype, False, self.values, self.offsets)

    def _text(self, operands: Sequence[str]) -> str:
        return f"sorted segments({', '.join(operands)}, {self.wanted})"


@dataclass(frozen=True, eq=False, repr=False)
class SegmentSpread(Expr):
    """A number of each segment, given to each of its values; cut at ``cuts``, with ``ranks`` as of Regrid."""

    plain: ClassVar[bool] = True
    numbers: Expr
    offsets: Expr
    knots: Knots
    cuts: Cuts
    ranks: Ranks = ()

    def __post_init__(self) -> None:
        assert self.numbers.shape == (self.knots.num_segments,), "a number a segment"
        self.settle((self.knots.num_values,), self.numbers.dtype, False, self.numbers, self.offsets)

    def _text(self, operands: Sequence[str]) -> str:
        return f"spread over segments({', '.join(operands)})"


@dataclass(frozen=True, eq=False, repr=False)
class SegmentPlaces(Expr):
    """Where within its segment each value is, from 0; cut at ``cuts``, with ``ranks`` as of Regrid."""

    plain: ClassVar[bool] = True
    offsets: Expr
    knots: Knots
    cuts: Cuts
    ranks: Ranks = ()

    def __post_init__(self) -> None:
        self.settle((self.knots.num_values,), _INT64, False, self.offsets)

    def _text(self, operands: Sequence[str]) -> str:
        return f"places within segments({', '.join(operands)})"


def _check(values: Expr, offsets: Expr, knots: Knots) -> None:
    assert values.shape == (knots.num_values,), "the values of all segments"
    assert offsets.shape == (knots.num_segments + 1,), "where each begins, and the end"


def segments_of(values: np.ndarray, offsets: np.ndarray) -> list[np.ndarray]:
    """Return the segments one by one, as the interpreter sees them."""
    return [values[begin:end] for begin, end in pairwise(offsets.tolist())]


@means(SegmentReduce)
def _(node: SegmentReduce, operands: Sequence[Value]) -> Value:
    """Return what is left of each segment."""
    found = np.full(node.shape, node.identity, node.dtype)
    values, offsets, *others = map(dense, operands)
    if node.fold is not None:
        values = _folded_values(node, [values, *others], offsets)
    for number, one in enumerate(segments_of(values, offsets)):
        if one.size and node.operation in ("sum", "prod"):
            found[number] = getattr(np, node.operation)(one, dtype=node.dtype)
        elif one.size and node.operation == "deviation":
            wide = one.astype(np.float64)
            found[number] = np.square(wide - wide.mean()).sum()
        elif one.size:
            found[number] = getattr(np, node.operation)(one)
    return found


def _folded_values(node: SegmentReduce, read: list[np.ndarray], offsets: np.ndarray) -> np.ndarray:
    # What functions make of all values.
    fold = node.fold
    assert fold is not None, "functions of values"
    counts = np.diff(offsets)
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
    values: list[np.ndarray] = []
    for kind, places in fold.operands:
        first = read[places[0]]
        if kind == "segments":
            first = np.repeat(first, counts)
        elif kind in ("picked", "placed"):
            first = first[read[places[1]] if kind == "picked" else within]
        values.append(first)
    for link in fold.links:
        values.append(called(link, [values[place] for place in link.arguments]))
    return values[-1]


@means(SegmentScan)
def _(node: SegmentScan, operands: Sequence[Value]) -> Value:
    """Return the running values of each segment."""
    ufunc, identity = getattr(np, node.ufunc), SCANS[node.ufunc].identity(node.dtype)
    found = np.empty(node.shape, node.dtype)
    place = 0
    for one in segments_of(*map(dense, operands)):
        run = one.astype(node.dtype)
        if node.is_exclusive:
            run = np.concatenate(([identity], run[:-1])) if run.size else run
        found[place : place + one.size] = ufunc.accumulate(run, dtype=node.dtype)
        place += one.size
    return found


@means(SegmentOrder)
def _(node: SegmentOrder, operands: Sequence[Value]) -> Value:
    """Return each segment in order, or the places or ranks of its values."""
    found = []
    for one in segments_of(*map(dense, operands)):
        places = np.argsort(one, kind="stable")
        if node.wanted == "ranks":
            found.append(np.argsort(places, kind="stable"))
        else:
            found.append(one[places] if node.wanted == "values" else places)
    return np.concatenate([np.empty(0, node.dtype), *found]).astype(node.dtype)


@means(SegmentSpread)
def _(node: SegmentSpread, operands: Sequence[Value]) -> Value:
    """Return the number of each value's segment."""
    numbers, offsets = map(dense, operands)
    parts = [np.full(end - begin, one) for one, (begin, end) in zip(numbers, pairwise(offsets), strict=True)]
    return np.concatenate([np.empty(0, node.dtype), *parts]).astype(node.dtype)


@means(SegmentPlaces)
def _(node: SegmentPlaces, operands: Sequence[Value]) -> Value:
    """Return the place of each value in its segment."""
    parts = [np.arange(end - begin) for begin, end in pairwise(dense(operands[0]))]
    return np.concatenate([np.empty(0, node.dtype), *parts]).astype(node.dtype)


# Tasks: results are cut next to where the values are, and each is made where most of its values are.

_HOLDING_BYTES = 8  # an offset
_TILE_BYTES = 2**20  # what functions make of a tile, on the way


def _home(node: Expr, start: int, stop: int, writer: PlanWriter) -> int:
    # The worker that has most of a range of a vector.
    layout = writer.registers[node].layout
    shares: dict[int, int] = {}
    for index in layout.grid.overlapping(((start, stop),)) if start < stop else ():
        low, high = layout.grid.region(index)[0]
        owner = layout.owners[layout.grid.number(index)]
        shares[owner] = shares.get(owner, 0) + min(high, stop) - max(low, start)
    return max(shares, key=shares.__getitem__) if shares else writer.home_of(node, ((start, stop),))


@lowers(SegmentReduce)
def _(node: SegmentReduce, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of reductions of segments, each whole in a block or put together from shares."""
    knots, values = node.knots, node.values
    chosen = knots.cuts_near(writer.registers[values].layout.grid.cuts[0])
    bounds = list(pairwise(knots.values[one] for one in chosen))
    grid = Grid((tuple(knots.segments[one] for one in chosen),))
    owners = tuple(_home(values, start, stop, writer) for start, stop in bounds)
    for block in writer.each_block(node, Layout(grid, owners), _SEGMENTS, node.words):
        (start, stop), (first, last) = bounds[block.number], block.region[0]
        options = (node.operation, node.dtype, node.identity)
        if last - first == 1 and len(_parts(values, start, stop, writer)) > 1:
            ranges = tuple(
                (low - start, high - start) for low, high, _ in _parts(values, start, stop, writer)
            )
            run = Run(kernels.of_shares, (*options, ranges))
            block.do(run, *map(block.read, _write_shares(node, start, stop, writer)))
            continue
        read = _read_values(node, (start, stop), (first, last), block, block.owner, writer)
        offsets = writer.read(block, node.offsets, ((first, last + 1),), block.owner)
        block.take(2 * _HOLDING_BYTES * (last - first))
        if node.operation == "deviation" and values.dtype.name not in ("float64", "float32"):
            block.take(2 * _HOLDING_BYTES * (last - first) + _HOLDING_BYTES * (stop - start))
        run = Run(kernels.reduced, (*options, start, stop))
        if node.fold is not None:
            run = Run(folded, (node.fold, *options, start, stop))
            block.take(2 * _HOLDING_BYTES * (last - first) + _TILE_BYTES)
        block.do(run, *read, offsets)


def _read_values(
    node: SegmentReduce,
    part: tuple[int, int],
    segments: tuple[int, int],
    task: TaskWriter,
    owner: int,
    writer: PlanWriter,
) -> list[tuple[bool, int]]:
    # Of what is reduced the part in some segments; nothing where that is empty.
    if part[0] == part[1]:
        return []
    if node.fold is None:
        return [writer.read(task, node.values, (part,), owner, alone=True)]
    found = []
    for span, one in zip(node.fold.spans, (node.values, *node.inputs), strict=True):
        if span == "whole":
            found.append(task.read(writer.block(one, all_of(one.shape), owner)))
        else:
            found.append(writer.read(task, one, (part if span == "values" else segments,), owner))
    return found


def _parts(node: Expr, start: int, stop: int, writer: PlanWriter) -> list[tuple[int, int, int]]:
    # Where the blocks of a vector cut a range of it, and their owners.
    layout = writer.registers[node].layout
    found = []
    for index in layout.grid.overlapping(((start, stop),)) if start < stop else ():
        low, high = layout.grid.region(index)[0]
        found.append((max(low, start), min(high, stop), layout.owners[layout.grid.number(index)]))
    return found


def _write_shares(node: SegmentReduce, start: int, stop: int, writer: PlanWriter) -> list[Slot]:
    # The shares of the parts of one segment; of extremes those, then their places.
    wide = node.reduced_dtype
    if node.operation not in kernels.EXTREMES:
        wide = accumulator_dtype(node.operation, node.dtype)
    segment = node.knots.segments[bisect_right(node.knots.values, start) - 1]
    in_order = node.operation == "prod" and node.dtype.kind in "fc"
    shares: list[Slot] = []
    places: list[Slot] = []
    for low, high, owner in _parts(node.values, start, stop, writer):
        task = TaskWriter()
        read = _read_values(node, (low, high), (segment, segment + 1), task, owner, writer)
        before = [task.read(shares[-1])] if in_order and shares else []
        options = (node.operation, node.dtype, low - start)
        run = Run(kernels.share, options)
        if node.fold is not None:
            run = Run(folded_share, (node.fold, *options, high - low))
            task.take(_TILE_BYTES)
        task.do(run, *read, *before)
        count = 1
        if sums_as_tree(node.operation, node.dtype):
            count = num_nodes(low - start, high - start)
        elif node.operation == "deviation":
            count = NODE * num_deviation_nodes(low - start, high - start)
        shares.append(writer.add(task, owner, _SEGMENTS, count * wide.itemsize, node))
        if node.operation in kernels.EXTREMES:
            task = TaskWriter()
            value = writer.read(task, node.values, ((low, high),), owner)
            task.do(Run(kernels.extreme_place, (node.operation, low - start)), value)
            places.append(writer.add(task, owner, _SEGMENTS, _INT64.itemsize, node))
    return shares + places


@lowers(SegmentScan)
def _(node: SegmentScan, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of scans of segments: every block stays where it is."""
    layout = writer.registers[node.values].layout
    identity = SCANS[node.ufunc].identity(node.dtype)
    options = (node.ufunc, node.dtype, identity, node.is_exclusive)
    is_exact = node.dtype.kind in "biu" or node.ufunc in ("minimum", "maximum")
    in_order = (node.is_stable or node.ufunc == "multiply") and not is_exact
    before = {} if in_order else _before(node, layout, writer)
    slots: list[Slot] = []
    for block in writer.each_block(node, layout, SCAN, node.ufunc):
        (start, stop), number = block.region[0], block.number
        if in_order and number and not node.knots.begins_at(start):
            last, owner = TaskWriter(), layout.owners[number - 1]
            made = [last.read(slots[-1])]
            if node.is_exclusive:
                region = layout.grid.region((number - 1,))
                made.append(writer.read(last, node.values, region, owner))
            last.do(Run(kernels.last_of, (node.ufunc,)), *made)
            before[number] = writer.part_of(block, last, owner, SCAN, 2 * node.dtype.itemsize)
        slots.append(block.key)
        read = _read_with_offsets(node, start, stop, block, block.owner, writer)
        carry = [block.read(before[number])] if number in before else []
        block.take(block.num_bytes)
        block.do(Run(kernels.scanned, (*options, start, stop)), *read, *carry)


def _read_with_offsets(
    node: SegmentScan, start: int, stop: int, task: TaskWriter, owner: int, writer: PlanWriter
) -> list[tuple[bool, int]]:
    first, last = node.knots.around(start, stop)
    value = writer.read(task, node.values, ((start, stop),), owner)
    return [value, writer.read(task, node.offsets, ((first, last + 1),), owner)]


def _before(node: SegmentScan, layout: Layout, writer: PlanWriter) -> dict[int, Slot]:
    # What is carried into each block that may begin within a segment.
    found: dict[int, Slot] = {}
    size = 2 * node.dtype.itemsize
    places = list(zip(layout.grid.regions(), layout.owners, strict=True))
    for number, (((start, stop),), owner) in enumerate(places[:-1]):
        if node.knots.begins_at(stop):
            continue
        task = TaskWriter()
        run = Run(kernels.total_of, (node.ufunc, node.dtype, start, stop))
        task.do(run, *_read_with_offsets(node, start, stop, task, owner, writer))
        total = writer.add(task, owner, SCAN, size, node)
        if number in found:
            task = TaskWriter()
            task.do(Run(kernels.carried, (node.ufunc,)), task.read(found[number]), task.read(total))
            total = writer.add(task, owner, SCAN, size, node)
        found[number + 1] = total
    return found


@lowers(SegmentOrder)
def _(node: SegmentOrder, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of sorting segments, each of which one task has whole."""
    knots, values = node.knots, node.values
    chosen = knots.cuts_near(writer.registers[values].layout.grid.cuts[0])
    cuts = tuple(sorted({knots.values[one] for one in chosen}))
    grid = Grid((cuts if len(cuts) > 1 else (0, 0),))
    layout = Layout(grid, tuple(_home(values, *region[0], writer) for region in grid.regions()))
    for block in writer.each_block(node, layout, SORT, f"{node.wanted} of segments"):
        start, stop = block.region[0]
        first, last = knots.around(start, stop)
        value = writer.read(block, values, ((start, stop),), block.owner, alone=True)
        offsets = writer.read(block, node.offsets, ((first, last + 1),), block.owner)
        # The longest segment once more, of places also keys; and where pieces begin.
        each = 1 + (values.dtype.itemsize if node.wanted == "values" else 2 * _HOLDING_BYTES)
        block.take(each * (stop - start) + 3 * _HOLDING_BYTES * (last - first) + TILE_BYTES)
        block.do(Run(kernels.ordered, (node.wanted, start, stop)), value, offsets)


@lowers(SegmentSpread)
def _(node: SegmentSpread, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that give each value its segment's number."""
    for block in writer.each_block(node, laid_out(Grid((node.cuts,)), workers, node.ranks), _SPREAD):
        start, stop = block.region[0]
        first, last = node.knots.around(start, stop)
        numbers = writer.read(block, node.numbers, ((first, last),), block.owner)
        offsets = writer.read(block, node.offsets, ((first, last + 1),), block.owner)
        block.do(Run(kernels.spread, (start, stop)), numbers, offsets)


@lowers(SegmentPlaces)
def _(node: SegmentPlaces, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that give each value its place in its segment."""
    layout = laid_out(Grid((node.cuts,)), workers, node.ranks)
    for block in writer.each_block(node, layout, _SPREAD, "places"):
        start, stop = block.region[0]
        first, last = node.knots.around(start, stop)
        offsets = writer.read(block, node.offsets, ((first, last + 1),), block.owner)
        block.do(Run(kernels.places_within, (start, stop)), offsets)
