"""Functions of elements, constants, and what is made from nothing; a chain of them is one task a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise, product
from math import prod
from typing import ClassVar, Protocol

import numpy as np
import scipy.sparse as sp

from matnb.blocks.creation import Random, drawn_anew
from matnb.blocks.formats import to_numpy
from matnb.blocks.grid import Region, all_of, region_shape
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.blocks.kernels.elementwise.tiles import LONG_ROW
from matnb.blocks.layout import Layout
from matnb.blocks.semiring import ANNIHILATORS
from matnb.blocks.variates import VARIATES
from matnb.expr.nodes import Broadcast, Create, Elementwise, Expr, Literal, OnEntries, Reduce
from matnb.ops.indexing import Put, check_index
from matnb.ops.joining import Pad
from matnb.ops.products import detail_of, write_product
from matnb.ops.reference import Value, dense, flat_positions, from_flat_positions, value_of
from matnb.ops.registry import means
from matnb.ops.slicing import is_cut_out, window_region
from matnb.program.kinds import MAP, PRODUCT
from matnb.program.matching import Product
from matnb.program.operators import Constant, Fill, FusedKernel, Make, Operator, Stretch
from matnb.program.regions import operand_region, region_size
from matnb.program.writer import PlanWriter, TaskWriter


@dataclass(frozen=True, eq=False, repr=False)
class Draw(Expr):
    """Random numbers that differ with whole numbers without axes, such as those of iterations."""

    is_source: ClassVar[bool] = True
    creation: Random
    inputs: tuple[Expr, ...]

    def __post_init__(self) -> None:
        for number in self.inputs:
            check_index(number, 0)
        self.settle(self.creation.shape, self.creation.dtype, False, *self.inputs)

    def _text(self, operands: Sequence[str]) -> str:
        return f"{type(self.creation).__name__.lower()}(drawn anew for {', '.join(operands)})"


@means(Draw)
def _(node: Draw, operands: Sequence[Value]) -> Value:
    drawn = drawn_anew(node.creation, [int(dense(one)) for one in operands])
    return to_numpy(drawn.make(all_of(node.shape)))


@means(Literal)
def _(node: Literal, operands: Sequence[Value]) -> Value:
    """Return the constant."""
    return node.value


@means(Create)
def _(node: Create, operands: Sequence[Value]) -> Value:
    """Return what is made from nothing but its shape."""
    creation = node.creation
    return value_of(creation.make(all_of(creation.shape)))


@means(Broadcast)
def _(node: Broadcast, operands: Sequence[Value]) -> Value:
    """Return the array stretched to a shape."""
    return np.broadcast_to(dense(operands[0]), node.shape)


@means(Elementwise, OnEntries)
def _(node: Elementwise, operands: Sequence[Value]) -> Value:
    """Return a function of elements."""
    if node.sparse:
        return _sparse_elementwise(node, operands)
    # Not stretched first: NumPy takes the power of a number, such as 0.5, by another function.
    return np.asarray(called(node, [dense(value) for value in operands]))


class ElementFunction(Protocol):
    """A function of elements: a node, or a link of a chain."""

    @property
    def name(self) -> str:
        """NumPy's name of it."""

    @property
    def input_dtypes(self) -> tuple[np.dtype, ...]:
        """Of the ufunc's loop."""

    @property
    def dtype(self) -> np.dtype:
        """Of its value."""

    @property
    def output(self) -> int:
        """Which of several results is wanted."""


def called(node: ElementFunction, arguments: Sequence[np.ndarray]) -> np.ndarray:
    """Return what a function of elements gives of arrays."""
    cast = [one.astype(dtype) for one, dtype in zip(arguments, node.input_dtypes, strict=True)]
    match node.name:
        case "astype":
            from_complex = cast[0].dtype.kind == "c" and node.dtype.kind not in "cb"
            return (cast[0].real if from_complex else cast[0]).astype(node.dtype)
        case "where":
            return np.where(*cast)
        case "complex_of":
            parts = np.broadcast_arrays(*cast)
            return np.stack(parts, axis=-1).view(node.dtype)[..., 0]
    function = VARIATES.get(node.name) or getattr(np, node.name, None)
    if function is None:
        from scipy import special  # a sixth of a second of every import else

        function = getattr(special, node.name)
    result = function(*cast)
    return np.asarray(result[node.output] if isinstance(result, tuple) else result).astype(node.dtype)


def _sparse_elementwise(node: Elementwise, operands: Sequence[Value]) -> sp.csr_array:
    # The pattern is the union of the patterns; of those alone whose absent elements annihilate, if there are
    # any, the intersection.
    patterns = {place: flat_positions(value) for place, value in enumerate(operands) if sp.issparse(value)}
    meet = [keys for place, keys in patterns.items() if place in ANNIHILATORS.get(node.name, ())]
    keys = reduce(np.intersect1d, meet) if meet else reduce(np.union1d, patterns.values())
    arguments = []
    for value in operands:
        if sp.issparse(value):
            own = flat_positions(value)
            picked = np.zeros(len(keys), value.dtype)
            _, at, source = np.intersect1d(keys, own, return_indices=True)
            picked[at] = value.data[source]
        elif not value.shape:
            picked = value
        else:
            picked = np.broadcast_to(value, node.shape)[keys // node.shape[1], keys % node.shape[1]]
        arguments.append(picked)
    found = called(node, arguments)
    kept = found != 0 if node.drops_zeros else slice(None)
    return from_flat_positions(keys[kept], np.broadcast_to(found, keys.shape)[kept], node.shape)


# Chains of these written into one task a block, whatever their length.


def lower_map(node: Expr, inside: Sequence[Expr], layout: Layout, writer: PlanWriter) -> None:
    """Write the tasks that make an array block by block; ``inside`` is what each computes, operands first."""
    kind = PRODUCT if any(one in writer.products for one in inside) else MAP
    detail = inside_text(inside, writer).removesuffix(";") or "make"
    for block in writer.each_block(node, layout, kind, detail, inside):
        num_tasks = layout.owners.count(block.owner)
        write_fused(block, inside, inside[-1:], block.region, block.owner, writer, num_tasks)


def inside_text(inside: Sequence[Expr], writer: PlanWriter) -> str:
    """Return what the tasks of a stage compute, operands first, for a user."""
    words = []
    for node in inside:
        if node in writer.products:
            words.append(f"{detail_of(writer.products[node], writer)};")
        elif isinstance(node, Elementwise):
            if any(is_cut_out(one, writer) for one in node.operands):
                words.append("slice")
            words.append(node.name)
        elif framed(node) is not None:
            words.append("put" if isinstance(node, Put) else "pad")
    return " ".join(words)


def write_fused(
    task: TaskWriter,
    inside: Sequence[Expr],
    wanted: Sequence[Expr],
    region: Region,
    owner: int,
    writer: PlanWriter,
    num_tasks: int,
) -> list[tuple[bool, int]]:
    """Write the steps that make a region of some expressions, and return the registers that hold them.

    Parameters
    ----------
    inside
        What is computed in the task, operands first; each Reduce is left to the caller.
    wanted
        Some of ``inside``, or what it reads.
    region
        The part of the results, or of what is reduced.
    num_tasks
        How many of the stage's tasks the owner has.
    """
    pieces = _pieces(inside, wanted, region, writer)
    is_part = len(pieces) > 1
    found = [_write_piece(task, inside, wanted, one, owner, writer, num_tasks, is_part) for one in pieces]
    if not is_part:
        return found[0]
    starts, shape = [start for start, _ in region], region_shape(region)
    bounds = tuple(
        tuple((a - low, b - low) for (a, b), low in zip(one, starts, strict=True)) for one in pieces
    )
    return [
        task.do(Fill(bounds, shape, node.dtype), *values, num_bytes=writer.bytes_of(node, region))
        for node, values in zip(wanted, zip(*found, strict=True), strict=True)
    ]


def _write_piece(
    task: TaskWriter,
    inside: Sequence[Expr],
    wanted: Sequence[Expr],
    region: Region,
    owner: int,
    writer: PlanWriter,
    num_tasks: int,
    is_part: bool,
) -> list[tuple[bool, int]]:
    # The steps that make a piece of a region, and their values.
    values: dict[tuple[Expr, Region], tuple[bool, int]] = {}

    def value(node: Expr, own: Region) -> tuple[bool, int]:
        if (node, own) not in values:
            if is_cut_out(node, writer):
                found = writer.read(task, node.operand, window_region(node, own), owner)
            else:
                found = writer.read(task, node, own, owner)
            values[node, own] = found
        return values[node, own]

    def operand(node: Expr, own: Region) -> tuple[bool, int]:
        # NumPy's loops may round otherwise where they step through memory with gaps, as in a thin rectangle.
        there, read = (node, own) in values, value(node, own)
        is_thin = is_part and len(own) > 1 and own[-1][1] - own[-1][0] < LONG_ROW
        if there or read[0] or not is_thin or node.sparse or isinstance(node, Elementwise):
            return read
        values[node, own] = task.do(Stretch(region_shape(own)), read, num_bytes=writer.bytes_of(node, own))
        return values[node, own]

    needed = _needed(inside, wanted, region, writer)
    for node in inside:
        if isinstance(node, Reduce):
            continue
        if node in writer.products:
            made = writer.products[node]
            inner = (0, made.left.shape[-2 if made.transposed else -1])
            total = _total_of(node, made, inside)
            values[node, region] = write_product(
                task, node, made, region, inner, owner, writer, num_tasks, total
            )
            continue
        for own in needed.get(node, ()):
            if isinstance(node, Literal) and node in writer.slots.constants:
                values[node, own] = task.read(writer.constant(node))
            elif framed(node) is None:
                arguments = [operand(*read) for read in _reads(node, own)]
                step = _operator(node, own)
                values[node, own] = task.do(step, *arguments, num_bytes=writer.bytes_of(node, own))
            elif read := _reads(node, own):
                values[node, own] = value(*read[0])
            else:
                assert isinstance(node, Pad), "of others something is around the rectangle"
                values[node, own] = _write_constant(task, _constant_of(node, own), region_shape(own))
    return [value(node, operand_region(node.shape, region)) for node in wanted]


def _write_constant(task: TaskWriter, number: np.generic, shape: tuple[int, ...]) -> tuple[bool, int]:
    # Few go with the plan.
    if prod(shape) <= _FEW:
        return task.do(Constant.filled(number, shape, number.dtype))
    size, alone = prod(shape) * number.itemsize, Constant.filled(number, (), number.dtype)
    return task.do(Stretch(shape), task.do(alone), num_bytes=size)


# Arrays made of a rectangle and of what is around it, such as u[1:-1, 1:-1] = f(u), and slices that lie in
# several blocks: a task goes through pieces of its block, each of which needs one block of what it reads.

_MOST_PIECES = 64
_FEW = 1 << 12  # elements


def framed(node: Expr) -> Expr | None:
    """Return the functions of elements that a task writes into a rectangle of what it makes, or None.

    That is what an assignment to a rectangle, of at least half of the array, writes over it, and what
    constants are put around.
    """
    match node:
        case Put(_, inner, (), key):
            is_rectangle = all(isinstance(one, slice) and one.step == 1 for one in key)
            fits = is_rectangle and inner.shape == node.target and 2 * inner.size >= node.size
        case Pad(inner, _, constants):
            fits = bool(constants)
        case _:
            return None
    is_chain = isinstance(inner, Elementwise) and inner.dtype == node.dtype
    is_dense = not node.sparse and not inner.sparse
    return inner if fits and is_chain and is_dense and 0 < inner.size < node.size else None


def _rectangle_of(node: Expr) -> Region:
    # Where in a framed array its functions are.
    match node:
        case Put(_, _, _, key):
            return tuple((one.start, one.stop) for one in key if isinstance(one, slice))
        case Pad(inner, widths):
            starts = zip(widths, inner.shape, strict=True)
            return tuple((before, before + length) for (before, _), length in starts)
    raise TypeError(f"{type(node).__name__} has no rectangle")


def _constant_of(node: Pad, region: Region) -> np.generic:
    # What is in a region around a rectangle: the last axis along which it is outside says.
    for axis in reversed(range(node.ndim)):
        (low, high), (start, stop) = _rectangle_of(node)[axis], region[axis]
        if stop <= low or start >= high:
            number: np.generic = np.frombuffer(node.constants[axis][start >= high], node.dtype)[0]
            return number
    raise ValueError(f"{region} is not around the rectangle")


def _reads(node: Expr, region: Region) -> list[tuple[Expr, Region]]:
    # What a region of a node is made of, inside or outside of its rectangle.
    inner = framed(node)
    if inner is None:
        return [(one, operand_region(one.shape, region)) for one in node.operands]
    rectangle = _rectangle_of(node)
    parts = list(zip(rectangle, region, strict=True))
    if all(low <= start and stop <= high for (low, high), (start, stop) in parts):
        starts = [low for low, _ in rectangle]
        return [(inner, tuple((a - low, b - low) for (a, b), low in zip(region, starts, strict=True)))]
    return [(node.operand, region)] if isinstance(node, Put) else []


def _needed(
    inside: Sequence[Expr], wanted: Sequence[Expr], region: Region, writer: PlanWriter
) -> dict[Expr, list[Region]]:
    # The regions that a piece needs of all that is computed inside, or read.
    needed = {node: [operand_region(node.shape, region)] for node in wanted}
    for node in reversed(inside):
        if isinstance(node, Reduce) or node in writer.products:
            continue
        for own in needed.get(node, ()):
            for operand, part in _reads(node, own):
                if part not in needed.setdefault(operand, []):
                    needed[operand].append(part)
    return needed


def _pieces(
    inside: Sequence[Expr], wanted: Sequence[Expr], region: Region, writer: PlanWriter
) -> list[Region]:
    # Of a reduction only what is around rectangles is apart, so that all else is reduced tile by tile.
    frames = [node for node in inside if framed(node) is not None]
    is_reduced = any(isinstance(node, Reduce) for node in inside)
    windows = [one for node in inside for one in node.operands if is_cut_out(one, writer)]
    is_whole = any(node in writer.products for node in inside) or any(node.sparse for node in wanted)
    if is_whole or not (frames or (windows and not is_reduced)) or not region_size(region):
        return [region]
    cuts = _piece_cuts(inside, wanted, region, writer, with_blocks=not is_reduced)
    if prod(len(one) - 1 for one in cuts) > _MOST_PIECES:
        cuts = _piece_cuts(inside, wanted, region, writer, with_blocks=False)
    pieces = [tuple(one) for one in product(*(pairwise(along) for along in cuts))]
    origins = {one: _origins(inside, wanted, one, writer, with_blocks=not is_reduced) for one in pieces}
    return _merged(origins)


def _piece_cuts(
    inside: Sequence[Expr], wanted: Sequence[Expr], region: Region, writer: PlanWriter, with_blocks: bool
) -> list[list[int]]:
    # Where a region is cut at the bounds of rectangles, and of the blocks that are read. The first element of
    # a node's axis is so far behind the region's array's; None where one element is stretched.
    cuts = [{start, stop} for start, stop in region]
    shifts: dict[Expr, list[tuple[int | None, ...]]] = {node: [(0,) * node.ndim] for node in wanted}

    def note(node: Expr, shift: Sequence[int | None], bounds: Sequence[Sequence[int]]) -> None:
        first = len(region) - node.ndim
        for axis, (behind, along) in enumerate(zip(shift, bounds, strict=True), first):
            if behind is not None:
                cuts[axis].update(one + behind for one in along)

    for node in reversed(inside):
        for shift in shifts.get(node, ()) if not isinstance(node, Reduce) else ():
            inner = framed(node)
            if inner is not None:
                rectangle = _rectangle_of(node)
                note(node, shift, rectangle)
                moved = (None if a is None else a + low for a, (low, _) in zip(shift, rectangle, strict=True))
                shifts.setdefault(inner, []).append(tuple(moved))
            for one in node.operands:
                if one is inner:
                    continue
                pairs = zip(one.shape, node.shape[node.ndim - one.ndim :], strict=True)
                aligned = zip(pairs, shift[node.ndim - one.ndim :], strict=True)
                shifts.setdefault(one, []).append(tuple(a if n == m else None for (n, m), a in aligned))
    if with_blocks:
        for node in shifts:
            for shift in shifts[node]:
                if is_cut_out(node, writer):
                    grid = writer.registers[node.operand].layout.grid
                    starts = [one.start for one in node.key if isinstance(one, slice)]
                    bounds = [[g - a for g in along] for along, a in zip(grid.cuts, starts, strict=True)]
                    note(node, shift, bounds)
                elif node in writer.registers and writer.registers[node].keys:
                    note(node, shift, writer.registers[node].layout.grid.cuts)
    return [
        sorted(one for one in along if start <= one <= stop)
        for along, (start, stop) in zip(cuts, region, strict=True)
    ]


def _origins(
    inside: Sequence[Expr], wanted: Sequence[Expr], piece: Region, writer: PlanWriter, with_blocks: bool
) -> tuple[object, ...]:
    # What a piece is made of: on which side of rectangles it is, and blocks; pieces of the same may be one.
    found: list[object] = []
    for node, regions in _needed(inside, wanted, piece, writer).items():
        for own in regions:
            if framed(node) is not None and node in inside:
                read = _reads(node, own)
                beside = _constant_of(node, own).tobytes() if isinstance(node, Pad) and not read else b""
                found.append((node, read[0][0] if read else beside))
            elif with_blocks and is_cut_out(node, writer):
                grid = writer.registers[node.operand].layout.grid
                found.append((node, tuple(grid.overlapping(window_region(node, own)))))
            elif with_blocks and node in writer.registers and writer.registers[node].keys:
                grid = writer.registers[node].layout.grid
                found.append((node, tuple(grid.overlapping(own))))
    return tuple(found)


def _merged(origins: Mapping[Region, object]) -> list[Region]:
    # Neighbors along an axis that are made of the same are one piece.
    pieces = dict(origins)
    for axis in reversed(range(len(next(iter(pieces))))):
        result: dict[Region, object] = {}
        last: dict[object, Region] = {}
        for piece in sorted(pieces, key=lambda one: one[axis]):
            beside = (*piece[:axis], *piece[axis + 1 :]), pieces[piece]
            before = last.get(beside)
            if before is not None and before[axis][1] == piece[axis][0]:
                del result[before]
                piece = (*piece[:axis], (before[axis][0], piece[axis][1]), *piece[axis + 1 :])
            result[piece] = beside[1]
            last[beside] = piece
        pieces = result
    return sorted(pieces)


def _total_of(node: Expr, product: Product, inside: Sequence[Expr]) -> np.dtype | None:
    # The dtype of the sum along rows that is all that is asked of a sampled product, or None.
    match inside[-1]:
        case Reduce(operand, "sum", axes, _, element) if operand is node and 1 in axes and product.scaled:
            alone = all(node not in one.operands for one in inside[:-1])
            return element if alone else None
    return None


def _operator(node: Expr, region: Region) -> Operator:
    match node:
        case Elementwise(name, _, input_dtypes, element, output):
            operands = tuple(range(len(input_dtypes)))
            link = Link(name, input_dtypes, element, output, node.sparse, operands, node.drops_zeros)
            return FusedKernel((link,))
        case Broadcast():
            return Stretch(region_shape(region))
        case Create(creation) | Draw(creation):
            return Make(creation, region)
        case Literal():
            return Constant.of(node, region)
    raise TypeError(f"{type(node).__name__} is not elementwise")
