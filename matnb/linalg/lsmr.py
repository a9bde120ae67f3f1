"""Least squares of sparse matrices: LSMR."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.fields import has_fields
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import norm
from matnb.lazy.loop import converging, iterate
from matnb.linalg.bidiagonal import bidiagonal, not_0
from matnb.linalg.operators import Operand
from matnb.linalg.systems import least_squares_from
from matnb.tables.results import shows

State = tuple[Any, ...]


@shows(istop="istop", itn="iterations", normr="number")
@has_fields
class LeastResidual(NamedTuple):
    """Result of :func:`lsmr`: the first values of SciPy's tuple.

    Attributes
    ----------
    x
        float64 of shape (n,).
    istop, itn
        As in :func:`lsqr`.
    normr, normar
        The norms of the residual ``b - A x`` and of A' times it, both including the damping.
    """

    x: DistArray
    istop: DistArray
    itn: DistArray
    normr: DistArray
    normar: DistArray


class _Residual(NamedTuple):
    # What the norm of the residual follows from without a product (section 5.1 of the paper).
    betadd: Any
    betad: Any
    rhod: Any
    tautilde: Any
    thetatilde: Any
    taud: Any
    square: Any

    def after(self, rotations: Any, thetabar: Any, rhobar: Any, zeta_before: Any, zeta: Any) -> _Residual:
        chat, shat, cosine, sine = rotations
        betahat, betadd = cosine * chat * self.betadd, -sine * chat * self.betadd
        rhotilde = np.hypot(self.rhod, thetabar)
        ctilde, stilde = self.rhod / rhotilde, thetabar / rhotilde
        thetatilde, rhod, betad = stilde * rhobar, ctilde * rhobar, ctilde * betahat - stilde * self.betad
        tautilde = (zeta_before - self.thetatilde * self.tautilde) / rhotilde
        taud = (zeta - thetatilde * tautilde) / rhod
        square = self.square + (shat * self.betadd) ** 2
        return _Residual(betadd, betad, rhod, tautilde, thetatilde, taud, square)

    def norm(self) -> Any:
        return np.sqrt(self.square + (self.betad - self.taud) ** 2 + self.betadd**2)


def lsmr(
    A: ArrayLike,
    b: Operand,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    maxiter: int | None = None,
    x0: Operand | None = None,
) -> LeastResidual:
    """Return the x that minimizes ``norm(b - A x)**2 + damp**2 norm(x - x0)**2``.

    Fong and Saunders 2011, "LSMR: An Iterative Algorithm for Sparse Least-Squares Problems", in which the
    norm of ``A' (b - A x)`` decreases monotonically; with the arguments and results of
    ``scipy.sparse.linalg.lsmr``.

    Parameters
    ----------
    A, b, damp, atol, btol, x0
        As in :func:`matnb.linalg.lsqr`.
    maxiter
        Maximum number of iterations; by default min(m, n).

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
    n, size_b = matrix.shape[1], norm(right)

    def step(state: State) -> State:
        x, u, v, h, hbar, alpha, alphabar, rho, rhobar, cbar, sbar, zeta, zetabar, square, residual = state
        u, beta, v, following = bidiagonal(matrix, matrix @ v - alpha * u, v)
        square = square + alpha**2 + beta**2 + damp**2
        # Three rotations: the damping, beta, and what makes the triangular matrix of A' r.
        alphahat = np.hypot(alphabar, damp)
        rho_before, rhobar_before, rho = rho, rhobar, np.hypot(alphahat, beta)
        rotations = alphabar / alphahat, damp / alphahat, alphahat / rho, beta / rho
        theta, thetabar = rotations[3] * following, sbar * rho
        rhobar = np.hypot(cbar * rho, theta)
        cbar, sbar = cbar * rho / rhobar, theta / rhobar
        zeta_before, zeta, zetabar = zeta, cbar * zetabar, -sbar * zetabar
        hbar = h - thetabar * rho / (rho_before * rhobar_before) * hbar
        x = x + zeta / (rho * rhobar) * hbar
        h = v - theta / rho * h
        residual = residual.after(rotations, thetabar, rhobar, zeta_before, zeta)
        alphabar = rotations[2] * following
        vectors = x, u, v, h, hbar
        return *vectors, following, alphabar, rho, rhobar, cbar, sbar, zeta, zetabar, square, residual

    def is_least(state: State) -> DistArray:
        *_, zetabar, square, residual = state
        return abs(zetabar) <= atol * np.sqrt(square) * not_0(residual.norm())

    def fits(state: State) -> DistArray:
        x, *_, square, residual = state
        return residual.norm() <= btol * size_b + atol * np.sqrt(square) * norm(x)

    u, beta, v, alpha = bidiagonal(matrix, right - matrix @ start)
    zero, one = asarray(0.0), asarray(1.0)
    residual = _Residual(beta, zero, one, zero, zero, zero, zero)
    vectors = zeros(n), u, v, v, zeros(n)
    begun: State = *vectors, alpha, alpha, one, one, one, zero, zero, alpha * beta, zero, residual
    found = iterate(
        step,
        begun,
        until=lambda old, new: fits(new) | is_least(new),
        max_iterations=where(alpha * beta == 0, 0, min(matrix.shape) if maxiter is None else maxiter),
    )
    final, taken = converging("lsmr", found, "give a larger maxiter, atol or btol, or a damp")
    stop = where(alpha * beta == 0, 0, where(fits(final), 1, where(is_least(final), 2, 7)))
    return LeastResidual(start + final[0], stop, taken, final[-1].norm(), abs(final[-3]))
