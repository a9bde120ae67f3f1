"""Optimizers that take a step after whole passes, from the loss and the gradient of all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.learn.arguments import real, whole
from matnb.learn.named_arguments import LearnerPart
from matnb.learn.optimize.conjugate_gradients import CURVATURE, Direction, conjugate, steepest
from matnb.learn.optimize.lbfgs import quasi_newton, remembered
from matnb.learn.optimize.line_search import Point, next_trial
from matnb.learn.optimize.newton import ROUNDING, SUFFICIENT, newton_direction

Floats = npt.NDArray[np.float64]
Memory = dict[str, DistArray]


class PassSearch(NamedTuple):
    """A search along a direction: where it began, the step to try, and between which it is."""

    point: Point
    turn: Direction
    bracket: DistArray


@dataclass(frozen=True)
class PassOptimizer(LearnerPart):
    """What all of them have. A pass gives loss and gradient at one point; a search takes several."""

    tol: float = 1e-5
    needs_hessian: ClassVar[bool] = False

    def __post_init__(self) -> None:
        real(self.tol, "tol", type(self).__name__)

    def begun(self, size: int) -> dict[str, Floats]:
        """Return what is remembered of steps before the first one, for so many parameters."""
        return {}

    def turned(
        self, memory: Memory, old: PassSearch | None, new: Point, hessian: Any
    ) -> tuple[Memory, Direction]:
        """Return what is remembered after a step, and where to go on; ``old`` is None at the start."""
        raise NotImplementedError

    def tried(self, search: PassSearch, found: Point) -> tuple[DistArray, DistArray, DistArray]:
        """Return the next step to try, the bracket, and whether the last step is acceptable."""
        return next_trial(
            search.turn.t, search.bracket, search.point, found, search.turn.direction, search.turn.slope, 0.9
        )


@dataclass(frozen=True)
class LBFGS(PassOptimizer):
    """The L-BFGS optimizer with a line search, one pass over the data per trial step.

    Liu, Nocedal 1989, "On the Limited Memory BFGS Method for Large Scale Optimization". Each pass evaluates
    one point; a fit keeps the best of its ``epochs`` points.

    Parameters
    ----------
    tol
        Stop when no element of the gradient exceeds this in magnitude.
    history
        Number of past steps to keep.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = mn.learn.models.GeneralizedLinear()
    >>> learner = mn.learn.Learner(model, optimizer=mn.learn.LBFGS())
    >>> learner = learner.fit(X, X @ [1.0, -1.0] + 2, epochs=20, batch_size=50)
    >>> learner.parameters_["weights"].compute().round(3)
    array([ 1., -1.])
    """

    history: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(self.history, "history", "LBFGS")

    def begun(self, size: int) -> dict[str, Floats]:
        """Return the initial history of steps."""
        return {"steps": np.zeros((self.history, size)), "changes": np.zeros((self.history, size))}

    def turned(
        self, memory: Memory, old: PassSearch | None, new: Point, hessian: Any
    ) -> tuple[Memory, Direction]:
        """Return the history after a step, and the next search direction."""
        steps, changes = memory["steps"], memory["changes"]
        if old is not None:
            steps, changes = remembered(steps, changes, old.point, new)
        turn = Direction(*quasi_newton(new, steps, changes), asarray(1.0))
        return {"steps": steps, "changes": changes}, turn


@dataclass(frozen=True)
class ConjugateGradient(PassOptimizer):
    """Nonlinear conjugate gradients with a line search, one pass over the data per trial step.

    The Polak-Ribiere+ method, restarted if beta is negative: Nocedal, Wright 2006, "Numerical
    Optimization", 5.2.

    Parameters
    ----------
    tol
        Stop when no element of the gradient exceeds this in magnitude.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = mn.learn.models.GeneralizedLinear()
    >>> learner = mn.learn.Learner(model, optimizer=mn.learn.ConjugateGradient())
    >>> learner = learner.fit(X, X @ [1.0, -1.0] + 2, epochs=20, batch_size=50)
    >>> learner.parameters_["weights"].compute().round(3)
    array([ 1., -1.])
    """

    def turned(
        self, memory: Memory, old: PassSearch | None, new: Point, hessian: Any
    ) -> tuple[Memory, Direction]:
        """Return the next search direction."""
        return memory, steepest(new) if old is None else conjugate(old.point, new, old.turn)

    def tried(self, search: PassSearch, found: Point) -> tuple[DistArray, DistArray, DistArray]:
        """Return the next step to try, the bracket, and whether the last step is acceptable."""
        turn = search.turn
        return next_trial(turn.t, search.bracket, search.point, found, turn.direction, turn.slope, CURVATURE)


@dataclass(frozen=True)
class Newton(PassOptimizer):
    """Newton's method with the model's ``hessian``; steps that increase the loss are halved.

    Elibol et al. 2022, "NumS: Scalable Array Programming for the Cloud", algorithm 2, with the halving of
    Nocedal, Wright 2006, "Numerical Optimization", algorithm 3.2. ``hessian(parameters, X, y)`` is the
    Hessian of a batch's mean loss, for all parameters flattened in row-major order and concatenated in the
    order of ``start``.

    Parameters
    ----------
    tol
        Stop when no element of the gradient exceeds this in magnitude.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = mn.learn.models.GeneralizedLinear()
    >>> learner = mn.learn.Learner(model, optimizer=mn.learn.Newton())
    >>> learner = learner.fit(X, X @ [1.0, -1.0] + 2, epochs=3, batch_size=50)
    >>> learner.parameters_["weights"].compute().round(3)
    array([ 1., -1.])
    """

    needs_hessian: ClassVar[bool] = True

    def turned(
        self, memory: Memory, old: PassSearch | None, new: Point, hessian: Any
    ) -> tuple[Memory, Direction]:
        """Return the next search direction."""
        direction, slope = newton_direction(hessian, new.gradient)
        return memory, Direction(direction, slope, asarray(1.0))

    def tried(self, search: PassSearch, found: Point) -> tuple[DistArray, DistArray, DistArray]:
        """Return half the step, the bracket, which is not used, and whether the loss fell enough."""
        loss, turn = search.point.loss, search.turn
        allowed = ROUNDING * abs(loss) + SUFFICIENT * turn.t * turn.slope
        return turn.t / 2, search.bracket, found.loss <= loss + allowed
