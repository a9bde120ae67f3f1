"""A learner: a model, an optimizer, regularizers and mixins, learning from batches by one recorded step."""

from __future__ import annotations

import json
import os
import re
import time
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol, Self, cast

import numpy as np

from matnb.errors import (
    ConvergenceWarning,
    DTypeError,
    FileFormatError,
    MissingFileError,
    OptionError,
    ShapeError,
    warn,
)
from matnb.lazy.array import DistArray
from matnb.lazy.batch_turns import BatchTurns
from matnb.lazy.creation import asarray
from matnb.lazy.tree import flatten, unflatten
from matnb.learn.arguments import rows_from, whole
from matnb.learn.estimator import Estimator
from matnb.learn.mixins import Mixin
from matnb.learn.named_arguments import LearnerPart
from matnb.learn.optimize.optimizers import AdaGrad, Optimizer, Parameters
from matnb.learn.optimize.pass_optimizers import PassOptimizer
from matnb.learn.pass_training import PassTraining
from matnb.learn.regularizers import Regularizer
from matnb.learn.training import LearningHistory, LearningRun, PieceSource, Training, in_parts, source_from


class Learnable(Protocol):
    """What a learner takes as a model: its own are in ``mn.learn.models``, a user's is :class:`Model`."""

    def start(self, X: DistArray, y: Any) -> Mapping[str, Any]:
        """Return the parameters to begin with, by name; X and y are the first batch."""

    def loss(self, parameters: Parameters, X: DistArray, y: Any) -> DistArray:
        """Return the mean loss of rows, 0-d."""

    def predict(self, parameters: Parameters, X: DistArray) -> Any:
        """Return what is predicted of rows."""


@dataclass(frozen=True)
class Model(LearnerPart):
    """A user-defined model, given as functions of DistArrays.

    Parameters
    ----------
    start
        ``start(X, y)`` returns the initial parameters, a dict of dense arrays; X and y are the first batch,
        and may be computed.
    loss
        ``loss(parameters, X, y)`` returns the mean loss of a batch, a scalar.
    gradient
        ``gradient(parameters, X, y)`` returns the gradient of that mean, a dict with the same names.
    predict
        ``predict(parameters, X)`` returns the predictions for rows.
    update
        Instead of ``gradient``: ``update(parameters, X, y)`` returns the parameters after the batch.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> from scipy.special import expit
    >>> def start(X, y):
    ...     return {"weights": np.zeros(X.shape[1]), "intercept": 0.0}
    >>> def score(parameters, X):
    ...     return X @ parameters["weights"] + parameters["intercept"]
    >>> def loss(parameters, X, y):
    ...     z = score(parameters, X)
    ...     return (np.logaddexp(0, z) - y * z).mean()
    >>> def gradient(parameters, X, y):
    ...     residuals = (expit(score(parameters, X)) - y) / X.shape[0]
    ...     return {"weights": X.T @ residuals, "intercept": residuals.sum()}
    >>> def predict(parameters, X):
    ...     return score(parameters, X) > 0
    >>> model = mn.learn.Model(start, loss, gradient, predict)
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = (X @ [1.0, -2.0, 0.5] > 0.1).astype(float)
    >>> learner = mn.learn.Learner(model, optimizer=mn.learn.AdaGrad(0.5)).fit(X, y, epochs=5, batch_size=50)
    >>> bool((learner.predict(X) == (y > 0)).mean() > 0.98), len(learner.history_)
    (True, 100)
    """

    start: Callable[[DistArray, Any], Mapping[str, Any]]
    loss: Callable[[Parameters, DistArray, Any], DistArray]
    gradient: Callable[[Parameters, DistArray, Any], Parameters] | None = None
    predict: Callable[[Parameters, DistArray], Any] | None = None
    update: Callable[[Parameters, DistArray, Any], Parameters] | None = None


class Learner(Estimator):
    """Train a model on batches of rows, with an optimizer, regularizers and mixins.

    Canny, Zhao 2013, "BIDMach: Large-scale Learning with Zero Memory Allocation", section 2 and figure 1.
    Each batch is divided among all workers. One step is recorded and repeated by :func:`matnb.iterate`: the
    loss of the batch, its gradient, the gradients of regularizers and mixins, the optimizer's step, and the
    proximal steps of the regularizers in order. If the model's functions use only bit-reproducible
    operations, the result is bit-identical for any number of workers and threads.

    Parameters
    ----------
    model
        One of ``mn.learn.models``, or a :class:`Model` of your own.
    optimizer
        ``SGD``, ``AdaGrad``, ``Adam`` or ``Average``; by default ``AdaGrad()``. A model with ``update`` has
        none. ``LBFGS``, ``ConjugateGradient`` and ``Newton`` sum the loss and the gradient over all batches
        of a pass, and then take a step or try another step length; they stop before ``epochs`` passes on
        convergence.
    regularizers
        ``L1``, ``L2``, ``ElasticNetPenalty``, ``NonNegative``, ``MaxNorm``, applied in this order.
    mixins
        ``CosineSimilarity``, ``Correlation``, ``Entropy``, ``Perplexity``, ``Top``.
    replicas
        Number of copies of the model, which batches go to in turn.
    merge_every
        Replicas are replaced by their mean each time each of them has learned from this many batches.
        Predictions use the mean.
    patience
        Stop after this many consecutive passes without an improvement of the best loss: the loss on
        ``validation``, or else the mean of the pass in ``history_``.
    tol
        The minimum improvement of the best loss.
    checkpoint
        File for the state of training, rewritten every ``checkpoint_every`` batches and after each pass;
        ``fit(..., resume=True)`` continues from it.
    checkpoint_every
        Batches.

    Attributes
    ----------
    parameters_
        The parameters used for predictions, a dict of DistArrays.
    history_
        A :class:`LearningHistory`.
    n_iter_, n_features_in_
        Number of batches learned from, and of columns of X.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = mn.learn.models.GeneralizedLinear()
    >>> learner = mn.learn.Learner(model, optimizer=mn.learn.SGD(0.5))
    >>> learner = learner.fit(X, X @ [1.0, -1.0] + 2, epochs=20, batch_size=20)
    >>> learner.parameters_["weights"].compute().round(3)
    array([ 1., -1.])
    """

    parameters_: Parameters
    history_: LearningHistory
    n_iter_: int
    n_features_in_: int

    def __init__(
        self,
        model: Any,
        optimizer: Optimizer | PassOptimizer | None = None,
        regularizers: Sequence[Regularizer] = (),
        mixins: Sequence[Mixin] = (),
        replicas: int = 1,
        merge_every: int = 1,
        patience: int | None = None,
        tol: float = 0.0,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 256,
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.regularizers = regularizers
        self.mixins = mixins
        self.replicas = replicas
        self.merge_every = merge_every
        self.patience = patience
        self.tol = tol
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        epochs: int = 1,
        batch_size: int = 1000,
        validation: Any = None,
        resume: bool = False,
    ) -> Self:
        """Train from scratch, in ``epochs`` passes over rows.

        Parameters
        ----------
        X
            n x p, sparse or dense; or a source of ``mn.sources``, which has the targets.
        y
            Targets as the model expects them: an array with n rows, or several in tuples or dicts.
        epochs
            Passes.
        batch_size
            Rows per batch; the last of a pass may have fewer. A source has its own.
        validation
            Held-out rows, as a pair of X and y or a source.
        resume
            Continue from the file ``checkpoint`` of a run with the same arguments, if it exists; the result
            is bit-identical to that of an uninterrupted run.

        Raises
        ------
        ShapeError, DTypeError, OptionError
            For inconsistent rows, targets or arguments.
        FileFormatError
            For a checkpoint of another model.

        Warns
        -----
        ConvergenceWarning
            If a loss or a step becomes NaN or infinite; the model from before that batch is kept.
        """
        epochs = whole(epochs, "epochs", "Learner")
        training = self._training()
        source = source_from(X, y, batch_size)
        rows, targets = source.first()
        run = training.begun(rows, targets)
        if resume and self.checkpoint is None:
            raise OptionError("Learner: resume=True without checkpoint=: give the file to resume from")
        if resume and Path(cast(Any, self.checkpoint)).exists():
            run = _loaded(cast(Any, self.checkpoint), run, self.model)
        elif self.checkpoint is not None:  # of an earlier run there is none to resume from any more
            _save(self.checkpoint, run, self.model)
        given = validation if isinstance(validation, tuple) else (validation, None)
        held = None if validation is None else source_from(*given)
        with BatchTurns(epochs, source.num_batches, run.epoch, lambda: source.waited_seconds) as turns:
            for epoch in range(epochs):
                if run.is_over(epoch, self.patience, self.tol) or training.has_ended(run.state):
                    continue
                run = self._pass(training, run, source, epoch, turns)
                if run.is_good:
                    run = run.passed(training.after_pass(run.state))
                if held is not None and run.is_good:
                    loss = training.loss(run.state, held.pieces(0, 0))
                    run = run.held_out(loss)
                    turns.held_out(loss)
                run = run.ended()
                if self.checkpoint is not None:
                    _save(self.checkpoint, run, self.model)
        return self._keep(training, run, rows.shape[1])

    def partial_fit(self, X: Any, y: Any = None, *, batch_size: int = 0) -> Self:
        """Learn from one more batch of rows.

        Parameters
        ----------
        X, y
            As for ``fit``.
        batch_size
            Rows per batch, to split the rows into several batches.
        """
        if isinstance(self.optimizer, PassOptimizer):
            name = type(self.optimizer).__name__
            raise OptionError(f"Learner: {name} takes whole passes; partial_fit is for SGD, AdaGrad or Adam")
        training = self._training()
        source = source_from(X, y, batch_size)
        rows, targets = source.first()
        run = getattr(self, "_run", None) or training.begun(rows, targets)
        p = getattr(self, "n_features_in_", rows.shape[1])
        if rows.shape[1] != p:
            raise ShapeError(f"Learner: X has {rows.shape[1]} features, but it was fitted to {p}")
        with BatchTurns(1, source.num_batches, run.epoch, lambda: source.waited_seconds) as turns:
            run = self._pass(training, run, source, run.epoch, turns, start=0).ended()
        return self._keep(training, run, p)

    def predict(self, X: Any) -> Any:
        """Return the model's predictions for the rows of X."""
        self._check_fitted("predict")
        return self.model.predict(self.parameters_, rows_from(X, "Learner", self.n_features_in_))

    def loss(self, X: Any, y: Any = None, *, batch_size: int = 0) -> float:
        """Return the mean loss of rows, given as for ``fit``; ``batch_size=0`` takes all rows at once."""
        self._check_fitted("loss")
        return self._training().loss(self._run.state, source_from(X, y, batch_size).pieces(0, 0))

    def is_settled(self) -> bool:
        """Return whether the stopping rule given by ``patience`` is met."""
        self._check_fitted("is_settled")
        return self._run.is_settled(self.patience, self.tol)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the parameters and the optimizer's state to an ``.npz`` file."""
        self._check_fitted("save")
        _save(path, self._run, self.model)

    def load(self, path: str | os.PathLike[str], X: Any, y: Any = None) -> Self:
        """Load what a learner with the same model and optimizer saved.

        Parameters
        ----------
        path
            The file.
        X, y
            At least one row, or a source, to determine the shapes of the parameters.

        Raises
        ------
        MissingFileError
            If the file does not exist.
        FileFormatError
            For a file of another model or optimizer, or one not written by a learner.
        """
        training = self._training()
        rows, targets = source_from(X, y, 0).first()
        run = _loaded(path, training.begun(rows, targets), self.model)
        return self._keep(training, run, rows.shape[1])

    def _begin_at(self, parameters: Parameters, count: int) -> None:
        # As if ``partial_fit`` had learned these parameters in so many batches.
        self._run = self._training().going_on(parameters, count)

    def _optimizer_state(self) -> dict[str, Any]:
        # Of the first replica, what the optimizer keeps for its next step.
        kept: dict[str, Any] = self._run.state["replicas"][0]["optimizer"]
        return kept

    def _training(self) -> Training:
        optimizer = AdaGrad() if self.optimizer is None else self.optimizer
        is_whole = isinstance(optimizer, PassOptimizer)
        if isinstance(optimizer, type) or not (is_whole or hasattr(optimizer, "step")):
            raise DTypeError(f"Learner: optimizer={optimizer!r}; give an instance, such as mn.learn.SGD(0.1)")
        return (PassTraining if is_whole else Training)(
            self.model,
            cast(Any, optimizer),
            _listed(self.regularizers, "proximal", "regularizers"),
            _listed(self.mixins, "figure", "mixins"),
            whole(self.replicas, "replicas", "Learner"),
            whole(self.merge_every, "merge_every", "Learner"),
        )

    def _pass(
        self,
        training: Training,
        run: LearningRun,
        source: PieceSource,
        epoch: int,
        turns: BatchTurns,
        start: int | None = None,
    ) -> LearningRun:
        longest = self.checkpoint_every if self.checkpoint is not None else None
        start = run.batches if start is None else start
        waited, began = source.waited_seconds, time.perf_counter()
        for piece in in_parts(source.pieces(epoch, start), longest):
            with turns.loop(piece.batch, epoch, start):
                state, collected, is_good = training.run(run.state, piece)
            seconds, waiting = time.perf_counter() - began, source.waited_seconds - waited
            count = len(collected["loss"])
            start += count
            turns.done(count, float(collected["loss"].mean()))
            flops, accessed_bytes = turns.taken()
            rows = np.full(count, float(piece.batch))
            history = LearningHistory(
                np.full(count, float(epoch)),
                rows,
                collected.pop("loss"),
                collected.pop("step"),
                collected.pop("norm"),
                np.full(count, rows.sum() / seconds),
                np.full(count, min(waiting / seconds, 1.0)),
                np.full(count, flops / seconds),
                np.full(count, accessed_bytes / seconds),
                figures=collected,
            )
            run = run.after(state, history, is_good)
            if not is_good:
                _warn(history, run.batches)
                break
            if longest is not None:
                _save(cast(Any, self.checkpoint), run, self.model)
            waited, began = source.waited_seconds, time.perf_counter()
        return run

    def _keep(self, training: Training, run: LearningRun, num_features: int) -> Self:
        parameters = {name: asarray(value) for name, value in training.result(run.state).items()}
        learned = {"history": run.history, "n_iter": int(run.state["count"]), "n_features_in": num_features}
        self._learn(parameters=parameters, **learned)
        self._run = run
        return self


def _listed(given: Any, has: str, name: str) -> tuple[Any, ...]:
    # One alone is a list of one.
    listed = [given] if hasattr(given, has) else given
    if not isinstance(listed, Sequence) or any(
        isinstance(one, type) or not hasattr(one, has) for one in listed
    ):
        raise DTypeError(f"Learner: {name}={given!r}; give a list of those of mn.learn")
    return tuple(listed)


def _warn(history: LearningHistory, batch: int) -> None:
    warn(
        f"Learner: batch {batch - 1} of pass {int(history.epoch[-1])} has the loss {history.loss[-1]:.6g} "
        f"and a step of {history.step[-1]:.6g}: stopped, and the model as it was before that batch is kept; "
        "give a smaller learning_rate, or look at that batch",
        ConvergenceWarning,
    )


def _save(path: str | os.PathLike[str], run: LearningRun, model: object) -> None:
    # A file that is half written never has the name.
    leaves, nesting = flatten(run.state)
    head: dict[str, Any] = {"model": type(model).__name__, "paths": list(nesting.paths("state"))}
    head |= {"epoch": run.epoch, "batches": run.batches, "is_good": run.is_good}
    arrays = {f"state {place}": np.asarray(one) for place, one in enumerate(leaves)}
    arrays |= {f"history {one.name}": getattr(run.history, one.name) for one in fields(run.history)[:-1]}
    arrays |= {f"figure {name}": values for name, values in run.history.figures.items()}
    path = Path(path)
    unfinished = path.with_name(f"{path.name}.unfinished")
    with unfinished.open("wb") as file:
        np.savez(
            file,
            allow_pickle=False,
            head=json.dumps(head),
            **arrays,
        )
    os.replace(unfinished, path)


def _loaded(path: str | os.PathLike[str], like: LearningRun, model: object) -> LearningRun:
    leaves, nesting = flatten(like.state)
    shapes = [np.asarray(one).shape for one in leaves]
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            head = json.loads(str(file["head"]))
            found = [file[f"state {place}"] for place in range(len(head["paths"]))]
            history = {one.name: file[f"history {one.name}"] for one in fields(like.history)[:-1]}
            figures = {
                name.removeprefix("figure "): file[name] for name in file.files if name.startswith("figure ")
            }
    except (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, FileNotFoundError):
            raise MissingFileError(f"Learner: there is no file {str(path)!r}") from None
        raise FileFormatError(str(path), f"this file was not saved by a Learner ({error})") from None
    there = dict(zip(nesting.paths("state"), shapes, strict=True))
    saved = dict(zip(head["paths"], [one.shape for one in found], strict=True))
    name = type(model).__name__
    if head["model"] != name or there != saved:
        raise FileFormatError(
            str(path),
            f"{_difference(head['model'], name, saved, there)}; "
            "give the same model, optimizer, replicas and number of features",
        )
    state = unflatten(nesting, [_as_it_was(one) for one in found])
    return LearningRun(
        state, LearningHistory(**history, figures=figures), head["epoch"], head["batches"], head["is_good"]
    )


def _difference(
    saved_model: str, model: str, saved: Mapping[str, tuple[int, ...]], there: Mapping[str, tuple[int, ...]]
) -> str:
    # What is the first to be different, in the words of the model: "w" of "state['replicas'][0]['w']".
    if saved_model != model:
        return f"it has a {saved_model}, and this is a Learner of a {model}"
    place = next(one for one in {**there, **saved} if saved.get(one) != there.get(one))
    name = re.findall(r"\w+", place)[-1]
    if place in saved and place in there:
        return f"its {name!r} has shape {saved[place]}, and that of this Learner {there[place]}"
    if place in there:
        return f"it lacks the {name!r} of this Learner"
    return f"it has a {name!r}, which this Learner lacks"


def _as_it_was(value: Any) -> Any:
    return value[()] if not value.ndim else value
