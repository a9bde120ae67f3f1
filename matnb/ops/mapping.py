"""A user's function called block by block, lane by lane, or on whole arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import scipy.sparse as sp

from matnb.blocks.formats import Dense, csr_block, to_numpy, to_scipy
from matnb.blocks.grid import Grid, all_of, region_shape, whole
from matnb.blocks.kernels.calls import Function, Output, call, call_on_block, packed_bytes, unpack, unpacked
from matnb.blocks.layout import Layout
from matnb.errors import ShapeError
from matnb.expr.nodes import Expr, Shape, broadcast_shapes
from matnb.ops.lanes import lanes_layout
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.operators import Call, Run
from matnb.program.plan import Workers
from matnb.program.regions import operand_region
from matnb.program.writer import PlanWriter


@dataclass(frozen=True, eq=False, repr=False)
class MapBlocks(Expr):
    """What a user's function gives for each block of the first array, and what meets it of others.

    The result is cut as that array where it has its shape; else blocks have all of its axes but the first,
    and so has the result. With ``along``, the function is called on each lane along an axis instead, and the
    axes of what it gives stand in the place of that one.

    ``token`` distinguishes calls that are equal in all else; empty of a function that is pure.
    """

    inputs: tuple[Expr, ...]
    function: Function
    lengths: Shape
    element: np.dtype
    is_sparse: bool
    along: int | None
    token: bytes

    def __post_init__(self) -> None:
        first = self.inputs[0].shape
        for one in self.inputs[1:]:
            if broadcast_shapes(first, one.shape, name=self.function.name) != first:
                raise ShapeError(
                    f"map_blocks: an array of shape {one.shape} beside the first, of shape {first}: blocks "
                    "are those of the first, so give the larger one first"
                )
        if self.along is None and self.lengths[:1] != first[:1]:
            raise ShapeError(
                f"map_blocks: a result of shape {self.lengths} from an array of shape {first}: each block "
                "gives as many rows as it has, so that first axes are equal; reduce with np.sum(x, axis=0) "
                "and the like, or call mn.replicated on a small array"
            )
        self._settle(self.lengths, self.element, self.is_sparse, *self.inputs)
        if self.token:
            self.__dict__["is_made_anew"] = True

    def _text(self, operands: Sequence[str]) -> str:
        return f"{self.function.name}({', '.join(operands)})"


@means(MapBlocks)
def _(node: MapBlocks, operands: Sequence[Value]) -> Value:
    """Return what the function gives for the whole arrays."""
    blocks = [csr_block(one) if sp.issparse(one) else Dense(one) for one in operands]
    found = call_on_block(blocks, node.function, node.shape, node.dtype, node.sparse, node.along)
    return to_numpy(found) if isinstance(found, Dense) else to_scipy(found)


# A user's function called on each block, where the block is.

_Part = TypeVar("_Part", bound=tuple[int, ...])  # cuts of an axis, or a range of it


@lowers(MapBlocks)
def _(node: MapBlocks, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that call a function; operands beside the first are read as they meet its blocks."""
    first = node.inputs[0]
    source = writer.registers[first].layout
    if node.along is not None:
        source = lanes_layout(first, (node.along,), writer, workers)
    elif node.shape != first.shape:
        source = lanes_layout(first, range(1, first.ndim), writer, workers)
    cuts = _placed(node, source.grid.cuts, all_of(node.shape))
    read = list(source.grid.regions())
    for block in writer.each_block(node, Layout(Grid(cuts), source.owners), "call", node.function.name):
        parts = [(one, operand_region(one.shape, read[block.number])) for one in node.inputs]
        values = [writer.read(block, one, part, block.owner) for one, part in parts]
        options = (node.function, region_shape(block.region), node.dtype, node.sparse, node.along)
        block.do(Run(call_on_block, options), *values)
        # The function gets copies of its own, and what it gives is copied.
        block.take(block.num_bytes + sum(writer.bytes_of(one, part) for one, part in parts))


def _placed(node: MapBlocks, source: tuple[_Part, ...], whole: tuple[_Part, ...]) -> tuple[_Part, ...]:
    # Where the result is cut as the first array is, or what part of it follows from a part of that array.
    first = node.inputs[0]
    if node.along is None:
        return source if node.shape == first.shape else (*source[:1], *whole[1:])
    behind = first.ndim - node.along - 1
    inside = whole[node.along : len(whole) - behind]
    return (*source[: node.along], *inside, *source[node.along + 1 :])


@dataclass(frozen=True, eq=False, repr=False)
class Replicated(Expr):
    """The results of a user's function on whole arrays, packed one after the other as bytes."""

    inputs: tuple[Expr, ...]
    function: Function
    outputs: tuple[Output, ...]

    def __post_init__(self) -> None:
        self._settle((packed_bytes(self.outputs),), np.dtype(np.uint8), False, *self.inputs)

    def _text(self, operands: Sequence[str]) -> str:
        return f"{self.function.name}({', '.join(operands)})"


@dataclass(frozen=True, eq=False, repr=False)
class Part(Expr):
    """One of the results of a user's function."""

    call: Expr
    place: int

    def __post_init__(self) -> None:
        assert isinstance(self.call, Replicated), "only such a call has parts"
        shape, dtype = self.call.outputs[self.place]
        self._settle(shape, dtype, False, self.call)

    def _text(self, operands: Sequence[str]) -> str:
        return f"result {self.place} of {operands[0]}"


@means(Replicated)
def _(node: Replicated, operands: Sequence[Value]) -> Value:
    return call(node.function, [Dense(dense(one)) for one in operands], node.outputs).values


@means(Part)
def _(node: Part, operands: Sequence[Value]) -> Value:
    return unpacked(dense(operands[0]), node.call.outputs)[node.place]  # type: ignore[attr-defined]  # of a call


_COPIES_OF_INPUTS = 5


@lowers(Replicated)
def _(node: Replicated, writer: PlanWriter, workers: Workers) -> None:
    layout = Layout(Grid(((0, node.shape[0]),)), workers.numbers[:1])
    for block in writer.each_block(node, layout, "call", node.function.name):
        values = [block.read(writer.block(one, all_of(one.shape), block.owner)) for one in node.inputs]
        block.do(Call(node.function, node.outputs), *values)
        # The function gets copies of its own, dense. NumPy's linear algebra copies them once more, in
        # LAPACK's order, and LAPACK asks for room of up to four more (gesdd); what it gives is copied out.
        inputs = sum(one.size * one.dtype.itemsize for one in node.inputs)
        block.take(_COPIES_OF_INPUTS * inputs + node.size)
        block.num_bytes = node.size


@lowers(Part)
def _(node: Part, writer: PlanWriter, workers: Workers) -> None:
    call = node.call
    assert isinstance(call, Replicated), "checked by the node"
    source = writer.registers[call]
    writer.note_reuse(call)
    layout = Layout(whole(node.shape), source.layout.owners[:1])
    for block in writer.each_block(node, layout, "part"):
        block.do(Run(unpack, (call.outputs, node.place)), block.read(source.keys[0]))
