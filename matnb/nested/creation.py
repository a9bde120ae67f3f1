"""Nested arrays from values and lengths, from lists, and from the rows of a sparse matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from matnb.errors import OptionError, ShapeError, suggestion
from matnb.expr.nodes import Regrid
from matnb.lazy.array import DistArray, wrap
from matnb.lazy.evaluator import evaluator
from matnb.nested.array import NestedArray
from matnb.nested.strategy import Machine, chosen, costs_of
from matnb.nested.structure import (
    Structure,
    as_vector,
    structure_from_counts,
    structure_from_offsets,
)
from matnb.session.current import current_session

_STRATEGIES = ("auto", "segmented", "uniform")


def unflatten(values: object, counts: object, *, strategy: str = "auto") -> NestedArray:
    """Return values divided into segments of given lengths.

    Parameters
    ----------
    values
        n numbers or booleans, one after the other.
    counts
        The length of each segment: whole numbers of at least 0 whose sum is n.
    strategy
        How to cut the values: "segmented", between segments, so that nothing along a segment communicates;
        "uniform", into equal shares, whatever the lengths; "auto" takes the one of the smaller predicted
        cost. Results are the same, to the last bit but for scans of floats.

    Returns
    -------
    NestedArray
        Its lengths are summarized now; values are lazy.

    Raises
    ------
    ShapeError
        If the lengths do not add up to the number of values, or one is negative.
    DTypeError
        For values that are no numbers of at most 64 bits, or lengths that are no whole numbers.
    OptionError
        For another strategy.
    LoopBodyError
        For lengths that depend on the state of a loop.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.nested.unflatten([1.0, 2.0, 3.0], [1, 0, 2]).tolist()
    [[1.0], [], [2.0, 3.0]]
    """
    _check_strategy(strategy)
    flat = as_vector(values, "unflatten: values")
    structure = structure_from_counts(counts, "unflatten: counts")
    return nested(flat, structure, strategy, "unflatten: counts")


def from_offsets(values: object, offsets: object, *, strategy: str = "auto") -> NestedArray:
    """Return values divided into segments that begin at given places.

    Parameters
    ----------
    values, strategy
        As of :func:`unflatten`.
    offsets
        Where each segment begins, from 0 on, and where the last one ends: one more than there are segments,
        as a SciPy CSR matrix has them in ``indptr``.

    Raises
    ------
    ShapeError, DTypeError, OptionError, LoopBodyError
        As :func:`unflatten`, and for offsets that decrease or do not begin with 0.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.nested.from_offsets([1.0, 2.0, 3.0], [0, 1, 1, 3]).tolist()
    [[1.0], [], [2.0, 3.0]]
    """
    _check_strategy(strategy)
    flat = as_vector(values, "from_offsets: values")
    return nested(
        flat, structure_from_offsets(offsets, "from_offsets: offsets"), strategy, "from_offsets: offsets"
    )


def from_lists(lists: Sequence[Sequence[float]], *, strategy: str = "auto") -> NestedArray:
    """Return a list of lists of numbers, or of arrays, as a nested array.

    Raises
    ------
    ShapeError
        For what is not one list of lists of numbers.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.nested.from_lists([[1, 2], [], [3]]).count().compute()
    array([2, 0, 1])
    """
    parts = [np.asarray(one) for one in lists]
    for place, one in enumerate(parts):
        if one.ndim != 1:
            raise ShapeError(f"from_lists: element {place} has shape {one.shape}: give a list of numbers")
    filled = [one for one in parts if one.size]
    values = np.concatenate(filled) if filled else np.empty(0)
    return unflatten(values, [one.size for one in parts], strategy=strategy)


def nested(
    values: DistArray,
    structure: Structure,
    strategy: str,
    what: str,
    positions: DistArray | None = None,
) -> NestedArray:
    """Return values in the segments of a structure, cut by a strategy.

    Raises
    ------
    ShapeError
        Where there are more or fewer values than the segments have.
    """
    if structure.num_values != values.shape[0]:
        raise ShapeError(f"{what} are for {structure.num_values:,} values, but there are {values.shape[0]:,}")
    if not structure.num_values:
        return NestedArray(values, replace(structure, cuts=(0, 0)), "segmented", positions)
    given = evaluator().planned_layout(values.expression).grid.cuts[0]
    session = current_session()
    workers = session.strategies.workers()
    costs = costs_of(session.cluster.in_process, structure.histogram)
    machine = Machine(len(workers.numbers), workers.threads, costs)
    choice = chosen(structure.knots, structure.longest, given, strategy, machine)
    session.strategies.add(structure.knots, choice)
    if choice.cuts != given:
        values = wrap(Regrid(values.expression, (choice.cuts,)))
        positions = None if positions is None else wrap(Regrid(positions.expression, (choice.cuts,)))
    structure = replace(structure, cuts=choice.cuts, choice=choice)
    return NestedArray(values, structure, choice.strategy, positions)


def _check_strategy(strategy: str) -> None:
    if strategy not in _STRATEGIES:
        raise OptionError(f"strategy={strategy!r}; {suggestion(str(strategy), _STRATEGIES)}")
