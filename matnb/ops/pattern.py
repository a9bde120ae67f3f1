"""Patterns: which elements a sparse array stores, each of them 1; and what another has at these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from matnb.blocks.kernels import patterns
from matnb.errors import DTypeError
from matnb.expr.nodes import Expr
from matnb.ops.reference import Value, flat_positions, from_flat_positions, positions
from matnb.ops.registry import lowers, means
from matnb.program.kinds import MAP, PICK
from matnb.program.operators import Run
from matnb.program.plan import Workers
from matnb.program.writer import PlanWriter


@dataclass(frozen=True, eq=False, repr=False)
class Pattern(Expr):
    """The stored entries of a sparse array, whatever their values, as ones of a dtype."""

    plain: ClassVar[bool] = True
    operand: Expr
    element: np.dtype

    def __post_init__(self) -> None:
        given = self.operand
        if not given.sparse:
            raise DTypeError(
                f"the pattern of a dense array of shape {given.shape}: it stores every element; "
                "x != 0 tells which are not 0"
            )
        self.settle(given.shape, self.element, True, given)


@dataclass(frozen=True, eq=False, repr=False)
class AtEntries(Expr):
    """The elements of a sparse array where a pattern stores entries: 0 where the array itself stores none."""

    plain: ClassVar[bool] = True
    operand: Expr
    pattern: Expr

    def __post_init__(self) -> None:
        own, pattern = self.operand, self.pattern
        assert own.shape == pattern.shape, "a pass makes it so"
        self.settle(own.shape, own.dtype, True, own, pattern)

    def _entries(self, of: Mapping[Expr, float], row: float) -> float:
        return of[self.pattern]

    def _text(self, operands: Sequence[str]) -> str:
        return f"{operands[0]} at the entries of {operands[1]}"


@means(AtEntries)
def _(node: AtEntries, operands: Sequence[Value]) -> Value:
    """Return the elements at the pattern's entries."""
    own, wanted = (flat_positions(one) for one in operands)  # type: ignore[arg-type]  # sparse here
    found = np.zeros(len(wanted), node.dtype)
    at = np.intersect1d(wanted, own, return_indices=True)
    found[at[1]] = operands[0].data[at[2]]
    return from_flat_positions(wanted, found, node.shape)


@means(Pattern)
def _(node: Pattern, operands: Sequence[Value]) -> Value:
    """Return a one for each stored entry."""
    rows, columns = positions(operands[0])  # type: ignore[arg-type]  # sparse here
    return sp.csr_array((np.ones(len(rows), node.dtype), (rows, columns)), shape=node.shape)  # type: ignore[arg-type]  # two axes


@lowers(Pattern)
def _(node: Pattern, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of a pattern, each where the block is: it keeps no values."""
    source = writer.registers[node.operand]
    writer.note_reuse(node.operand)
    for block in writer.each_block(node, source.layout, MAP, "pattern"):
        block.do(Run(patterns.ones, (node.dtype,)), block.read(source.keys[block.number]))


@lowers(AtEntries)
def _(node: AtEntries, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that read an array at the entries of a pattern, each where the pattern's block is."""
    source = writer.registers[node.pattern]
    writer.note_reuse(node.pattern)
    for block in writer.each_block(node, source.layout, PICK, "at entries"):
        pattern = block.read(source.keys[block.number])
        block.do(
            Run(patterns.at_entries), writer.read(block, node.operand, block.region, block.owner), pattern
        )
