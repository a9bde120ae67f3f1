"""What booleans pick as an array of its own: how many there are in each part is asked for; nothing moves."""

from __future__ import annotations

from math import prod

import numpy as np

from matnb.blocks.grid import Grid, regular_cuts
from matnb.errors import ShapeError
from matnb.expr.nodes import Expr
from matnb.expr.traverse import topological
from matnb.lazy.evaluator import asked, evaluator
from matnb.lazy.handles import Handle
from matnb.lazy.ufuncs import call
from matnb.ops.reshaping import Reshape
from matnb.ops.selecting import Compress, CountTrue, Cuts, Expand, TruePlaces

_FEWEST_ROWS = 64
_SMALL = 32 * 1024  # elements, of which one block is as good as several


def compressed(values: Expr, mask: Expr) -> Expr:
    """Return the elements, or rows, of an array where booleans for its first axes are true.

    Parameters
    ----------
    values
        At least as many axes as ``mask``.
    mask
        Booleans, mostly of one axis.

    Raises
    ------
    LoopBodyError
        Inside the body of a loop or branch, as only a run can tell how many are picked.
    """
    if mask.shape != values.shape[: mask.ndim]:
        raise ShapeError(f"booleans of shape {mask.shape} for an array of shape {values.shape}")
    if _is_flat(values, mask):
        return compressed(*_in_rows(values, mask))
    before = parts_of(values, mask)
    return Compress(values, mask, before, picked_parts(mask, before))


def expanded(values: Expr, mask: Expr, new: Expr) -> Expr:
    """Return an array with new elements, or rows, where booleans for its first axes are true, in row order.

    Raises
    ------
    ShapeError
        When there is not one for each.
    LoopBodyError
        Inside the body of a loop or branch.
    """
    if _is_flat(values, mask):
        return Reshape(expanded(*_in_rows(values, mask), new), values.shape)
    before = parts_of(values, mask)
    after = picked_parts(mask, before)
    rest = values.shape[mask.ndim :]
    if new.shape != (after[-1], *rest):
        raise ShapeError(
            f"values of shape {new.shape} for the {after[-1]:,} elements of shape {rest} that booleans pick: "
            "give one value, or one for each"
        )
    return Expand(values, mask, new, before, after)


def places_where(mask: Expr) -> tuple[Expr, ...]:
    """Return where the elements of an array are not zero, in row order: the places on each axis.

    Raises
    ------
    LoopBodyError
        Inside the body of a loop or branch.
    """
    if _is_flat(mask, mask):
        (place,) = places_where(Reshape(mask, (mask.size,)))
        found: list[Expr] = []
        for length in reversed(mask.shape):
            found.append(call(np.remainder, (place, length))[0])
            (place,) = call(np.floor_divide, (place, length))
        return tuple(reversed(found))
    before = parts_of(mask, mask)
    after = picked_parts(mask, before)
    return tuple(TruePlaces(mask, axis, before, after) for axis in range(mask.ndim))


def _is_flat(values: Expr, mask: Expr) -> bool:
    # Whether there are so few rows that parts of them would be most of the array.
    is_dense = not values.sparse and not mask.sparse
    return is_dense and mask.ndim > 1 and mask.shape[0] < _FEWEST_ROWS and mask.size >= _SMALL


def _in_rows(values: Expr, mask: Expr) -> tuple[Expr, Expr]:
    return Reshape(values, (mask.size, *values.shape[mask.ndim :])), Reshape(mask, (mask.size,))


def picked_parts(mask: Expr, before: Cuts) -> Cuts:
    """Return where what booleans pick from each part of the first axis ends, among all they pick."""
    counts = asked(CountTrue(mask, before), "how many elements booleans pick")
    after = [0]
    for count in counts.tolist():
        after.append(after[-1] + count)
    return tuple(after)


def parts_of(values: Expr, mask: Expr) -> Cuts:
    """Return the cuts of the first axis in which booleans are counted: those of blocks that are there.

    Where there are none yet, the booleans are made first.
    """
    if mask.free or values.free:
        asked(mask if mask.free else values, "how many elements booleans pick")  # which refuses
    if not mask.shape[0]:
        return (0, 0)
    for node in (values, mask, *reversed(topological([mask]))):
        if node.shape[:1] == mask.shape[:1] and (layout := evaluator().layout(node)) is not None:
            return _row_cuts(mask, layout.grid)
    handle = Handle(mask)  # while it lives, what is made stays
    evaluator().persist([handle.expression])
    layout = evaluator().layout(handle.expression)
    return (0, mask.shape[0]) if layout is None else _row_cuts(mask, layout.grid)


def _row_cuts(mask: Expr, grid: Grid) -> Cuts:
    # As many parts of rows as there are blocks, whose other axes the booleans are for too.
    count = prod(grid.counts[: mask.ndim])
    return grid.cuts[0] if grid.counts[0] == count else regular_cuts(mask.shape[0], count)
