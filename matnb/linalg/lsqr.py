"""Least squares of sparse matrices: LSQR."""

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


@shows(istop="istop", itn="iterations", r1norm="number")
@has_fields
class LeastSquares(NamedTuple):
    """Result of :func:`lsqr`: the first values of SciPy's tuple.

    Attributes
    ----------
    x
        float64 of shape (n,).
    istop
        1 if ``A x`` is close to b, 2 if x is close to a least-squares solution, 7 if the iteration limit was
        reached, 0 if x is 0.
    itn
        The number of iterations.
    r1norm, r2norm
        The norm of ``b - A x``, without and with the damping.
    """

    x: DistArray
    istop: DistArray
    itn: DistArray
    r1norm: DistArray
    r2norm: DistArray


def lsqr(
    A: ArrayLike,
    b: Operand,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    iter_lim: int | None = None,
    x0: Operand | None = None,
) -> LeastSquares:
    """Return the x that minimizes ``norm(b - A x)**2 + damp**2 norm(x - x0)**2``.

    Paige and Saunders 1982, "LSQR: An Algorithm for Sparse Linear Equations and Sparse Least Squares"; with
    the arguments and results of ``scipy.sparse.linalg.lsqr``.

    Parameters
    ----------
    A
        m x n, sparse or dense, real.
    b
        m numbers.
    damp
        0 or more.
    atol, btol
        Stop when the norm of the residual is at most ``btol norm(b) + atol norm(A) norm(x)``, or the norm of
        A' times the residual is at most ``atol norm(A)`` times that of the residual; norm(A) is an estimate
        of the Frobenius norm.
    iter_lim
        Maximum number of iterations; by default 2 n.
    x0
        Initial guess; by default zeros.

    Returns
    -------
    LeastSquares
        ``x``, ``istop``, ``itn``, ``r1norm``, ``r2norm``.

    Raises
    ------
    ShapeError, DTypeError, OptionError
        For arguments of inconsistent shapes, complex numbers, a negative damping or tolerance.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> A = sp.csr_array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> mn.linalg.lsqr(A, [1.0, 0.0, -1.0]).x.compute().round(6)
    array([ 1., -1.])
    """
    matrix, right, start = least_squares_from("lsqr", A, b, x0, (damp, atol, btol))
    n = matrix.shape[1]
    size_b = norm(right)

    def step(state: State) -> State:
        x, u, v, w, alpha, phibar, rhobar, square, damped, _ = state
        # Golub and Kahan's bidiagonalization, then the rotations that take the damping and beta away.
        begun = alpha
        u, beta, v, alpha = bidiagonal(matrix, matrix @ v - alpha * u, v)
        square = square + begun**2 + beta**2 + damp**2
        before = np.hypot(rhobar, damp)
        psi, phibar = damp / before * phibar, rhobar / before * phibar
        rho = np.hypot(before, beta)
        cosine, sine = before / rho, beta / rho
        phi, rhobar, theta = cosine * phibar, -cosine * alpha, sine * alpha
        x = x + phi / rho * w
        w = v - theta / rho * w
        phibar = sine * phibar
        gradient = alpha * abs(sine * phi)  # the norm of A'r, and damping
        return x, u, v, w, alpha, phibar, rhobar, square, damped + psi**2, gradient

    def ends(state: State) -> tuple[DistArray, DistArray]:
        x, *_, phibar, _, square, damped, gradient = state
        size, residual = np.sqrt(square), np.sqrt(phibar**2 + damped)
        return residual <= btol * size_b + atol * size * norm(x), gradient <= atol * size * not_0(residual)

    u, beta, v, alpha = bidiagonal(matrix, right - matrix @ start)
    zero = asarray(0.0)
    begun: State = zeros(n), u, v, v, alpha, beta, alpha, zero, zero, alpha * beta
    most = 2 * n if iter_lim is None else iter_lim
    found = iterate(
        step,
        begun,
        until=lambda old, new: ends(new)[0] | ends(new)[1],
        max_iterations=where(alpha * beta == 0, 0, most),
    )
    final, taken = converging("lsqr", found, "give a larger iter_lim, atol or btol, or a damp")
    fits, is_least = ends(final)
    stop = where(alpha * beta == 0, 0, where(fits, 1, where(is_least, 2, 7)))
    x, damped = final[0], final[8]
    residual = np.sqrt(final[5] ** 2 + damped)
    with_damping = residual
    plain = np.sqrt(np.maximum(residual**2 - damp**2 * norm(x) ** 2, 0.0))
    return LeastSquares(start + x, stop, taken, plain, with_damping)
