"""What recommenders share: ratings of users for items, and the items that score best of those not seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from matnb.errors import DTypeError, IndexingError
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import arange, asarray, zeros
from matnb.lazy.fields import has_fields
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.ordering import topk
from matnb.lazy.loop import iterate
from matnb.learn.arguments import nonnegative, rows_from, whole
from matnb.tables.results import shows

_SCORES = 1 << 22  # made at a time: users of a batch times items


@shows()
@has_fields
class Recommendations(NamedTuple):
    """The best items of users, and their scores.

    Attributes
    ----------
    items
        int64, a row of n for each user, the best first; -1 where fewer items are left.
    scores
        Of the factors' dtype, descending; minus infinity where there is no item.
    """

    items: DistArray
    scores: DistArray


def ratings_from(R: object, estimator: str, num_items: int | None = None, signed: bool = True) -> DistArray:
    """Return ratings, users x items, sparse, of float64 or float32; a stored zero is a rating too.

    Raises
    ------
    DTypeError
        For dense ones, which do not say which of their zeros are ratings.
    ShapeError
        For another number of items.
    OptionError
        For NaN and infinity, and where ``signed`` is false, for negative ones.
    """
    given = asarray(R)
    if not given.sparse:
        raise DTypeError(
            f"{estimator} of a dense array of shape {given.shape}: it does not say which zeros "
            "are ratings; give a sparse matrix of users and items"
        )
    ratings = rows_from(given, estimator, num_items)
    return ratings if signed else nonnegative(ratings, estimator, "R")


def places_from(values: ArrayLike, length: int, name: str, estimator: str) -> DistArray:
    """Return places along the axis of users or of items, int64, 1-D.

    Raises
    ------
    DTypeError
        For anything other than whole numbers.
    IndexingError
        For one that is not there.
    """
    axis = "rows" if name == "users" else "columns"
    way = (
        f"{name} are numbers of {axis}, which np.searchsorted(R.{axis}, labels) finds for labels of a pivot R"
    )
    if not isinstance(values, DistArray) and np.asarray(values).dtype.kind in "UO":
        raise DTypeError(f"{estimator}: {name} are texts or objects; {way}")
    given = asarray(values).reshape((-1,))
    if given.size and given.dtype.kind not in "iu":
        raise DTypeError(f"{estimator}: {name} has dtype {given.dtype}; give integers")
    wrong = (given < 0) | (given >= length)
    if given.size and bool(wrong.any()):
        at = int(wrong.argmax())
        raise IndexingError(
            f"{estimator}: {name}[{at}] is {int(given[at])}; there are {length} of them: {way}"
        )
    return given.astype(np.int64)


def best_unseen(
    score: Callable[[DistArray], DistArray],
    rows: DistArray,
    seen: DistArray | None,
    n: object,
    num_items: int,
    estimator: str,
) -> Recommendations:
    """Return for each row the items that score best, without those that ``seen`` stores.

    Parameters
    ----------
    score
        Gives of some of ``rows`` the scores of all items.
    rows, seen
        Users x whatever scores are made of, and users x items; both sparse or dense.
    """
    count = whole(n, "n", estimator, most=num_items)
    users = rows.shape[0]
    size = max(1, min(users, _SCORES // num_items))
    batches = -(-users // size)
    if not users:
        return Recommendations(zeros((0, count), dtype=np.int64), zeros((0, count), dtype=rows.dtype))
    # Batches are of equal rows, so the last one begins again with the first users.
    order = arange(batches * size) % users
    given = (rows[order],) if seen is None else (rows[order], seen[order])
    dtype = rows.dtype

    def step(state: tuple[DistArray, ...], item: tuple[DistArray, ...]) -> tuple[DistArray, DistArray]:
        scores = score(item[0])
        if len(item) > 1:
            scores = where(item[1].pattern(), np.array(-np.inf, dtype), scores)
        best, places = topk(scores, count)
        return where(best == -np.inf, -1, places), best

    if batches == 1:
        return Recommendations(*step((), given))
    start = (zeros((size, count), dtype=np.int64), zeros((size, count), dtype=dtype))
    _, _, found = iterate(step, start, over=given, batch=size, collect=lambda state: state)
    items, scores = (one.reshape((batches * size, count))[:users] for one in found)
    return Recommendations(items, scores)
