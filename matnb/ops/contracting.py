"""Products whose axes have names, and Kronecker's."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from matnb.blocks.grid import Grid, Region, regular_cuts
from matnb.blocks.kernels.products.contracting import contract, kronecker
from matnb.blocks.layout import Layout
from matnb.errors import DTypeError, ShapeError
from matnb.expr.nodes import Expr
from matnb.ops.combining import write_sum
from matnb.ops.einsum_subscripts import spelled
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import Kind, Role
from matnb.program.operators import Run
from matnb.program.place import SMALL_BYTES, laid_out
from matnb.program.plan import MANY_WORKERS, Workers
from matnb.program.writer import PlanWriter, TaskWriter

_CONTRACTION = Kind("product", Role.MULTIPLIES, follows_cuts=True)


@dataclass(frozen=True, eq=False, repr=False)
class Contract(Expr):
    """A sum of products of elements, as ``numpy.einsum`` writes it, of arrays of one dtype; dense.

    ``names`` has a number for each axis of each array, ``output`` those of the result. What the first array
    is cut by cuts the work, and it is multiplied with the others in their order. Of several arrays, none is
    sparse or has a name twice; a single one may be a sparse matrix whose axes have one name.
    """

    inputs: tuple[Expr, ...]
    names: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]

    def __post_init__(self) -> None:
        first = self.inputs[0]
        if any(one.dtype != first.dtype for one in self.inputs):
            raise DTypeError("einsum: the arrays have different dtypes; convert them with astype first")
        lengths = self.lengths
        for one, own in zip(self.inputs, self.names, strict=True):
            if one.shape != tuple(lengths[name] for name in own):
                raise ShapeError(f"einsum: axes {own} of shape {one.shape} do not fit the others")
        self.settle(tuple(lengths[name] for name in self.output), first.dtype, False, *self.inputs)

    @property
    def lengths(self) -> dict[int, int]:
        """The length of each name."""
        return {
            name: length
            for one, own in zip(self.inputs, self.names, strict=True)
            for name, length in zip(own, one.shape, strict=True)
        }


@dataclass(frozen=True, eq=False, repr=False)
class Kron(Expr):
    """The Kronecker product of arrays of one dtype and as many axes; sparse where one of them is."""

    left: Expr
    right: Expr

    def __post_init__(self) -> None:
        if self.left.ndim != self.right.ndim or self.left.dtype != self.right.dtype:
            raise ShapeError(
                f"kron: {self.left!r} and {self.right!r} must have the same number of axes and the same dtype"
            )
        shape = tuple(a * b for a, b in zip(self.left.shape, self.right.shape, strict=True))
        self.settle(shape, self.left.dtype, self.left.sparse or self.right.sparse, self.left, self.right)

    def _entries(self, of: Mapping[Expr, float], row: float) -> float:
        return of[self.left] * of[self.right]


@means(Contract)
def _(node: Contract, operands: Sequence[Value]) -> Value:
    """Return the sum of products."""
    interleaved = [part for one, own in zip(operands, node.names, strict=True) for part in (dense(one), own)]
    return np.asarray(np.einsum(*interleaved, node.output, optimize=len(operands) > 2)).astype(node.dtype)


@means(Kron)
def _(node: Kron, operands: Sequence[Value]) -> Value:
    """Return Kronecker's product."""
    if node.sparse:
        left, right = (sp.csr_array(one) for one in operands)
        found: sp.csr_array = sp.kron(left, right, format="csr").astype(node.dtype)
        return found
    return np.kron(*map(dense, operands))


# Products whose axes have names: each task has a part of the largest array and what meets it.

_MOST_PIECES = 64  # of an axis of Kronecker's product, so that a task is worth its cost
Cuts = tuple[int, ...]
Ranges = Mapping[int, tuple[int, int]]  # what a task has of each name


@lowers(Contract)
def _(node: Contract, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a sum of products; where a name that is summed over is cut, parts are added."""
    cuts = _cuts(node, writer, workers)
    grid = Grid(tuple(cuts[name] for name in node.output))
    inner = sorted(set(cuts).difference(node.output))
    run = Run(contract, (node.names, node.output, node.dtype))
    combinations = list(itertools.product(*(itertools.pairwise(cuts[name]) for name in inner)))

    def reads_of(region: Region, place: int) -> list[tuple[Expr, Region]]:
        ranges = dict(zip((*node.output, *inner), (*region, *combinations[place]), strict=True))
        return [(one, _region(own, ranges)) for one, own in zip(node.inputs, node.names, strict=True)]

    if len(combinations) > 1 and len(workers.numbers) >= MANY_WORKERS:
        layout = laid_out(grid, workers)
    else:
        firsts = (reads_of(region, 0)[0] for region in grid.regions())
        layout = Layout(grid, tuple(writer.home_of(one, region) for one, region in firsts))
    wanted = [
        (block, reads_of(region, place))
        for block, region in enumerate(grid.regions())
        for place in range(len(combinations))
    ]
    homes = iter(writer.place(node, layout, wanted) if len(combinations) > 1 else [])
    for block in writer.each_block(node, layout, _CONTRACTION, spelled(node.names, node.output)):
        parts = []
        for place in range(len(combinations)):
            reads, owner = reads_of(block.region, place), next(homes, block.owner)
            task = block if len(combinations) == 1 else TaskWriter()
            values = [writer.read(task, one, region, owner) for one, region in reads]
            task.do(run, *values, num_bytes=block.num_bytes)
            # Axes are put side by side, which copies.
            task.take(block.num_bytes + sum(writer.bytes_of(one, region) for one, region in reads))
            if task is not block:
                parts.append(writer.part_of(block, task, owner, _CONTRACTION, block.num_bytes))
        if parts:
            monoid = "lor" if node.dtype.kind == "b" else "plus"
            write_sum(block, parts, monoid, writer)


def _cuts(node: Contract, writer: PlanWriter, workers: Workers) -> dict[int, Cuts]:
    # Where each name is cut: as in the first array; as in another one beside it that is large, too, and
    # would be put together otherwise; and a large result that would be one block, in one a thread.
    first = node.inputs[0]
    lengths = node.lengths
    cuts: dict[int, Cuts] = {}
    for one, own in zip(node.inputs, node.names, strict=True):
        if one is not first and 2 * writer.bytes_of(one) <= writer.bytes_of(first):
            continue
        for name, axis_cuts in zip(own, writer.registers[one].layout.grid.cuts, strict=True):
            if len(axis_cuts) > 2:
                cuts.setdefault(name, axis_cuts)
    size = writer.bytes_of(node)
    whole = [name for name in node.output if name not in cuts]
    if len(whole) == len(node.output) > 0 and size >= SMALL_BYTES and 4 * size > writer.bytes_of(first):
        longest = max(whole, key=lengths.__getitem__)
        cuts[longest] = regular_cuts(lengths[longest], workers.slots)
    return {name: cuts.get(name, (0, length)) for name, length in lengths.items()}


def _region(names: tuple[int, ...], ranges: Ranges) -> Region:
    return tuple(ranges[name] for name in names)


@lowers(Kron)
def _(node: Kron, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of Kronecker's product: parts of the left array, or places, meet the right."""
    pieces = [_pieces(node, axis, writer) for axis in range(node.ndim)]
    if all(len(some) == 1 for some in pieces) and writer.bytes_of(node) >= SMALL_BYTES:
        # A result that would be one block: the longest axis of the left array is cut, a part a thread.
        axis = max(range(node.ndim), key=lambda one: node.left.shape[one])
        cuts = regular_cuts(node.left.shape[axis], min(node.left.shape[axis], workers.slots))
        pieces[axis] = [(part, (0, node.right.shape[axis])) for part in itertools.pairwise(cuts)]
    grid = Grid(
        tuple(
            (0, *((left[1] - 1) * length + right[1] for left, right in some))
            if 0 not in node.shape
            else (0, n)
            for some, length, n in zip(pieces, node.right.shape, node.shape, strict=True)
        )
    )
    heavy = 0 if writer.bytes_of(node.left) >= writer.bytes_of(node.right) else 1
    meeting = [tuple(zip(*chosen, strict=True)) for chosen in itertools.product(*pieces)]
    owners = tuple(writer.home_of(node.operands[heavy], both[heavy]) for both in meeting)
    for block in writer.each_block(node, Layout(grid, owners), _CONTRACTION, "kron"):
        operands = zip(node.operands, meeting[block.number], strict=True)
        values = [writer.read(block, one, region, block.owner) for one, region in operands]
        block.do(Run(kronecker, (node.dtype,)), *values, num_bytes=block.num_bytes)
        # SciPy lists places and values before it sorts them into rows.
        block.take((3 if node.sparse else 1) * block.num_bytes)


def _pieces(node: Kron, axis: int, writer: PlanWriter) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    # The parts of both arrays that make each part of the result along an axis.
    left, right = (writer.registers[one].layout.grid.cuts[axis] for one in (node.left, node.right))
    if 0 in node.shape:
        return [((0, left[-1]), (0, right[-1]))]
    if len(right) > 2 and left[-1] * (len(right) - 1) <= _MOST_PIECES:
        places = ((place, place + 1) for place in range(left[-1]))
        return list(itertools.product(places, itertools.pairwise(right)))
    return [(part, (0, right[-1])) for part in itertools.pairwise(left)]
