"""What a batch of rows does to factors without negative elements."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from matnb.errors import OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import ones
from matnb.lazy.functions.linear import norm
from matnb.lazy.loop import iterate
from matnb.learn.arguments import real, whole
from matnb.learn.decomposition.multiplicative import Penalty, cleaned, loss, parts, penalties, updated
from matnb.learn.decomposition.nonnegative import NonnegativeFactors, even_rows
from matnb.learn.optimize.improvement import Improvement, improved


class RunningFactors(NamedTuple):
    """H turned round, p x k, and two sums over batches whose quotient it is; old ones fade in them."""

    V: DistArray
    above: DistArray
    below: DistArray


State = tuple[RunningFactors, Improvement]


def begun(V: DistArray) -> RunningFactors:
    """Return factors that no batch has moved."""
    return RunningFactors(V, V, ones(V.shape, V.dtype))


class FactorSteps(NonnegativeFactors):
    """Lefevre, Bach, Fevotte 2011, algorithm 1, with the losses of NMF: each batch moves H by one step."""

    tol: float
    max_no_improvement: int | None
    forget_factor: float
    fresh_restarts: bool
    fresh_restarts_max_iter: int

    def _solved(self, X: DistArray, V: DistArray, most: int) -> DistArray:
        # W of rows, from even ones, where H stays
        is_frobenius, tol = self._is_frobenius(), real(self.tol, "tol", self._name)
        of_W, _ = penalties(self, X.shape, self._name)
        W, _ = iterate(
            lambda W: updated(X, W, V, is_frobenius, of_W),
            even_rows(X, V.shape[1]),
            until=(lambda old, new: norm(new - old) <= tol * norm(new)) if tol else None,
            max_iterations=most,
        )
        return W

    def _after(
        self, old: RunningFactors, X: DistArray, W: DistArray | None, fading: float
    ) -> tuple[DistArray, RunningFactors, DistArray]:
        # W of a batch, the factors after it, and what a row of it costs with the H before it
        is_frobenius = self._is_frobenius()
        of_W, of_H = penalties(self, X.shape, self._name)
        if W is None or self.fresh_restarts:
            most = whole(self.fresh_restarts_max_iter, "fresh_restarts_max_iter", self._name)
            W = self._solved(X, old.V, most)
        else:
            W = updated(X, W, old.V, is_frobenius, of_W)
        cost = loss(X, W, old.V, is_frobenius) + _cost(W, of_W) + _cost(old.V, of_H)
        # V = (sum of r^(t-s) V_s larger_s) / (sum of r^(t-s) smaller_s), over the batches s up to t
        larger, smaller = parts(X.T, old.V, W, is_frobenius, of_H)
        above, below = fading * old.above + old.V * larger, fading * old.below + smaller
        return W, RunningFactors(cleaned(above / below, is_frobenius), above, below), cost / X.shape[0]

    def _fading_of(self, size: int, num_rows: int) -> float:
        # What a batch counts in the sums after the next one.
        factor = real(self.forget_factor, "forget_factor", self._name)
        if factor > 1:
            raise OptionError(f"{self._name}: forget_factor={factor}; give 0 to 1")
        return cast(float, factor ** (size / num_rows))

    def _step(
        self, state: State, X: DistArray, W: DistArray | None, fading: float, num_rows: int
    ) -> tuple[DistArray, State]:
        old, before = state
        W, new, cost = self._after(old, X, W, fading)
        tol, most = real(self.tol, "tol", self._name), self.max_no_improvement
        if most is not None:
            most = whole(most, "max_no_improvement", self._name)
        is_still = (norm(new.V - old.V) <= tol * norm(new.V)) & (tol > 0)
        share = min(1.0, X.shape[0] / (num_rows + 1))
        return W, (new, improved(before, cost, share, is_still, most))


def _cost(factor: DistArray, penalty: Penalty) -> Any:
    return penalty.l1 * factor.sum() + penalty.l2 * (factor * factor).sum()
