"""Functions of elements, constants, and what is made from nothing; a chain of them is one task a block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from matnb.blocks.creation import Random, drawn_anew
from matnb.blocks.formats import Dense, to_numpy
from matnb.blocks.grid import Region, all_of, region_shape
from matnb.blocks.kernels.elementwise import Link
from matnb.blocks.kernels.shaping import cut
from matnb.blocks.layout import Layout
from matnb.blocks.semiring import ANNIHILATORS
from matnb.expr.nodes import Broadcast, Create, Elementwise, Expr, Literal, Reduce
from matnb.ops.indexing import check_index
from matnb.ops.products import detail_of, write_product
from matnb.ops.reference import Value, dense, flat_positions, from_flat_positions, value_of
from matnb.ops.registry import means
from matnb.ops.slicing import is_cut_out, window_region
from matnb.program.matching import Product
from matnb.program.operators import Constant, Fused, Make, Operator, Stretch
from matnb.program.regions import operand_region
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
        self._settle(self.creation.shape, self.creation.dtype, False, *self.inputs)

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


@means(Elementwise)
def _(node: Elementwise, operands: Sequence[Value]) -> Value:
    """Return a function of elements."""
    if node.sparse:
        return _sparse_elementwise(node, operands)
    # Not stretched first: NumPy takes the power of a number, such as 0.5, by another function.
    return np.asarray(_called(node, [dense(value) for value in operands]))


def _called(node: Elementwise, arguments: Sequence[np.ndarray]) -> np.ndarray:
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
    result = getattr(np, node.name)(*cast)
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
    return from_flat_positions(keys, _called(node, arguments), node.shape)


# Chains of these written into one task a block, whatever their length.


def lower_map(node: Expr, inside: Sequence[Expr], layout: Layout, writer: PlanWriter) -> None:
    """Write the tasks that make an array block by block; ``inside`` is what each computes, operands first."""
    kind = "product" if any(one in writer.products for one in inside) else "map"
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
    values: dict[Expr, tuple[bool, int]] = {}

    def value(node: Expr) -> tuple[bool, int]:
        if node not in values:
            own = operand_region(node.shape, region)
            if is_cut_out(node, writer):
                values[node] = writer.read(task, node.operand, window_region(node, own), owner)
            else:
                values[node] = writer.read(task, node, own, owner)
        return values[node]

    for node in inside:
        if isinstance(node, Reduce):
            continue
        if isinstance(node, Literal) and node in writer.slots.constants:
            values[node] = task.read(writer.constant(node))
            continue
        if node in writer.products:
            product = writer.products[node]
            inner = (0, product.left.shape[-2 if product.transposed else -1])
            total = _total_of(node, product, inside)
            values[node] = write_product(task, node, product, region, inner, owner, writer, num_tasks, total)
            continue
        arguments = [value(operand) for operand in node.operands]
        values[node] = task.do(
            _operator(node, operand_region(node.shape, region)),
            *arguments,
            num_bytes=writer.bytes_of(node, operand_region(node.shape, region)),
        )
    return [value(node) for node in wanted]


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
            return Fused((Link(name, input_dtypes, element, output, node.sparse, operands),))
        case Broadcast():
            return Stretch(region_shape(region))
        case Create(creation) | Draw(creation):
            return Make(creation, region)
        case Literal():
            return Constant(cut(Dense(node.value), tuple(slice(*bounds) for bounds in region)))
    raise TypeError(f"{type(node).__name__} is not elementwise")
