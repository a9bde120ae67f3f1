"""Systems that are not symmetric: stabilized biconjugate gradients."""

from __future__ import annotations

from typing import Any

from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import norm
from matnb.lazy.loop import converging, iterate
from matnb.linalg.operators import Operand
from matnb.linalg.systems import LONGER_OR_NEARER, Solution, system_from

State = tuple[Any, ...]


def bicgstab(
    A: ArrayLike,
    b: Operand,
    x0: Operand | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: ArrayLike = None,
) -> Solution:
    """Solve ``A x = b`` by stabilized biconjugate gradients.

    van der Vorst 1992, "Bi-CGSTAB: A Fast and Smoothly Converging Variant of Bi-CG for the Solution of
    Nonsymmetric Linear Systems"; with the arguments and results of ``scipy.sparse.linalg.bicgstab``.

    Parameters
    ----------
    A, b, x0, rtol, atol, maxiter, M
        As in :func:`matnb.linalg.cg`, for any square A.

    Returns
    -------
    Solution
        As in :func:`matnb.linalg.cg`. It also stops if the method breaks down.

    Raises
    ------
    ShapeError, DTypeError, OptionError
        For arguments of inconsistent shapes, complex numbers, negative tolerances.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> x, info = mn.linalg.bicgstab(sp.csr_array([[3.0, 2.0], [1.0, -1.0]]), [2.0, 4.0], rtol=1e-9)
    >>> x.compute().round(6), int(info)
    (array([ 2., -2.]), 0)
    """
    system = system_from("bicgstab", A, b, x0, M, (rtol, atol), maxiter)

    def step(state: State) -> State:
        x, r, p, rho = state
        along = system.precondition(p)
        v = system.apply(along)
        alpha = _ratio(rho, shadow @ v)
        s = r - alpha * v
        across = system.precondition(s)
        t = system.apply(across)
        omega = _ratio(t @ s, t @ t)
        x = x + alpha * along + omega * across
        r = s - omega * t
        following = shadow @ r
        return x, r, r + _ratio(following, rho) * _ratio(alpha, omega) * (p - omega * v), following

    shadow = system.b - system.apply(system.x0)
    start: State = system.x0, shadow, shadow, shadow @ shadow
    found = iterate(
        step,
        start,
        until=lambda old, new: (norm(new[1]) <= system.limit) | (new[3] == 0),
        max_iterations=system.iterations_from(shadow),
    )
    (x, r, _, _), taken = converging("bicgstab", found, LONGER_OR_NEARER)
    return system.solution(x, norm(r), taken)


def _ratio(above: DistArray, below: DistArray) -> DistArray:
    return where(below == 0, 0.0, above / below)
