"""Which nodes have a meaning of their own: one dict and one decorator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp

from matnb.expr.nodes import Expr

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
