"""``mn.repartition``, ``mn.align`` and ``mn.history``: where arrays are cut, and why."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.backend.cancellation import cancellable
from matnb.blocks.grid import MOST_PARTS, Grid, grid_from
from matnb.errors import LoopBodyError, OptionError, ShapeError
from matnb.expr.nodes import Expr
from matnb.lazy.array import DistArray
from matnb.session.current import active_session, current_session
from matnb.session.history_view import HistoryView


@cancellable()
def repartition(
    array: DistArray,
    n: int | Sequence[int] | None = None,
    cuts: Sequence[int] | Sequence[int | Sequence[int] | None] | None = None,
) -> DistArray:
    """Cut an array's blocks anew; its values and what it is written as stay.

    It is computed first if it was lazy. What was declared with :func:`matnb.align` is cut with it.

    Parameters
    ----------
    array
        Of at least one axis.
    n
        Into how many parts, of about equal work: by the times that were measured of a sparse array, else by
        its entries, or elements. A count of the rows, or one for each axis. By default as many parts of the
        rows as kernels run at a time. Such parts stay, also for what may have other last bits where an array
        is cut elsewhere, such as products by BLAS: these then follow measured times. Give ``cuts`` where they
        must not.
    cuts
        Where, instead: positions of the rows such as ``[0, 10, 25, 100]``, or for each axis positions, a
        count of equal parts, or None.

    Returns
    -------
    DistArray
        The same array; its ``layout`` shows the new cuts.

    Raises
    ------
    OptionError
        For what is no DistArray, for both ``n`` and ``cuts``, and where n < 1.
    ShapeError
        When counts or cuts do not fit the shape.
    LoopBodyError
        For an array of the body of a loop or branch.
    TooLargeError
        When the old and the new blocks do not fit the workers' memory together.

    Examples
    --------
    >>> import matnb as mn
    >>> x = mn.repartition(mn.arange(10.0), cuts=[0, 3, 10])
    >>> x.layout.grid.cuts
    ((0, 3, 10),)
    """
    (node,) = _expressions((array,), "repartition")
    if n is not None and cuts is not None:
        raise OptionError("repartition: give n or cuts, not both")
    if not node.ndim:
        raise ShapeError("repartition: a number has no rows; give an array of at least one axis")
    parts: tuple[int, ...] | Grid | None = None if n is None else _counts(n, node.ndim)
    if cuts is not None:
        rows_alone = all(isinstance(one, int | np.integer) for one in cuts) and _is_positions(cuts)
        parts = grid_from(node.shape, [cuts, *[None] * (node.ndim - 1)] if rows_alone else cuts)  # type: ignore[list-item]  # it is looked at
    session = current_session()
    session.lay_out([node], lambda balancer: balancer.repartition(node, parts))
    return array


@cancellable()
def align(*arrays: DistArray) -> None:
    """Let arrays of as many rows lie alike from now on: cut as the heaviest of them, and re-cut together.

    Those that are stored are laid out so now, others once they are computed. What meets in a loop is aligned
    for it anyway; this is for arrays that meet again and again. Only their rows are cut then.

    Parameters
    ----------
    *arrays
        At least two DistArrays with the same length of their first axis.

    Raises
    ------
    OptionError
        For less than two arrays, and for what is no DistArray.
    ShapeError
        When their first axes differ.
    LoopBodyError
        For an array of the body of a loop or branch.
    """
    nodes = _expressions(arrays, "align")
    if len(nodes) < 2:
        raise OptionError("align: give at least two arrays")
    if any(not node.ndim for node in nodes) or len({node.shape[0] for node in nodes}) > 1:
        shapes = ", ".join(str(node.shape) for node in nodes)
        raise ShapeError(f"align: arrays of shapes {shapes} do not have the same number of rows")
    current_session().lay_out(nodes, lambda balancer: balancer.align(nodes), stored=False)


def history() -> HistoryView:
    """Return what was decided about re-cutting arrays in the session in use, and what it brought.

    It shows itself in a notebook; ``save(path)`` writes a trace that ``mn.start(rebalance=path)`` repeats.
    No session is started for it.
    """
    session = active_session()
    return HistoryView() if session is None else HistoryView(session.history, session.rebalance)


def _expressions(arrays: Sequence[object], called: str) -> list[Expr]:
    for one in arrays:
        if not isinstance(one, DistArray):
            raise OptionError(f"{called}: {type(one).__name__} is no DistArray; make one with mn.asarray")
    nodes = [one.expression for one in arrays if isinstance(one, DistArray)]
    if any(node.free for node in nodes):
        raise LoopBodyError(
            f"{called}: an array of the body of a loop or branch, which is recorded once and has no blocks "
            f"yet; call mn.{called} before it, with arrays from outside"
        )
    return nodes


def _counts(n: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    counts = tuple(n) if isinstance(n, Sequence) else (n,)
    if any(
        not isinstance(one, int | np.integer) or isinstance(one, bool) or not 1 <= one <= MOST_PARTS
        for one in counts
    ):
        raise OptionError(f"repartition: n={n!r}: give whole numbers from 1 to {MOST_PARTS:,}")
    if isinstance(n, int | np.integer):
        return (int(n), *(1,) * (ndim - 1))
    if len(counts) != ndim:
        raise ShapeError(f"repartition: n={n!r} names {len(counts)} axes, the array has {ndim}")
    return tuple(map(int, counts))


def _is_positions(cuts: Sequence[object]) -> bool:
    # [0, 3, 10] are positions of the rows; [2, 3] are counts of two axes.
    return len(cuts) > 0 and cuts[0] == 0
