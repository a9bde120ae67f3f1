"""Calls of a user's functions: on blocks, lanes, elements and places."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from breadth.case import Case, floats, odd, whole


def mapped(xp: Any, fn: Any, *arrays: Any, **options: Any) -> Any:
    """Return what a function gives for blocks, or for whole arrays where they are NumPy's."""
    if xp is not np:
        return xp.map_blocks(fn, *arrays, **options)
    found = np.asarray(fn(*arrays))
    return found.astype(options.get("dtype", found.dtype))


def doubled(block: Any) -> Any:
    """Return twice a block, sparse or not."""
    return block * 2


def largest_two(block: Any) -> Any:
    """Return the two largest of each row."""
    return np.sort(dense(block), axis=1)[:, -2:]


def row_sums(block: Any) -> Any:
    """Return the sum of each row."""
    return dense(block).sum(axis=1)


def dense(block: Any) -> np.ndarray:
    """Return a block as NumPy's."""
    return block.toarray() if sp.issparse(block) else block


def ends(lane: np.ndarray, times: int = 1) -> np.ndarray:
    """Return the first and the last of a lane."""
    return lane[[0, -1]] * times


def span(lane: np.ndarray) -> Any:
    """Return how far apart the elements of a lane are."""
    return lane.max() - lane.min()


def beside(block: Any, other: Any, weights: Any) -> np.ndarray:
    """Return rows of two arrays together, from their products with small ones."""
    return dense(block) @ dense(weights) + dense(other)[:, :1]


def numbered(block: Any, *, place: tuple[slice, ...] | None = None) -> np.ndarray:
    """Return the sum of each row and its number."""
    rows = range(len(dense(block))) if place is None else range(place[0].start, place[0].stop)
    return dense(block).sum(axis=1) + np.array(rows)


def reduced(xp: Any, fn: Any, combine: Any, *arrays: Any, **options: Any) -> Any:
    """Return what a function gives for slabs, combined, or for whole arrays where they are NumPy's."""
    if xp is not np:
        return xp.reduce_blocks(fn, *arrays, combine=combine, **options)
    return fn(*arrays, *options.get("replicate", ()))


def gram(X: Any, y: Any, *weights: Any) -> tuple[Any, Any]:
    """Return a Gram matrix and a gradient."""
    X, y = dense(X), dense(y)
    return X.T @ X, X.T @ (X @ dense(weights[0]) - y if weights else y)


def both(earlier: Any, later: Any) -> tuple[Any, ...]:
    """Return sums of two tuples' arrays."""
    return tuple(one + two for one, two in zip(earlier, later, strict=True))


def clipped(number: float) -> float:
    """Return a number that is not below zero."""
    return number if number > 0 else 0.0


CASES = [
    Case("map_blocks", lambda xp, x: mapped(xp, doubled, x), (floats(9, 5),),
         large=(floats(60000, 5),)),
    Case("map_blocks", lambda xp, x: mapped(xp, doubled, x), (odd(9),), tolerance=0),
    Case("map_blocks", lambda xp, x: mapped(xp, doubled, x, dtype="complex64"), (whole(3, 4, 2),)),
    Case("map_blocks", lambda xp, x: mapped(xp, largest_two, x), (floats(9, 5),),
         large=(floats(60000, 5),)),
    Case("map_blocks", lambda xp, x: mapped(xp, largest_two, x, shape=(9, 2), dtype=float), (floats(9, 5),)),
    Case("map_blocks", lambda xp, x: mapped(xp, row_sums, x), (whole(9, 5),)),
    Case("map_blocks", lambda xp, x: mapped(xp, row_sums, x, shape=(9,)), (whole(9, 5),)),
    Case("map_blocks", lambda xp, x, y, z: mapped(xp, lambda a, b, c: dense(a) + dense(b) * c, x, y, z),
         (floats(9, 5), floats(9, 5), floats(5))),
    Case("map_blocks", lambda xp, x: mapped(xp, np.negative, x), (floats(0, 3),)),
    Case("map_blocks", lambda xp, x, y, w: beside(x, y, w) if xp is np else xp.map_blocks(
        beside, x, y, align="rows", replicate=w), (floats(9, 5), floats(9, 3), floats(5, 2)),
        large=(floats(60000, 5), floats(60000, 3), floats(5, 2))),
    Case("map_blocks", lambda xp, x: mapped(xp, numbered, x), (whole(9, 5),)),
    Case("map_blocks", lambda xp, x, y: mapped(xp, lambda a, b: dense(a) * 0 + dense(b).sum(), x, y)
         if xp is np else xp.map_blocks(lambda a, b: dense(a) * 0 + dense(b).sum(), x, replicate=(y,)),
         (floats(9, 5), floats(4, 3))),
    Case("reduce_blocks", lambda xp, x, y: reduced(xp, gram, both, x, y), (floats(40, 5), floats(40)),
         large=(floats(150_000, 5), floats(150_000))),
    Case("reduce_blocks", lambda xp, x, y, w: reduced(xp, gram, both, x, y, replicate=(w,)),
         (floats(40, 5), floats(40), floats(5))),
    Case("reduce_blocks", lambda xp, x: reduced(
        xp, lambda x: dense(x).max(axis=0), np.maximum, x, shape=(5,), dtype=float), (floats(40, 5),)),
    Case("apply_along_axis", lambda xp, x: xp.apply_along_axis(span, 0, x), (floats(9, 5),)),
    Case("apply_along_axis", lambda xp, x: xp.apply_along_axis(ends, 1, x, 3), (floats(9, 5),),
         large=(floats(60000, 5),)),
    Case("apply_along_axis", lambda xp, x: xp.apply_along_axis(ends, -2, x, times=2), (whole(3, 4, 5),)),
    Case("apply_along_axis", lambda xp, x: xp.apply_along_axis(np.sort, 0, x), (floats(12),), tolerance=0),
    Case("apply_along_axis", lambda xp, x: xp.apply_along_axis(np.diag, 1, x), (floats(4, 3),)),
    Case("apply_along_axis", lambda xp, x: xp.apply_along_axis(span, 2, x), (floats(4, 3),)),
    Case("apply_over_axes", lambda xp, x: xp.apply_over_axes(xp.sum, x, [0, 2]), (whole(3, 4, 5),)),
    Case("apply_over_axes", lambda xp, x: xp.apply_over_axes(xp.max, x, -1), (floats(9, 5),)),
    Case("fromfunction", lambda xp: xp.fromfunction(lambda i, j: i * 10 + j, (4, 3), dtype=int), ()),
    Case("fromfunction", lambda xp: xp.fromfunction(lambda i: i / 2, (5,)), ()),
    Case("vectorize", lambda xp, x, y: xp.vectorize(lambda a, b: a if a > b else b)(x, y),
         (floats(9, 5), floats(5))),
    Case("vectorize", lambda xp, x: xp.vectorize(clipped, otypes=[float])(x), (whole(9),)),
]  # fmt: skip
