"""Estimates how many entries and bytes an expression will hold, from counts alone."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from math import prod

from matnb.expr.control import Final, Loop
from matnb.expr.nodes import Expr
from matnb.expr.traverse import topological
from matnb.passes.entries import guessed
from matnb.program.plan import StoredArray


def estimate_entries(
    roots: Iterable[Expr],
    stored: Mapping[Expr, StoredArray],
    counted: Mapping[Expr, int] | None = None,
    bound: Callable[[Expr, Mapping[Expr, int]], int | None] = lambda node, entries: None,
) -> dict[Expr, int]:
    """Return the stored entries of every expression under the roots: a guess for sparse ones.

    Of products that were ``counted`` it is what they store at most; and of others where there is a ``bound``,
    which is given what was found of their operands.
    """
    known: Container[Expr] = stored
    entries: dict[Expr, int] = {}
    for node in topological(roots, known):
        if not node.sparse:
            entries[node] = prod(node.shape)
        elif node in stored and stored[node].block_nnz:
            entries[node] = sum(stored[node].block_nnz)
        else:
            most = (counted or {}).get(node)
            if most is None and isinstance(node, Final) and isinstance(node.control, Loop):
                begin = node.control.state[node.place]
                most = estimate_entries([begin], stored, counted)[begin]
            if most is None:
                most = bound(node, entries)
            if most is None:
                most = int(guessed(node, {one: entries.get(one, 0) for one in node.operands}, 0))
            entries[node] = min(most, prod(node.shape))
    return entries
