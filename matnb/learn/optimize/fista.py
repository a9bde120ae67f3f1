"""Losses that are a smooth one and one with corners: accelerated proximal gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import norm
from matnb.lazy.loop import iterate
from matnb.learn.optimize.line_search import Evaluate

Proximal = Callable[[DistArray, DistArray], DistArray]
MOST_HALVINGS = 60
ROUNDING = 16 * np.finfo(float).eps


class _FistaState(NamedTuple):
    x: DistArray
    z: DistArray  # ahead of x, by its momentum
    momentum: DistArray
    step: DistArray
    moved: DistArray


class _StepSearch(NamedTuple):
    x: DistArray
    step: DistArray


def fista(
    evaluate: Evaluate,
    proximal: Proximal,
    x0: DistArray,
    step: object = None,
    until: Callable[[DistArray, DistArray], DistArray] | None = None,
    max_iterations: int = 1000,
    tol: float = 1e-5,
) -> tuple[DistArray, DistArray]:
    """Return the minimum of a loss and of what ``proximal`` stands for, and the number of iterations.

    Beck and Teboulle 2009, "A Fast Iterative Shrinkage-Thresholding Algorithm for Linear Inverse Problems",
    with the momentum given up where it points uphill: O'Donoghue and Candes 2015, "Adaptive Restart for
    Accelerated Gradient Schemes".

    Parameters
    ----------
    evaluate
        Gives the smooth one and its gradient.
    proximal
        ``proximal(x, step)`` returns the u of the least ``g(u) + |u - x|**2 / (2 step)``.
    x0
        Where to begin.
    step
        One over the largest curvature of the smooth loss, or such a number for each element. Found by
        halving when left out, which takes one more loss an iteration.
    until
        ``until(x, moved)`` returns whether x is near enough; ``moved`` is how far the last iteration moved
        each element. When left out, no element moves by more than ``tol`` times the step.
    max_iterations, tol
        As in :func:`matnb.learn.minimize`.
    """

    def moved_from(state: _FistaState) -> _StepSearch:
        here = evaluate(state.z)
        if step is not None:
            return _StepSearch(proximal(state.z - state.step * here.gradient, state.step), state.step)

        def halve(trial: _StepSearch) -> _StepSearch:
            half = trial.step / 2
            return _StepSearch(proximal(state.z - half * here.gradient, half), half)

        def is_below(old: _StepSearch, new: _StepSearch) -> DistArray:
            there, change = evaluate(new.x), new.x - state.z
            bound = change @ change / (2 * new.step)
            # Where the losses differ by rounding alone, the gradients tell: a convex loss is above its
            # tangent by no more than this.
            bend = (there.gradient - here.gradient) @ change
            rounding = ROUNDING * norm(here.gradient) * norm(change)
            return (there.loss <= here.loss + here.gradient @ change + bound) | (bend <= bound + rounding)

        begun = _StepSearch(state.z, state.step * 2)
        return iterate(halve, begun, until=is_below, max_iterations=MOST_HALVINGS)[0]

    def accelerate(state: _FistaState) -> _FistaState:
        x, taken = moved_from(state)
        uphill = (state.z - x) @ (x - state.x) > 0
        following = (1 + np.sqrt(1 + 4 * state.momentum**2)) / 2
        ahead = where(uphill, 0.0, (state.momentum - 1) / following)
        momentum = where(uphill, 1.0, following)
        return _FistaState(x, x + ahead * (x - state.x), momentum, taken, abs(state.z - x))

    first = _longest(evaluate, x0) if step is None else asarray(step)
    begun = _FistaState(x0, x0, asarray(1.0), first, abs(x0))

    def ends(state: _FistaState) -> DistArray:
        return (state.moved / state.step).max() <= tol if until is None else until(state.x, state.moved)

    final, taken = iterate(
        accelerate,
        begun,
        until=lambda old, new: ends(new),
        max_iterations=max_iterations,
    )
    return final.x, taken


def _longest(evaluate: Evaluate, x0: DistArray) -> DistArray:
    # One over a curvature that there is, so no step that will do is longer than it by much.
    slope = evaluate(x0).gradient
    bent = norm(evaluate(x0 - slope).gradient - slope)
    return where(bent > 0, norm(slope) / where(bent > 0, bent, 1.0), 1.0)
