"""The minimum of a loss that is a function of one vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np

from matnb.errors import OptionError, ShapeError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.lazy.loop import converging
from matnb.learn.arguments import one_of, real, whole
from matnb.learn.conjugate_gradients import conjugate_gradients
from matnb.learn.fista import Proximal, fista
from matnb.learn.lbfgs import lbfgs, searching
from matnb.learn.line_search import Point, is_small
from matnb.learn.newton import newton
from matnb.linalg.operators import Operand, vector_from

METHODS = ("L-BFGS", "newton", "cg", "FISTA")
Function = Callable[[DistArray], object]


class Minimum(NamedTuple):
    """Result of :func:`minimize`.

    Attributes
    ----------
    x
        float64 of shape (n,): the minimum, or what the last iteration came to.
    loss
        The loss there, a number; without what ``proximal`` stands for.
    n_iterations
        How many were taken, int64.
    converged
        Whether the gradient is small enough, or the loss changes by rounding alone near a minimum.
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
    """Return where a loss is least, from a start.

    Each iteration is recorded once; nothing runs until a value is asked for, and then on the workers.

    Parameters
    ----------
    loss, gradient
        Called with a DistArray of n numbers, to record the loss, one number, and its gradient, n numbers.
    x0
        n numbers: where to begin.
    method
        "L-BFGS" with a search for steps that satisfy the strong conditions of Wolfe; "newton", which needs
        ``hessian``, with its Cholesky factors and halved steps; "cg", conjugate gradients, which keeps
        fewer vectors; "FISTA", which needs ``proximal``, with accelerated gradients.
    hessian
        Called as ``loss``, for n x n second derivatives.
    proximal
        For a part g of what is minimized that has corners: ``proximal(x, step)`` records the u of the least
        ``g(u) + |u - x|**2 / (2 step)``; of the 1-norm that is x, nearer to 0 by ``step``.
    tol
        It ends when no element of the gradient is larger; with "newton", when half the square of the
        decrement is not, either; with "FISTA", when no element has moved by more, over the step. "L-BFGS"
        and "cg" also end when the loss does not change but by rounding.
    max_iterations
        Maximum number of iterations.
    history
        Pairs of vectors that "L-BFGS" keeps.

    Returns
    -------
    Minimum
        ``x``, ``loss``, ``n_iterations`` and ``converged``. Where it has not, a
        :class:`matnb.errors.ConvergenceWarning` says so, as where no step lowers the loss.

    Raises
    ------
    OptionError
        For an unknown method, one without the function it needs, a tolerance or numbers below 0.
    ShapeError, DTypeError
        For functions that record other shapes, an x0 that is not a vector, or complex.

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
        point, taken = converging("minimize", newton(evaluate, curved, start, limit, most))
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
        raise ShapeError(f"minimize: {name} records shape {given.shape}; {shape} is wanted")
    return given.reshape(shape).astype(np.float64)
