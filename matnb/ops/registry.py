"""What nodes of a kind mean and which tasks they become: a dict and a decorator for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp

from matnb.blocks.layout import Layout
from matnb.expr.digest import digest_of
from matnb.expr.nodes import Expr
from matnb.program.plan import Workers
from matnb.program.writer import PlanWriter

Value: TypeAlias = np.ndarray | sp.csr_array
Meaning: TypeAlias = Callable[[Any, Sequence[Value]], Value]  # of a node of the registered kind
MEANINGS: dict[type[Expr], Meaning] = {}
_Meaning = TypeVar("_Meaning", bound=Meaning)


def means(*kinds: type[Expr]) -> Callable[[_Meaning], _Meaning]:
    """Register what gives the value of nodes of some kinds from those of their operands."""

    def register(meaning: _Meaning) -> _Meaning:
        for kind in kinds:
            MEANINGS[kind] = meaning
        return meaning

    return register


def meaning_of(node: Expr) -> Meaning:
    """Return what gives the value of a node.

    Raises
    ------
    TypeError
        When nothing does.
    """
    if type(node) not in MEANINGS:
        known = ", ".join(kind.__name__ for kind in MEANINGS)
        raise TypeError(f"no meaning for {type(node).__name__}; known: {known}")
    return MEANINGS[type(node)]


def dense(value: Value) -> np.ndarray:
    """Return a value as a NumPy array."""
    return value.toarray() if sp.issparse(value) else value


Lowering: TypeAlias = Callable[[Any, PlanWriter, Workers], None]  # of a node of the registered kind
LOWERINGS: dict[type[Expr], Lowering] = {}
_Lowering = TypeVar("_Lowering", bound=Lowering)


def lowers(*kinds: type[Expr]) -> Callable[[_Lowering], _Lowering]:
    """Register what writes the tasks of nodes of some kinds; operands are arrays in registers by then."""

    def register(lowering: _Lowering) -> _Lowering:
        for kind in kinds:
            LOWERINGS[kind] = lowering
        return lowering

    return register


def lowering_of(node: Expr) -> Lowering:
    """Return what writes the tasks of a node.

    Raises
    ------
    TypeError
        When nothing does.
    """
    if type(node) not in LOWERINGS:
        known = ", ".join(kind.__name__ for kind in LOWERINGS)
        raise TypeError(f"no lowering for {type(node).__name__}; known: {known}")
    return LOWERINGS[type(node)]


def base_of(node: Expr, writer: PlanWriter, *layouts: Layout) -> str:
    """Return what the keys of an array's tasks begin with: it, and how all that takes part is laid out."""
    taking = (*(writer.registers[operand].layout for operand in node.operands), *layouts)
    return f"{node.digest.hex()}-{digest_of(*((one.grid.cuts, one.owners) for one in taking)).hex()[:8]}"
