"""Systems that are not symmetric: generalized minimal residuals."""

from __future__ import annotations

from typing import Any

import numpy as np

from matnb.errors import OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import norm
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.loop import converging, iterate, iteration
from matnb.linalg.operators import Operand
from matnb.linalg.systems import LONGER_OR_NEARER, Solution, System, system_from

State = tuple[Any, ...]


def gmres(
    A: ArrayLike,
    b: Operand,
    x0: Operand | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: ArrayLike = None,
) -> Solution:
    """Solve ``A x = b`` by restarted GMRES (generalized minimal residuals).

    Saad and Schultz 1986, "GMRES: A Generalized Minimal Residual Algorithm for Solving Nonsymmetric Linear
    Systems"; with classical Gram-Schmidt orthogonalization, done twice. With the arguments and results of
    ``scipy.sparse.linalg.gmres``.

    Parameters
    ----------
    A, b, x0, rtol, atol
        As in :func:`matnb.linalg.cg`, for any square A.
    restart
        Iterations between restarts; this many vectors of n numbers are kept in memory.
    maxiter
        Maximum number of restarts; by default 10 n.
    M
        A preconditioner as in :func:`matnb.linalg.cg`, applied from the right, so that the residual is that
        of the original system.

    Returns
    -------
    Solution
        As in :func:`matnb.linalg.cg`; ``info`` counts restarts.

    Raises
    ------
    ShapeError, DTypeError, OptionError
        For arguments of inconsistent shapes, complex numbers, negative tolerances, a restart below 1.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> x, info = mn.linalg.gmres(sp.csr_array([[3.0, 2.0], [1.0, -1.0]]), [2.0, 4.0])
    >>> x.compute().round(6), int(info)
    (array([ 2., -2.]), 0)
    """
    system = system_from("gmres", A, b, x0, M, (rtol, atol), maxiter)
    if restart < 1:
        raise OptionError(f"gmres: restart={restart}; give 1 or more")
    m = min(restart, system.b.shape[0])

    def cycle(state: State) -> State:
        x, r, beta = state
        V, H = _arnoldi(system, r / beta, beta, m)
        y = replicated(_least_squares, H, beta, like=zeros(m))
        x = x + system.precondition(y @ V[:m])
        r = system.b - system.apply(x)
        return x, r, norm(r)

    r = system.b - system.apply(system.x0)
    start: State = system.x0, r, norm(r)
    found = iterate(
        cycle,
        start,
        until=lambda old, new: new[2] <= system.limit,
        max_iterations=system.iterations_from(r),
    )
    (x, _, beta), taken = converging("gmres", found, f"{LONGER_OR_NEARER}, or a larger restart")
    return system.solution(x, beta, taken)


def _arnoldi(system: System, first: DistArray, beta: DistArray, m: int) -> tuple[DistArray, DistArray]:
    # Orthonormal rows V and H with A M V' = V' H, until the least residual is small enough. It is beta over
    # the norm of the vector z with z' H = 0 whose first element is 1, of which each column gives one more.
    def add_vector(state: State) -> State:
        V, H, v, z, _ = state
        j = iteration()
        V[j] = v
        w = system.apply(system.precondition(v))
        along = V @ w
        w = w - along @ V
        more = V @ w
        w, along = w - more @ V, along + more
        rest = norm(w)
        follows = rest > 1e-14 * norm(along)
        H[:, j] = along
        H[j + 1, j] = rest
        z[j + 1] = where(follows, -(z @ along) / rest, np.inf)
        return V, H, where(follows, w / rest, 0.0), z, norm(z)

    start = (
        zeros((m + 1, first.shape[0])),
        zeros((m + 1, m)),
        first,
        asarray(np.eye(1, m + 1)[0]),
        asarray(1.0),
    )
    (V, H, _, _, _), _ = iterate(
        add_vector, start, until=lambda old, new: beta / new[4] <= system.limit, max_iterations=m
    )
    return V, H


def _least_squares(H: np.ndarray, beta: np.floating) -> np.ndarray:
    if not np.isfinite(H).all():
        raise OptionError("gmres: A, b or x0 has an element that is NaN or infinite")
    right = np.zeros(len(H))
    right[0] = beta
    return np.linalg.lstsq(H, right, rcond=None)[0]
