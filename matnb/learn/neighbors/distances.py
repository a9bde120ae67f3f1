"""Distances of rows to others, and which of these are nearest."""

from __future__ import annotations

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.indexing import take
from matnb.lazy.functions.row_distances import nearest_rows, row_distances
from matnb.lazy.loop import cond

_UNSURE = 30  # times the root of what a number is rounded by, a share of a distance between centers


def squared_distances(X: DistArray, Y: DistArray) -> DistArray:
    """Return the squared distance of each row of X to each of Y, n x m, with the dtype of X."""
    return row_distances(X, dense(Y)).astype(X.dtype)


def squared_distances_to_own(X: DistArray, centers: DistArray, labels: DistArray) -> DistArray:
    """Return the squared distance of each row to the center of its label: n numbers, float64."""
    return row_distances(X, dense(centers), labels[:, None])[:, 0]


def nearest(X: DistArray, centers: DistArray) -> DistArray:
    """Return which row of ``centers`` is nearest to each of X: n places, int32, of equal ones the first."""
    is_sure = products_are_sure(largest_length(X), centers)
    return cond(is_sure, lambda: nearest_by_products(X, centers), lambda: nearest_exactly(X, centers))


def nearest_exactly(X: DistArray, centers: DistArray) -> DistArray:
    """Return the same, from differences of all rows with all centers."""
    return nearest_rows(X, dense(centers), 1)[:, 0].astype(np.int32)


def nearest_by_products(X: DistArray, centers: DistArray) -> DistArray:
    """Return the same by a product, which is faster, where :func:`products_are_sure`."""
    return scores(X, centers, centers.mean(axis=0)).argmin(axis=1).astype(np.int32)


def scores(X: DistArray, Y: DistArray, middle: DistArray) -> DistArray:
    """Return squared distances of each row of X to each of Y but for |x - m|^2, in which all of Y are alike.

    |x - y|^2 - |x - m|^2 = (y - m)'(y + m) - 2 x'(y - m), whose terms are small where Y is around the
    middle m, however far that is from 0. They are rounded by at most :func:`rounded`.
    """
    offsets = dense(Y) - middle
    return X @ (-2 * offsets).T + (offsets * (offsets + 2 * middle)).sum(axis=1)


def rounded(X: DistArray, lengths: DistArray, offset: DistArray, middle: DistArray) -> DistArray:
    """Return at most what scores of rows of these lengths are wrong by, of others so far from the middle.

    Sums of p products, in any order, are wrong by p times as much as the largest is rounded by: Higham 2002,
    "Accuracy and Stability of Numerical Algorithms", 3.1.
    """
    share = 2 * (X.shape[1] + 8) * np.finfo(X.dtype).eps
    from_0 = lengths + np.sqrt(middle @ middle)
    bound: DistArray = share * (offset * (2 * from_0 + offset) + from_0 * from_0)
    return bound


def largest_length(X: DistArray) -> DistArray:
    """Return a length that no row exceeds, by the largest number."""
    return abs(X).max().astype(np.float64) * np.sqrt(X.shape[1])


def products_are_sure(length: DistArray, centers: DistArray) -> DistArray:
    """Return whether scores of rows up to a length decide between centers as distances do.

    So they do but for rows in the middle between two, where what they are rounded by is little beside the
    least distance of two centers.
    """
    k, middle = len(centers), centers.mean(axis=0)
    if k == 1:
        return asarray(True)
    doubles = dense(centers).astype(np.float64)
    offset = np.sqrt(((doubles - middle) ** 2).sum(axis=1).max())
    # Equal centers have the same scores.
    apart = row_distances(doubles, doubles)
    least = where(apart > 0, apart, np.inf).min()
    unsure = _UNSURE * np.finfo(centers.dtype).eps ** 0.5
    return rounded(centers, length, asarray(offset), middle) <= unsure * least


def rows_at(X: DistArray, places: DistArray) -> DistArray:
    """Return the rows at some places, dense."""
    return dense(take(X, places, axis=0))


def dense(X: DistArray) -> DistArray:
    """Return rows with every element stored."""
    return X + zeros(X.shape, X.dtype) if X.sparse else X
