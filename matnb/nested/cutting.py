"""Nested arrays from values and a structure, which are cut as a strategy wants."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from matnb.errors import ShapeError
from matnb.expr.nodes import Regrid
from matnb.lazy.array import DistArray, wrap
from matnb.lazy.creation import zeros
from matnb.lazy.evaluator import evaluator
from matnb.nested.strategy import Machine, chosen, costs_of
from matnb.nested.strategy_log import strategies_of
from matnb.nested.structure import Structure
from matnb.session.current import current_session

if TYPE_CHECKING:
    from matnb.nested.array import NestedArray


def nested(
    kind: type[NestedArray],
    values: DistArray,
    structure: Structure,
    strategy: str,
    what: str,
    positions: DistArray | None = None,
) -> NestedArray:
    """Return a nested array of values in the segments of a structure, cut by a strategy.

    Raises
    ------
    ShapeError
        Where there are more or fewer values than the segments have.
    LoopBodyError
        For values that depend on the state of a loop.
    """
    if structure.num_values != values.shape[0]:
        raise ShapeError(f"{what} are for {structure.num_values:,} values, but there are {values.shape[0]:,}")
    if not structure.num_values:
        return kind(values, replace(structure, cuts=(0, 0)), "segmented", positions)
    if values.expression.free:  # in a loop's body nothing is planned yet: cut as an array of this length is
        cuts = evaluator().planned_layout(zeros(structure.num_values, values.dtype).expression).grid.cuts[0]
        return kind(values, replace(structure, cuts=cuts), "uniform", positions)
    given = evaluator().planned_layout(values.expression).grid.cuts[0]
    choice = chosen(structure.knots, structure.longest, given, strategy, machine_for(structure))
    strategies_of(current_session()).add(structure.knots, choice)
    if choice.cuts != given or choice.ranks:
        values = wrap(Regrid(values.expression, (choice.cuts,), choice.ranks))
        if positions is not None:
            positions = wrap(Regrid(positions.expression, (choice.cuts,), choice.ranks))
    structure = replace(structure, cuts=choice.cuts, ranks=choice.ranks, choice=choice)
    return kind(values, structure, choice.strategy, positions)


def machine_for(structure: Structure) -> Machine:
    """Return what runs operations on such segments in the session."""
    session = current_session()
    workers = strategies_of(session).workers()
    costs = costs_of(session.cluster.in_process, structure.histogram)
    return Machine(len(workers.numbers), workers.threads, costs)
