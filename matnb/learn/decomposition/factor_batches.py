"""Factors without negative elements that are learned from batches of rows, one after the other."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from matnb.errors import ConvergenceWarning, OptionError, warn
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import arange
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.shaping import concatenate
from matnb.lazy.loop import cond, iterate
from matnb.learn.arguments import nonnegative, rows_from, whole
from matnb.learn.decomposition.factor_steps import FactorSteps, RunningFactors, State, begun
from matnb.learn.optimize.improvement import Improvement, no_improvement
from matnb.sources import BatchSource, Minibatch


class FactorsByBatches(FactorSteps):
    """The batches of rows in memory, again and again, of a source, and those given one by one."""

    batch_size: int
    max_iter: int
    n_features_in_: int
    n_iter_: int
    n_steps_: int
    _fading_: float
    _above_: DistArray
    _below_: DistArray

    def partial_fit(self, X: ArrayLike, y: ArrayLike = None, W: object = None, H: object = None) -> Self:
        """Learn from one batch of rows more; ``H`` begins with ``init="custom"``, y and W are nothing."""
        is_first = not hasattr(self, "components_")
        rows = self._rows(X, None if is_first else self.n_features_in_)
        if is_first:
            before = begun(self._start(rows, None, H, has_rows=False)[1])
            fading = self._fading_of(self._size(rows), rows.shape[0])
        else:
            before = RunningFactors(self.components_.T, self._above_, self._below_)
            fading = self._fading_
        _, factors, _ = self._after(before, rows.astype(before.V.dtype), None, fading)
        return self._keep(factors, fading, n_steps=1 if is_first else self.n_steps_ + 1)

    def _rows(self, X: object, num_features: int | None = None) -> DistArray:
        return nonnegative(rows_from(X, self._name, num_features), self._name, "X")

    def _size(self, X: DistArray) -> int:
        return min(X.shape[0], whole(self.batch_size, "batch_size", self._name))

    def _over_rows(self, X: DistArray, W: DistArray, V: DistArray, size: int) -> tuple[DistArray, State]:
        n, fading = X.shape[0], self._fading_of(size, X.shape[0])
        end = n // size * size

        def one_pass(both: tuple[DistArray, State]) -> tuple[DistArray, State]:
            W, state = both
            (_, state), taken, found = iterate(
                lambda both, batch: self._step(both[1], batch[0], batch[1], fading, n),
                (W[:size], state),
                until=lambda _, new: new[1][1].is_over,
                over=(X[:end], W[:end]),
                batch=size,
                collect=lambda new: new[0],
            )
            is_new = (arange(end) < taken * size)[:, None]
            first = where(is_new, found.reshape((end, V.shape[1])), W[:end])
            if end == n:
                return first, state
            last, state = cond(
                state[1].is_over,
                lambda: (W[end:], state),
                lambda: self._step(state, X[end:], W[end:], fading, n),
            )
            return concatenate([first, last]), state

        most = whole(self.max_iter, "max_iter", self._name)
        start = W, (begun(V), no_improvement())
        return iterate(one_pass, start, until=lambda _, new: new[1][1].is_over, max_iterations=most)[0]

    def _fit_source(self, source: BatchSource, H: object = None) -> Self:
        if not self.fresh_restarts:
            raise OptionError(
                f"{self._name}: with a source, W of a batch is not kept for the next pass; give "
                "fresh_restarts=True"
            )
        first = self._rows(source.first.X)
        V = self._start(first, None, H, has_rows=False)[1]
        rows, batches = iterate(lambda rows, batch: rows + batch.X.shape[0], 0, over=source)
        n = int(rows)
        fading = self._fading_of(min(source.batch_size, n), n)

        def step(state: Any, batch: Minibatch) -> Any:
            X = batch.X.astype(first.dtype)
            _, new = self._step(state[:2], X, None, fading, n)
            return *new, np.minimum(state[2], X.min())

        (factors, gained, least), _ = iterate(
            step,
            (begun(V), no_improvement(), np.zeros((), first.dtype)),
            over=source,
            epochs=whole(self.max_iter, "max_iter", self._name),
            until=lambda _, new: new[1].is_over,
        )
        if float(least) < 0:
            raise OptionError(f"{self._name}: {source!r} has the number {float(least):g}; give 0 or more")
        return self._keep(factors, fading, gained, int(batches))

    def _keep(
        self,
        factors: RunningFactors,
        fading: float,
        gained: Improvement | None = None,
        num_batches: int = 1,
        **learned: Any,
    ) -> Self:
        p, k = factors.V.shape
        if gained is not None:
            learned |= {"n_steps": gained.taken, "_is_over": gained.is_over}
        learned |= {"_above": factors.above, "_below": factors.below, "_fading": fading}
        self._learn(components=factors.V.T, n_components=k, n_features_in=p, **learned)
        if "reconstruction_err" not in learned:
            vars(self).pop("reconstruction_err_", None)
        self.n_steps_ = int(self.n_steps_)
        if gained is None:
            return self
        self.n_iter_ = -(-self.n_steps_ // num_batches)
        is_over = bool(vars(self).pop("_is_over_"))
        if self.tol and not is_over:
            warn(
                f"{self._name}: after {self.max_iter} passes H still moves by more than tol={self.tol}; "
                "give a larger max_iter or tol",
                ConvergenceWarning,
            )
        return self
