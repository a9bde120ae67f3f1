"""The passes in the order they run; each is a pure function from named expressions to named expressions."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

from matnb.errors import OptionError, suggestion
from matnb.expr.nodes import Expr
from matnb.expr.traverse import ExprGraph, Rewritten, composed
from matnb.passes.chains import order_chains
from matnb.passes.identities import drop_identities
from matnb.passes.narrowing import narrow
from matnb.passes.order import order_operands
from matnb.passes.quotients import multiply_quotients
from matnb.passes.row_searches import search_rows
from matnb.passes.sampling import sample
from matnb.passes.tall_products import multiply_tall
from matnb.passes.transposes import move_transposes
from matnb.registration import Registry

Roots = Mapping[str, Expr]
Pass = Callable[[ExprGraph], Rewritten]


@dataclass(frozen=True)
class PassEntry:
    """A pass and why it stands where it does."""

    name: str
    run: Pass
    reason: str


PASSES: list[PassEntry] = [
    PassEntry("order", order_operands, "first, so that what is written in two ways is one for all others"),
    PassEntry(
        "identities", drop_identities, "next, so that what does nothing hides no pattern from the others"
    ),
    PassEntry(
        "sampling", sample, "before transposes, which a product at the entries of a sparse array does without"
    ),
    PassEntry("transposes", move_transposes, "before slices, which then meet the functions below transposes"),
    PassEntry("narrowing", narrow, "before chains, whose order follows from what is left of the operands"),
    PassEntry("chains", order_chains, "after whatever changes the operands of products"),
    PassEntry(
        "order again", order_operands, "once more, so that what the others made has one name in the memo, too"
    ),
    PassEntry("tall products", multiply_tall, "with the next last: no other pass looks into what they make"),
    PassEntry("row searches", search_rows, "last, after what is made of products in any case"),
    PassEntry("quotients", multiply_quotients, "beside it: what it makes has no inside to look into"),
]

_runs: Registry[str, Pass] = Registry("the pass")
_runs.update({one.name: one.run for one in PASSES})


def register_pass(name: str, run: Pass, after: str, because: str) -> None:
    """Let a pass run after another one.

    Parameters
    ----------
    name
        Of the pass, which ``explain`` shows.
    run
        Returns what became of a graph: it changes no bit of what the roots mean, nor their shapes, dtypes and
        formats, gives the same of what it gave, and leaves alone what is known.
    after
        The name of the pass before it.
    because
        Why it stands there.

    Raises
    ------
    OptionError
        Where no pass is called ``after``, or another one is called ``name``.
    """
    names = [one.name for one in PASSES if one.name != name]
    if after not in names:
        raise OptionError(f"pass {name!r} after {after!r}: {suggestion(after, names)}")
    _runs[name] = run
    PASSES[:] = [one for one in PASSES if one.name != name]
    PASSES.insert(names.index(after) + 1, PassEntry(name, run, because))


def optimize(roots: Roots, known: Container[Expr] = ()) -> dict[str, Expr]:
    """Run every pass; names, shapes, dtypes and formats of the roots stay."""
    return _steps(ExprGraph(roots, known))[-1][1].roots


def traced(roots: Roots, known: Container[Expr] = ()) -> tuple[dict[str, Expr], dict[Expr, tuple[Expr, ...]]]:
    """Run every pass, and tell what the new expressions stand for.

    Returns
    -------
    tuple
        The new roots; and for every expression that a pass made the recorded ones it stands for.
    """
    origins: dict[Expr, tuple[Expr, ...]] = {}
    recorded = ExprGraph(roots, known)
    steps = _steps(recorded)
    for _, step in steps:
        if step.origins:
            origins = composed(origins, step.origins)
    for node in recorded.order if origins else ():
        origins.pop(node, None)
    return steps[-1][1].roots, origins


def stages(roots: Roots, known: Container[Expr] = ()) -> list[tuple[str, dict[str, Expr]]]:
    """Return the roots after each pass, by the pass's name.

    Expressions in ``known`` have values already and are left alone.
    """
    return [(name, after.roots) for name, after in _steps(ExprGraph(roots, known))]


def _steps(graph: ExprGraph) -> list[tuple[str, Rewritten]]:
    result = []
    for listed in PASSES:
        after = listed.run(graph)
        for name, root in graph.roots.items():
            new = after.roots[name]
            assert (new.shape, new.dtype, new.sparse) == (root.shape, root.dtype, root.sparse), listed.name
        graph = after.graph
        result.append((listed.name, after))
    return result
