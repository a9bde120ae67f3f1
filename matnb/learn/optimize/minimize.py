"""The minimum of a loss that is a function of one vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np

from matnb.errors import OptionError, ShapeError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.lazy.fields import has_fields
from matnb.lazy.loop import converging
from matnb.learn.arguments import one_of, real, whole
from matnb.learn.optimize.conjugate_gradients import conjugate_gradients
from matnb.learn.optimize.fista import Proximal, fista
from matnb.learn.optimize.lbfgs import lbfgs, searching
from matnb.learn.optimize.line_search import Point, is_small
from matnb.learn.optimize.newton import newton
from matnb.linalg.operators import Operand, vector_from
from matnb.tables.results import shows

METHODS = ("L-BFGS", "newton", "cg", "FISTA")
Function = Callable[[DistArray], object]


@shows(converged="converged", n_iterations="iterations", loss="number")
@has_fields
class Minimum(NamedTuple):
    """Result of :func:`minimize`.

    Attributes
    ----------
    x
        float64 of shape (n,): the minimizer, or the last iterate.
    loss
        The loss at x, a number, without the term handled by ``proximal``.
    n_iterations
        Number of iterations, int64.
    converged
        Whether the gradient is small enough, or the loss changes only by rounding.
    """

    x: DistArray
    loss: DistArray
    n_iterations: DistArray
    converged: DistArray


def minimize(
    loss: Function,
    gradient: Function,
    x0: Operand,
    method: str = "L-BFGS",
    *,
    hessian: Function | None = None,
    proximal: Proximal | None = None,
    tol: float = 1e-5,
    max_iterations: int = 1000,
    history: int = 10,
) -> Minimum:
    """Minimize a smooth function, starting from a point.

    The iteration is recorded once, and runs on the workers when a value is needed.

    Parameters
    ----------
    loss, gradient
        Functions of a DistArray of n numbers that return the loss and its gradient; recorded once.
    x0
        The start point, n numbers.
    method
        "L-BFGS" with a line search for the strong Wolfe conditions; "newton", with Cholesky factors of
        ``hessian`` and step halving; "cg", nonlinear conjugate gradients, with less memory; "FISTA",
        accelerated proximal gradients with ``proximal``.
    hessian
        A function like ``loss`` that returns the n x n second derivatives.
    proximal
        The proximal operator of a nonsmooth term g added to the loss: ``proximal(x, step)`` returns the u
        that minimizes ``g(u) + |u - x|**2 / (2 step)``; for the 1-norm, soft thresholding.
    tol
        Stop when no element of the gradient exceeds this in magnitude; for "newton", also half the squared
        Newton decrement; for "FISTA", when no element moves by more than this times the step. "L-BFGS" and
        "cg" also stop when the loss changes only by rounding.
    max_iterations
        Maximum number of iterations.
    history
        Number of pairs of vectors that "L-BFGS" stores.

    Returns
    -------
    Minimum
        ``x``, ``loss``, ``n_iterations`` and ``converged``. If it did not converge, or no step decreases the
        loss, a :class:`matnb.errors.ConvergenceWarning` is given.

    Raises
    ------
    OptionError
        For an unknown method, one without the function it needs, a negative tolerance or number.
    ShapeError, DTypeError
        If functions return wrong shapes, or x0 is not a real vector.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> X, y = mn.asarray([[1.0, 2.0], [3.0, -1.0], [0.0, 1.0]]), mn.asarray([5.0, 1.0, 2.0])
    >>> found = mn.learn.minimize(
    ...     lambda w: ((X @ w - y) ** 2).sum() / 2, lambda w: X.T @ (X @ w - y), np.zeros(2)
    ... )
    >>> found.x.compute().round(4), bool(found.converged)
    (array([1., 2.]), True)

    References
    ----------
    Liu and Nocedal 1989, "On the Limited Memory BFGS Method for Large Scale Optimization"; Nocedal and
    Wright 2006, "Numerical Optimization"; Elibol et al. 2022, "NumS: Scalable Array Programming for the
    Cloud", section 6; Beck and Teboulle 2009, "A Fast Iterative Shrinkage-Thresholding Algorithm".
    """
    one_of(method, "method", "minimize", METHODS)
    limit = real(tol, "tol", "minimize")
    most, kept = whole(max_iterations, "max_iterations", "minimize", 0), whole(history, "history", "minimize")
    n = (start := vector_from("minimize", "x0", x0)).shape[0]

    def evaluate(x: DistArray) -> Point:
        return Point(x, _shaped("loss", loss(x), ()), _shaped("gradient", gradient(x), (n,)))

    def curved(x: DistArray) -> DistArray:
        return _shaped("hessian", cast(Function, hessian)(x), (n, n))

    name, function = {"newton": ("hessian", hessian), "FISTA": ("proximal", proximal)}.get(method, ("", None))
    stuck: object = False
    if name and function is None:
        raise OptionError(f"minimize: method={method!r} needs {name}=")
    if method == "newton":
        (point, stuck), taken = searching("minimize", newton(evaluate, curved, start, limit, most))
    elif method == "FISTA":
        found = fista(evaluate, cast(Proximal, proximal), start, max_iterations=most, tol=limit)
        x, taken = converging("minimize", found)
        point = evaluate(x)
    elif method == "cg":
        (point, stuck), taken = searching("minimize", conjugate_gradients(evaluate, start, limit, most))
    else:
        (point, stuck), taken = searching("minimize", lbfgs(evaluate, start, limit, most, kept))
    ends = (taken < most) & ~asarray(stuck) | is_small(point.gradient, limit)
    return Minimum(point.x, point.loss, taken, ends & np.isfinite(point.loss))


def _shaped(name: str, value: object, shape: tuple[int, ...]) -> DistArray:
    given = asarray(value)
    if given.size != np.prod(shape) or (given.ndim > len(shape) and shape):
        raise ShapeError(f"minimize: {name} returns shape {given.shape}; it must return {shape}")
    return given.reshape(shape).astype(np.float64)
