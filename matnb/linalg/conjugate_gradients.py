"""Systems of symmetric, definite matrices: conjugate gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from matnb.errors import OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray
from matnb.lazy.functions.linear import norm
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.loop import converging, iterate
from matnb.linalg.operators import Operand
from matnb.linalg.systems import LONGER_OR_NEARER, Solution, system_from

State = tuple[Any, ...]


def cg(
    A: ArrayLike,
    b: Operand,
    x0: Operand | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: ArrayLike = None,
) -> Solution:
    """Solve ``A x = b`` for a symmetric, positive definite A by conjugate gradients.

    Hestenes and Stiefel 1952, "Methods of Conjugate Gradients for Solving Linear Systems"; with the arguments
    and results of ``scipy.sparse.linalg.cg``.

    Parameters
    ----------
    A
        n x n, sparse or dense; symmetry is not checked. Or a function that returns ``A @ x`` for a DistArray
        x.
    b
        n numbers.
    x0
        Initial guess; by default zeros.
    rtol, atol
        Stop when the norm of ``b - A x`` is at most ``max(rtol * norm(b), atol)``.
    maxiter
        Maximum number of iterations; by default 10 n.
    M
        A preconditioner that approximates the inverse of A: n x n, or n numbers for a diagonal one, or a
        function.

    Returns
    -------
    Solution
        ``x``, float64 of shape (n,), and ``info``: 0, or the number of iterations if the tolerance was not
        reached; x is then the last iterate.

    Raises
    ------
    ShapeError, DTypeError, OptionError
        For arguments of inconsistent shapes, complex numbers, negative tolerances; and, when computed, for a
        matrix that turns out not to be positive definite.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> A = sp.csr_array([[4.0, 1.0], [1.0, 3.0]])
    >>> x, info = mn.linalg.cg(A, [1.0, 2.0], rtol=1e-10)
    >>> x.compute().round(6), int(info)
    (array([0.090909, 0.636364]), 0)
    """
    system = system_from("cg", A, b, x0, M, (rtol, atol), maxiter)

    def step(state: State) -> State:
        x, r, p, rz, _ = state
        Ap = system.apply(p)
        curvature = p @ Ap
        alpha = rz / curvature
        x = x + alpha * p
        r = r - alpha * Ap
        z = system.precondition(r)
        following = r @ z
        return x, r, z + following / rz * p, following, curvature

    def size_of(state: State) -> DistArray:
        # Without a preconditioner r'z is r'r, and r need not be read once more.
        _, r, _, rz, _ = state
        size: DistArray = np.sqrt(rz) if M is None else norm(r)
        return size

    r = system.b - system.apply(system.x0)
    z = system.precondition(r)
    start: State = system.x0, r, z, r @ z, asarray(1.0)
    found = iterate(
        step,
        start,
        until=lambda old, new: (size_of(new) <= system.limit) | ~(new[4] > 0),
        max_iterations=system.iterations_from(r),
    )
    (x, r, _, _, curvature), taken = converging("cg", found, LONGER_OR_NEARER)
    checked = x + replicated(_positive, curvature, like=0.0)
    return system.solution(checked, norm(r), taken)


def _positive(curvature: np.floating) -> float:
    if not curvature > 0:
        raise OptionError(
            f"cg: A is not positive definite: p'Ap is {float(curvature):.3g} for a direction p; "
            "minres is for indefinite symmetric matrices"
        )
    return 0.0
