"""What recommenders share: ratings of users for items, and the items that score best of those not seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from matnb.errors import DTypeError, IndexingError, suggestion
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import arange, asarray, zeros
from matnb.lazy.fields import has_fields
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.ordering import topk
from matnb.lazy.loop import iterate
from matnb.learn.arguments import nonnegative, rows_from, whole
from matnb.tables.results import shows

Labels = npt.NDArray[Any]
_MOST_NEAR = 100_000  # labels among which one that is near is looked for
_SCORES = 1 << 22  # made at a time: users of a batch times items


@shows()
@has_fields
class Recommendations(NamedTuple):
    """The best items of users, and their scores.

    Attributes
    ----------
    items
        int64, a row of n for each user, the best first; -1 where fewer items are left. Labels, where the
        fitted matrix has whole numbers as those of its columns, else numbers of columns.
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


def labels_of(R: object) -> tuple[Labels | None, Labels | None]:
    """Return the labels of users and of items, which a pivot has."""
    return getattr(R, "row_labels", None), getattr(R, "column_labels", None)


def places_from(
    values: ArrayLike, length: int, name: str, estimator: str, labels: Labels | None = None
) -> DistArray:
    """Return places along the axis of users or of items, int64, 1-D.

    Where the axis has labels, these are given; where they are texts, a whole number is a place.

    Raises
    ------
    DTypeError
        For anything other than whole numbers, where there are no labels.
    IndexingError
        For one that is not there.
    """
    given: Any = values if isinstance(values, DistArray) else np.asarray(values)
    if labels is not None and (labels.dtype.kind != "O" or given.dtype.kind not in "iu"):
        return _places_of(given.reshape((-1,)), labels, f"{estimator}: {name}")
    if given.dtype.kind in "UO":
        raise DTypeError(
            f"{estimator}: {name} are texts or objects, and the fitted matrix has no labels; give integers, "
            'or fit a pivot, as t.pivot("user", "item", "rating"), which has some'
        )
    given = asarray(given).reshape((-1,))
    if given.size and given.dtype.kind not in "iu":
        raise DTypeError(f"{estimator}: {name} has dtype {given.dtype}; give integers")
    wrong = (given < 0) | (given >= length)
    if given.size and bool(wrong.any()):
        at = int(wrong.argmax())
        raise IndexingError(f"{estimator}: {name}[{at}] is {int(given[at])}; there are {length} of them")
    places: DistArray = given.astype(np.int64)
    return places


def _places_of(given: Any, labels: Labels, what: str) -> DistArray:
    # The places of labels; those of numbers that the workers have are looked up there.
    if not given.size:
        return zeros(0, np.int64)
    if labels.dtype.kind in "biuf" and given.dtype.kind in "biuf":
        order: Any = np.argsort(labels, kind="stable")
        in_order: Any = labels[order]
        at = np.minimum(np.searchsorted(in_order, given), len(labels) - 1)
        if isinstance(given, DistArray):
            in_order, order = asarray(in_order), asarray(order)
        wrong = in_order[at] != given
        places = order[at]
    else:
        place_of = {label: place for place, label in enumerate(labels)}
        given = np.asarray(given).astype(labels.dtype) if labels.dtype.kind in "mM" else np.asarray(given)
        places = np.array([place_of.get(one, -1) for one in given.tolist()])
        wrong = places < 0
    if bool(wrong.any()):
        at = int(wrong.argmax())
        unknown = np.asarray(given[at]).item()
        if isinstance(unknown, str) and labels.dtype.kind == "O" and len(labels) <= _MOST_NEAR:
            known = suggestion(unknown, labels.tolist(), "the labels are")
        else:
            some = ", ".join(map(repr, labels[:3].tolist()))
            known = f"the labels are {some}{' and others' if len(labels) > 3 else ''}"
        raise IndexingError(
            f"{what}[{at}] is {unknown!r}, which is no label of the fitted matrix R: {known}. Fitted to "
            "R.without_labels(), it takes numbers of rows and columns"
        )
    return asarray(places).astype(np.int64)


def labeled_items(found: Recommendations, labels: Labels | None) -> Recommendations:
    """Return recommendations whose items are labels, where these are whole numbers."""
    if labels is None or labels.dtype.kind not in "iu":
        return found
    places = found.items
    ids = asarray(labels.astype(np.int64))
    return found._replace(items=where(places < 0, -1, ids[np.maximum(places, 0)]))


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
