"""What SGDClassifier and SGDRegressor have in common: linear scores learned by stochastic gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from matnb.errors import ConvergenceWarning, OptionError, warn
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.functions.indexing import take
from matnb.lazy.functions.row_descent import Descent, Doubles, RowSteps, row_steps
from matnb.lazy.functions.shaping import concatenate
from matnb.learn.arguments import one_of, real, seed_from, weights_from, whole
from matnb.learn.estimator import Estimator
from matnb.learn.learner import Learner
from matnb.learn.linear.score_losses import SPARSE_INTERCEPT_DECAY, LinearScore, ScoreLoss
from matnb.learn.optimize.optimizers import SGD, Parameters, State, StepResult
from matnb.sources.from_memory import memory

PART_BYTES = 256 * 2**20  # of rows that a worker has at once, where steps go row by row


@dataclass(frozen=True)
class DescentProgress:
    """How far a descent has come.

    Attributes
    ----------
    weights, intercept
        k x p and k numbers, one for each target.
    passes, count
        Passes and steps that were taken.
    penalty
        Under an L1 penalty, what each weight has got of it, k x p as one vector, and what it could have got.
    steps
        Of steps row by row, what these go on from: with the scale of sparse rows' weights.
    """

    weights: Doubles
    intercept: Doubles
    passes: int
    count: int
    penalty: Doubles
    steps: RowSteps | None = None

    @classmethod
    def by_rows(cls, steps: RowSteps, num_features: int, name: str, passes: int = 0) -> Self:
        """Return where steps by rows have led; warns where a number was not finite."""
        if not steps.is_finite:
            warn(
                f"{name}: row {steps.last_rows} of pass {passes + len(steps.losses) - 1} leads to a loss or "
                "weights that are not finite: stopped, and the model as it was before that row is kept; give "
                "a smaller eta0, or scale the features",
                ConvergenceWarning,
            )
        passes += len(steps.losses)
        weights, intercept = steps.weights(num_features), steps.intercepts(num_features)
        penalty = steps.state[weights.size + intercept.size : -2]
        return cls(weights, intercept, passes, int(steps.state[-1]), penalty, steps)

    @classmethod
    def by_batches(cls, learner: Learner) -> Self:
        """Return where a learner has come."""
        parameters = learner.parameters_
        weights: Doubles = np.asarray(parameters["weights"])
        intercept: Doubles = np.asarray(parameters["intercept"])
        if weights.ndim == 1:
            weights, intercept = weights[:, None], intercept[None]
        kept = {name: np.asarray(one["weights"]) for name, one in learner._optimizer_state().items()}
        penalty = np.append(kept["got"].T, kept["most"]) if kept else np.zeros(0)
        return cls(weights.T, intercept, int(learner.history_.epoch[-1]) + 1, learner.n_iter_, penalty)

    def parameters(self, is_single: bool) -> Parameters:
        """Return them as a learner has them."""
        weights, intercept = self.weights.T, self.intercept
        if is_single:
            weights, intercept = weights[:, 0], intercept[0]
        return {"weights": asarray(weights), "intercept": asarray(intercept)}

    def state(self, size: int) -> Doubles:
        """Return what steps row by row go on from, of a length; a penalty begins where there was none."""
        last, weights = [1.0, self.count], self.weights.ravel()
        if self.steps is not None:
            last, weights = self.steps.state[-2:].tolist(), self.steps.state[: weights.size]
        learned = np.concatenate([weights, self.intercept])
        penalty = np.zeros(size - 2 - learned.size)
        return np.concatenate([learned, self.penalty if penalty.size == self.penalty.size else penalty, last])

    def begin(self, learner: Learner, is_single: bool) -> None:
        """Have a learner go on from here."""
        learner._begin_at(self.parameters(is_single), self.count)
        if self.penalty.size and isinstance(learner.optimizer, TruncatedSGD):
            got = self.penalty[:-1].reshape(self.weights.shape).T
            kept = {"got": got[:, 0] if is_single else got, "most": self.penalty[-1]}
            learner._optimizer_state().update({name: {"weights": asarray(one)} for name, one in kept.items()})


@dataclass(frozen=True)
class TruncatedSGD(SGD):
    """Gradient steps with a cumulative L1 penalty of the weights, which is larger than their noise.

    After each step a weight is moved towards 0, and not beyond, by the penalty of all steps so far less what
    it has got of it: Tsuruoka, Tsujii and Ananiadou 2009, "Stochastic gradient descent training for
    L1-regularized log-linear models with cumulative penalty".

    Parameters
    ----------
    l1
        What ``sum |w|`` counts in the loss.
    """

    l1: float = 0.0

    def start(self, parameters: Parameters) -> State:
        """Return the initial optimizer state."""
        return {"got": {"weights": 0.0 * parameters["weights"]}, "most": {"weights": asarray(0.0)}}

    def step(
        self, state: State, parameters: Parameters, gradient: Parameters, count: DistArray
    ) -> StepResult:
        """Return the parameters and the state after a step."""
        moved, _, rates = super().step({}, parameters, gradient, count)
        w, got = moved["weights"], state["got"]["weights"]
        most = state["most"]["weights"] + rates["weights"] * self.l1
        nearer = np.sign(w) * np.maximum(abs(w) - (most + np.sign(w) * got), 0.0)
        new = {"got": {"weights": got + (nearer - w)}, "most": {"weights": most}}
        return StepResult({**moved, "weights": nearer}, new, rates)


class StochasticGradient(Estimator):
    """The descent of :class:`SGDClassifier` and :class:`SGDRegressor`; both have its arguments."""

    _losses: dict[str, ScoreLoss]
    alpha: float
    epsilon: float
    max_iter: int
    n_iter_no_change: int
    coef_: DistArray
    intercept_: DistArray
    n_iter_: int
    t_: float
    n_features_in_: int

    def _learner(self, is_weighted: bool) -> Learner:
        given: Any = self
        name = type(self).__name__
        loss = one_of(given.loss, "loss", name, tuple(self._losses))
        penalty = given.penalty or "none"
        one_of(penalty, "penalty", name, ("l2", "l1", "elasticnet", "none"))
        alpha = real(given.alpha, "alpha", name)
        ratio = {"l2": 0.0, "l1": 1.0, "none": 0.0}.get(penalty)
        ratio = real(given.l1_ratio, "l1_ratio", name) if ratio is None else ratio
        strength = 0.0 if penalty == "none" else alpha
        l1, l2 = strength * ratio, strength * (1 - ratio)
        model = LinearScore(loss, given.epsilon, l1, l2, given.fit_intercept, is_weighted)
        return Learner(
            model,
            self._optimizer(name, alpha, l1),
            patience=None if given.tol is None else whole(given.n_iter_no_change, "n_iter_no_change", name),
            tol=0.0 if given.tol is None else real(given.tol, "tol", name, least=-np.inf),
        )

    def _optimizer(self, name: str, alpha: float, l1: float) -> SGD:
        given: Any = self
        kind = partial(TruncatedSGD, l1=l1) if l1 else SGD
        schedule = one_of(given.learning_rate, "learning_rate", name, ("constant", "optimal", "invscaling"))
        if schedule == "optimal":
            if not alpha > 0:
                raise OptionError(f"{name}: learning_rate='optimal' with alpha={alpha}; give one above 0")
            # Bottou 2012, "Stochastic Gradient Descent Tricks": the first step is of a typical weight.
            first = alpha**-0.75
            return kind(1.0, schedule=partial(_optimal, alpha, first))
        rate, power = real(given.eta0, "eta0", name, above=True), real(given.power_t, "power_t", name)
        return kind(rate, schedule=None if schedule == "constant" else partial(_inverse, power))

    def _row_descent(self, learner: Learner) -> Descent:
        # The steps of a learner, row by row.
        given: Any = self
        model, alpha = learner.model, float(given.alpha)
        is_optimal, power = given.learning_rate == "optimal", float(given.power_t)
        return Descent(
            model.loss_name,
            float(given.epsilon),
            model.l1,
            model.l2,
            float(model.fit_intercept),
            model.is_weighted,
            given.learning_rate,
            1.0 if is_optimal else float(given.eta0),
            alpha if is_optimal else power,
            alpha**-0.75 if is_optimal else 0.0,
            patience=learner.patience,
            tol=float(learner.tol),
        )

    def _descend(self, X: DistArray, y: DistArray, sample_weight: Any) -> DescentProgress:
        given: Any = self
        name = type(self).__name__
        size = whole(given.batch_size, "batch_size", name)
        seed = seed_from(given.random_state, name)
        epochs = whole(given.max_iter, "max_iter", name)
        learner = self._learner(sample_weight is not None)
        if sample_weight is not None:
            y = _with_weights(y, weights_from(sample_weight, X, name))
        is_shuffled = bool(given.shuffle)
        if size == 1:
            order = replace(self._row_descent(learner), passes=epochs, seed=seed if is_shuffled else None)
            steps = _steps_of(X, y, order)
            found = DescentProgress.by_rows(steps, X.shape[1], name)
            is_settled = order.is_settled(steps.losses.tolist()) or not steps.is_finite
        else:
            learner.fit(memory(X, y, batch_size=size, shuffle=is_shuffled, seed=seed), epochs=epochs)
            found, is_settled = DescentProgress.by_batches(learner), learner.is_settled()
        if given.tol is not None and not is_settled:
            warn(
                f"{name}: after {epochs} passes the loss still falls by more than tol={given.tol}; "
                "give a larger max_iter, or scale the features",
                ConvergenceWarning,
            )
        return found

    def _one_batch(self, X: DistArray, y: DistArray, sample_weight: Any) -> DescentProgress:
        given: Any = self
        name = type(self).__name__
        size = whole(given.batch_size, "batch_size", name)
        before: DescentProgress | None = getattr(self, "_descent", None)
        learner = self._learner(True)
        targets = _with_weights(y, weights_from(sample_weight, X, name))
        if size == 1:
            descent = replace(self._row_descent(learner), patience=None)
            size = descent.state_size(X.shape[1], targets.shape[1] - 1)
            steps = _steps_of(X, targets, descent, None if before is None else before.state(size))
            return DescentProgress.by_rows(steps, X.shape[1], name, 0 if before is None else before.passes)
        if before is not None:
            before.begin(learner, y.ndim == 1)
        found = DescentProgress.by_batches(learner.partial_fit(X, targets, batch_size=size))
        return found if before is None else replace(found, passes=before.passes + 1)

    def _keep_descent(self, found: DescentProgress, coef: Doubles, **learned: Any) -> Self:
        # All of it is here, so that no run is needed.
        self.coef_, self.intercept_ = asarray(coef), asarray(found.intercept)
        self.n_iter_, self.t_ = found.passes, found.count + 1.0
        self.n_features_in_ = found.weights.shape[-1]
        vars(self).update({f"{name}_": value for name, value in learned.items()})
        self._descent = found
        return self


# Functions of this file and not of a method, so that what was fitted can be pickled.


def _steps_of(
    X: DistArray, y: DistArray, descent: Descent, state: Doubles | DistArray | None = None
) -> RowSteps:
    # All passes at once where one worker can have the rows; else part after part, in the same order.
    n, p = X.shape
    targets = y[:, None] if y.ndim == 1 else y
    if descent.intercept and X.sparse:
        descent = replace(descent, intercept=SPARSE_INTERCEPT_DECAY)
    k = targets.shape[1] - descent.is_weighted
    if state is None:
        size = descent.state_size(p, k)
        state = concatenate([zeros(size - 2), asarray([1.0, 0.0])])
    num_bytes = 16 * X.size if X.sparse else 8 * X.size
    if X.sparse and num_bytes > PART_BYTES:  # else entries need not be counted
        num_bytes = 16 * int(X.nnz)
    row_bytes = max(1, num_bytes // max(1, n)) + 8 * targets.shape[1]
    if n * row_bytes <= PART_BYTES:
        return row_steps(X, targets, state, descent)
    size, losses = max(1, PART_BYTES // row_bytes), np.zeros(0)
    for number in range(descent.passes):
        rows, own, total_loss = X, targets, 0.0
        if descent.seed is not None:
            order = descent.order(number, n)
            rows, own = take(X, order, axis=0), take(targets, order, axis=0)
        for start in range(0, n, size):
            part = slice(start, start + size)
            steps = row_steps(rows[part], own[part], state, replace(descent, passes=1, seed=None))
            state, total_loss = steps.state, total_loss + float(steps.losses[0]) * len(rows[part])
            if not steps.is_finite:
                last = start + steps.last_rows
                return replace(steps, losses=np.append(losses, steps.losses[0]), last_rows=last)
        losses = np.append(losses, total_loss / n)
        if descent.is_settled(losses.tolist()):
            break
    return RowSteps(np.asarray(state), losses, n, True, k)


def _with_weights(y: DistArray, weights: DistArray) -> DistArray:
    columns = y[:, None] if y.ndim == 1 else y
    return concatenate([columns, weights[:, None]], axis=1)


def _optimal(alpha: float, first: float, count: Any) -> Any:
    return 1 / (alpha * (first + count))


def _inverse(power: float, count: Any) -> Any:
    return (count + 1) ** -power
