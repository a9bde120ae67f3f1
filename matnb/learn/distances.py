"""Distances of rows to others, and which of these are nearest, as expressions of one product."""

from __future__ import annotations

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.functions.indexing import take, take_along_axis


def squares(X: DistArray) -> DistArray:
    """Return the squared length of each row."""
    return (X * X).sum(axis=1)


def scores(X: DistArray, Y: DistArray, middle: DistArray) -> DistArray:
    """Return squared distances of each row of X to each of Y but for |x - m|^2, in which all of Y are alike.

    |x - y|^2 - |x - m|^2 = (y - m)'(y + m) - 2 x'(y - m), whose terms are small where Y is around the
    middle m, however far that is from 0.
    """
    offsets = dense(Y) - middle
    return X @ (-2 * offsets).T + (offsets * (offsets + 2 * middle)).sum(axis=1)


def squared_distances(X: DistArray, Y: DistArray, middle: DistArray | None = None) -> DistArray:
    """Return the squared distance of each row of X to each of Y, which is dense: an n x m expression.

    ``middle`` is a vector that Y is around, its mean when left out.
    """
    m = Y.mean(axis=0) if middle is None else middle
    return asarray(np.maximum(scores(X, Y, m) + squared_to(X, m)[:, None], 0))


def squared_to(X: DistArray, m: DistArray) -> DistArray:
    """Return the squared distance of each row to a vector."""
    return squares(X) - 2 * (X @ m) + (m * m).sum() if X.sparse else squares(X - m)


def nearest(X: DistArray, centers: DistArray) -> DistArray:
    """Return which row of ``centers`` is nearest to each of X: n places, int32, of equal ones the first."""
    return scores(X, centers, centers.mean(axis=0)).argmin(axis=1).astype(np.int32)


def squared_distances_to_own(X: DistArray, centers: DistArray, labels: DistArray) -> DistArray:
    """Return the squared distance of each row to the center of its label: n numbers, float64."""
    if not X.sparse:
        return ((X - centers[labels]).astype(np.float64) ** 2).sum(axis=1)
    own = take_along_axis(X @ centers.T, labels[:, None].astype(np.int64), axis=1)[:, 0]
    return np.maximum(squares(X) - 2 * own + squares(centers)[labels], 0).astype(np.float64)


def rows_at(X: DistArray, places: DistArray) -> DistArray:
    """Return the rows at some places, dense."""
    return dense(take(X, places, axis=0))


def dense(X: DistArray) -> DistArray:
    """Return rows with every element stored."""
    return X + zeros(X.shape, X.dtype) if X.sparse else X
