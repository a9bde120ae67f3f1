"""Distances of rows as sums of squared differences, which one row far away does not make wrong."""

from __future__ import annotations

from matnb.lazy.array import DistArray, wrap
from matnb.ops.row_distances import NearestRows, RowDistances


def nearest_rows(X: DistArray, Y: DistArray, count: int) -> DistArray:
    """Return the places of the nearest rows of Y to each row of X, n x ``count`` and int64.

    The nearest comes first, and of equally near rows the earlier. No array of all distances is made.

    Parameters
    ----------
    X
        n x p, sparse or dense.
    Y
        m x p, sparse or dense. Each worker needs it whole.
    count
        1 to m.
    """
    return wrap(NearestRows((X.expression, Y.expression), count))


def row_distances(X: DistArray, Y: DistArray, places: DistArray | None = None) -> DistArray:
    """Return the squared distances of each row of X to each of Y, float64.

    Parameters
    ----------
    X
        n x p, sparse or dense.
    Y
        m x p, dense; with places, sparse or dense. Each worker needs it whole.
    places
        n x k places of rows of Y, to whose distances those in the row's place are then; else n x m are
        returned.
    """
    inputs = (X.expression, Y.expression)
    return wrap(RowDistances(inputs if places is None else (*inputs, places.expression)))
