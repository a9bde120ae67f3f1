"""Many small systems: linear algebra of each matrix of a stack, least squares of each row of a sparse one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import scipy.sparse as sp

from matnb.blocks.grid import Grid, all_of
from matnb.blocks.kernels.calls import Output
from matnb.blocks.kernels.rows.solves import decompose, solve_rows, stack_bytes, stack_part
from matnb.blocks.layout import Layout
from matnb.blocks.stacks import Options, decomposed
from matnb.errors import DTypeError, ShapeError, SingularError
from matnb.expr.nodes import Expr
from matnb.ops.lanes import lanes_layout
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import PART, SOLVE
from matnb.program.operators import Run
from matnb.program.plan import Workers
from matnb.program.regions import rows_region
from matnb.program.writer import PlanWriter


@dataclass(frozen=True, eq=False, repr=False)
class Decompose(Expr):
    """What ``numpy.linalg`` has under a name, of stacks of matrices along the first axis.

    Those inputs that are ``cut`` have as many matrices as the result, the others are for all of them.
    ``outputs`` are shapes and dtypes of what one element of the first axis gives: one, or several side by
    side in bytes.
    """

    inputs: tuple[Expr, ...]
    name: str
    options: Options
    outputs: tuple[Output, ...]
    cut: tuple[bool, ...]

    def __post_init__(self) -> None:
        length = next(one.shape[0] for one, is_cut in zip(self.inputs, self.cut, strict=True) if is_cut)
        shape, dtype = self.outputs[0]
        if len(self.outputs) > 1:
            shape, dtype = (stack_bytes(self.outputs),), np.dtype(np.uint8)
        self.settle((length, *shape), dtype, False, *self.inputs)

    def _text(self, operands: Sequence[str]) -> str:
        return f"{self.name}({', '.join(operands)})"


@dataclass(frozen=True, eq=False, repr=False)
class StackPart(Expr):
    """One of several results of each matrix of a stack."""

    call: Expr
    place: int

    def __post_init__(self) -> None:
        assert isinstance(self.call, Decompose), "only such a call has parts"
        shape, dtype = self.call.outputs[self.place]
        self.settle((self.call.shape[0], *shape), dtype, False, self.call)

    def _text(self, operands: Sequence[str]) -> str:
        return f"result {self.place} of {operands[0]}"


@dataclass(frozen=True, eq=False, repr=False)
class SegmentSolves(Expr):
    """The solution of the regularized least squares of each row of a sparse matrix, from rows of factors.

    Inputs are the matrix, the factors and, with a ``confidence``, their Gram matrix. The regularization
    is multiplied with the number of a row's entries where it is ``weighted``.
    """

    inputs: tuple[Expr, ...]
    regularization: float
    weighted: bool
    confidence: float | None
    element: np.dtype

    def __post_init__(self) -> None:
        ratings, factors = self.inputs[:2]
        if not ratings.sparse:
            raise DTypeError(
                "segment_solves: the matrix is dense; give a sparse one, whose stored entries are "
                "the observations"
            )
        if factors.ndim != 2 or factors.shape[0] != ratings.shape[1]:
            raise ShapeError(
                f"segment_solves: factors of shape {factors.shape} for a matrix of shape {ratings.shape}: "
                "give one row of factors for each column"
            )
        assert (len(self.inputs) == 3) == (self.confidence is not None), "a Gram matrix comes with it"
        self.settle((ratings.shape[0], factors.shape[1]), self.element, False, *self.inputs)

    def _text(self, operands: Sequence[str]) -> str:
        return f"segment_solves({', '.join(operands)})"


@means(Decompose)
def _(node: Decompose, operands: Sequence[Value]) -> Value:
    """Return NumPy's results, those of a matrix side by side."""
    found = decomposed(node.name, [dense(one) for one in operands], node.options)
    if len(found) == 1:
        return found[0]
    rows = [np.ascontiguousarray(one).reshape(len(one), prod(one.shape[1:])) for one in found]
    return np.concatenate([one.view(np.uint8) for one in rows], axis=1)


@means(StackPart)
def _(node: StackPart, operands: Sequence[Value]) -> Value:
    """Return the bytes of a result as what they are."""
    call = node.call
    assert isinstance(call, Decompose), "checked by the node"
    sizes = [prod(shape) * dtype.itemsize for shape, dtype in call.outputs]
    start = sum(sizes[: node.place])
    own = np.ascontiguousarray(dense(operands[0])[:, start : start + sizes[node.place]])
    return own.reshape(-1).view(node.dtype).reshape(node.shape)


@means(SegmentSolves)
def _(node: SegmentSolves, operands: Sequence[Value]) -> Value:
    """Return the solution of each row by NumPy."""
    matrix, factors = sp.csr_array(operands[0]), dense(operands[1]).astype(np.float64)
    found = np.zeros(node.shape)
    for row in range(node.shape[0]):
        begin, end = matrix.indptr[row : row + 2]
        if begin == end:
            continue
        used, right = factors[matrix.indices[begin:end]], matrix.data[begin:end].astype(np.float64)
        shift = node.regularization * (end - begin if node.weighted else 1)
        system = used.T @ used + shift * np.eye(node.shape[1])
        if node.confidence is not None:
            weights, right = node.confidence * right, np.where(right > 0, 1 + node.confidence * right, 0.0)
            system += dense(operands[2]) + (used.T * (weights - 1)) @ used
        try:
            np.linalg.cholesky(system)
        except np.linalg.LinAlgError:
            raise SingularError(f"segment_solves: row {row}: its system is not positive definite") from None
        found[row] = np.linalg.solve(system, used.T @ right)
    return found.astype(node.dtype)


# Each block of matrices or rows gives a block of results, where it is; what is for all goes to each worker.

_COPIES = {"qr": 3, "svd": 2}  # NumPy's, of what these are given and give; others write in place


@lowers(Decompose)
def _(node: Decompose, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of stacks, cut along the first axis as the array that takes most is."""
    stacks = [one for one, is_cut in zip(node.inputs, node.cut, strict=True) if is_cut]
    heaviest = max(stacks, key=writer.bytes_of)
    source = lanes_layout(heaviest, range(1, heaviest.ndim), writer, workers)
    layout = Layout(Grid((source.grid.cuts[0], *all_of(node.shape[1:]))), source.owners)
    for block in writer.each_block(node, layout, SOLVE, node.name):
        rows = block.region[0]
        values, taken = [], block.num_bytes
        for one, is_cut in zip(node.inputs, node.cut, strict=True):
            part = rows_region(one.shape, rows) if is_cut else all_of(one.shape)
            values.append(writer.read(block, one, part, block.owner))
            taken += writer.bytes_of(one, part)
        block.take(_COPIES.get(node.name, 1) * taken)
        block.do(Run(decompose, (node.name, node.options, node.outputs, rows[0])), *values)


@lowers(StackPart)
def _(node: StackPart, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that take one result out of each block."""
    call = node.call
    assert isinstance(call, Decompose), "checked by the node"
    source = writer.registers[call]
    writer.note_reuse(call)
    layout = Layout(Grid((source.layout.grid.cuts[0], *all_of(node.shape[1:]))), source.layout.owners)
    for block in writer.each_block(node, layout, PART):
        block.do(Run(stack_part, (call.outputs, node.place)), block.read(source.keys[block.number]))


@lowers(SegmentSolves)
def _(node: SegmentSolves, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of rows; each worker has all factors."""
    matrix, *small = node.inputs
    source = lanes_layout(matrix, (1,), writer, workers)
    width = node.shape[1]
    layout = Layout(Grid((source.grid.cuts[0], (0, width))), source.owners)
    for block in writer.each_block(node, layout, SOLVE, f"{width} unknowns a row"):
        rows = block.region[0]
        part = rows_region(matrix.shape, rows)
        ratings = writer.read(block, matrix, part, block.owner)
        given = [block.read(writer.block(one, all_of(one.shape), block.owner)) for one in small]
        # The solutions, factors (in fours) and entries in double precision, and one system.
        entries, doubles = writer.entries_of(matrix, part), sum(one.size for one in small)
        doubles += 3 * matrix.shape[1] + (width + 8) * (2 * width + 50)
        block.take(8 * ((rows[1] - rows[0]) * width + doubles + entries))
        options = (node.regularization, node.weighted, node.confidence, node.dtype, rows[0])
        block.do(Run(solve_rows, options), ratings, *given)
