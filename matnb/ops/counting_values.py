"""Counts of values: between edges, or by label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from matnb.blocks.grid import all_of, whole
from matnb.blocks.kernels.reductions import counting_values as kernels
from matnb.blocks.layout import Layout
from matnb.errors import DTypeError, IndexingError, ShapeError
from matnb.expr.nodes import Expr
from matnb.ops.combining import write_combined
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import COMBINE, COUNT, REDUCTIONS, Kind
from matnb.program.operators import Accumulate, Run
from matnb.program.place import default_layout
from matnb.program.plan import Workers
from matnb.program.regions import region_size
from matnb.program.writer import PlanWriter, TaskWriter

_EDGES = Kind("edges", shown=REDUCTIONS)
_EXTENT = Kind("extent", shown=REDUCTIONS)


@dataclass(frozen=True, eq=False, repr=False)
class Extent(Expr):
    """The least and the greatest element, side by side; NaN where one is NaN."""

    operand: Expr

    def __post_init__(self) -> None:
        if not self.operand.size:
            raise ShapeError(f"the minimum of an array of shape {self.operand.shape}, which has no elements")
        self.settle((2,), self.operand.dtype, False, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class Edges(Expr):
    """The edges of ``count`` equal bins over an extent, as NumPy finds them."""

    extent: Expr
    count: int
    element: np.dtype

    def __post_init__(self) -> None:
        self.settle((self.count + 1,), self.element, False, self.extent)


@dataclass(frozen=True, eq=False, repr=False)
class Binned(Expr):
    """How many places have their values between edges, or the sums of their weights; dense.

    ``inputs`` are an array of values for each axis of the result, all of one shape, then the edges for each,
    then perhaps weights. ``is_equal`` tells of each axis whether its bins are equally wide.
    """

    inputs: tuple[Expr, ...]
    num_axes: int
    is_equal: tuple[bool, ...]
    element: np.dtype

    def __post_init__(self) -> None:
        edges = self.inputs[self.num_axes : 2 * self.num_axes]
        places = {one.shape for one in (*self.values, *self.weights)}
        if len(places) > 1:
            raise ShapeError(
                f"values and weights have shapes {sorted(places)}: give one weight for each value"
            )
        for one in self.values:
            if one.dtype.kind == "c":
                raise DTypeError(
                    f"values of dtype {one.dtype} have no order, so they cannot be binned: use "
                    "x.real and x.imag"
                )
        self.settle(tuple(one.size - 1 for one in edges), self.element, False, *self.inputs)

    @property
    def values(self) -> tuple[Expr, ...]:
        """The values, an array an axis."""
        return self.inputs[: self.num_axes]

    @property
    def edges(self) -> tuple[Expr, ...]:
        """The edges, for each axis."""
        return self.inputs[self.num_axes : 2 * self.num_axes]

    @property
    def weights(self) -> tuple[Expr, ...]:
        """The weights, if there are any."""
        return self.inputs[2 * self.num_axes :]


@dataclass(frozen=True, eq=False, repr=False)
class Count(Expr):
    """How often each whole number below ``length`` occurs; others are an error."""

    labels: Expr
    length: int

    def __post_init__(self) -> None:
        if self.labels.dtype.kind not in "biu":
            raise IndexingError(
                f"labels have dtype {self.labels.dtype}: give integers, or convert with astype"
            )
        self.settle((self.length,), np.dtype(np.int64), False, self.labels)


@means(Extent)
def _(node: Extent, operands: Sequence[Value]) -> Value:
    """Return the least and the greatest element."""
    array = dense(operands[0])
    return np.array([array.min(), array.max()], node.dtype)


@means(Edges)
def _(node: Edges, operands: Sequence[Value]) -> Value:
    """Return the edges of equal bins."""
    low, high = dense(operands[0])
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ShapeError(f"the values range from {low} to {high}, which is not finite: give range=")
    with np.errstate(all="ignore"):
        return np.histogram(np.empty(0, operands[0].dtype), node.count, (low, high))[1].astype(node.element)


@means(Binned)
def _(node: Binned, operands: Sequence[Value]) -> Value:
    """Return counts, or sums of weights, between edges."""
    arrays = [dense(one) for one in operands]
    keep = np.ones(arrays[0].shape, np.bool_)
    places = []
    for values, bounds in zip(arrays, arrays[node.num_axes : 2 * node.num_axes], strict=False):
        if (bounds[:-1] > bounds[1:]).any():
            raise ShapeError(f"the edges of bins must increase; got {bounds}")
        place = np.searchsorted(bounds, values, side="right") - 1
        place[values == bounds[-1:]] = bounds.size - 2
        keep &= (place >= 0) & (place < bounds.size - 1) & (values == values)
        places.append(place)
    longest = {"f": np.float64, "c": np.complex128, "u": np.uint64}.get(node.dtype.kind, np.int64)
    totals: np.ndarray = np.zeros(node.shape, longest)
    added = arrays[-1][keep].astype(totals.dtype) if node.weights else 1
    np.add.at(totals, tuple(place[keep] for place in places), added)
    return totals.astype(node.dtype)


@means(Count)
def _(node: Count, operands: Sequence[Value]) -> Value:
    """Return how often each whole number occurs."""
    labels = dense(operands[0])
    outside = np.flatnonzero((labels.ravel() < 0) | (labels.ravel() >= node.length))
    if outside.size:
        raise IndexingError(
            f"label {labels.flat[outside[0]]} at position {outside[0]}: labels go from 0 to {node.length - 1}"
        )
    counts = np.zeros(node.length, np.int64)
    np.add.at(counts, labels.ravel().astype(np.int64), 1)
    return counts


# Values counted: each block gives a share of all counts, where it is; the shares are added.


@lowers(Extent)
def _(node: Extent, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that find the least and the greatest element."""
    source = writer.registers[node.operand]
    writer.note_reuse(node.operand)
    for ends in writer.each_block(
        node, _in_one(node, source.layout.owners[0]), _EXTENT, "least and greatest"
    ):
        parts = []
        for key, owner in zip(source.keys, source.layout.owners, strict=True):
            task = TaskWriter()
            task.do(Run(kernels.extent), task.read(key))
            parts.append(ends.read(writer.part_of(ends, task, owner, _EXTENT, ends.num_bytes)))
        ends.do(Run(kernels.extent_of_all), *parts)
        ends.kind = COMBINE


@lowers(Edges)
def _(node: Edges, writer: PlanWriter, workers: Workers) -> None:
    """Write the task that makes edges."""
    home = writer.registers[node.extent].layout.owners[0]
    for block in writer.each_block(node, _in_one(node, home), _EDGES, f"of {node.count} equal bins"):
        extent = block.read(writer.block(node.extent, ((0, 2),), home))
        block.do(Run(kernels.edges_between, (node.count, node.element)), extent)


@lowers(Binned)
def _(node: Binned, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that count between edges."""
    heaviest = max((*node.values, *node.weights), key=writer.bytes_of)
    domain = writer.registers[heaviest].layout
    layout = default_layout(node, writer.bytes_of(node), workers)
    run = Run(kernels.binned, (node.num_axes, node.is_equal, node.dtype))
    shares = []
    for region, owner in zip(domain.grid.regions(), domain.owners, strict=True):
        task = TaskWriter()
        values = [writer.read(task, one, region, owner) for one in node.values]
        edges = [task.read(writer.block(one, all_of(one.shape), owner)) for one in node.edges]
        weights = [writer.read(task, one, region, owner) for one in node.weights]
        task.take(8 * region_size(region) * (node.num_axes + len(weights)))  # their bins
        task.do(run, *values, *edges, *weights)
        shares.append((writer.add(task, owner, COUNT, writer.bytes_of(node), node), owner))
    write_combined(node, shares, Accumulate("plus", node.dtype), layout, writer, COUNT, "between edges")


@lowers(Count)
def _(node: Count, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that count labels."""
    domain = writer.registers[node.labels].layout
    layout = default_layout(node, writer.bytes_of(node), workers)
    shares = []
    for region, owner in zip(domain.grid.regions(), domain.owners, strict=True):
        task = TaskWriter()
        labels = writer.read(task, node.labels, region, owner)
        task.do(Run(kernels.labeled, (node.length, region[0][0])), labels)
        shares.append((writer.add(task, owner, COUNT, writer.bytes_of(node), node), owner))
    write_combined(node, shares, Accumulate("plus", node.dtype), layout, writer, COUNT, "by label")


def _in_one(node: Expr, owner: int) -> Layout:
    return Layout(whole(node.shape), (owner,))
