"""Arrays put together, and arrays with elements put around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
import scipy.sparse as sp

from matnb.blocks.grid import Grid, Region, region_shape
from matnb.blocks.kernels.shaping import shaping as kernels
from matnb.blocks.layout import LARGE_BYTES, Layout
from matnb.errors import DTypeError, ShapeError
from matnb.expr.nodes import Expr
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import JOIN, JOINING, Kind
from matnb.program.operators import Join, Run
from matnb.program.place import SMALL_BYTES
from matnb.program.plan import Workers
from matnb.program.regions import region_size
from matnb.program.writer import PlanWriter

_CONCATENATE = Kind("concatenate", shown=JOINING)
_PAD = Kind("pad", shown=JOINING)


@dataclass(frozen=True, eq=False, repr=False)
class Concatenate(Expr):
    """Arrays of one dtype one after the other along an axis; sparse where all of them are.

    ``ranges`` are what of that axis is taken of each, from a start to before a stop; all, if none are given.
    """

    inputs: tuple[Expr, ...]
    axis: int
    ranges: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        first = self.inputs[0]
        if any(one.dtype != first.dtype for one in self.inputs):
            raise DTypeError("concatenate: the arrays have different dtypes; convert them with astype first")
        rest = _without(first, self.axis)
        for one in self.inputs:
            if one.ndim != first.ndim or _without(one, self.axis) != rest:
                raise ShapeError(
                    f"concatenate: shapes {first.shape} and {one.shape} may differ only along axis "
                    f"{self.axis}"
                )
        length = sum(stop - start for start, stop in self.parts)
        shape = (*first.shape[: self.axis], length, *first.shape[self.axis + 1 :])
        self.settle(shape, first.dtype, all(one.sparse for one in self.inputs), *self.inputs)

    @property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """What of the axis is taken of each array."""
        return self.ranges or tuple((0, one.shape[self.axis]) for one in self.inputs)


@dataclass(frozen=True, eq=False, repr=False)
class Pad(Expr):
    """An array with a few more elements around it: its edges repeated, or else constants.

    ``widths`` and ``constants`` are for each axis those before and behind; the constants are elements' bytes.
    """

    operand: Expr
    widths: tuple[tuple[int, int], ...]
    constants: tuple[tuple[bytes, bytes], ...] = ()

    def __post_init__(self) -> None:
        given = self.operand
        shape = tuple(
            before + one + after for one, (before, after) in zip(given.shape, self.widths, strict=True)
        )
        zeros = bool(self.constants) and not any(any(one) for pair in self.constants for one in pair)
        self.settle(shape, given.dtype, given.sparse and zeros, given)


def _without(node: Expr, axis: int) -> tuple[int, ...]:
    return (*node.shape[:axis], *node.shape[axis + 1 :])


@means(Concatenate)
def _(node: Concatenate, operands: Sequence[Value]) -> Value:
    """Return the arrays one after the other."""
    before = (slice(None),) * node.axis
    cuts = [(*before, slice(*part)) for part in node.parts]
    values = [one[cut] for one, cut in zip(operands, cuts, strict=True)]  # type: ignore[index]  # stubs: no slices
    if node.sparse:
        stack = sp.vstack if node.axis == 0 else sp.hstack
        return sp.csr_array(stack(values).astype(node.dtype))  # type: ignore[arg-type]  # sparse here
    return np.concatenate([dense(one) for one in values], axis=node.axis)


@means(Pad)
def _(node: Pad, operands: Sequence[Value]) -> Value:
    """Return an array with its edges, or constants, around it."""
    made = dense(operands[0])
    if not node.constants:
        made = np.pad(made, node.widths, mode="edge")
    for axis, ends in enumerate(node.constants):
        parts = [made]
        for place, width, content in zip((0, 1), node.widths[axis], ends, strict=True):
            shape = (*made.shape[:axis], width, *made.shape[axis + 1 :])
            edge = np.full(shape, np.frombuffer(content, made.dtype)[0])
            parts.insert(len(parts) if place else 0, edge)
        made = np.concatenate(parts, axis)
    return sp.csr_array(made) if node.sparse else made


# Arrays put together: their blocks stay where they are and as they are cut, but for thin ones.

_NARROW = 64  # elements along the last axis, too few to go through fast
_THIN = 16  # times as large is a block whose copy costs less than a small block beside it


@lowers(Concatenate)
def _(node: Concatenate, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a concatenation: along its axis the cuts of all, beside it those of the largest.

    A block that lies in the result as it is is not copied. Blocks that are too small for a task of their own,
    or too narrow, are put together with those beside them.
    """
    starts = (0, *accumulate(stop - start for start, stop in node.parts))
    layouts = [writer.registers[one].layout for one in node.inputs]
    heaviest = layouts[max(range(len(layouts)), key=lambda one: starts[one + 1] - starts[one])]
    cuts = list(heaviest.grid.cuts)
    joined = [0]
    for layout, begin, (start, stop) in zip(layouts, starts, node.parts, strict=False):
        inner = [one for one in layout.grid.cuts[node.axis] if start < one < stop]
        joined += [begin + one - start for one in (*inner, stop) if begin + one - start > joined[-1]]
    fine = tuple(joined) if len(joined) > 1 else (0, 0)
    cuts[node.axis] = _merged(node, fine, heaviest.grid, writer, workers)
    grid = Grid(tuple(cuts))

    def parts_of(region: Region) -> list[Region]:
        start, stop = region[node.axis]
        bounds = (start, *(one for one in fine if start < one < stop), stop)
        return [(*region[: node.axis], part, *region[node.axis + 1 :]) for part in pairwise(bounds)]

    owners = (
        writer.home_of(*_where(node, starts, max(parts_of(one), key=region_size))) for one in grid.regions()
    )
    for block in writer.each_block(node, Layout(grid, tuple(owners)), _CONCATENATE):
        region, parts = block.region, parts_of(block.region)
        blocks = [block.read(writer.block(*_where(node, starts, part), block.owner)) for part in parts]
        offsets = tuple(tuple(a - b for (a, _), (b, _) in zip(part, region, strict=True)) for part in parts)
        block.do(Join(offsets, region_shape(region), node.dtype, node.sparse), *blocks)
        block.kind = JOIN


def _merged(
    node: Concatenate, cuts: tuple[int, ...], beside: Grid, writer: PlanWriter, workers: Workers
) -> tuple[int, ...]:
    # The cuts without those beside small blocks; what is put together so is at most about a share of all.
    if cuts[-1] == 0:
        return cuts
    num_bytes = writer.bytes_of(node) / (beside.num_blocks // beside.counts[node.axis])
    each = num_bytes / cuts[-1]
    most = max(SMALL_BYTES, 1.25 * num_bytes / workers.slots)
    is_last = not node.sparse and 0 < node.axis == node.ndim - 1
    kept = [0]
    for start, stop in pairwise(cuts[1:]):
        small, large = sorted((start - kept[-1], stop - start))
        together = (small + large) * each
        fits = together <= most or small * _THIN <= large
        if is_last and small < _NARROW and together <= LARGE_BYTES:
            continue
        if small * each >= SMALL_BYTES or not fits:
            kept.append(start)
    return (*kept, cuts[-1])


def _where(node: Concatenate, starts: tuple[int, ...], region: Region) -> tuple[Expr, Region]:
    # The operand that has a region of the result, and the region in it.
    start, stop = region[node.axis]
    number = max(
        (one for one in range(len(node.inputs)) if starts[one] <= start and starts[one + 1] > starts[one]),
        default=0,
    )
    shift = node.parts[number][0] - starts[number]
    inside = (start + shift, stop + shift)
    return node.inputs[number], (*region[: node.axis], inside, *region[node.axis + 1 :])


@lowers(Pad)
def _(node: Pad, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a padding: the blocks at the edges grow, the others stay as they are."""
    source = writer.registers[node.operand]
    writer.note_reuse(node.operand)
    grid = source.layout.grid
    cuts = [
        (0, *(before + one for one in along[1:-1]), before + along[-1] + after)
        for along, (before, after) in zip(grid.cuts, node.widths, strict=True)
    ]
    layout = Layout(Grid(tuple(cuts)), source.layout.owners)
    indices = list(grid.indices())
    for block in writer.each_block(node, layout, _PAD, "" if node.constants else "edges"):
        index = indices[block.number]
        widths = tuple(
            (before if place == 0 else 0, after if place == count - 1 else 0)
            for place, count, (before, after) in zip(index, grid.counts, node.widths, strict=True)
        )
        value = block.read(source.keys[block.number])
        if not node.sparse and node.operand.sparse:
            value = block.do(Join(((0,) * node.ndim,), grid.block_shape(index), node.dtype, False), value)
        if any(before or after for before, after in widths):
            block.do(Run(kernels.pad, (widths, node.constants)), value)
        elif block.is_copy:
            shape = region_shape(block.region)
            block.do(Join(((0,) * node.ndim,), shape, node.dtype, node.sparse), value)
