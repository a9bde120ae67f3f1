"""Golub and Kahan's bidiagonalization step by step: of a matrix, and of it outside of singular vectors."""

from __future__ import annotations

from collections.abc import Callable

from matnb.lazy.array import DistArray
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import norm
from matnb.linalg.copies import LanczosStep

Apply = Callable[[DistArray], DistArray]
Pair = tuple[DistArray, DistArray, DistArray, DistArray]


def bidiagonal(matrix: DistArray, u: DistArray, before: DistArray | None = None) -> Pair:
    """Return the next pair of vectors, each a unit vector or 0, with their lengths: u, beta, v, alpha.

    Parameters
    ----------
    matrix
        A, m x n.
    u
        ``A v - alpha u`` of the pair before, or the right side.
    before
        Its v.
    """
    beta = norm(u)
    u = u / not_0(beta)
    v = matrix.T @ u
    if before is not None:
        v = v - beta * before
    alpha = norm(v)
    return u, beta, v / not_0(alpha), alpha


def not_0(value: DistArray) -> DistArray:
    """Return a number by which can be divided: 1 for 0."""
    return where(value > 0, value, 1.0)


def bidiagonal_outside(right: DistArray, products: tuple[Apply, Apply], last: LanczosStep) -> LanczosStep:
    """Return the next step for what a matrix is outside of singular vectors, as Lanczos' of its square.

    Parameters
    ----------
    right
        The right singular vectors, one in each row; zeros where there are none.
    products
        Record the products of a vector with the matrix A, and with its transpose.
    last
        The step before.
    """
    # C = A (1 - right' right), and Lanczos' steps are for C' C:
    # C v = alpha u + beta before, C' u = alpha v + beta v of the next step.
    forward, backward = products
    v = last.following
    u = forward(v) - last.before
    alpha = norm(u)
    u = u / not_0(alpha)
    w = backward(u)
    w = w - (right @ w) @ right - alpha * v
    beta = norm(w)
    return LanczosStep(beta * u, w / not_0(beta), alpha**2 + last.before @ last.before, alpha * beta)
