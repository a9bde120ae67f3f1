"""Vectors made orthogonal to those that are there: what Lanczos' methods share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.errors import OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.functions.linear import norm
from matnb.lazy.loop import cond
from matnb.lazy.random import Generator

_ROUNDING = 1e-13  # of a vector whose every part was taken away this share is left, or less
_LEAST = 1e-140  # of a number whose square, and that of a small share of it, are normal numbers
_TOO_LITTLE = 0.5**0.5  # of a vector where less is left, rounding is too large a part


def check_magnitude(algorithm: str, values: npt.NDArray[np.float64]) -> None:
    """Refuse values whose squares are not in the range of float64, since norms of vectors need them.

    Equal values need none: every vector has the same product.

    Raises
    ------
    OptionError
        For a largest value above 0 and outside 1e-140 to 1e140.
    """
    largest = float(np.abs(values).max())
    if np.ptp(values) > 1e-10 * largest and not _LEAST <= largest <= 1 / _LEAST:
        raise OptionError(
            f"{algorithm}: the largest value is about {largest:.1e}, whose square float64 does not hold: "
            f"compute with A / {largest:.0e} and multiply the values by that"
        )


def against(V: DistArray, w: DistArray) -> tuple[DistArray, DistArray, DistArray]:
    """Return what of a vector is orthogonal to others, its norm, and the parts along these.

    A second time only where less than half of the square of the norm is left (Daniel, Gragg, Kaufman and
    Stewart 1976, "Reorthogonalization and Stable Algorithms for Updating the Gram-Schmidt QR Factorization").
    Twice is enough (Parlett 1998, "The Symmetric Eigenvalue Problem", section 6.9).

    Parameters
    ----------
    V
        m x n: orthonormal rows, and rows of zeros.
    w
        n numbers.
    """
    size = norm(w)
    along = V @ w
    w = w - along @ V
    rest = norm(w)
    return cond(rest < _TOO_LITTLE * size, lambda: _again(V, w, along), lambda: (w, rest, along))


def _again(V: DistArray, w: DistArray, along: DistArray) -> tuple[DistArray, DistArray, DistArray]:
    more = V @ w
    w = w - more @ V
    return w, norm(w), along + more


def following(V: DistArray, w: DistArray, rest: DistArray, taken: DistArray, rng: Generator) -> DistArray:
    """Return the unit vector of what is left, or where that is rounding a drawn one orthogonal to the others.

    Parameters
    ----------
    V, w, rest
        As :func:`against` has them.
    taken
        The norm of what was taken away.
    rng
        Draws it.
    """
    return cond(rest > _ROUNDING * taken, lambda: w / rest, lambda: outside(V, rng))


def outside(V: DistArray, rng: Generator) -> DistArray:
    """Return a drawn unit vector that is orthogonal to the rows of V."""
    direction = rng.standard_normal(V.shape[1])
    for _ in range(2):
        direction -= (V @ direction) @ V
    direction /= norm(direction)
    return direction
