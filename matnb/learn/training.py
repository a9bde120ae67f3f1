"""What a learner repeats: its recorded step, on pieces of rows that a loop goes through at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from matnb.errors import DTypeError, OptionError, ShapeError, suggestion
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.lazy.evaluator import evaluator
from matnb.lazy.loop import cond, iterate
from matnb.lazy.tree import flatten, unflatten
from matnb.learn.arguments import rows_from, whole
from matnb.learn.mixins import Mixin
from matnb.learn.optimize.optimizers import Optimizer, Parameters
from matnb.learn.regularizers import Regularizer

Floats = npt.NDArray[np.float64]
State = Any  # nested arrays: NumPy's between runs, DistArrays in a step


@dataclass(frozen=True, eq=False)
class LearningHistory:
    """Training history, with one element per batch.

    Attributes
    ----------
    epoch, rows
        The pass, from 0, and the number of rows of the batch.
    loss
        Their mean loss before the model learned from them.
    step, norm
        Euclidean norms of the change of all parameters, and of the parameters after it.
    rows_per_second, waiting
        Rate of the run that included the batch, and the share of its time spent waiting for data; 0 for
        arrays in memory.
    flops_per_second, bytes_per_second
        Floating-point operations, and bytes of arrays read and written, per second of the run that included
        the batch, as counted by its plan; NaN with ``engine="interpret"``.
    figures
        The measures of the mixins, by name.
    held_out
        The loss on ``validation`` after each pass; one element a pass.
    """

    epoch: Floats = field(default_factory=lambda: np.zeros(0))
    rows: Floats = field(default_factory=lambda: np.zeros(0))
    loss: Floats = field(default_factory=lambda: np.zeros(0))
    step: Floats = field(default_factory=lambda: np.zeros(0))
    norm: Floats = field(default_factory=lambda: np.zeros(0))
    rows_per_second: Floats = field(default_factory=lambda: np.zeros(0))
    waiting: Floats = field(default_factory=lambda: np.zeros(0))
    flops_per_second: Floats = field(default_factory=lambda: np.zeros(0))
    bytes_per_second: Floats = field(default_factory=lambda: np.zeros(0))
    held_out: Floats = field(default_factory=lambda: np.zeros(0))
    figures: dict[str, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.loss)

    def followed_by(self, other: LearningHistory) -> LearningHistory:
        """Return both histories, one after the other."""
        joined = {
            one.name: np.concatenate([getattr(self, one.name), getattr(other, one.name)])
            for one in fields(self)
            if one.name != "figures"
        }
        names = dict.fromkeys([*self.figures, *other.figures])
        figures = {name: np.concatenate([_of(self, name), _of(other, name)]) for name in names}
        return LearningHistory(**joined, figures=figures)

    def mean_loss(self, epoch: int) -> float:
        """Return the mean loss of the rows of a pass, each taken before the model learned from it."""
        inside = self.epoch == epoch
        return float(np.average(self.loss[inside], weights=self.rows[inside]))


def _of(history: LearningHistory, name: str) -> Floats:
    return history.figures.get(name, np.full(len(history), np.nan))


class BatchPiece(NamedTuple):
    """Rows that a loop goes through at once: arrays, the rows of a batch, and what makes X and y of one."""

    over: Any
    batch: int
    given: Callable[[Any], Any]

    @property
    def rows(self) -> int:
        """How many there are."""
        return int(cast(DistArray, flatten(self.over)[0][0]).shape[0])

    def part(self, start: int, stop: int) -> BatchPiece:
        """Return some batches of it."""
        rows = slice(start * self.batch, stop * self.batch)
        leaves, nesting = flatten(self.over)
        if rows.start == 0 and rows.stop >= self.rows:
            return self
        return self._replace(over=unflatten(nesting, [cast(DistArray, one)[rows] for one in leaves]))


@dataclass(frozen=True)
class LearningRun:
    """How far a run has come, all of it in this process.

    Attributes
    ----------
    state
        What :class:`Training` goes on with.
    history
        Of all batches.
    epoch, batches
        Passes that are over, and batches of the next that were learned from.
    is_good
        Whether all losses and steps were finite.
    """

    state: State
    history: LearningHistory
    epoch: int = 0
    batches: int = 0
    is_good: bool = True

    def passed(self, state: State) -> LearningRun:
        """Return the run with what the end of a pass has made of its state."""
        return replace(self, state=state)

    def after(self, state: State, history: LearningHistory, is_good: bool) -> LearningRun:
        """Return the run after some batches more."""
        joined = self.history.followed_by(history)
        return replace(
            self, state=state, history=joined, batches=self.batches + len(history), is_good=is_good
        )

    def held_out(self, loss: float) -> LearningRun:
        """Return the run with the loss on rows that are not learned from."""
        return replace(self, history=self.history.followed_by(LearningHistory(held_out=np.array([loss]))))

    def ended(self) -> LearningRun:
        """Return the run after its pass."""
        return replace(self, epoch=self.epoch + 1, batches=0) if self.is_good else self

    def is_over(self, epoch: int, patience: int | None, tol: float) -> bool:
        """Tell whether a pass is behind, or need not be taken."""
        return epoch < self.epoch or not self.is_good or self.is_settled(patience, tol)

    def is_settled(self, patience: int | None, tol: float) -> bool:
        """Tell whether so many passes have gone without a loss that is less by ``tol`` than the least."""
        if patience is None or not self.epoch:
            return False
        losses = self.history.held_out
        if not losses.size:
            losses = np.array([self.history.mean_loss(one) for one in range(self.epoch)])
        least = np.minimum.accumulate(np.concatenate([[np.inf], losses[:-1]]))
        gained = np.flatnonzero(losses < least - tol)
        last = gained[-1] if gained.size else -1
        return bool(len(losses) - 1 - last >= whole(patience, "patience", "Learner"))


class PieceSource(Protocol):
    """Where a pass's pieces come from."""

    @property
    def waited_seconds(self) -> float:
        """How long was waited for rows so far."""

    @property
    def num_batches(self) -> int | None:
        """Of a pass; None where only going through tells."""

    def first(self) -> tuple[DistArray, Any]:
        """Return the X and y of the first batch."""

    def pieces(self, epoch: int, start: int) -> Iterator[BatchPiece]:
        """Yield what is left of a pass after ``start`` batches."""


@dataclass(frozen=True)
class _Arrays:
    """Rows in memory."""

    X: DistArray
    y: Any
    batch_size: int
    waited_seconds: float = 0.0

    @property
    def num_batches(self) -> int:
        return -(-self.X.shape[0] // self.batch_size)

    def first(self) -> tuple[DistArray, Any]:
        return _given(self._whole.part(0, 1).over)

    def pieces(self, epoch: int, start: int) -> Iterator[BatchPiece]:
        """Yield what is left of a pass: its whole batches, and the shorter last one."""
        n, size = self.X.shape[0], self.batch_size
        if start < n // size:
            yield self._whole.part(start, n // size)
        if n % size and start <= n // size:
            yield self._whole.part(n // size, n // size + 1)._replace(batch=n % size)

    @property
    def _whole(self) -> BatchPiece:
        return BatchPiece((self.X,) if self.y is None else (self.X, self.y), self.batch_size, _given)


def _given(item: Any) -> tuple[DistArray, Any]:
    return (item[0], None) if len(item) == 1 else item


@dataclass(frozen=True)
class _Streams:
    """A source of batches."""

    source: Any

    @property
    def waited_seconds(self) -> float:
        return float(self.source.waited_seconds)

    @property
    def num_batches(self) -> int | None:
        known = self.source.known_batches
        return None if known is None else known * self.source.passes

    def first(self) -> tuple[DistArray, Any]:
        first = self.source.first
        return first.X, first.y

    def pieces(self, epoch: int, start: int) -> Iterator[BatchPiece]:
        """Yield the pieces of a pass but for batches that were learned from."""
        behind = 0
        # A pass of a source that repeats itself is several, each in an order of its own.
        first = epoch * self.source.passes
        for piece in (BatchPiece(*one[:3]) for one in self.source.loop_pieces(1, first)):
            count = piece.rows // piece.batch
            if behind + count > start:
                yield piece.part(max(start - behind, 0), count)
            behind += count


def source_from(X: Any, y: Any, batch_size: int = 0) -> PieceSource:
    """Return rows and targets, or a source that has both, as pieces of passes.

    Raises
    ------
    ShapeError, DTypeError, OptionError
        For anything other than rows, targets of another number, and targets beside a source.
    """
    if hasattr(X, "loop_pieces"):
        if y is not None:
            raise OptionError("Learner: leave y out: the source has its own targets")
        return cast(PieceSource, _Streams(X))
    rows = rows_from(X, "Learner")
    size = whole(batch_size, "batch_size", "Learner", least=0) or rows.shape[0]
    if y is not None:
        leaves, nesting = flatten(y)
        targets = [asarray(one) for one in leaves]
        for one in targets:
            if one.shape[:1] != rows.shape[:1]:
                raise ShapeError(f"Learner: y of shape {one.shape} for X of shape {rows.shape}")
        y = unflatten(nesting, targets)
    return _Arrays(rows, y, size)


def in_parts(pieces: Iterable[BatchPiece], longest: int | None) -> Iterator[BatchPiece]:
    """Yield pieces of ``longest`` batches at most."""
    for piece in pieces:
        count = piece.rows // piece.batch
        size = count if longest is None else whole(longest, "checkpoint_every", "Learner")
        for start in range(0, count, size):
            yield piece.part(start, min(start + size, count))


@dataclass(frozen=True)
class Training:
    """The step of a learner, and what its state is made of."""

    model: Any
    optimizer: Optimizer
    regularizers: tuple[Regularizer, ...]
    mixins: tuple[Mixin, ...]
    replicas: int
    merge_every: int

    def begun(self, X: DistArray, y: Any) -> LearningRun:
        """Return a run before its first batch."""
        parameters = {name: asarray(value) for name, value in self.model.start(X, y).items()}
        parameters = {name: one * 1.0 if one.dtype.kind != "f" else one for name, one in parameters.items()}
        for name, one in parameters.items():
            if one.sparse:
                raise DTypeError(f"Learner: the parameter {name!r} is sparse; start returns dense arrays")
        self.check(parameters)
        return LearningRun(here(self.started(parameters)), LearningHistory())

    def going_on(self, parameters: Parameters, count: int) -> LearningRun:
        """Return a run that goes on from parameters learned in ``count`` batches; nothing is computed."""
        state, behind = self.started(parameters), asarray(float(count))
        replicas = [{**one, "count": behind} for one in state["replicas"]]
        return LearningRun({"replicas": replicas, "count": behind}, LearningHistory())

    def started(self, parameters: Parameters) -> State:
        """Return the state before the first batch."""
        kept = self.optimizer.start(parameters) if self.has_gradient else {}
        replica = {"parameters": parameters, "optimizer": kept, "count": asarray(0.0)}
        return {"replicas": [replica] * self.replicas, "count": asarray(0.0)}

    @property
    def has_gradient(self) -> bool:
        """Whether the model gives one; else it has steps of its own."""
        return getattr(self.model, "gradient", None) is not None

    def check(self, parameters: Parameters) -> None:
        """Look at whether model, regularizers and mixins go together."""
        if not self.has_gradient and getattr(self.model, "update", None) is None:
            raise OptionError("Learner: the model has neither gradient nor update; give one of them")
        given: list[Regularizer | Mixin] = [*self.regularizers, *self.mixins]
        for one in given:
            names = (one.where,) if isinstance(one.where, str) else one.where or ()
            if unknown := [name for name in names if name not in parameters]:
                near = suggestion(unknown[0], parameters)
                raise OptionError(f"Learner: {one!r} is for the parameter {unknown[0]!r}; {near}")

    def run(self, state: State, piece: BatchPiece) -> tuple[State, dict[str, Floats], bool]:
        """Learn from the batches of a piece; returns the state, figures of each batch, and if all are finite.

        Where a batch's are not, the state is that before it.
        """
        looped = partial(
            iterate,
            lambda state, item: self._step(state[0], *piece.given(item)),
            until=lambda old, new: ~(np.isfinite(new[1]["loss"]) & np.isfinite(new[1]["step"])),
            over=piece.over,
            batch=piece.batch,
        )
        start = (lazily(state), self._no_figures())
        (new, _), taken, figures = here(looped(start, collect=lambda new: new[1]))
        figures = {name: values[: int(taken)] for name, values in figures.items()}
        is_good = bool(np.isfinite(figures["loss"][-1]) and np.isfinite(figures["step"][-1]))
        if not is_good:  # all of it once more but for the last; the same bits
            (new, _), _ = here(looped(start, max_iterations=int(taken) - 1))
        return new, figures, is_good

    def _no_figures(self) -> dict[str, Any]:
        names = ["loss", "step", "norm", *(_name(one) for one in self.mixins)]
        return {name: asarray(0.0) for name in names}

    def _step(self, state: State, X: DistArray, y: Any) -> tuple[State, dict[str, Any]]:
        # The replica whose turn it is comes first; it goes to the end.
        replica, *others = state["replicas"]
        old, count = replica["parameters"], replica["count"]
        loss = self._loss(old, X, y)
        if self.has_gradient:
            gradient = self.with_slopes(old, self.model.gradient(old, X, y))
            moved, kept, rates = self.optimizer.step(replica["optimizer"], old, gradient, count)
        else:
            moved, kept, rates = self.model.update(old, X, y), {}, dict.fromkeys(old, asarray(1.0))
        new = {
            name: self._nearest(name, value, rates[name]).astype(old[name].dtype)
            for name, value in moved.items()
        }
        if self.has_gradient:
            kept = self.optimizer.settle(kept, new, count)
        figures = {"loss": loss, "step": norm_of([new[name] - one for name, one in old.items()])}
        figures["norm"] = norm_of(list(new.values()))
        figures |= self.figures_of(old)
        replicas = [*others, {"parameters": new, "optimizer": kept, "count": count + 1}]
        seen = state["count"] + 1
        return {"replicas": self._merged(replicas, seen), "count": seen}, figures

    def _loss(self, parameters: Parameters, X: DistArray, y: Any) -> Any:
        try:
            return self.model.loss(parameters, X, y)
        except (AttributeError, TypeError) as error:  # what None gives in arithmetic
            if y is not None:
                raise
            name = type(self.model).__name__
            raise OptionError(
                f"Learner: y is None, and {name}.loss fails without targets ({error}): "
                "give y, or a source with targets"
            ) from error

    def figures_of(self, parameters: Parameters) -> dict[str, Any]:
        """Return the figures of mixins, by name."""
        figures = {}
        for mixin in self.mixins:
            values = [
                mixin.figure(value) for name, value in parameters.items() if is_matrix(mixin, name, value)
            ]
            figures[_name(mixin)] = sum(values, start=asarray(0.0))
        return figures

    def check_gradient(self, parameters: Parameters, gradient: Parameters) -> None:
        """Look at whether a gradient is one of these parameters."""
        if set(gradient) != set(parameters):
            raise OptionError(
                f"Learner: the gradient has {', '.join(map(repr, gradient))}, and the parameters are "
                f"{', '.join(map(repr, parameters))}"
            )

    def with_slopes(self, parameters: Parameters, gradient: Parameters) -> Parameters:
        """Return a gradient with the slopes of regularizers and mixins."""
        self.check_gradient(parameters, gradient)
        for name, value in parameters.items():
            slopes = [one.slope(value) for one in self.regularizers if is_for(one, name)]
            slopes += [
                one.weight * one.slope(value)
                for one in self.mixins
                if one.weight and is_matrix(one, name, value)
            ]
            gradient = {**gradient, name: cast(DistArray, sum(slopes, start=gradient[name]))}
        return gradient

    def _nearest(self, name: str, value: Any, rate: Any) -> DistArray:
        for one in self.regularizers:
            value = one.proximal(value, rate) if is_for(one, name) else value
        return asarray(value)

    def _merged(self, replicas: list[Any], seen: DistArray) -> list[Any]:
        if self.replicas == 1:
            return replicas

        def mean() -> list[Parameters]:
            return [_mean(replicas)] * self.replicas

        is_time = seen % (self.replicas * self.merge_every) == 0
        parameters = cond(is_time, mean, lambda: [one["parameters"] for one in replicas])
        return [{**one, "parameters": new} for one, new in zip(replicas, parameters, strict=True)]

    def after_pass(self, state: State) -> State:
        """Return the state when a pass is over."""
        return state

    def has_ended(self, state: State) -> bool:
        """Tell whether further passes would change nothing."""
        return False

    def result(self, state: State) -> Parameters:
        """Return the parameters to predict with."""
        replicas = [
            {"parameters": self.optimizer.result(one["optimizer"], one["parameters"])}
            if self.has_gradient
            else one
            for one in state["replicas"]
        ]
        return _mean(replicas)

    def loss(self, state: State, pieces: Iterable[BatchPiece]) -> float:
        """Return the mean loss of rows."""
        parameters = lazily(self.result(state))
        total, rows = 0.0, 0
        for piece in pieces:

            def step(total: DistArray, item: Any, given: Callable[[Any], Any] = piece.given) -> DistArray:
                X, y = given(item)
                loss: DistArray = total + self._loss(parameters, X, y)
                return loss

            total += piece.batch * float(iterate(step, asarray(0.0), over=piece.over, batch=piece.batch)[0])
            rows += piece.rows
        return total / rows


def _name(mixin: Mixin) -> str:
    name = type(mixin).__name__
    return name if mixin.where is None else f"{name} of {mixin.where}"


def is_for(one: Regularizer | Mixin, name: str) -> bool:
    """Tell whether a regularizer or mixin is for a parameter."""
    if one.where is None:
        return name != "intercept"
    return name in ((one.where,) if isinstance(one.where, str) else one.where)


def is_matrix(mixin: Mixin, name: str, value: DistArray) -> bool:
    """Tell whether a mixin is for a parameter, and it has columns."""
    return is_for(mixin, name) and value.ndim == 2


def norm_of(values: Sequence[DistArray]) -> DistArray:
    """Return the Euclidean norm of all elements of some arrays."""
    return cast(DistArray, np.sqrt(sum(((one * one).sum() for one in values), start=asarray(0.0))))


def _mean(replicas: Sequence[Any]) -> Parameters:
    if len(replicas) == 1:
        return cast(Parameters, replicas[0]["parameters"])
    return {
        name: sum((one["parameters"][name] for one in replicas[1:]), start=first) / len(replicas)
        for name, first in replicas[0]["parameters"].items()
    }


def here(value: Any) -> Any:
    """Return nested arrays as NumPy's, by one run: a handle on what a loop gave would hold that loop."""
    leaves, nesting = flatten(value)
    arrays = [asarray(one) for one in leaves]
    evaluator().persist([one.expression for one in arrays])
    return unflatten(nesting, [np.asarray(one) for one in arrays])


def lazily(value: Any) -> Any:
    """Return nested arrays as DistArrays."""
    leaves, nesting = flatten(value)
    return unflatten(nesting, [asarray(one) for one in leaves])
