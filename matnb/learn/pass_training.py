"""What a learner does whose optimizer takes its steps after whole passes: batches are summed up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from matnb.errors import ConvergenceWarning, OptionError, warn
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.functions.shaping import concatenate
from matnb.lazy.loop import iterate
from matnb.learn.optimize.conjugate_gradients import Direction
from matnb.learn.optimize.lbfgs import REMEDY, best_of
from matnb.learn.optimize.line_search import MOST_TRIALS, Point, first_bracket, is_settled, is_small, is_stuck
from matnb.learn.optimize.optimizers import Parameters
from matnb.learn.optimize.pass_optimizers import PassOptimizer, PassSearch
from matnb.learn.regularizers import Regularizer
from matnb.learn.training import (
    BatchPiece,
    Floats,
    State,
    Training,
    here,
    is_for,
    is_matrix,
    lazily,
    norm_of,
)


@dataclass(frozen=True)
class PassTraining(Training):
    """Sums of losses and gradients at one point, and the search for the next one when a pass is over."""

    optimizer: PassOptimizer  # type: ignore[assignment]  # its steps are taken here

    def started(self, parameters: Parameters) -> State:
        """Return the state before the first batch; ``x`` is where sums are taken."""
        size = sum(one.size for one in parameters.values())
        none = {name: zeros(one.shape) for name, one in parameters.items()}
        number = asarray(0.0)
        sums = {"rows": number, "loss": number, "gradient": none}
        if self.optimizer.needs_hessian:
            sums["hessian"] = zeros((size, size))
        vector = zeros(size)
        search = {"x": vector, "loss": number, "gradient": vector, "direction": vector, "slope": number}
        return {
            "x": parameters,
            "best": parameters,
            "best_loss": asarray(np.inf),
            "sums": sums,
            "search": {**search, "t": number, "bracket": zeros(6), "trials": number},
            "memory": self.optimizer.begun(size),
            "moved": number,
            "passes": number,
            "count": number,
            "has_ended": number,
        }

    def check(self, parameters: Parameters) -> None:
        """Look at whether model, regularizers and replicas go with such an optimizer."""
        super().check(parameters)
        name = type(self.optimizer).__name__
        if not self.has_gradient:
            raise OptionError(f"Learner: the model has no gradient, which {name} needs; leave optimizer= out")
        if self.replicas > 1:
            raise OptionError(f"Learner: replicas={self.replicas} with {name}, which has one model; give 1")
        for one in self.regularizers:
            if type(one).proximal is not Regularizer.proximal:
                raise OptionError(
                    f"Learner: {one!r} is a proximal step, and {name} takes none; give AdaGrad or SGD instead"
                )
        if self.optimizer.needs_hessian and not hasattr(self.model, "hessian"):
            raise OptionError(f"Learner: the model has no hessian, which {name} needs; LBFGS needs none")
        if self.optimizer.needs_hessian and any(one.weight for one in self.mixins):
            raise OptionError(f"Learner: mixins with a weight have no curvature for {name}; give LBFGS")

    def run(self, state: State, piece: BatchPiece) -> tuple[State, dict[str, Floats], bool]:
        """Sum up the batches of a piece; returns the state, figures of each batch, and if all are finite."""
        parameters = lazily(state["x"])

        def step(summed: Any, item: Any) -> Any:
            return self._summed(parameters, summed[0], *piece.given(item))

        start = lazily((state["sums"], 0.0))
        looped = iterate(step, start, over=piece.over, batch=piece.batch, collect=lambda new: new[1])
        norm, figures = norm_of(list(parameters.values())), self.figures_of(parameters)
        ((sums, _), taken, losses), norm, told = here((looped, norm, figures))
        count, is_first = int(taken), state["sums"]["rows"] == 0
        collected = {"loss": losses, "step": np.zeros(count), "norm": np.full(count, norm)}
        collected["step"][:1] = state["moved"] if is_first else 0.0
        collected |= {name: np.full(count, value) for name, value in told.items()}
        if state["passes"] == 0 and not np.isfinite(losses).all():
            seen = int(np.argmin(np.isfinite(losses))) + 1
            return state, {name: values[:seen] for name, values in collected.items()}, False
        return {**state, "sums": sums, "count": state["count"] + count}, collected, True

    def _summed(self, parameters: Parameters, sums: Any, X: DistArray, y: Any) -> Any:
        rows, loss = X.shape[0], self._loss(parameters, X, y)
        gradient = self.model.gradient(parameters, X, y)
        self.check_gradient(parameters, gradient)
        new = {"rows": sums["rows"] + rows, "loss": sums["loss"] + rows * loss}
        new["gradient"] = {name: one + rows * gradient[name] for name, one in sums["gradient"].items()}
        if self.optimizer.needs_hessian:
            new["hessian"] = sums["hessian"] + rows * self.model.hessian(parameters, X, y)
        return new, loss

    def after_pass(self, state: State) -> State:
        """Take the step that the sums of a pass lead to, or the next trial of a search for it."""
        sums, parameters = lazily(state["sums"]), lazily(state["x"])
        rows = state["sums"]["rows"]
        if not rows or self.has_ended(state):
            return state
        gradient = {name: one / rows for name, one in sums["gradient"].items()}
        slopes = self.with_slopes(parameters, gradient)
        loss = sums["loss"] / rows + self._penalty(parameters)
        found = Point(_vector(parameters), loss, _vector(slopes))
        memory, old, before = lazily(state["memory"]), None, found
        trials = state["search"]["trials"]
        if state["passes"]:
            old = _search(lazily(state["search"]))
            t, bracket, ends = here(self.optimizer.tried(old, found))
            if not ends and trials + 1 < MOST_TRIALS:
                turn = old.turn._replace(t=asarray(t))
                return self._moved(state, found, PassSearch(old.point, turn, asarray(bracket)), trials + 1)
            before = old.point
            found = best_of(before, found)
        hessian = sums["hessian"] / rows + self._curvature(parameters) if "hessian" in sums else None
        memory, turn = self.optimizer.turned(memory, old, found, hessian)
        ends = is_small(found.gradient, self.optimizer.tol)
        stuck = asarray(False)
        if old is not None:
            ends = ends | is_settled(before.loss, found.loss)
            stuck = is_stuck(before, found, old.turn.slope, self.optimizer.tol)
        memory, ends, stuck = here((memory, ends, stuck))
        if stuck:
            warn(f"Learner: {REMEDY}", ConvergenceWarning)
        search = PassSearch(found, turn, first_bracket(found, turn.slope))
        return self._moved({**state, "memory": memory, "has_ended": float(ends)}, found, search, 0)

    def _moved(self, state: State, found: Point, search: PassSearch, trials: int) -> State:
        # Where the search goes on, with sums that begin again.
        x = search.point.x + search.turn.t * search.turn.direction
        flat = {**search.point._asdict(), **search.turn._asdict(), "bracket": search.bracket}
        kept, x, loss, moved = here((flat, x, found.loss, norm_of([x - _vector(lazily(state["x"]))])))
        is_best = loss <= state["best_loss"]
        return {
            **state,
            "best": state["x"] if is_best else state["best"],
            "best_loss": loss if is_best else state["best_loss"],
            "search": {**kept, "trials": np.float64(trials)},
            "x": _parted(x, state["x"]),
            "moved": moved,
            "passes": state["passes"] + 1,
            "sums": here(self.started(lazily(state["x"]))["sums"]),
        }

    def has_ended(self, state: State) -> bool:
        """Tell whether further passes would change nothing."""
        return bool(state["has_ended"])

    def result(self, state: State) -> Parameters:
        """Return the parameters to predict with: of all points that were tried the best."""
        return cast(Parameters, state["best"])

    def _penalty(self, parameters: Parameters) -> Any:
        total: Any = 0.0
        for name, value in parameters.items():
            total += sum(one.penalty(value) for one in self.regularizers if is_for(one, name))
            total += sum(
                one.weight * one.figure(value)
                for one in self.mixins
                if one.weight and is_matrix(one, name, value)
            )
        return total

    def _curvature(self, parameters: Parameters) -> DistArray:
        each = {name: 0.0 * value for name, value in parameters.items()}
        for name, value in parameters.items():
            for one in self.regularizers:
                each[name] = each[name] + one.curvature(value) if is_for(one, name) else each[name]
        return cast(DistArray, np.diag(_vector(each)))


def _search(kept: Any) -> PassSearch:
    point = Point(kept["x"], kept["loss"], kept["gradient"])
    return PassSearch(point, Direction(kept["direction"], kept["slope"], kept["t"]), kept["bracket"])


def _vector(values: Parameters) -> DistArray:
    return concatenate([one.reshape(-1).astype(np.float64) for one in values.values()])


def _parted(x: Floats, like: dict[str, Any]) -> dict[str, Any]:
    parts, begin = {}, 0
    for name, one in like.items():
        size = np.size(one)
        parts[name] = x[begin : begin + size].reshape(np.shape(one)).astype(np.asarray(one).dtype)
        begin += size
    return parts
