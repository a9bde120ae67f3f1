"""Systems of symmetric matrices, which may be indefinite: minimal residuals."""

from __future__ import annotations

from typing import Any

import numpy as np

from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.loop import converging, iterate
from matnb.linalg.operators import Operand
from matnb.linalg.systems import LONGER_OR_NEARER, Solution, system_from

State = tuple[Any, ...]


def minres(
    A: ArrayLike,
    b: Operand,
    x0: Operand | None = None,
    *,
    rtol: float = 1e-5,
    shift: float = 0.0,
    maxiter: int | None = None,
    M: ArrayLike = None,
) -> Solution:
    """Solve ``(A - shift I) x = b`` for a symmetric, possibly indefinite A by MINRES (minimal residuals).

    Paige and Saunders 1975, "Solution of Sparse Indefinite Systems of Linear Equations"; with the arguments
    and results of ``scipy.sparse.linalg.minres``.

    Parameters
    ----------
    A, b, x0, maxiter
        As in :func:`matnb.linalg.cg`.
    rtol
        Stop when the norm of ``b - A x`` is at most this times that of b (with a preconditioner, in the norms
        it induces).
    shift
        A number subtracted from the diagonal of A.
    M
        A preconditioner as in :func:`cg`, positive definite.

    Returns
    -------
    Solution
        As in :func:`matnb.linalg.cg`.

    Raises
    ------
    ShapeError, DTypeError, OptionError
        For arguments of inconsistent shapes, complex numbers, negative tolerances.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> A = sp.csr_array([[0.0, 1.0], [1.0, 0.0]])
    >>> mn.linalg.minres(A, [1.0, 2.0]).x.compute().round(6)
    array([2., 1.])
    """
    system = system_from("minres", A, b, x0, M, (rtol, 0.0), maxiter)

    def step(state: State) -> State:
        x, r1, r2, y, w2, w1, beta, beta_before, dbar, epsilon, phibar, cs, sn = state
        # Lanczos' recurrence, then the rotation that makes its tridiagonal matrix triangular.
        v = y / beta
        y = system.apply(v) - shift * v - beta / beta_before * r1
        alpha = v @ y
        y = y - alpha / beta * r2
        z = system.precondition(y)
        following = np.sqrt(np.maximum(y @ z, 0.0))
        delta = cs * dbar + sn * alpha
        gbar = sn * dbar - cs * alpha
        gamma = np.maximum(np.hypot(gbar, following), np.finfo(float).tiny)
        w = (v - epsilon * w1 - delta * w2) / gamma
        cosine, sine = gbar / gamma, following / gamma
        x = x + cosine * phibar * w
        following_epsilon, following_dbar = sn * following, -cs * following
        return (
            *(x, r2, y, z, w, w2, following, beta),
            *(following_dbar, following_epsilon, sine * phibar, cosine, sine),
        )

    r = system.b - system.apply(system.x0) + shift * system.x0
    y = system.precondition(r)
    beta = np.sqrt(r @ y)
    limit = rtol * np.sqrt(system.b @ system.precondition(system.b))
    nothing, zero, one = zeros(system.b.shape), asarray(0.0), asarray(1.0)
    start: State = system.x0, nothing, r, y, nothing, nothing, beta, one, zero, zero, beta, -one, zero
    found = iterate(
        step,
        start,
        until=lambda old, new: (new[10] <= limit) | ~(new[6] > 0),
        max_iterations=where(beta <= limit, 0, system.max_iterations),
    )
    (x, *_, phibar, _, _), taken = converging("minres", found, LONGER_OR_NEARER)
    return Solution(x, where(phibar <= limit, 0, taken))
