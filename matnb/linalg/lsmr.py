"""Least squares of sparse matrices: LSMR."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import norm
from matnb.lazy.loop import iterate
from matnb.linalg.bidiagonal import bidiagonal, least_squares_from, not_0
from matnb.linalg.operators import Operand

State = tuple[Any, ...]


class LeastResidual(NamedTuple):
    """What :func:`lsmr` gives, the first values of SciPy's tuple.

    Attributes
    ----------
    x
        float64 of shape (n,).
    istop
        1 where ``A x`` is near b, 2 where x is near a solution of the least squares, 7 where the iterations
        did not suffice, 0 where x is 0.
    itn
        The number of iterations.
    normr, normar
        The norms of ``b - A x`` and of A' times it, with the damping in both.
    """

    x: DistArray
    istop: DistArray
    itn: DistArray
    normr: DistArray
    normar: DistArray


def lsmr(
    A: object,
    b: Operand,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    maxiter: int | None = None,
    x0: Operand | None = None,
) -> LeastResidual:
    """Return the x with the least ``norm(b - A x)**2 + damp**2 norm(x - x0)**2``.

    Fong and Saunders 2011, "LSMR: An Iterative Algorithm for Sparse Least-Squares Problems", in which the
    norm of ``A' (b - A x)`` falls in each iteration; with the names and the meaning of
    ``scipy.sparse.linalg.lsmr``.

    Parameters
    ----------
    A, b, damp, atol, btol, x0
        As in :func:`matnb.linalg.lsqr`.
    maxiter
        The most iterations; the smaller side of A when left out.

    Returns
    -------
    LeastResidual
        ``x``, ``istop``, ``itn``, ``normr``, ``normar``.

    Raises
    ------
    ShapeError, DTypeError, OptionError
        As in :func:`matnb.linalg.lsqr`.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> A = sp.csr_array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> mn.linalg.lsmr(A, [1.0, 0.0, -1.0]).x.compute().round(6)
    array([ 1., -1.])
    """
    matrix, right, start = least_squares_from("lsmr", A, b, x0, (damp, atol, btol))
    n = matrix.shape[1]
    size_b = norm(right)

    def step(state: State) -> State:
        x, u, v, h, hbar, alpha, alphabar, rho, rhobar, cbar, sbar, zetabar, square = state
        u, beta, v, following = bidiagonal(matrix, matrix @ v - alpha * u, v)
        square = square + alpha**2 + beta**2 + damp**2
        # Three rotations: the damping, beta, and what makes the triangular matrix of A' r.
        alphahat = np.hypot(alphabar, damp)
        rho_before, rho = rho, np.hypot(alphahat, beta)
        cosine, sine = alphahat / rho, beta / rho
        theta, alphabar = sine * following, cosine * following
        thetabar, rhobar_before = sbar * rho, rhobar
        rhobar = np.hypot(cbar * rho, theta)
        cbar, sbar = cbar * rho / rhobar, theta / rhobar
        zeta, zetabar = cbar * zetabar, -sbar * zetabar
        hbar = h - thetabar * rho / (rho_before * rhobar_before) * hbar
        x = x + zeta / (rho * rhobar) * hbar
        h = v - theta / rho * h
        return x, u, v, h, hbar, following, alphabar, rho, rhobar, cbar, sbar, zetabar, square

    def residual_of(x: DistArray) -> DistArray:
        rest = first - matrix @ x
        return np.sqrt(rest @ rest + damp**2 * (x @ x))

    def is_least(state: State) -> DistArray:
        # The norm of A' r falls; that of r is at least as large as when it was last looked at.
        return abs(state[11]) <= atol * np.sqrt(state[12]) * not_0(residual_of(state[0]))

    def fits(state: State) -> DistArray:
        return residual_of(state[0]) <= btol * size_b + atol * np.sqrt(state[12]) * norm(state[0])

    first = right - matrix @ start
    u, beta, v, alpha = bidiagonal(matrix, first)
    zero, one = asarray(0.0), asarray(1.0)
    begun: State = zeros(n), u, v, v, zeros(n), alpha, alpha, one, one, one, zero, alpha * beta, zero
    final, taken = iterate(
        step,
        begun,
        until=lambda old, new: fits(new) | is_least(new),
        max_iterations=where(alpha * beta == 0, 0, min(matrix.shape) if maxiter is None else maxiter),
    )
    stop = where(alpha * beta == 0, 0, where(fits(final), 1, where(is_least(final), 2, 7)))
    return LeastResidual(start + final[0], stop, taken, residual_of(final[0]), abs(final[11]))
